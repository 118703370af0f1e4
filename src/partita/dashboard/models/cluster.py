"""The pages of topics, transactions and nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from partita.dashboard.models.rows import loses_in_ms, page_of
from partita.dashboard.words import slug, span
from partita.observe.history import Behind
from partita.observe.observed import Observed
from partita.observe.seen import CommitSeen, LogSeen, NodeSeen, TopicPartition, TopicSeen, TransactionSeen
from partita.wording import count

ROWS_MAX = 500
LATE_SHARE = 2
"""A transaction that is open for more than half of its timeout is worth a look."""


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic in one line. `worst_lag` is that of the group furthest behind; `warning` names who loses records."""

    name: str
    path: str
    partitions: int
    failing: int
    records: int | None
    produce_rate: float | None
    oldest_ms: int | None
    retention_ms: int | None
    groups: int
    worst_lag: int | None
    warning: str
    error: str | None


@dataclass(frozen=True, slots=True)
class TopicList:
    """One page of the list of topics. Internal ones are shown on demand."""

    topics: tuple[TopicRow, ...]
    total: int
    page: int
    pages: int
    text: str
    internal: bool


@dataclass(frozen=True, slots=True)
class ReadingGroup:
    """A group that reads a topic. `loses_in_ms`: until retention deletes what it has not read."""

    group_id: str
    path: str
    state: str
    lag: int | None
    behind: Behind | None
    loses_in_ms: int | None
    partitions: int


@dataclass(frozen=True, slots=True)
class LogRow:
    """A partition with its rate in records per second."""

    log: LogSeen
    records: int | None
    produce_rate: float | None
    is_under_replicated: bool


@dataclass(frozen=True, slots=True)
class TopicPage:
    """A topic: its reading groups and its partitions. `horizon` says how far back its records go."""

    row: TopicRow
    cleanup_policy: str | None
    horizon: str
    groups: tuple[ReadingGroup, ...]
    logs: tuple[LogRow, ...]


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node with the partitions it leads and the groups it coordinates."""

    node: NodeSeen
    is_controller: bool
    leads: int
    groups: int
    transactions: int
    produce_rate: float | None


@dataclass(frozen=True, slots=True)
class NodesPage:
    """All nodes."""

    nodes: tuple[NodeRow, ...]
    sentence: str


@dataclass(frozen=True, slots=True)
class TransactionRow:
    """A transactional id. `open_ms` is known while a transaction is open; `is_late`: half its timeout is over."""

    transaction: TransactionSeen
    open_ms: int | None
    is_late: bool


@dataclass(frozen=True, slots=True)
class TransactionsPage:
    """Transactional ids, those with the oldest open transaction first."""

    transactions: tuple[TransactionRow, ...]
    total: int
    sentence: str
    error: str | None


class Readers:
    """Which groups have committed offsets of which topics, for one state of the observer."""

    def __init__(self, observed: Observed) -> None:
        self.observed = observed
        self._version = -1
        self._commits: dict[str, dict[str, list[CommitSeen]]] = {}

    def of(self, topic: str) -> dict[str, list[CommitSeen]]:
        """The commits of each group that reads the topic."""
        # Grouped once for each state of the observer: the list of topics asks for every topic of a page.
        if self._version != self.observed.version:
            self._version = self.observed.version
            self._commits = {}
            for group in self.observed.groups.values():
                for commit in group.commits:
                    self._commits.setdefault(commit.topic, {}).setdefault(group.group_id, []).append(commit)
        return self._commits.get(topic, {})


def topic_list(readers: Readers, query: Mapping[str, str]) -> TopicList:
    """The topics that fit `q` (text), 50 to a page; with `internal=1` also those of Kafka itself."""
    seen = readers.observed
    text, internal = query.get("q", ""), query.get("internal") == "1"
    chosen = [
        topic
        for topic in seen.topics.values()
        if text.lower() in topic.name.lower() and (internal or not topic.is_internal)
    ]
    shown, page, pages = page_of(chosen, query)
    rows = tuple(_topic_row(seen, topic, reading_groups(readers, topic.name)) for topic in shown)
    return TopicList(rows, len(chosen), page, pages, text, internal)


def topic_page(readers: Readers, name: str) -> TopicPage | None:
    """One topic; None if it does not exist."""
    seen = readers.observed
    topic = seen.topics.get(name)
    if topic is None:
        return None
    groups = reading_groups(readers, name)
    logs = tuple(_log_row(seen, seen.logs.get((name, known.partition), known)) for known in topic.logs)
    return TopicPage(_topic_row(seen, topic, groups), topic.cleanup_policy, _horizon(seen, topic), tuple(groups), logs)


def _log_row(seen: Observed, log: LogSeen) -> LogRow:
    rate = seen.history.produce_rate((log.topic, log.partition), seen.seen_ms)
    return LogRow(log, _records(log), rate, len(log.isr) < len(log.replicas))


def reading_groups(readers: Readers, topic: str) -> list[ReadingGroup]:
    """The groups that have committed offsets of a topic, the one furthest behind first."""
    seen = readers.observed
    found = []
    for group_id, commits in readers.of(topic).items():
        group = seen.groups[group_id]
        known = [(commit, log) for commit in commits if (log := seen.logs.get((topic, commit.partition))) is not None]
        lags = [max(0, log.end - commit.offset) for commit, log in known if log.end is not None]
        ages = [seen.history.behind(log, commit.offset, group.seen_ms) for commit, log in known]
        # A group that has read everything loses nothing, however old its last record is.
        waiting = [commit for commit, log in known if log.end is not None and log.end > commit.offset]
        losses = [left for commit in waiting if (left := loses_in_ms(seen, commit, group.seen_ms)) is not None]
        found.append(
            ReadingGroup(
                group_id,
                f"/groups/{slug(group_id)}",
                group.state,
                sum(lags) if lags else None,
                max((age for age in ages if age is not None), key=lambda age: age.ms, default=None),
                min(losses, default=None),
                len(commits),
            )
        )
    return sorted(found, key=lambda group: (-(group.lag or 0), group.group_id))


def _topic_row(seen: Observed, topic: TopicSeen, groups: list[ReadingGroup]) -> TopicRow:
    logs = [seen.logs.get((topic.name, log.partition), log) for log in topic.logs]
    keys: list[TopicPartition] = [(topic.name, log.partition) for log in logs]
    rates = [rate for key in keys if (rate := seen.history.produce_rate(key, seen.seen_ms)) is not None]
    records = [_records(log) for log in logs]
    losing = [group for group in groups if group.loses_in_ms is not None and group.loses_in_ms < 24 * 3_600_000]
    return TopicRow(
        topic.name,
        f"/topics/{slug(topic.name)}",
        len(logs),
        sum(log.error is not None for log in logs),
        None if None in records else sum(filter(None, records)),
        sum(rates) if rates else None,
        min((log.oldest_ms for log in logs if log.oldest_ms is not None), default=None),
        topic.retention_ms,
        len(groups),
        groups[0].lag if groups else None,
        _loss(losing) if losing else "",
        topic.error,
    )


def _loss(losing: list[ReadingGroup]) -> str:
    first = min(losing, key=lambda group: group.loses_in_ms or 0)
    when = f"in {span(first.loses_in_ms)}" if first.loses_in_ms else "now"
    others = f", and {count(len(losing) - 1, 'other group')} later" if len(losing) > 1 else ""
    return f"{first.group_id} loses records to retention {when} unless it catches up{others}"


def _records(log: LogSeen) -> int | None:
    return None if log.start is None or log.end is None else max(0, log.end - log.start)


def _horizon(seen: Observed, topic: TopicSeen) -> str:
    oldest = [log.oldest_ms for log in topic.logs if log.oldest_ms is not None]
    back = f"its oldest record is {span(seen.seen_ms - min(oldest))} old" if oldest else "it holds no records"
    if topic.retention_ms is None:
        return back
    if "delete" not in (topic.cleanup_policy or "delete"):
        return f"it is compacted, so that the last record of each key stays; {back}"
    kept = "forever" if topic.retention_ms < 0 else f"for {span(topic.retention_ms)}"
    return f"it keeps records {kept}; {back}"


def nodes_page(seen: Observed) -> NodesPage:
    """Every node with its share of the work."""
    rows = []
    for node in seen.nodes.values():
        leads = [key for key, log in seen.logs.items() if log.leader == node.id]
        rates = [rate for key in leads if (rate := seen.history.produce_rate(key, seen.seen_ms)) is not None]
        rows.append(
            NodeRow(
                node,
                node.id == seen.controller_id,
                len(leads),
                sum(group.coordinator == node.id for group in seen.groups.values()),
                sum(one.coordinator == node.id for one in seen.transactions.values()),
                sum(rates) if rates else None,
            )
        )
    failing = sum(row.node.error is not None for row in rows)
    sentence = f"{count(failing, 'node')} of {len(rows):,} cannot be looked at" if failing else count(len(rows), "node")
    return NodesPage(tuple(rows), sentence)


def transactions_page(seen: Observed) -> TransactionsPage:
    """Transactional ids, the longest open transaction first; at most `ROWS_MAX`."""
    rows = []
    for one in seen.transactions.values():
        is_open = one.started_ms is not None and one.state in ("Ongoing", "PrepareCommit", "PrepareAbort")
        open_ms = max(0, seen.seen_ms - one.started_ms) if is_open and one.started_ms is not None else None
        rows.append(TransactionRow(one, open_ms, open_ms is not None and open_ms * LATE_SHARE > one.timeout_ms))
    rows.sort(key=lambda row: (-(row.open_ms if row.open_ms is not None else -1), row.transaction.transactional_id))
    late = sum(row.is_late for row in rows)
    opened = sum(row.open_ms is not None for row in rows)
    sentence = f"{count(len(rows), 'transactional id')}, {opened:,} with an open transaction"
    return TransactionsPage(
        tuple(rows[:500]),
        len(rows),
        sentence + (f", {late:,} of them open for long" if late else ""),
        seen.transactions_error,
    )
