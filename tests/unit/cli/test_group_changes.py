"""The news of `partita groups watch`."""

from __future__ import annotations

from partita.cli.groups.changes import Look, News, seen_changes, told_changes

NOTE = {
    "note": "Rebalanced", "group_id": "g", "generation": 3, "members": 2, "join_phase_ms": 40, "sync_phase_ms": 2,
    "wall_ms": 1000,
    "causes": [{"what": "session expired", "member_id": "m-1", "group_instance_id": None, "client_id": "c"}],
}  # fmt: skip


def test_the_first_look_is_no_news() -> None:
    assert seen_changes(None, Look("g", "Stable", {"m-1": "c"}, 0), 5) == []


def test_members_that_came_and_went_and_a_new_state_are_one_line() -> None:
    before = Look("g", "Stable", {"m-1": "a", "m-2": "b"}, 0)
    after = Look("g", "PreparingRebalance", {"m-2": "b", "m-3": "c"}, 9)
    assert seen_changes(before, after, 5) == [News(5, "g", "c joined, a left, Stable -> PreparingRebalance")]


def test_lag_alone_is_no_news() -> None:
    assert seen_changes(Look("g", "Stable", {}, 0), Look("g", "Stable", {}, 100), 5) == []


def test_a_broker_that_tells_its_rebalances_is_believed() -> None:
    (news,) = told_changes([{"note": "GroupsLoaded"}, NOTE])
    assert news == News(1000, "g", "generation 3, 2 members: c: session expired (join 40 ms, sync 2 ms)")
