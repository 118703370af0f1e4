"""The first page: what needs attention, then the cluster in numbers and the last rebalances."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from partita.dashboard.attention import URGENT, Finding
from partita.dashboard.models.rows import GroupRow, GroupRows
from partita.observe.history import RebalanceSeen
from partita.wording import count

SHOWN_OF_A_KIND = 8
REBALANCES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Attention:
    """A group that needs attention, with the worst reason and how many more there are."""

    row: GroupRow
    finding: Finding
    others: int
    is_urgent: bool


@dataclass(frozen=True, slots=True)
class Overview:
    """The first page. Rates are in records per second over the last minute.

    `hidden` counts by kind the findings that are not shown. Internal topics are not counted.
    """

    sentence: str
    attention: tuple[Attention, ...]
    attention_total: int
    hidden: tuple[tuple[str, int], ...]
    groups: int
    members: int
    topics: int
    partitions: int
    nodes: int
    nodes_failing: tuple[str, ...]
    partitions_failing: int
    produce_rate: float | None
    rebalances: tuple[RebalanceSeen, ...]
    watched_ms: int


def overview(rows: GroupRows) -> Overview:
    """Return the first page as of now."""
    seen = rows.observed
    found = rows.ranked_findings()
    kinds = Counter[str]()
    shown = []
    for row, finding in found:
        kinds[finding.kind] += 1
        if kinds[finding.kind] <= SHOWN_OF_A_KIND:
            shown.append(Attention(row, finding, len(row.findings) - 1, finding.rank < URGENT))
    logs = [log for topic in seen.topics.values() if not topic.is_internal for log in topic.logs]
    rates = [seen.history.produce_rate((log.topic, log.partition), seen.seen_ms) for log in logs]
    known = [rate for rate in rates if rate is not None]
    return Overview(
        attention_sentence(len(found), len(seen.groups)),
        tuple(shown),
        len(found),
        tuple((kind, many - SHOWN_OF_A_KIND) for kind, many in kinds.items() if many > SHOWN_OF_A_KIND),
        len(seen.groups),
        sum(len(group.members) for group in seen.groups.values()),
        sum(not topic.is_internal for topic in seen.topics.values()),
        len(logs),
        len(seen.nodes),
        tuple(f"node {node.id}: {node.error}" for node in seen.nodes.values() if node.error),
        sum(log.error is not None for log in seen.logs.values()),
        sum(known) if known else None,
        tuple(rows.accounts.last_of_all(REBALANCES_SHOWN)),
        seen.seen_ms - (seen.history.began_ms or seen.seen_ms),
    )


def attention_sentence(worrying: int, groups: int) -> str:
    """Return the page's headline: "2 of 41 groups need attention"."""
    if not groups:
        return "There are no consumer groups yet"
    if not worrying:
        return "The only group is fine" if groups == 1 else f"All {groups:,} groups are fine"
    if groups == 1:
        return "The only group needs attention"
    return f"{worrying:,} of {count(groups, 'group')} {'needs' if worrying == 1 else 'need'} attention"
