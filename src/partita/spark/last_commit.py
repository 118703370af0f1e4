"""Commits the last batch of a query that was stopped, so that its group shows no false lag afterwards."""

from __future__ import annotations

import ast
import json
import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from partita.errors import GroupAuthorizationFailedError, KafkaError
from partita.lazy import later
from partita.options import ConfigError
from partita.spark.planning.group_progress import CommitBook, query_key
from partita.spark.planning.lookups import CommitRefused
from partita.spark.planning.offsets import OffsetFormatError, StreamOffset, decode
from partita.spark.settings.options import SourceOptions, parse_source

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from partita.spark.cluster import broker_link, cluster_lookups
else:
    broker_link = later("partita.spark.cluster.broker_link")
    cluster_lookups = later("partita.spark.cluster.cluster_lookups")

log = logging.getLogger("partita.spark")


def commit_stopped(query: StreamingQuery, options: Mapping[str, str]) -> None:
    """Commit the last batch of a stopped query to its group, as `session()` does by itself in a classic session.

    For Spark Connect, where the client cannot see which group a query has. `options` are the read's; its groupMode has
    to be commit. A commit is never lowered, and one that fails is logged. Raises ConfigError for wrong options.
    """
    try_commit(committing(options), ends_of(query.lastProgress))


def committing(options: Mapping[str, str]) -> SourceOptions:
    """Return the options of a read that commits to its group. Raises ConfigError for others."""
    source = parse_source(options)
    if not source.commits:
        raise ConfigError("the options must be those of a read with groupMode=commit")
    return source


def ends_of(progress: Any) -> list[Any]:
    """Return the end of each source in a progress report that has one; none before the first report."""
    return [end for found in progress["sources"] if (end := found["endOffset"])] if progress is not None else []


def offset_of(end: Any) -> Any:
    """The offset in a progress report. Before 4.2 pyspark gives the text of a Python dict in place of JSON."""
    if not isinstance(end, str):
        return end
    try:
        return json.loads(end)
    except json.JSONDecodeError:
        return ast.literal_eval(end)


def try_commit(options: SourceOptions, ends: Iterable[Any]) -> None:
    """Commit the ends of a complete batch (JSON text or dicts) that belong to these topics; log a failure."""
    for end in ends:
        try:
            proven = decode(offset_of(end))
            if all(options.topics.wants_partition(key) for key in proven.ranges):
                commit_proven(options, proven)
        except (KafkaError, CommitRefused, OffsetFormatError, ValueError, SyntaxError, AttributeError) as error:
            lacks_right = isinstance(error, GroupAuthorizationFailedError) or getattr(error, "lacks_right", False)
            level = logging.DEBUG if lacks_right else logging.WARNING  # the query itself has warned of a missing right
            log.log(level, "group %s: the last batch of the stopped query is not committed: %s", options.group, error)


def commit_proven(options: SourceOptions, proven: StreamOffset) -> None:
    """Commit the end of a complete batch for a query that no longer runs, unless the group has it already."""
    # Every process that Spark starts imports the package; few of them commit.
    lookups = cluster_lookups.ClusterLookups(broker_link.link_to(options.client))
    book = CommitBook(query_key(options))
    found = lookups.committed(options.group or "", sorted(proven.ranges))
    book.learn(found)
    due = {key: c for key, c in book.due(proven).items() if key not in found or book.is_ours(found[key])}
    if due:
        lookups.commit(options.group or "", due)
