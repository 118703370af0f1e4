"""Design 2's coordinator: guards, waiting, plans, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.designs.rules import nodes
from partita.designs.rules.coordinator_two import (
    Answer,
    CoordinatorTwo,
    Effect,
    Group,
    Join,
    RemoveNode,
    State,
    WritePlan,
    plan_range,
    plan_roundrobin,
)
from partita.designs.rules.requests import Check, Create, Put
from partita.protocol.error_codes import ErrorCode

GROUP, SESSION = "g", 6000
SLOT = nodes.slot_of(GROUP)


def coordinator(partitions: int = 4) -> CoordinatorTwo:
    rules = CoordinatorTwo()
    rules.take(SLOT, 7)
    rules.partitions["t"] = partitions
    return rules


def join(name: str, member_id: str = "", **other: object) -> Join:
    asked = Join(GROUP, name, member_id, SESSION, "range", frozenset({"t"}))
    return replace(asked, **other)  # type: ignore[arg-type]  # options by name


def written(rules: CoordinatorTwo, effects: list[Effect], now_ms: int = 0) -> list[Answer]:
    """Write every plan; all answers that come of it."""
    answers = [effect for effect in effects if isinstance(effect, Answer)]
    for effect in effects:
        if isinstance(effect, WritePlan):
            answers += written(rules, rules.planned(GROUP, True, now_ms), now_ms)
    return answers


def grouped(*names: str, partitions: int = 4) -> CoordinatorTwo:
    """A settled group: each member joins, then all join again until nobody waits."""
    rules = coordinator(partitions)
    for name in names:
        effects = rules.join(name, join(name), 0)
        for other in names:
            group = rules.groups[GROUP]
            if group.state is State.PREPARING and other in group.members and group.members[other].token is None:
                effects += rules.join(other, join(other, other), 0)
        written(rules, effects)
    assert rules.groups[GROUP].state is State.STABLE
    return rules


def errors(effects: list[Effect]) -> list[ErrorCode]:
    return [effect.error for effect in effects if isinstance(effect, Answer)]


@pytest.mark.case("GC-W29")
@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (join("a", strategy="mine"), ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (join("a", session_timeout_ms=5999), ErrorCode.INVALID_SESSION_TIMEOUT),
        (join("a", session_timeout_ms=30001), ErrorCode.INVALID_SESSION_TIMEOUT),
        (join("a", "a"), ErrorCode.UNKNOWN_MEMBER_ID),
        (join("a", group="h", strategy="mine"), ErrorCode.NOT_COORDINATOR),
    ],
)
def test_a_first_join_is_refused(request_: Join, error: ErrorCode) -> None:
    assert errors(coordinator().join("t", request_, 0)) == [error]


@pytest.mark.case("GC-W29")
def test_an_inactive_coordinator_and_one_without_the_slot_refuse_everything() -> None:
    for prepare, error in (
        (lambda rules: setattr(rules, "is_active", False), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (lambda rules: rules.epochs.clear(), ErrorCode.NOT_COORDINATOR),
    ):
        rules = grouped("a")
        prepare(rules)
        assert errors(rules.join("t", join("a", "a"), 0)) == [error]
        assert rules.heartbeat(GROUP, "a", 1, 0) is error
        assert rules.commit(GROUP, "a", 1, [("t", 0)]) == {("t", 0): error}


STATES = ("none", "stable", "preparing", "rebalancing")


def in_state(state: str) -> CoordinatorTwo:
    if state == "none":
        return coordinator()
    rules = grouped("a", "b")
    if state == "preparing":
        rules.join("c", join("c"), 0)
    elif state == "rebalancing":
        rules.join("c", join("c"), 0)
        rules.join("a", join("a", "a"), 0)
        rules.join("b", join("b", "b"), 0)
    return rules


@pytest.mark.case("GC-W29", "GC-W08")
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(
    ("member", "generation", "by_state"),
    [
        ("a", "current", ("25", "0", "22", "22")),
        ("a", "older", ("25", "22", "22", "22")),
        ("stranger", "current", ("25", "25", "25", "25")),
    ],
)
def test_a_heartbeat_in_every_state(state: str, member: str, generation: str, by_state: tuple[str, ...]) -> None:
    rules = in_state(state)
    number = (rules.groups[GROUP].generation if GROUP in rules.groups else 1) - (generation == "older")
    assert str(int(rules.heartbeat(GROUP, member, number, 0))) == by_state[STATES.index(state)]


@pytest.mark.case("GC-W29", "GC-W10")
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(
    ("member", "partition", "generation", "by_state"),
    [
        ("a", 0, "current", (25, 0, 22, 22)),
        ("a", 3, "current", (25, 42, 22, 22)),
        ("a", 0, "older", (25, 22, 22, 22)),
        ("stranger", 0, "current", (25, 25, 25, 25)),
    ],
)
def test_a_commit_in_every_state(
    state: str, member: str, partition: int, generation: str, by_state: tuple[int, ...]
) -> None:
    rules = in_state(state)
    number = (rules.groups[GROUP].generation if GROUP in rules.groups else 1) - (generation == "older")
    found = rules.commit(GROUP, member, number, [("t", partition)])
    assert int(found["t", partition]) == by_state[STATES.index(state)]


@pytest.mark.case("GC-W29")
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("who", ["new", "member", "changed", "stranger", "other strategy"])
def test_a_join_in_every_state(state: str, who: str) -> None:
    rules = in_state(state)
    asked = {
        "new": join("d"),
        "member": join("a", "a"),
        "changed": join("a", "a", topics=frozenset({"t", "u"})),
        "stranger": join("x", "x"),
        "other strategy": join("d", strategy="roundrobin"),
    }[who]
    effects = rules.join("now", asked, 0)
    expected: list[ErrorCode] = []
    if who == "stranger" or (state == "none" and who in ("member", "changed")):
        expected = [ErrorCode.UNKNOWN_MEMBER_ID]
    elif who == "other strategy" and state != "none":
        expected = [ErrorCode.INCONSISTENT_GROUP_PROTOCOL]
    elif who == "member" and state == "stable":
        expected = [ErrorCode.NONE]
    assert errors(effects) == expected
    if not expected:
        assert rules.groups[GROUP].state in (State.PREPARING, State.REBALANCING)


@pytest.mark.case("GC-W08")
def test_the_answer_carries_the_share_of_the_asking_member_alone() -> None:
    rules = grouped("a", "b", partitions=5)
    shares = {name: rules.join("t", join(name, name), 0)[0] for name in ("a", "b")}
    found = {name: share.partitions for name, share in shares.items() if isinstance(share, Answer)}
    assert found == {"a": (("t", 0), ("t", 1), ("t", 2)), "b": (("t", 3), ("t", 4))}


@pytest.mark.case("GC-W02")
def test_a_plan_is_one_multi_guarded_by_the_epoch_and_answered_after_it_is_written() -> None:
    rules = grouped("a")
    rules.join("new", join("b"), 0)
    effects = rules.join("again", join("a", "a"), 0)
    assert errors(effects) == []
    (plan,) = [effect for effect in effects if isinstance(effect, WritePlan)]
    assert plan.multi.requests[0] == Check(nodes.epoch(SLOT), 7)
    assert plan.multi.requests[1] == Put(nodes.generation(GROUP), "2")
    assert plan.multi.requests[2:] == (Put(nodes.owner(GROUP, "t", 2), "b"), Put(nodes.owner(GROUP, "t", 3), "b"))
    assert {a.token for a in written(rules, effects)} == {"new", "again"}


@pytest.mark.case("GC-W27")
def test_a_plan_that_cannot_be_written_is_never_answered_as_one() -> None:
    rules = grouped("a")
    rules.join("new", join("b"), 0)
    rules.join("again", join("a", "a"), 0)
    effects = rules.planned(GROUP, False, 0)
    assert errors(effects) == [ErrorCode.NOT_COORDINATOR] * 2
    assert rules.heartbeat(GROUP, "a", 1, 0) is ErrorCode.NOT_COORDINATOR


@pytest.mark.case("GC-W26")
def test_after_a_takeover_generation_and_plan_go_on_and_members_have_to_join_again() -> None:
    rules = coordinator()
    known = Group(GROUP, generation=9, has_generation_node=True)
    known.written = {("t", number): "a" for number in range(4)}
    known.plan = dict(known.written)
    rules.take(SLOT, 8, [known])
    assert rules.heartbeat(GROUP, "a", 9, 0) is ErrorCode.UNKNOWN_MEMBER_ID
    (plan,) = [effect for effect in rules.join("t", join("a"), 0) if isinstance(effect, WritePlan)]
    assert plan.generation == 10
    assert [type(request) for request in plan.multi.requests] == [Check, Put], "no owner changes"


def test_who_does_not_join_again_is_thrown_out_after_the_largest_session_timeout() -> None:
    rules = grouped("a", "b")
    rules.join("new", join("c", session_timeout_ms=20_000), 1000)
    rules.join("again", join("a", "a"), 1000)
    assert rules.on_deadline(5999) == []
    effects = rules.on_deadline(21_000)
    assert RemoveNode(nodes.member(GROUP, "b")) in effects
    assert {answer.token for answer in written(rules, effects)} == {"new", "again"}
    assert set(rules.groups[GROUP].members) == {"a", "c"}


def test_a_member_whose_node_goes_is_removed_and_the_others_hear_of_it() -> None:
    rules = grouped("a", "b")
    assert rules.node_gone(GROUP, ["a", "b", "c"], 0) == []
    rules.node_gone(GROUP, ["a"], 0)
    assert rules.heartbeat(GROUP, "b", 2, 0) is ErrorCode.UNKNOWN_MEMBER_ID
    assert rules.heartbeat(GROUP, "a", 2, 0) is ErrorCode.ILLEGAL_GENERATION


@pytest.mark.case("GC-W23")
def test_new_partitions_rebalance_the_groups_that_read_the_topic() -> None:
    rules = grouped("a")
    assert rules.topic_has("t", 4, 0) == []
    rules.topic_has("t", 6, 0)
    (plan,) = [effect for effect in rules.join("t", join("a", "a"), 0) if isinstance(effect, WritePlan)]
    assert [request for request in plan.multi.requests if isinstance(request, Create)] == [
        Create(nodes.owner(GROUP, "t", 4), "a"),
        Create(nodes.owner(GROUP, "t", 5), "a"),
    ]


def test_a_join_while_a_plan_is_written_makes_one_more_round() -> None:
    rules = in_state("rebalancing")
    rules.join("late", join("d"), 0)
    answers = [effect for effect in rules.planned(GROUP, True, 0) if isinstance(effect, Answer)]
    assert "late" not in {answer.token for answer in answers}
    assert rules.groups[GROUP].state is State.PREPARING


@given(
    st.dictionaries(st.sampled_from("tuv"), st.integers(0, 9), min_size=1),
    st.lists(st.sets(st.sampled_from("tuv"), min_size=1), min_size=1, max_size=6),
)
def test_plans_give_every_partition_to_one_member_that_reads_it(
    counts: dict[str, int], subscriptions: list[set[str]]
) -> None:
    readers = {t: [f"m{i}" for i, topics in enumerate(subscriptions) if t in topics] for t in counts}
    readers = {topic: members for topic, members in readers.items() if members}
    for plan in (plan_range, plan_roundrobin):
        found = plan(readers, counts)
        assert set(found) == {(topic, number) for topic in readers for number in range(counts[topic])}
        assert all(owner in readers[topic] for (topic, _), owner in found.items())


@given(
    st.lists(st.tuples(st.sampled_from(["join", "beat", "gone", "late", "write"]), st.sampled_from("abc")), max_size=40)
)
def test_whatever_happens_no_generation_has_two_plans_and_every_join_is_answered(steps: list[tuple[str, str]]) -> None:
    rules, now_ms, tokens = coordinator(), 0, 0
    answered: list[int] = []
    generations: list[int] = []
    pending: list[WritePlan] = []

    def take(effects: list[Effect]) -> None:
        answered.extend(int(str(effect.token)) for effect in effects if isinstance(effect, Answer))
        plans = [effect for effect in effects if isinstance(effect, WritePlan)]
        generations.extend(plan.generation for plan in plans)
        pending.extend(plans)

    for what, name in steps:
        now_ms += 500
        if what == "join":
            tokens += 1
            known = GROUP in rules.groups and name in rules.groups[GROUP].members
            take(rules.join(tokens, join(name, name if known else ""), now_ms))
        elif what == "beat":
            rules.heartbeat(GROUP, name, generations[-1] if generations else 0, now_ms)
        elif what == "gone":
            take(rules.node_gone(GROUP, [other for other in "abc" if other != name], now_ms))
        elif what == "late":
            now_ms += 7000
            take(rules.on_deadline(now_ms))
        elif pending:
            pending.pop()
            take(rules.planned(GROUP, True, now_ms))
    while pending or (rules.next_deadline_ms() is not None):
        if pending:
            pending.pop()
            take(rules.planned(GROUP, True, now_ms))
        else:
            now_ms = max(now_ms, rules.next_deadline_ms() or 0)
            take(rules.on_deadline(now_ms))
    assert sorted(answered) == list(range(1, tokens + 1))
    assert generations == sorted(set(generations))
