"""How partitions pass from one member to another: T12 to T17 and what a reload leaves of it."""

import pytest

from partita.group.consumer_group.reconcile import RECONCILE, Reported
from partita.group.records.consumer_group import ConsumerGroupState, MemberState
from partita.protocol.error_codes import ErrorCode
from support.group.consumers import World, error, told, topic_id

T = topic_id("t")
STABLE, UNREVOKED, UNRELEASED, UNKNOWN = MemberState


def two_members() -> World:
    """T12: A owns everything of t, and B has just joined; the world checks at every step that nobody shares."""
    world = World({"t": 4})
    world.join("a")
    world.join("b")
    return world


@pytest.mark.case("GC-T12", "GC-T17", "GC-T35")
def test_a_newcomer_waits_in_the_new_epoch_and_the_old_member_is_told_to_give_up_in_its_own() -> None:
    world = two_members()
    b = world.group.members["b"]
    assert (world.group.epoch, b.epoch, b.state, world.has("b")) == (3, 3, UNRELEASED, {})
    answer = world.go_on("a", {"t": [0, 1, 2, 3]})
    a = world.group.members["a"]
    kept = world.has("a")["t"]
    assert (answer.member_epoch, told(answer), a.state) == (2, {T: kept}, UNREVOKED)
    assert len(kept) == 2
    assert world.group.state is ConsumerGroupState.RECONCILING


@pytest.mark.case("GC-T13")
def test_once_it_says_so_the_newcomer_gets_what_was_given_up() -> None:
    world = two_members()
    world.go_on("a", {"t": [0, 1, 2, 3]})
    answer = world.go_on("a", world.has("a"))
    assert (answer.member_epoch, world.group.members["a"].state) == (3, STABLE)
    given = told(world.go_on("b", {}))
    assert given is not None
    assert sorted(given[T] + world.has("a")["t"]) == [0, 1, 2, 3]
    assert world.group.state is ConsumerGroupState.STABLE


def test_a_member_that_joins_again_owns_nothing_so_the_newcomer_waits_no_longer() -> None:
    world = two_members()
    world.go_on("a", {"t": [0, 1, 2, 3]})
    kept = world.has("a")["t"]
    answer = world.join("a")
    assert (answer.member_epoch, told(answer), world.group.members["a"].state) == (3, {T: kept}, STABLE)
    given = told(world.go_on("b", {}))
    assert given is not None
    assert sorted(given[T] + kept) == [0, 1, 2, 3]


@pytest.mark.case("GC-T14")
def test_a_heartbeat_that_does_not_say_what_is_owned_frees_nothing() -> None:
    world = two_members()
    world.go_on("a", {"t": [0, 1, 2, 3]})
    for _ in range(3):
        world.go_on("a")
        world.go_on("b", {})
    assert (world.group.members["a"].state, world.has("b")) == (UNREVOKED, {})


@pytest.mark.case("GC-T15")
def test_whoever_keeps_what_it_was_to_give_up_is_fenced_after_its_rebalance_timeout() -> None:
    world = two_members()
    everything = {"t": [0, 1, 2, 3]}
    world.go_on("a", everything)
    world.wait(30_000)
    world.go_on("a", everything)
    world.go_on("b", {})
    world.wait(29_999)
    assert "a" in world.group.members
    world.wait(1)
    assert (list(world.group.members), world.group.epoch) == (["b"], 4)
    assert error(world.beat("a", 2)) == ErrorCode.UNKNOWN_MEMBER_ID
    world.settle()
    assert world.has("b") == everything


@pytest.mark.case("GC-T16")
def test_whoever_is_silent_for_its_session_is_removed_and_the_other_gets_all() -> None:
    world = two_members()
    world.wait(30_000)
    world.go_on("b", {})
    world.wait(15_000)
    assert (list(world.group.members), world.group.epoch) == (["b"], 4)
    world.settle()
    assert world.has("b") == {"t": [0, 1, 2, 3]}


@pytest.mark.case("GC-T36")
def test_a_group_may_have_a_session_timeout_of_its_own() -> None:
    world = World({"t": 1})
    world.coordinator.group_settings = {
        "g": {"consumer.session.timeout.ms": 50_000, "consumer.heartbeat.interval.ms": 7_000}
    }
    assert world.join("a").heartbeat_interval_ms == 7_000
    world.wait(49_999)
    assert "a" in world.group.members
    world.wait(1)
    assert not world.group.members


@pytest.mark.case("GC-T37")
def test_a_reload_in_the_middle_changes_nothing_and_starts_every_deadline_again() -> None:
    world = two_members()
    world.go_on("a", {"t": [0, 1, 2, 3]})
    world.wait(44_000)
    world.reload()
    assert [m.state for m in world.group.members.values()] == [UNREVOKED, UNRELEASED]
    world.wait(44_999)
    assert len(world.group.members) == 2
    world.go_on("a", {"t": [0, 1, 2, 3]})
    world.go_on("b", {})
    world.wait(15_001)
    assert list(world.group.members) == ["b"]


@pytest.mark.case("GC-T50")
def test_members_that_come_within_the_interval_wait_for_one_target_for_all_of_them() -> None:
    world = World({"t": 4}, group_consumer_assignment_interval_ms=1_000)
    joined = [world.join(name).member_epoch for name in "abcd"]
    assert joined == [2, 2, 2, 2]
    assert [world.has(name) for name in "abcd"] == [{"t": [0, 1, 2, 3]}, {}, {}, {}]
    assert (world.group.epoch, world.group.assignment_epoch) == (5, 2)
    assert world.group.state is ConsumerGroupState.ASSIGNING
    world.wait(1_000)
    world.go_on("a", {"t": [0, 1, 2, 3]})
    assert world.group.assignment_epoch == 5
    world.settle()
    assert sorted(world.has(name)["t"][0] for name in "abcd") == [0, 1, 2, 3]


def test_a_wall_clock_that_is_set_back_holds_up_no_target() -> None:
    world = World({"t": 2}, group_consumer_assignment_interval_ms=1_000)
    world.join("a")
    world.clock.set_wall_back(3_600_000)
    world.join("b")
    world.settle()
    assert [len(world.has(name)["t"]) for name in "ab"] == [1, 1]


@pytest.mark.case("BM-103")
def test_a_group_whose_last_member_expires_waits_for_no_target_and_the_next_member_gets_one_at_once() -> None:
    """Since Kafka 4.4.0; in 4.3.1 the assignment epoch stays behind meanwhile. (KAFKA-20442)"""
    world = World({"t": 2}, group_consumer_assignment_interval_ms=3_600_000)
    world.join("a")
    world.wait(45_000)
    described = world.describe()
    assert (described.group_state, described.members) == ("Empty", [])
    assert (described.group_epoch, described.assignment_epoch) == (3, 3)
    world.reload()
    world.join("b")
    described = world.describe()
    assert (described.group_state, described.group_epoch, described.assignment_epoch) == ("Stable", 4, 4)
    assert world.has("b") == {"t": [0, 1]}


@pytest.mark.case("GC-T35")
def test_a_group_without_members_is_empty() -> None:
    world = World({"t": 1})
    world.join("a")
    world.beat("a", -1)
    assert world.describe().group_state == "Empty"


@pytest.mark.case("BM-100")
def test_what_comes_back_to_a_member_that_is_giving_it_up_is_nobody_elses() -> None:
    world = World({"t": 4})
    world.join("a")
    world.join("b")
    world.go_on("a", {"t": [0, 1, 2, 3]})
    revoking = {number for _, number in world.group.members["a"].revoking}
    assert len(revoking) == 2
    world.beat("b", -1)
    world.join("c", topics=[])
    world.go_on("a", {"t": [0, 1, 2, 3]})
    world.join("d")
    world.go_on("d", {})
    assert world.has("d") == {}
    world.settle()
    assert [len(world.has(member)["t"]) for member in ("a", "d")] == [2, 2]


def test_every_cell_of_the_table_is_filled() -> None:
    assert set(RECONCILE) == set(MemberState)
    assert all(len(row) == len(Reported) for row in RECONCILE.values())
