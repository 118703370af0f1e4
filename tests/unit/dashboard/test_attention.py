"""Which groups need attention: every rule says its sentence, and keeps quiet otherwise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from partita.dashboard.attention import RULES, GroupFacts, findings

FINE = GroupFacts(
    "g", "Stable", None, members=3, idle_members=0, lag=50, lag_before=50, behind_ms=900, since_commit_ms=500,
    watched_ms=600_000, uncommitted=0, rebalances_per_hour=1, in_state_ms=500_000, worst_lag=20, typical_lag=15,
)  # fmt: skip
HOUR = 3_600_000
CASES = {
    "unreadable": (
        replace(FINE, error="node 2: no answer"),
        replace(FINE, error=None),
        "cannot be looked at: node 2: no answer",
    ),
    "loses records": (
        replace(FINE, loses_in_ms=3 * HOUR),
        replace(FINE, loses_in_ms=25 * HOUR),
        "loses records to retention in 3 h unless it catches up",
    ),
    "standstill": (
        replace(FINE, since_commit_ms=61_000),
        replace(FINE, since_commit_ms=61_000, lag=0),
        "stands still: 50 records behind, and nothing committed for 1 min 1 s",
    ),
    "rebalancing long": (
        replace(FINE, state="PreparingRebalance", in_state_ms=90_000),
        replace(FINE, state="PreparingRebalance", in_state_ms=9_000),
        "has been in PreparingRebalance for 1 min 30 s",
    ),
    "growing": (
        replace(FINE, lag=5_000, lag_before=3_000, behind_ms=20_000),
        replace(FINE, lag=5_000, lag_before=3_000, behind_ms=2_000),
        "falls behind: 5,000 records, 2,000 more than a minute ago",
    ),
    "rebalancing often": (
        replace(FINE, rebalances_per_hour=7),
        replace(FINE, rebalances_per_hour=6),
        "rebalanced 7 times in the last hour",
    ),
    "skew": (
        replace(FINE, worst_lag=2_000, typical_lag=15),
        replace(FINE, worst_lag=2_000, typical_lag=1_500),
        "is uneven: one partition is 2,000 records behind, half of them are at most 15 behind",
    ),
    "no members": (
        replace(FINE, members=0, state="Empty", behind_ms=7_800_000),
        replace(FINE, members=0, state="Empty", lag=0),
        "has no members and 50 unread records, 2 h 10 min behind",
    ),
    "never committed": (
        replace(FINE, uncommitted=2),
        replace(FINE, uncommitted=2, watched_ms=10_000),
        "has never committed 2 of its partitions",
    ),
    "idle members": (
        replace(FINE, idle_members=1),
        replace(FINE, idle_members=1, state="PreparingRebalance", in_state_ms=5),
        "has 1 member without partitions: more members than partitions",
    ),
}


def test_every_rule_has_a_case() -> None:
    assert [kind for kind, _ in RULES] == list(CASES)


@pytest.mark.parametrize("kind", CASES)
def test_a_rule_speaks_when_it_must_and_only_then(kind: str) -> None:
    loud, quiet, sentence = CASES[kind]
    assert [(f.kind, f.sentence, f.group_id) for f in findings(loud)] == [(kind, sentence, "g")]
    assert findings(quiet) == []


def test_a_group_that_is_fine_needs_nothing() -> None:
    assert findings(FINE) == []


def test_records_that_are_gone_are_told_as_lost() -> None:
    assert "deleted before they are read" in findings(replace(FINE, loses_in_ms=0))[0].sentence


def test_the_worst_finding_comes_first() -> None:
    facts = replace(FINE, idle_members=1, since_commit_ms=70_000, rebalances_per_hour=9)
    assert [f.kind for f in findings(facts)] == ["standstill", "rebalancing often", "idle members"]
