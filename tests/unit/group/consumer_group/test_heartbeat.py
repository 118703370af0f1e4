"""ConsumerGroupHeartbeat: checks, joins, epochs and static members (specification section 20)."""

import pytest

from partita.group.records.consumer_group import ConsumerGroupState
from partita.protocol.error_codes import ErrorCode
from support.group.consumers import World, error, told, topic_id

NONE = ErrorCode.NONE
INVALID = ErrorCode.INVALID_REQUEST
T = topic_id("t")


@pytest.mark.case("GC-T01", "GC-T49")
def test_the_first_member_gets_everything_in_epoch_2_by_records_in_kafkas_order() -> None:
    world = World({"t": 4})
    answer = world.join("a")
    assert (error(answer), answer.member_epoch, answer.heartbeat_interval_ms) == (NONE, 2, 5000)
    assert told(answer) == {T: [0, 1, 2, 3]}
    assert world.kinds(world.log) == "5 3 7 6 8"
    described = world.describe()
    assert (described.group_state, described.group_epoch, described.assignment_epoch) == ("Stable", 2, 2)
    world.beat("a", -1)
    assert world.kinds(world.log[5:]) == "-8 -7 -5 3 6"
    assert (world.group.epoch, world.group.metadata_hash, world.group.state) == (3, 0, ConsumerGroupState.EMPTY)


@pytest.mark.case("GC-T01")
def test_a_first_member_that_names_no_topic_stays_in_epoch_1() -> None:
    world = World({"t": 4})
    answer = world.join("a", [])
    assert (answer.member_epoch, told(answer), world.kinds(world.log)) == (1, {}, "5 8")
    assert world.group.state is ConsumerGroupState.STABLE


@pytest.mark.case("GC-T02")
def test_version_0_gives_an_id_to_whoever_joins_without_one_and_version_1_refuses() -> None:
    world = World({"t": 1})
    assert world.join("", version=0).member_id == "made-1"
    assert error(world.join("", version=1)) == INVALID
    assert error(world.beat("", 3, version=0)) == INVALID


@pytest.mark.case("GC-T03", "GC-T04", "BM-045")
def test_requests_that_no_group_could_take_are_refused() -> None:
    world = World({"t": 1})
    refused = [
        world.join("a", timeout_ms=-1),
        world.beat("a", 0, ["t"], owned={"t": [0]}, timeout_ms=1),
        world.beat("a", 0, ["t"], owned=None, timeout_ms=1),
        world.join("a", None),
        world.beat("a", -3),
        world.beat("a", -2),
        world.join("a", rack=" "),
        world.join("a", instance=""),
        world.join("a", group=""),
    ]
    assert [error(answer) for answer in refused] == [INVALID] * len(refused)
    assert all(answer.error_message for answer in refused)
    assert not world.log


@pytest.mark.case("GC-T05")
def test_an_assignor_that_the_broker_lacks_is_refused() -> None:
    answer = World({"t": 1}).join("a", assignor="foo")
    assert error(answer) == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert answer.error_message == "ServerAssignor foo is not supported. Supported assignors: uniform, range."


@pytest.mark.case("GC-T06", "GC-T07", "GC-T08")
def test_unknown_groups_members_and_epochs_of_the_future_are_refused() -> None:
    world = World({"t": 1})
    assert error(world.beat("a", 3)) == ErrorCode.GROUP_ID_NOT_FOUND
    world.join("a")
    assert error(world.beat("b", 3)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert error(world.beat("a", 3)) == ErrorCode.FENCED_MEMBER_EPOCH


@pytest.mark.case("GC-T09")
def test_the_epoch_before_counts_only_with_a_subset_of_what_is_assigned() -> None:
    world = World({"t": 4, "u": 1})
    world.join("a")
    world.go_on("a", topics=["t", "u"])
    assert (world.group.members["a"].epoch, world.group.members["a"].previous_epoch) == (3, 2)
    accepted = world.beat("a", 2, owned={"t": [0, 1]})
    assert (error(accepted), accepted.member_epoch) == (NONE, 3)
    assert error(world.beat("a", 2, owned={"t": [9]})) == ErrorCode.FENCED_MEMBER_EPOCH
    assert error(world.beat("a", 2)) == ErrorCode.FENCED_MEMBER_EPOCH


@pytest.mark.case("BM-102")
def test_a_member_that_lost_several_answers_may_join_again() -> None:
    world = World({"t": 4})
    for member in ("a", "b", "c"):
        world.join(member)
        world.settle()
    had = world.group.members["a"]
    assert had.previous_epoch > 1
    again = world.join("a")
    assert (error(again), again.member_epoch) == (ErrorCode.NONE, had.epoch)
    assert again.assignment is not None


@pytest.mark.case("GC-T10", "BM-104")
def test_a_member_that_joins_again_keeps_its_epoch_and_is_told_everything() -> None:
    world = World({"t": 2})
    world.join("a")
    written = len(world.log)
    answer = world.join("a")
    assert (error(answer), answer.member_epoch, told(answer)) == (NONE, 2, {T: [0, 1]})
    assert len(world.log) == written


@pytest.mark.case("GC-T11")
def test_a_full_group_refuses_newcomers_and_serves_its_members() -> None:
    world = World({"t": 2}, group_consumer_max_size=1)
    world.join("a")
    assert error(world.join("b")) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert error(world.go_on("a")) == NONE


@pytest.mark.case("GC-T18", "GC-T19")
def test_only_a_full_request_is_told_what_has_not_changed() -> None:
    world = World({"t": 2})
    world.join("a")
    assert told(world.go_on("a")) is None
    assert told(world.go_on("a", {"t": [0, 1]})) is None
    full = world.go_on("a", {"t": [0, 1]}, topics=["t"], timeout_ms=60_000)
    assert told(full) == {T: [0, 1]}


@pytest.mark.case("GC-T20")
def test_another_subscription_is_another_epoch_with_another_target() -> None:
    world = World({"t": 2, "u": 1})
    world.join("a")
    written = len(world.log)
    answer = world.go_on("a", topics=["t", "u"])
    assert (answer.member_epoch, told(answer)) == (3, {T: [0, 1], topic_id("u"): [0]})
    assert world.kinds(world.log[written:]) == "5 3 7 6 8"


@pytest.mark.case("GC-T21", "GC-T22", "GC-T23")
def test_topics_that_grow_go_or_come_are_seen_by_the_next_heartbeat_if_they_are_subscribed_to() -> None:
    world = World({"t": 2})
    world.join("a", ["t", "later"])
    world.put("other", 5)
    assert (world.go_on("a").member_epoch, world.group.epoch) == (2, 2)
    world.put("t", 3)
    assert told(world.go_on("a")) == {T: [0, 1, 2]}
    world.put("later", 1)
    assert told(world.go_on("a")) == {T: [0, 1, 2], topic_id("later"): [0]}
    world.put("t", None)
    world.settle()
    assert (world.has("a"), world.group.epoch) == ({"later": [0]}, 5)


@pytest.mark.case("GC-T24")
def test_whoever_leaves_is_gone_and_the_group_has_another_epoch() -> None:
    world = World({"t": 2})
    world.join("a")
    world.join("b")
    written = len(world.log)
    answer = world.beat("b", -1)
    assert (error(answer), answer.member_id, answer.member_epoch) == (NONE, "b", -1)
    assert world.kinds(world.log[written:]) == "-8 -7 -5 3"
    assert error(world.beat("b", -1)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert error(world.beat("b", -1, group="absent")) == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.case("GC-T25")
def test_a_static_member_that_leaves_for_a_while_gets_its_partitions_back_without_another_epoch() -> None:
    world = World({"t": 2})
    world.join("a", instance="i")
    answer = world.beat("a", -2, instance="i")
    assert (error(answer), answer.member_epoch, world.group.epoch) == (NONE, -2, 2)
    written = len(world.log)
    back = world.join("b", instance="i")
    assert (back.member_epoch, told(back), world.group.epoch) == (2, {T: [0, 1]}, 2)
    assert world.kinds(world.log[written:]) == "-8 -7 -5 5 7 8 8"
    assert list(world.group.members) == ["b"]


@pytest.mark.case("GC-T26", "GC-T27")
def test_an_instance_id_in_use_stays_with_who_has_it() -> None:
    world = World({"t": 2})
    world.join("a", instance="i")
    assert error(world.join("b", instance="i")) == ErrorCode.UNRELEASED_INSTANCE_ID
    for epoch in (2, -1, -2):
        assert error(world.beat("b", epoch, instance="i")) == ErrorCode.FENCED_INSTANCE_ID
        assert error(world.beat("b", epoch, instance="none")) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.case("GC-T28")
def test_a_static_member_that_does_not_come_back_is_removed_when_its_session_ends() -> None:
    world = World({"t": 2})
    world.join("a", instance="i")
    world.beat("a", -2, instance="i")
    world.wait(44_999)
    assert list(world.group.members) == ["a"]
    world.wait(1)
    assert (world.group.epoch, list(world.group.members)) == (3, [])


@pytest.mark.case("GC-T29")
def test_a_static_member_that_comes_back_with_other_topics_gets_another_target() -> None:
    world = World({"t": 2, "u": 1})
    world.join("a", instance="i")
    world.beat("a", -2, instance="i")
    answer = world.join("b", ["t", "u"], instance="i")
    assert (answer.member_epoch, told(answer)) == (3, {T: [0, 1], topic_id("u"): [0]})
