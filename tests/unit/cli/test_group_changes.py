"""The news of `partita groups watch`."""

from __future__ import annotations

from partita.cli.groups.changes import LoggedChanges, Look, News, ToldChanges, seen_changes
from partita.explain import Account, Sure, explain
from partita.explain.facts import Assigned, Member

HELD = {
    "member_id": "m-2", "client_id": "d", "group_instance_id": None, "client_host": "/h", "session_timeout_ms": 6000,
    "rebalance_timeout_ms": 9000, "topics": ["t"], "partitions": {"t": [0]}, "joined_ms": None, "synced_ms": None,
}  # fmt: skip
NOTE = {
    "note": "Rebalanced", "group_id": "g", "generation": 3, "members": 1, "join_phase_ms": 40, "sync_phase_ms": 2,
    "wall_ms": 1000, "protocol_name": "range", "leader_id": "m-2", "held": [HELD],
    "causes": [
        {"what": "session expired", "member_id": "m-1", "group_instance_id": None, "client_id": "c", "detail": ""}
    ],
}  # fmt: skip


def test_the_first_look_is_no_news() -> None:
    assert seen_changes(None, Look("g", "Stable", {"m-1": "c"}, 0), 5) == []


def test_members_that_came_and_went_and_a_new_state_are_one_line() -> None:
    before = Look("g", "Stable", {"m-1": "a", "m-2": "b"}, 0)
    after = Look("g", "PreparingRebalance", {"m-2": "b", "m-3": "c"}, 9)
    assert seen_changes(before, after, 5) == [News(5, "g", "c joined, a is gone, Stable -> PreparingRebalance")]


def test_lag_alone_is_no_news() -> None:
    assert seen_changes(Look("g", "Stable", {}, 0), Look("g", "Stable", {}, 100), 5) == []


def test_a_broker_that_tells_its_rebalances_is_believed() -> None:
    told = ToldChanges()
    (news,) = told.changes([{"note": "Control", "what": "advance"}, NOTE])
    text = "c was silent for its session timeout and was removed (join 40 ms, sync 2 ms)"
    assert news == News(1000, "g", f"generation 3, 1 member: {text}")
    (news,) = told.changes([{**NOTE, "generation": 4, "wall_ms": 5000}])
    assert news.text.startswith("generation 4"), "what was told before is not told again"
    assert told.changes([]) == []


def test_a_change_is_explained_from_the_log_once_the_rebalance_is_over() -> None:
    members = [Member(f"{name}-id", name) for name in "ab"]
    log: list[Account] = list(explain([Assigned("g", 1_000, Sure.SEEN, 1, tuple(members))]))
    both, one = {m.member_id: m.client_id for m in members}, {"a-id": "a"}
    changes = LoggedChanges(lambda group: log)
    assert changes.changes(None, Look("g", "Stable", both, 0), 5_000) == []
    moving = Look("g", "PreparingRebalance", one, 0)
    assert changes.changes(Look("g", "Stable", both, 0), moving, 6_000) == []
    log += explain(
        [Assigned("g", 1_000, Sure.SEEN, 1, tuple(members)), Assigned("g", 7_000, Sure.SEEN, 2, (members[0],))]
    )[1:]
    assert changes.changes(moving, Look("g", "Stable", one, 0), 8_000) == [
        News(7_000, "g", "generation 2, 1 member: b is gone: it left or its session expired")
    ]
    assert changes.changes(Look("g", "Stable", one, 0), Look("g", "Stable", one, 9), 9_000) == []


def test_without_the_log_a_change_itself_is_the_news() -> None:
    before, after = Look("g", "Stable", {"m": "c"}, 0), Look("g", "Empty", {}, 0)
    assert LoggedChanges(lambda group: []).changes(before, after, 5) == [News(5, "g", "c is gone, Stable -> Empty")]
