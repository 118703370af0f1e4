"""Share groups as rules: heartbeats, epochs, targets, the state of share partitions, administration, replay."""

from __future__ import annotations

from typing import Any

import pytest

from partita.group.contract import GroupRequest, Step
from partita.group.requests import DeleteGroup, DescribeGroup, ListShardGroups
from partita.now import Now
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareOffsetsPartition,
    AlterShareOffsetsTopic,
)
from partita.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from partita.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareOffsetsTopic,
)
from partita.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from partita.protocol.messages.offset_commit import OffsetCommitRequest
from partita.protocol.messages.offset_delete import OffsetDeleteRequest
from partita.protocol.primitives import Structure
from partita.share.coordinator.model import ShareKey
from support.broker.raw import join_request
from support.group.consumers import topic_id
from support.group.shares import ShareWorld

JOINED = "10 11 13 12 14 15 15 11 13 12 14"


def code(answer: Any) -> ErrorCode:
    return ErrorCode(answer.error_code)


def joined(world: ShareWorld, member: str = "a", topics: tuple[str, ...] = ("t",)) -> int:
    """The member's epoch once it has its partitions."""
    world.share_beat(member, 0, topics)
    world.share_beat(member, world.share.members[member].epoch)
    return world.share.members[member].epoch


@pytest.fixture
def world() -> ShareWorld:
    return ShareWorld({"t": 2, "u": 1})


@pytest.mark.case("SG-B01", "SG-B06", "SG-B16")
def test_a_join_takes_two_rounds_with_kafkas_records(world: ShareWorld) -> None:
    first = world.share_beat("a", 0, ["t"])
    assert (code(first), first.member_epoch, world.shared(first)) == (ErrorCode.NONE, 2, {})
    second = world.share_beat("a", 2)
    assert (second.member_epoch, world.shared(second)) == (3, {"t": [0, 1]})
    assert world.written() == JOINED
    assert world.shared(world.share_beat("a", 3)) is None
    assert world.shared(world.share_beat("a", 3, ["t"])) == {"t": [0, 1]}
    state = world.states.states[ShareKey("g", topic_id("t"), 1)]
    assert (state.state_epoch, state.start_offset) == (2, -1)


@pytest.mark.case("SG-B02")
def test_a_heartbeat_that_no_group_can_take_is_invalid(world: ShareWorld) -> None:
    refused = [
        world.share_beat("", 0, ["t"]),
        world.share_beat("m" * 37, 0, ["t"]),
        world.share_beat("a", 0, ["t"], group=""),
        world.share_beat("a", 0, ["t"], rack=""),
        world.share_beat("a", 0),
        world.share_beat("a", 0, []),
        world.share_beat("a", -2),
    ]
    assert {code(answer) for answer in refused} == {ErrorCode.INVALID_REQUEST}
    assert code(world.share_beat("m" * 36, 0, ["t"])) is ErrorCode.NONE


@pytest.mark.case("SG-B03", "SG-B04")
def test_a_member_is_known_by_its_epoch_or_the_one_before(world: ShareWorld) -> None:
    assert code(world.share_beat("a", 3)) is ErrorCode.GROUP_ID_NOT_FOUND
    epoch = joined(world)
    assert code(world.share_beat("b", epoch)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert code(world.share_beat("a", epoch + 1)) is ErrorCode.FENCED_MEMBER_EPOCH
    assert code(world.share_beat("a", epoch - 2)) is ErrorCode.FENCED_MEMBER_EPOCH
    assert code(world.share_beat("a", epoch - 1)) is ErrorCode.NONE
    again = world.share_beat("a", 0, ["t"])
    assert (again.member_epoch, world.shared(again)) == (epoch, {"t": [0, 1]})


@pytest.mark.case("SG-B05", "SG-B18")
def test_who_leaves_is_gone_and_may_come_anew(world: ShareWorld) -> None:
    epoch = joined(world)
    world.written()
    left = world.share_beat("a", -1)
    assert (code(left), left.member_epoch, left.heartbeat_interval_ms, left.assignment) == (0, -1, 0, None)
    assert world.written() == "-14 -13 -10 11 12"
    assert (world.share.state, world.share.epoch, world.share.assignment_epoch) == ("Empty", epoch + 1, epoch + 1)
    assert code(world.share_beat("a", -1)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert code(world.share_beat("a", -1, group="none")) is ErrorCode.GROUP_ID_NOT_FOUND
    assert world.share_beat("a", 0, ["t"]).member_epoch == epoch + 2


@pytest.mark.case("SG-B07")
def test_another_subscription_takes_the_old_topic_away_at_once(world: ShareWorld) -> None:
    epoch = joined(world)
    moved = world.share_beat("a", epoch, ["u"])
    assert (moved.member_epoch, world.shared(moved)) == (epoch + 1, {})
    then = world.share_beat("a", epoch + 1)
    assert (then.member_epoch, world.shared(then)) == (epoch + 2, {"u": [0]})
    back = world.share_beat("a", epoch + 2, ["t"])
    assert (back.member_epoch, world.shared(back)) == (epoch + 3, {"t": [0, 1]})


@pytest.mark.case("SG-B08", "SG-B15")
def test_a_silent_member_is_removed(world: ShareWorld) -> None:
    world.coordinator.group_settings = {"g": {"share.session.timeout.ms": 50_000, "share.heartbeat.interval.ms": 9_000}}
    epoch = joined(world)
    assert world.share_beat("a", epoch).heartbeat_interval_ms == 9_000
    world.wait(49_999)
    assert "a" in world.share.members
    world.wait(1)
    assert world.share.members == {}
    assert code(world.share_beat("a", epoch)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_wall_clock_that_is_set_back_holds_up_no_shares() -> None:
    world = ShareWorld({"t": 2}, group_share_assignment_interval_ms=1_000)
    joined(world, "a")
    world.clock.set_wall_back(3_600_000)
    joined(world, "b")
    assert world.share.epoch == world.share.assignment_epoch


@pytest.mark.case("SG-B09")
def test_a_full_group_takes_no_further_member() -> None:
    world = ShareWorld({"t": 1}, group_share_max_size=2)
    joined(world, "a")
    joined(world, "b")
    assert code(world.share_beat("c", 0, ["t"])) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert code(world.share_beat("a", 0, ["t"])) is ErrorCode.NONE


@pytest.mark.case("SG-B10", "SG-C04", "SG-C06")
def test_other_protocols_are_refused_and_nothing_is_converted(world: ShareWorld) -> None:
    joined(world)
    asked: list[tuple[Structure, ErrorCode]] = [
        (join_request("g"), ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=0), ErrorCode.GROUP_ID_NOT_FOUND),
        (OffsetDeleteRequest(group_id="g"), ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    for message, expected in asked:
        assert code(world.ask(message, 0)) is expected, message
    assert world.ask(OffsetCommitRequest(group_id="g"), 9).topics == []
    left = world.ask(LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="a")]), 5)
    assert (left.error_code, [each.error_code for each in left.members]) == (0, [ErrorCode.UNKNOWN_MEMBER_ID])
    dead = world.ask(DescribeGroup("g"), 5)
    assert (dead.group_state, dead.error_code) == ("Dead", 0)
    assert code(world.ask(DescribeGroup("g"), 6)) is ErrorCode.GROUP_ID_NOT_FOUND
    world.ask(ConsumerGroupHeartbeatRequest(
        group_id="c", member_id="m", rebalance_timeout_ms=1, subscribed_topic_names=["t"], topic_partitions=[]
    ))  # fmt: skip
    assert code(world.share_beat("a", 0, ["t"], group="c")) is ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.case("SG-B11", "SG-B12")
def test_new_partitions_and_topics_are_assigned_once_they_have_state(world: ShareWorld) -> None:
    epoch = joined(world, topics=("later", "t"))
    world.put("t", 3)
    world.put("later", 1)
    for _ in range(3):
        epoch = world.share_beat("a", epoch).member_epoch
    assert {p for p in world.share.members["a"].assigned} == {
        (topic_id("t"), 0), (topic_id("t"), 1), (topic_id("t"), 2), (topic_id("later"), 0),
    }  # fmt: skip


@pytest.mark.case("SG-B13")
def test_members_share_the_partitions(world: ShareWorld) -> None:
    joined(world, "a")
    joined(world, "b")
    world.share_beat("a", world.share.members["a"].epoch)
    assert sorted(len(member.assigned) for member in world.share.members.values()) == [1, 1]
    joined(world, "c", ("u",))
    joined(world, "d", ("u",))
    assert [world.share.members[name].assigned for name in "cd"] == [frozenset([(topic_id("u"), 0)])] * 2


@pytest.mark.case("SG-B14")
def test_another_rack_changes_no_epoch_and_no_topics_take_everything_away(world: ShareWorld) -> None:
    epoch = joined(world)
    assert world.share_beat("a", epoch, rack="r2").member_epoch == epoch
    assert world.described_share().members[0].rack_id == "r2"
    nothing = world.share_beat("a", epoch, [])
    assert (nothing.member_epoch, world.shared(nothing)) == (epoch + 1, {})


@pytest.mark.case("SG-B17")
def test_a_deleted_topic_leaves_the_assignment_and_the_record(world: ShareWorld) -> None:
    epoch = joined(world)
    world.put("t", None)
    world.take(world.coordinator.on_topics_deleted(["t"], world.clock.now()))
    assert world.share.topics.initialized == {}
    answer = world.share_beat("a", epoch)
    assert (answer.member_epoch, world.share.members["a"].assigned) == (epoch + 1, frozenset())


@pytest.mark.case("SG-B19")
@pytest.mark.parametrize("refusal", [ErrorCode.NOT_COORDINATOR, RuntimeError("broken")])
def test_what_the_share_coordinator_refuses_is_asked_for_again(world: ShareWorld, refusal: Any) -> None:
    world.refusal = refusal
    world.share_beat("a", 0, ["t"])
    assert (world.share.topics.initializing, world.share.topics.initialized) == ({}, {})
    world.refusal = None
    world.share_beat("a", 2)
    assert world.shared(world.share_beat("a", 2)) == {"t": [0, 1]}


@pytest.mark.case("SG-B20")
def test_an_initialization_without_answer_is_tried_again_in_time(world: ShareWorld) -> None:
    world.holds_jobs = True
    world.share_beat("a", 0, ["t"])
    world.wait(29_999)
    world.share_beat("a", 2)
    assert len(world.held) == 1
    world.wait(1)
    world.share_beat("a", 2)
    assert len(world.held) == 2
    world.holds_jobs = False
    world.release_jobs()
    assert world.shared(world.share_beat("a", 2)) == {"t": [0, 1]}


@pytest.mark.case("SG-B21")
def test_targets_are_computed_once_in_an_interval() -> None:
    world = ShareWorld({"t": 5}, group_share_assignment_interval_ms=1_000)
    joined(world)
    for member in "bcdef":
        world.share_beat(member, 0, ["t"])
    before = world.share.assignment_epoch
    assert world.share.epoch > before
    world.wait(1_000)
    world.share_beat("a", world.share.members["a"].epoch)
    assert world.share.assignment_epoch == world.share.epoch


@pytest.mark.case("SG-C01", "SG-C02", "SG-C03", "SG-C05")
def test_a_group_is_described_and_listed(world: ShareWorld) -> None:
    epoch = joined(world)
    found = world.described_share()
    assert (found.group_state, found.group_epoch, found.assignment_epoch) == ("Stable", epoch, epoch)
    assert found.assignor_name == "simple"
    member = found.members[0]
    assert (member.member_id, member.client_id, member.client_host) == ("a", "c", "/h")
    assert [(t.topic_name, t.partitions) for t in member.assignment.topic_partitions] == [("t", [0, 1])]
    assert code(world.described_share("none")) is ErrorCode.GROUP_ID_NOT_FOUND
    assert code(world.described_share("")) is ErrorCode.INVALID_GROUP_ID
    for states, types in (((), ()), (["stable"], ["Share"])):
        (listed,) = world.ask(ListShardGroups(list(states), list(types))).groups
        assert (listed.protocol_type, listed.group_type, listed.group_state) == ("share", "share", "Stable")
    assert world.ask(ListShardGroups(["empty"], [])).groups == []


def ask_later(world: ShareWorld, message: Structure) -> Any:
    """The answer to a request that waits for the share coordinator."""
    seen = len(world.steps)
    world.take(world.coordinator.handle("later", GroupRequest(message, 0), world.clock.now()))
    replies = [reply.message for step in world.steps[seen:] for reply in step.replies if reply.token == "later"]
    assert len(replies) == 1
    return replies[0]


@pytest.mark.case("SG-C07")
def test_a_group_without_members_is_deleted_with_its_state(world: ShareWorld) -> None:
    joined(world)
    assert code(world.ask(DeleteGroup("g"))) is ErrorCode.NON_EMPTY_GROUP
    world.share_beat("a", -1)
    world.written()
    assert code(ask_later(world, DeleteGroup("g"))) is ErrorCode.NONE
    assert world.written() == "15 -12 -15 -11"
    assert world.states.states == {}
    assert code(world.ask(DeleteGroup("g"))) is ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.case("SG-C09")
def test_a_group_whose_state_cannot_be_deleted_stays_and_is_deleted_later(world: ShareWorld) -> None:
    joined(world)
    world.share_beat("a", -1)
    world.refusal = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert code(ask_later(world, DeleteGroup("g"))) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert list(world.share.topics.deleting.values()) == ["t"]
    world.refusal = None
    assert code(ask_later(world, DeleteGroup("g"))) is ErrorCode.NONE
    assert "g" not in world.coordinator.hard_state.share_groups


def altered(world: ShareWorld, topic: str, partition: int, offset: int, group: str = "g") -> Any:
    part = AlterShareOffsetsPartition(partition_index=partition, start_offset=offset)
    topics = [AlterShareOffsetsTopic(topic_name=topic, partitions=[part])]
    return ask_later(world, AlterShareGroupOffsetsRequest(group_id=group, topics=topics))


@pytest.mark.case("SG-H02")
def test_offsets_are_altered_without_members_and_make_the_group(world: ShareWorld) -> None:
    answer = altered(world, "t", 1, 7)
    assert (answer.error_code, answer.responses[0].partitions[0].error_code) == (0, 0)
    assert (world.share.state, world.share.epoch) == ("Empty", 1)
    state = world.states.states[ShareKey("g", topic_id("t"), 1)]
    assert (state.state_epoch, state.start_offset, state.completed) == (1, 7, 0)
    assert world.share.topics.initialized[topic_id("t")].partitions == {1}
    for topic, partition in (("none", 0), ("t", 9)):
        refused = altered(world, topic, partition, 0).responses[0].partitions[0]
        assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    joined(world)
    assert code(altered(world, "t", 1, 7)) is ErrorCode.NON_EMPTY_GROUP
    assert code(altered(world, "t", 1, 7, group="")) is ErrorCode.INVALID_GROUP_ID


def deleted(world: ShareWorld, *topics: str, group: str = "g") -> Any:
    named = [DeleteShareOffsetsTopic(topic_name=name) for name in topics]
    return ask_later(world, DeleteShareGroupOffsetsRequest(group_id=group, topics=named))


@pytest.mark.case("SG-H03")
def test_offsets_of_a_topic_are_deleted_without_members(world: ShareWorld) -> None:
    assert code(deleted(world, "t")) is ErrorCode.GROUP_ID_NOT_FOUND
    joined(world)
    assert code(deleted(world, "t")) is ErrorCode.NON_EMPTY_GROUP
    assert code(deleted(world, "t", group="")) is ErrorCode.INVALID_GROUP_ID
    world.share_beat("a", -1)
    gone = deleted(world, "t", "u", "none")
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [row.error_code for row in gone.responses] == [0, unknown, unknown]
    assert (world.states.states, world.share.topics.initialized, world.share.topics.deleting) == ({}, {}, {})
    assert deleted(world, "t").responses[0].error_code == unknown


@pytest.mark.case("SG-N02")
def test_a_member_goes_on_after_a_reload(world: ShareWorld) -> None:
    epoch = joined(world)
    world.reload()
    assert code(world.share_beat("a", epoch)) is ErrorCode.NONE
    world.wait(45_000)
    assert world.share.members == {}


def test_a_request_that_waits_is_answered_when_the_shard_ends(world: ShareWorld) -> None:
    joined(world)
    world.share_beat("a", -1)
    world.holds_jobs = True
    world.take(world.coordinator.handle("waits", GroupRequest(DeleteGroup("g"), 0), world.clock.now()))
    step: Step = world.coordinator.unload()
    assert [(reply.token, code(reply.message)) for reply in step.replies] == [("waits", ErrorCode.NOT_COORDINATOR)]
    assert world.coordinator.on_deadline(Now(0, 0)).replies == ()


def test_a_heartbeat_looks_at_topics_again_only_when_something_has_changed(
    world: ShareWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One member that named 15,000 topics made each of its heartbeats take a tenth of a second."""
    epoch = joined(world, topics=("t", *(f"missing-{n}" for n in range(100))))
    looked_up: list[str] = []
    real = world.topics.get

    def get(name: str) -> Any:
        looked_up.append(name)
        return real(name)

    monkeypatch.setattr(world.topics, "get", get)
    world.share_beat("a", epoch)
    looked_up.clear()
    world.share_beat("a", epoch)
    assert looked_up == []
    world.put("missing-7", 2)
    world.share_beat("a", epoch)
    assert "missing-7" in looked_up
    epoch = world.share.members["a"].epoch
    world.share_beat("a", epoch)
    assert world.shared(world.share_beat("a", world.share.members["a"].epoch, ["t", "missing-7"])) == {
        "missing-7": [0, 1], "t": [0, 1],
    }  # fmt: skip
