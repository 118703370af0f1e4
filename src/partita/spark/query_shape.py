"""Shapes of a streaming query that may not take part in a group.

State and membership do not go together, because the state of a key stays where it is while its partition moves away.
`partita.spark.query_watch` finds the shape in a running query's plan, the pipeline runner knows it beforehand.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from partita.spark.settings.options import SourceOptions, query_key_of

STATEFUL = frozenset(
    {
        "Aggregate",
        "Deduplicate",
        "DeduplicateWithinWatermark",
        "Distinct",
        "FlatMapGroupsInPandasWithState",
        "FlatMapGroupsWithState",
        "GlobalLimit",
        "TransformWithState",
        "TransformWithStateInPandas",
        "TransformWithStateInPySpark",
    }
)
"""Nodes of Spark's plan that keep state from batch to batch. A join does when both of its sides are streams."""


@dataclass(frozen=True, slots=True)
class QueryShape:
    """One streaming query: its sources of this format, the names of its stateful parts, its kind of progress.

    `ends_early`: Spark is older than 4.2, and Trigger.AvailableNow ends a source with limits after one batch.
    """

    sources: tuple[SourceOptions, ...]
    stateful: tuple[str, ...] = ()
    is_async: bool = False
    ends_early: bool = False


def refusals(query: QueryShape, others: Iterable[QueryShape] = ()) -> tuple[str, ...]:
    """Why the query must not run beside these others; empty when it may."""
    members = [source for source in query.sources if source.member]
    found = []
    if members and query.stateful:
        found.append(
            f"groupMode=member does not go with state ({', '.join(sorted(set(query.stateful)))}): the state of a key "
            f"would stay here while its partition moves to another member; use groupMode=commit"
        )
    if query.is_async and any(source.member or source.group_decides for source in query.sources):
        found.append(
            "asynchronous progress tracking does not go with groupMode=member or offsetAuthority=group: batches are "
            "committed to the group before Spark has logged them as done"
        )
    limited = [name for source in query.sources for name in source.limits.names] if query.ends_early else []
    if limited:
        found.append(
            f"{', '.join(sorted(set(limited)))} with Trigger.AvailableNow needs Spark 4.2: before, a run ends after "
            "its first batch; leave limits out there, or use another trigger"
        )
    groups = [source.group for source in query.sources if source.group and (source.commits or source.member)]
    for group in sorted({group for group in groups if groups.count(group) > 1}):
        found.append(
            f"two sources of one query are in group {group} and would split or overwrite it; give each its own"
        )
    taken = {_claim(source) for other in others for source in other.sources} - {None}
    for source in query.sources:
        if _claim(source) in taken:
            found.append(
                f"another query of this session runs in group {source.group}: give each query a group of its own, or "
                f"groupMode=member and each a queryName of its own"
            )
    return tuple(found)


def _claim(source: SourceOptions) -> tuple[str, str] | None:
    """Return the claim only one query at a time may have: a group in commit mode, a name within it in member mode."""
    if source.group is None or not (source.commits or source.member):
        return None
    return source.group, query_key_of(source.query_name, None, source.topics) if source.member else ""
