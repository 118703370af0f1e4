"""One row per group, with what needs attention: the list that most pages begin with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import TypeVar

from partita.dashboard.attention import KEEPING_UP_MS, Finding, GroupFacts, findings
from partita.dashboard.models.accounts import Accounts
from partita.dashboard.words import MINUTE, behind, slug, span
from partita.observe.history import HOUR_MS, Behind
from partita.observe.observed import Observed
from partita.observe.seen import CommitSeen, GroupSeen
from partita.wording import count

T = TypeVar("T")
ROWS_PER_PAGE = 50
SPARK_MS = 30 * MINUTE
STEADY_SHARE = 50
"""A lag that changed by less than a fiftieth within a minute is called steady."""
NO_FINDING = 1_000


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group in one line. `trend` is rising, falling, steady, keeping up or None.

    `caught_up_ms` is how long the rest takes at the present pace; it is known while the lag falls.
    """

    group_id: str
    path: str
    state: str
    type: str
    epoch: int | None
    members: int
    topics: tuple[str, ...]
    lag: int | None
    behind: Behind | None
    trend: str | None
    caught_up_ms: int | None
    rebalances_per_hour: int
    last_change: str | None
    error: str | None
    findings: tuple[Finding, ...]
    sentence: str

    @property
    def rank(self) -> int:
        """How urgent it is; lower is worse."""
        return self.findings[0].rank if self.findings else NO_FINDING


class GroupRows:
    """The rows of all groups, computed once for each state of the observer."""

    def __init__(self, observed: Observed, accounts: Accounts) -> None:
        self.observed = observed
        self.accounts = accounts
        self._version = -1
        self._rows: dict[str, GroupRow] = {}

    def all(self) -> dict[str, GroupRow]:
        """Every group's row by its id."""
        if self._version != self.observed.version:
            self._version = self.observed.version
            self._rows = {name: self._row(group) for name, group in self.observed.groups.items()}
        return self._rows

    def one(self, group_id: str) -> GroupRow | None:
        """The row of one group, without those of all others; None for a group that does not exist."""
        if self._version == self.observed.version:
            return self._rows.get(group_id)
        group = self.observed.groups.get(group_id)
        return None if group is None else self._row(group)

    def ranked_findings(self) -> list[tuple[GroupRow, Finding]]:
        """The worst finding of each group that has one, the most urgent first."""
        found = [(row, row.findings[0]) for row in self.all().values() if row.findings]
        return sorted(found, key=lambda pair: (pair[1].rank, -(pair[0].lag or 0), pair[0].group_id))

    def _row(self, group: GroupSeen) -> GroupRow:
        seen = self.observed
        now_ms = seen.seen_ms
        standing = seen.standings.get(group.group_id)
        lag = standing.lag if standing is not None else None
        age = standing.behind if standing is not None else None
        before = seen.history.lag_before(group.group_id, now_ms - MINUTE)
        trend, caught_up_ms = _trend(lag, age, before.lag, group.seen_ms - before.at_ms) if before else (None, None)
        last = seen.history.last_rebalance(group.group_id)
        per_hour = self.accounts.in_last_hour(group.group_id)
        facts = self._facts(group, lag, before.lag if before else None, age, per_hour)
        return GroupRow(
            group.group_id,
            f"/groups/{slug(group.group_id)}",
            group.state,
            group.type,
            group.epoch,
            len(group.members),
            tuple(sorted({c.topic for c in group.commits} | {t for m in group.members for t, _ in m.partitions})),
            lag,
            age,
            trend,
            caught_up_ms,
            per_hour,
            last.what if last is not None and last.at_ms > now_ms - HOUR_MS else None,
            group.error,
            tuple(findings(facts)),
            sentence_of(group, lag, age, trend, caught_up_ms),
        )

    def _facts(
        self, group: GroupSeen, lag: int | None, before: int | None, age: Behind | None, per_hour: int
    ) -> GroupFacts:
        seen = self.observed
        began_ms = seen.history.began_ms or seen.seen_ms
        committed = {(commit.topic, commit.partition) for commit in group.commits}
        held = [key for member in group.members for key in member.partitions]
        lags = sorted(self._lag_of(commit) for commit in group.commits)
        moved_ms = max((commit.moved_ms for commit in group.commits), default=None)
        return GroupFacts(
            group.group_id,
            group.state,
            group.error,
            len(group.members),
            sum(not member.partitions for member in group.members),
            lag,
            before,
            age.ms if age is not None else None,
            None if moved_ms is None else group.seen_ms - moved_ms,
            seen.seen_ms - began_ms,
            sum(key not in committed for key in held),
            per_hour,
            group.seen_ms - group.state_since_ms,
            lags[-1] if len(lags) > 2 else None,
            median_low(lags) if len(lags) > 2 else None,
            self._loses_in_ms(group),
        )

    def _lag_of(self, commit: CommitSeen) -> int:
        log = self.observed.logs.get((commit.topic, commit.partition))
        return 0 if log is None or log.end is None else commit.lag_at(log.end)

    def _loses_in_ms(self, group: GroupSeen) -> int | None:
        """Return the time until age deletes the next unread record of some partition; None if none expires."""
        soonest: int | None = None
        for commit in group.commits:
            # Without a record to read, nothing can be lost.
            if self._lag_of(commit):
                left = loses_in_ms(self.observed, commit, group.seen_ms)
                soonest = left if soonest is None or (left is not None and left < soonest) else soonest
        return soonest


def loses_in_ms(seen: Observed, commit: CommitSeen, now_ms: int) -> int | None:
    """Return the time until retention deletes a committed offset's record; 0 if it is gone, None if kept or unknown."""
    log, topic = seen.logs.get((commit.topic, commit.partition)), seen.topics.get(commit.topic)
    if log is None or topic is None or "delete" not in (topic.cleanup_policy or ""):
        return None
    if log.start is not None and commit.offset < log.start:
        return 0
    age = seen.history.behind(log, commit.offset, now_ms)
    if age is None or topic.retention_ms is None or topic.retention_ms < 0:
        return None
    return max(0, topic.retention_ms - age.ms)


def _trend(lag: int | None, age: Behind | None, before: int, passed_ms: int) -> tuple[str | None, int | None]:
    if lag is None or passed_ms < 5_000:
        return None, None
    # On a busy topic the lag in records swings; the age shows that the group keeps up.
    if lag and age is not None and age.ms < KEEPING_UP_MS:
        return "keeping up", None
    change = lag - before
    if abs(change) * STEADY_SHARE <= max(lag, before):
        return "steady", None
    if change > 0:
        return "rising", None
    return "falling", lag * passed_ms // -change


def sentence_of(
    group: GroupSeen, lag: int | None, age: Behind | None, trend: str | None, caught_up_ms: int | None
) -> str:
    """Describe the group in one line: Stable, 3 members, 12 s behind, falling, caught up in 40 s."""
    parts = [group.state or "unknown", count(len(group.members), "member") if group.members else "no members"]
    if lag == 0:
        parts.append("nothing left to read")
    elif lag is not None:
        parts.append(f"{behind(age)} behind" if age is not None and age.ms else f"{count(lag, 'record')} behind")
        if trend == "falling" and caught_up_ms is not None:
            parts.append(f"falling, caught up in {span(caught_up_ms)}")
        elif trend is not None:
            parts.append(trend)
    return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A row of the list with its curve of the last half hour: (time, lag)."""

    row: GroupRow
    spark: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class GroupList:
    """One page of the list of groups: `total` of `all_groups` groups fit the filters."""

    groups: tuple[ListedGroup, ...]
    total: int
    all_groups: int
    states: tuple[tuple[str, int], ...]
    types: tuple[str, ...]
    page: int
    pages: int
    text: str
    state: str
    type: str
    topic: str
    needs: str
    sort: str


SORTS = {
    "attention": lambda row: (row.rank, -(row.lag or 0), row.group_id),
    "lag": lambda row: (-(row.lag or 0), row.group_id),
    "behind": lambda row: (-(row.behind.ms if row.behind else -1), row.group_id),
    "name": lambda row: row.group_id,
    "members": lambda row: (-row.members, row.group_id),
    "rebalances": lambda row: (-row.rebalances_per_hour, row.group_id),
}


def page_of(chosen: Sequence[T], query: Mapping[str, str]) -> tuple[Sequence[T], int, int]:
    """The rows of the page that `page` asks for, its number, and how many pages there are."""
    pages = max(1, -(-len(chosen) // ROWS_PER_PAGE))
    wanted = query.get("page", "1")
    # `isdigit` accepts digits of other scripts, and Python refuses to parse very long numbers.
    page = min(max(1, int(wanted) if wanted.isascii() and wanted.isdigit() and len(wanted) < 9 else 1), pages)
    return chosen[(page - 1) * ROWS_PER_PAGE : page * ROWS_PER_PAGE], page, pages


def group_list(rows: GroupRows, query: Mapping[str, str]) -> GroupList:
    """The groups that fit `q` (text), `state`, `type`, `topic` and `needs` (a kind of finding), 50 to a page."""
    everything = list(rows.all().values())
    text, state = query.get("q", ""), query.get("state", "")
    kind, topic, needs = query.get("type", ""), query.get("topic", ""), query.get("needs", "")
    chosen = [
        row
        for row in everything
        if text.lower() in row.group_id.lower()
        and state in ("", row.state)
        and kind in ("", row.type)
        and (not topic or topic in row.topics)
        and (not needs or any(finding.kind == needs for finding in row.findings))
    ]
    sort = query.get("sort", "attention") if query.get("sort") in SORTS else "attention"
    chosen.sort(key=SORTS[sort])
    shown, page, pages = page_of(chosen, query)
    return GroupList(
        tuple(listed(rows.observed, shown)),
        len(chosen),
        len(everything),
        tuple(sorted(Counter(row.state for row in everything).items())),
        tuple(sorted({row.type for row in everything})),
        page,
        pages,
        text,
        state,
        kind,
        topic,
        needs,
        sort,
    )


def listed(seen: Observed, rows: Iterable[GroupRow]) -> list[ListedGroup]:
    """The rows with their curves."""
    since_ms = seen.seen_ms - SPARK_MS
    return [
        ListedGroup(row, tuple((p.at_ms, p.lag) for p in seen.history.lag_points(row.group_id, since_ms)))
        for row in rows
    ]
