"""Which groups need attention, and why: rules from the facts of one group to ranked findings. Pure.

Each rule is one function; the table names its rank (lower is worse) and its kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from partita.dashboard.words import number, span
from partita.wording import count

STANDSTILL_MS = 60_000
GROWS_FROM = 100
"""Records of growth within a minute that are worth a word."""
KEEPING_UP_MS = 5_000
"""A group that is less than this behind counts as keeping up, however its lag in records changes."""
REBALANCES_PER_HOUR_MAX = 6
REBALANCING_MAX_MS = 60_000
SKEW = 10
BUSY_STATES = frozenset({"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"})


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """The facts that the rules use. Unknown numbers are None; times are in milliseconds."""

    group_id: str
    state: str
    error: str | None
    members: int
    idle_members: int
    lag: int | None
    lag_before: int | None
    behind_ms: int | None
    since_commit_ms: int | None
    watched_ms: int
    uncommitted: int
    rebalances_per_hour: int
    in_state_ms: int
    worst_lag: int | None = None
    typical_lag: int | None = None
    loses_in_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason to look at a group, as a sentence. The lower the rank, the more urgent."""

    rank: int
    kind: str
    group_id: str
    sentence: str


def _unreadable(facts: GroupFacts) -> str | None:
    return f"cannot be looked at: {facts.error}" if facts.error else None


def _loses(facts: GroupFacts) -> str | None:
    if facts.loses_in_ms is None or facts.loses_in_ms > 24 * 3_600_000:
        return None
    if facts.loses_in_ms <= 0:
        return "is behind what the topic retains: records are deleted before they are read"
    return f"loses records to retention in {span(facts.loses_in_ms)} unless it catches up"


def _standstill(facts: GroupFacts) -> str | None:
    quiet_ms = facts.since_commit_ms
    if not facts.lag or not facts.members or quiet_ms is None or quiet_ms < STANDSTILL_MS:
        return None
    return f"stands still: {count(facts.lag, 'record')} behind, and nothing committed for {span(quiet_ms)}"


def _empty(facts: GroupFacts) -> str | None:
    if facts.members or not facts.lag:
        return None
    age = f", {span(facts.behind_ms)} behind" if facts.behind_ms else ""
    return f"has no members and {count(facts.lag, 'unread record')}{age}"


def _rebalancing_long(facts: GroupFacts) -> str | None:
    if facts.state not in BUSY_STATES or facts.in_state_ms < REBALANCING_MAX_MS:
        return None
    return f"has been in {facts.state} for {span(facts.in_state_ms)}"


def _rebalancing_often(facts: GroupFacts) -> str | None:
    if facts.rebalances_per_hour <= REBALANCES_PER_HOUR_MAX:
        return None
    return f"rebalanced {facts.rebalances_per_hour} times in the last hour"


def _growing(facts: GroupFacts) -> str | None:
    if facts.lag is None or facts.lag_before is None or not facts.members:
        return None
    grown = facts.lag - facts.lag_before
    if grown < GROWS_FROM or grown * 10 < facts.lag_before or (facts.behind_ms or 0) < KEEPING_UP_MS:
        return None
    return f"falls behind: {number(facts.lag)} records, {number(grown)} more than a minute ago"


def _skewed(facts: GroupFacts) -> str | None:
    if facts.worst_lag is None or facts.typical_lag is None or facts.worst_lag < 1_000:
        return None
    if facts.worst_lag < SKEW * max(1, facts.typical_lag):
        return None
    worst, typical = number(facts.worst_lag), number(facts.typical_lag)
    return f"is uneven: one partition is {worst} records behind, half of them are at most {typical} behind"


def _uncommitted(facts: GroupFacts) -> str | None:
    if not facts.uncommitted or not facts.members or facts.watched_ms < STANDSTILL_MS:
        return None
    return f"has never committed {count(facts.uncommitted, 'of its partitions', 'of its partitions')}"


def _idle(facts: GroupFacts) -> str | None:
    if not facts.idle_members or facts.state != "Stable":
        return None
    return f"has {count(facts.idle_members, 'member')} without partitions: more members than partitions"


RULES: tuple[tuple[str, Callable[[GroupFacts], str | None]], ...] = (
    ("unreadable", _unreadable),
    ("loses records", _loses),
    ("standstill", _standstill),
    ("rebalancing long", _rebalancing_long),
    ("growing", _growing),
    ("rebalancing often", _rebalancing_often),
    ("skew", _skewed),
    ("no members", _empty),
    ("never committed", _uncommitted),
    ("idle members", _idle),
)
URGENT = 5
"""Ranks below this one are marked as urgent. The rank of a rule is its position."""


def findings(facts: GroupFacts) -> list[Finding]:
    """Return the findings about one group, worst first."""
    results = ((rank, kind, rule(facts)) for rank, (kind, rule) in enumerate(RULES))
    return [Finding(rank, kind, facts.group_id, sentence) for rank, kind, sentence in results if sentence]
