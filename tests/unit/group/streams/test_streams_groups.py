"""Streams groups: who may join, what is written, what time does, and what becomes of a group."""

from __future__ import annotations

import pytest

from partita.group.records import streams_log
from partita.group.requests import DeleteGroup, FetchOffsets, ListShardGroups
from partita.group.state.topology import Status
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from partita.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from partita.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from partita.protocol.messages.offset_fetch import OffsetFetchRequestGroup
from partita.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from partita.protocol.messages.streams_group_heartbeat import (
    StreamsCopartitionGroup,
    StreamsEndpoint,
    StreamsGroupHeartbeatRequest,
    StreamsKeyValue,
    StreamsSubtopology,
    StreamsTaskIds,
    StreamsTaskOffset,
    StreamsTopicInfo,
    StreamsTopology,
)
from partita.protocol.messages.sync_group import SyncGroupRequest
from support.group.streams import PLAIN, STATEFUL, StreamsWorld, tasks

NONE = ErrorCode.NONE


def reported(answer_tasks: list[int]) -> dict[str, list[StreamsTaskIds]]:
    listed = [StreamsTaskIds(subtopology_id="0", partitions=answer_tasks)] if answer_tasks else []
    return {"active_tasks": listed, "standby_tasks": [], "warmup_tasks": []}


def test_a_task_passes_on_only_after_its_owner_gave_it_up() -> None:
    world = StreamsWorld()
    assert tasks(world.join_streams("a")) == [0, 1, 2]
    joined = world.join_streams("b", "q")
    assert (joined.member_epoch, tasks(joined)) == (3, [])
    told = world.beat_streams("a", 2)
    kept = tasks(told)
    assert kept is not None
    assert (len(kept), told.member_epoch) == (2, 2)
    assert tasks(world.beat_streams("b", 3)) is None, "a has not said that it gave the task up"
    assert world.beat_streams("a", 2, **reported(kept)).member_epoch == 3
    assert tasks(world.beat_streams("b", 3)) == [number for number in range(3) if number not in kept]
    assert world.streams.state == "Stable"


def test_the_recovery_lag_is_in_the_field_of_version_1_alone() -> None:
    answer = StreamsWorld().join_streams("a")
    assert (answer.acceptable_recovery_lag_legacy, answer.acceptable_recovery_lag) == (0, 10_000)


def test_a_wall_clock_that_is_set_back_holds_up_no_tasks() -> None:
    world = StreamsWorld(group_streams_assignment_interval_ms=1_000)
    world.join_streams("a")
    world.clock.set_wall_back(3_600_000)
    world.join_streams("b", "q")
    world.beat_streams("a", 2)
    assert world.streams.epoch == world.streams.assignment_epoch


def test_a_stateful_task_gets_its_changelog_and_standbys_in_another_process() -> None:
    world = StreamsWorld(group_streams_num_standby_replicas=1)
    answer = world.join_streams("a", topology=STATEFUL)
    assert [status.status_code for status in answer.status or ()] == [Status.MISSING_INTERNAL_TOPICS]
    assert {topic.name: topic.partitions for topic in world.missing.values()} == {"changelog": 3}
    assert world.streams.state == "NotReady"
    world.put("changelog", 3)
    assert tasks(world.beat_streams("a", 2)) == [0, 1, 2]
    joined = world.join_streams("b", "q", STATEFUL)
    assert tasks(joined, "standby"), "the process q has a standby of what stays with a"


@pytest.mark.parametrize(
    ("request_fields", "error"),
    [
        ({"member_id": " "}, "MemberId can't be empty."),
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"instance_id": " "}, "InstanceId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"active_tasks": None}, "ActiveTasks must be empty when (re-)joining."),
        ({"topology": None}, "Topology must be non-null when (re-)joining."),
        ({"member_epoch": -3, "topology": None}, "MemberEpoch is -3, but must be greater than or equal to -2."),
        ({"member_epoch": -2, "topology": None}, "InstanceId can't be null."),
        (
            {"member_epoch": 1, "topology": None, "warmup_tasks": None},
            "If one task-type is non-null, all must be non-null.",
        ),
        ({"member_epoch": 1}, "Topology can only be provided when (re-)joining."),
    ],
)
def test_an_incomplete_request_is_refused_in_kafkas_words(request_fields: dict[str, object], error: str) -> None:
    world = StreamsWorld()
    whole = {
        "group_id": "g", "member_id": "a", "member_epoch": 0, "rebalance_timeout_ms": 1, "process_id": "p",
        "active_tasks": [], "standby_tasks": [], "warmup_tasks": [], "topology": PLAIN,
    }  # fmt: skip
    answer = world.ask(StreamsGroupHeartbeatRequest(**{**whole, **request_fields})).response  # type: ignore[arg-type]
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, error)
    assert world.log == []
    assert world.coordinator.groups_count == 0, "a refused join leaves no group"


def test_a_topology_that_cannot_be_leaves_no_trace() -> None:
    world = StreamsWorld()
    endless = StreamsTopology(
        epoch=1,
        subtopologies=[
            StreamsSubtopology(subtopology_id="0", source_topics=["t"], source_topic_regex=["x.*"]),
        ],
    )
    assert world.join_streams("a", topology=endless).error_code == ErrorCode.INVALID_REQUEST
    loop = StreamsTopology(
        epoch=1, subtopologies=[StreamsSubtopology(subtopology_id="0", repartition_sink_topics=["r"])]
    )
    assert world.join_streams("a", topology=loop).error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY
    for number in (1, -1):
        together = StreamsCopartitionGroup(source_topics=[number])
        beside = StreamsSubtopology(subtopology_id="0", source_topics=["t"], copartition_groups=[together])
        answer = world.join_streams("a", topology=StreamsTopology(epoch=1, subtopologies=[beside]))
        assert answer.error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY
        assert answer.error_message is not None
        assert f"names source topic {number}; it has 1" in answer.error_message
    assert (world.log, world.coordinator.groups_count) == ([], 0)


def test_the_first_assignment_waits_for_more_members() -> None:
    world = StreamsWorld(group_streams_initial_rebalance_delay_ms=3_000)
    answer = world.join_streams("a")
    assert [status.status_code for status in answer.status or ()] == [Status.ASSIGNMENT_DELAYED]
    world.join_streams("b", "q")
    world.wait(2_999)
    assert world.streams.assignment_epoch < world.streams.epoch
    world.wait(1)
    assert world.streams.assignment_epoch == world.streams.epoch
    first, second = (tasks(world.beat_streams(name, world.streams.members[name].epoch)) for name in "ab")
    assert sorted([*(first or ()), *(second or ())]) == [0, 1, 2]


def test_members_that_are_silent_or_keep_what_they_must_revoke_are_removed() -> None:
    world = StreamsWorld()
    world.join_streams("a", rebalance_timeout_ms=10_000)
    world.join_streams("b", "q")
    world.beat_streams("a", 2)
    world.wait(9_999)
    assert set(world.streams.members) == {"a", "b"}
    world.wait(1)
    assert set(world.streams.members) == {"b"}, "a did not give its task up"
    world.wait(45_000)
    assert (world.streams.members, world.streams.state) == ({}, "Empty")
    assert world.streams.assignment_epoch == world.streams.epoch


def test_a_static_member_comes_back_to_its_tasks() -> None:
    world = StreamsWorld()
    world.join_streams("a", instance_id="i")
    twin = world.join_streams("a2", instance_id="i")
    assert twin.error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    assert world.beat_streams("a2", 2, instance_id="i").error_code == ErrorCode.FENCED_INSTANCE_ID
    assert world.beat_streams("a", 2, instance_id="j").error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.beat_streams("a", -2, instance_id="i").member_epoch == -2
    epoch = world.streams.epoch
    back = world.join_streams("a2", instance_id="i")
    assert (tasks(back), world.streams.epoch) == ([0, 1, 2], epoch), "nothing is assigned anew"
    assert world.beat_streams("a2", -1, instance_id="i").member_epoch == -1
    assert world.streams.members == {}


def test_a_lost_answer_is_asked_for_again_and_other_epochs_are_fenced() -> None:
    world = StreamsWorld()
    world.join_streams("a")
    world.join_streams("b", "p")
    told = world.beat_streams("a", 2)
    moved = world.beat_streams("a", 2, **reported(tasks(told) or []))
    assert moved.member_epoch == 3
    assert world.beat_streams("a", 2, **reported(tasks(told) or [])).member_epoch == 3
    assert world.beat_streams("a", 2).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert world.beat_streams("a", 9).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    wrong = world.beat_streams("a", 3, **reported([7]))
    assert (wrong.error_code, "Number of tasks" in (wrong.error_message or "")) == (ErrorCode.INVALID_REQUEST, True)


def test_a_member_that_lacks_tasks_is_told_them_again() -> None:
    world = StreamsWorld()
    world.join_streams("a")
    assert tasks(world.beat_streams("a", 2, **reported([0, 1]))) == [0, 1, 2], "the answer to its join was lost"
    assert tasks(world.beat_streams("a", 2, **reported([0, 1, 2]))) is None
    assert tasks(world.beat_streams("a", 2)) is None


def test_one_member_has_all_shut_down() -> None:
    world = StreamsWorld()
    world.join_streams("a")
    world.join_streams("b", "q")
    world.beat_streams("a", -1, shutdown_application=True)
    [status] = world.beat_streams("b", 3).status or []
    assert status.status_code == Status.SHUTDOWN_APPLICATION
    assert "a encountered a fatal error" in status.status_detail


def test_endpoints_tags_and_offsets_are_kept_and_described() -> None:
    world = StreamsWorld(group_streams_rack_aware_assignment_tags=("zone", "rack"))
    tags = [StreamsKeyValue(key="zone", value="z1")]
    endpoint = StreamsEndpoint(host="here", port=7070)
    [status] = world.join_streams("a", client_tags=tags, user_endpoint=endpoint).status or []
    assert (status.status_code, "[rack]" in status.status_detail) == (Status.MISSING_CLIENT_TAGS, True)
    offsets = [StreamsTaskOffset(subtopology_id="0", partition=1, offset=5)]
    world.beat_streams("a", 2, task_offsets=offsets, task_end_offsets=offsets)
    twice = world.beat_streams("a", 2, task_offsets=[*offsets, *offsets])
    assert twice.error_code == ErrorCode.INVALID_REQUEST
    (member,) = world.described_streams().members
    assert (member.user_endpoint and member.user_endpoint.port, member.task_offsets[0].offset) == (7070, 5)
    joined = world.join_streams("b", "q", client_tags=tags, endpoint_information_epoch=-1)
    [other] = joined.partitions_by_user_endpoint or []
    assert [(topic.topic, topic.partitions) for topic in other.active_partitions] == [("t", [0, 1, 2])]


def test_settings_of_a_group_take_effect_and_begin_a_new_assignment() -> None:
    world = StreamsWorld()
    world.join_streams("a", topology=STATEFUL)
    world.put("changelog", 3)
    world.beat_streams("a", 2)
    world.join_streams("b", "q", STATEFUL)
    epoch = world.streams.epoch
    world.coordinator.group_settings = {
        "g": {"streams.num.standby.replicas": 1, "streams.heartbeat.interval.ms": 6_000}
    }
    answer = world.beat_streams("b", world.streams.members["b"].epoch)
    assert (world.streams.epoch, answer.heartbeat_interval_ms) == (epoch + 1, 6_000)
    assert any(target.standby for target in world.streams.targets.values())


def commit(epoch: int, member: str = "a", *, topic: str = "t", partition: int = 0) -> OffsetCommitRequest:
    entry = OffsetCommitRequestPartition(partition_index=partition, committed_offset=5)
    topics = [OffsetCommitRequestTopic(name=topic, partitions=[entry])]
    return OffsetCommitRequest(group_id="g", member_id=member, generation_id_or_member_epoch=epoch, topics=topics)


def committed(world: StreamsWorld, request: OffsetCommitRequest, version: int = 9) -> int:
    code: int = world.ask(request, version).topics[0].partitions[0].error_code
    return code


def test_offsets_are_committed_with_the_epoch_in_which_a_task_was_given() -> None:
    world = StreamsWorld()
    world.join_streams("a")
    world.join_streams("b", "q")
    kept = tasks(world.beat_streams("a", 2)) or []
    world.beat_streams("a", 2, **reported(kept))
    (gone,) = (number for number in range(3) if number not in kept)
    assert committed(world, commit(3, partition=kept[0])) == NONE
    assert committed(world, commit(2, partition=kept[0])) == NONE, "a has it since epoch 2"
    assert committed(world, commit(2, partition=gone)) == ErrorCode.STALE_MEMBER_EPOCH
    assert committed(world, commit(2, topic="strange")) == ErrorCode.STALE_MEMBER_EPOCH
    assert committed(world, commit(4)) == ErrorCode.STALE_MEMBER_EPOCH
    assert committed(world, commit(3, "x")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(world, commit(3), 8) == ErrorCode.UNSUPPORTED_VERSION
    asked = OffsetFetchRequestGroup(group_id="g", member_id="a", member_epoch=2, topics=None)
    assert world.ask(FetchOffsets(asked), 9).error_code == ErrorCode.STALE_MEMBER_EPOCH
    asked.member_epoch = 3
    assert world.ask(FetchOffsets(asked), 9).topics[0].partitions[0].committed_offset == 5


def test_other_protocols_are_refused_and_an_empty_group_becomes_classic() -> None:
    world = StreamsWorld()
    world.join_streams("a")
    join = JoinGroupRequest(
        group_id="g", session_timeout_ms=10_000, rebalance_timeout_ms=10_000, protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )  # fmt: skip
    consumer = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="m", rebalance_timeout_ms=1, subscribed_topic_names=["t"], topic_partitions=[]
    )
    share = ShareGroupHeartbeatRequest(group_id="g", member_id="m", subscribed_topic_names=["t"])
    assert world.ask(join, 3).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert (
        world.ask(SyncGroupRequest(group_id="g", generation_id=1, member_id="m"), 3).error_code
        == ErrorCode.UNKNOWN_MEMBER_ID
    )
    assert world.ask(LeaveGroupRequest(group_id="g", member_id="m"), 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    left = world.ask(LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="a")]), 3)
    assert (left.error_code, [each.error_code for each in left.members]) == (0, [ErrorCode.UNKNOWN_MEMBER_ID])
    assert world.ask(consumer).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert world.ask(share).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert world.ask(DeleteGroup("g")).error_code == ErrorCode.NON_EMPTY_GROUP
    world.beat_streams("a", -1)
    assert world.ask(join, 5).error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert (world.coordinator.hard_state.streams_groups, list(world.coordinator.groups)) == ({}, ["g"])
    assert world.beat_streams("a", 2).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_deleted_group_leaves_nothing() -> None:
    world = StreamsWorld()
    world.join_streams("a")
    committed(world, commit(2))
    world.beat_streams("a", -1)
    assert world.ask(DeleteGroup("g")).error_code == NONE
    hard = world.coordinator.hard_state
    assert (hard.streams_groups, hard.offsets, world.coordinator.groups_count) == ({}, {}, 0)


def test_a_chain_of_subtopologies_in_the_wrong_order_is_followed_to_its_end() -> None:
    world, links = StreamsWorld(), 3000
    chain = [
        StreamsSubtopology(
            subtopology_id=f"{links - number:05}",
            source_topics=[] if number else ["t"],
            repartition_source_topics=[StreamsTopicInfo(name=f"r{number}")] if number else [],
            repartition_sink_topics=[f"r{number + 1}"] if number < links else [],
        )
        for number in range(links + 1)
    ]
    world.join_streams("a", topology=StreamsTopology(epoch=1, subtopologies=chain))
    assert {topic.partitions for topic in world.missing.values()} == {3}
    assert len(world.missing) == links


def test_an_empty_classic_group_becomes_a_streams_group_and_keeps_its_offsets() -> None:
    world = StreamsWorld()
    committed(world, commit(-1, ""))
    world.join_streams("a")
    for _ in range(2):
        assert (list(world.coordinator.groups), world.coordinator.groups_count) == ([], 1)
        assert [group.group_type for group in world.ask(ListShardGroups([], [])).groups] == ["streams"]
        assert world.coordinator.hard_state.has_offsets("g")
        world.reload()


def test_offsets_expire_and_go_with_their_topic_and_an_empty_group_goes_with_its_last() -> None:
    long = {"group_streams_session_timeout_ms": 600_001, "group_streams_max_session_timeout_ms": 600_001}
    world = StreamsWorld({"t": 3, "u": 1}, offsets_retention_minutes=60, **long)
    epoch = world.join_streams("a").member_epoch
    for topic in ("t", "u"):
        assert committed(world, commit(epoch, topic=topic)) == NONE
    for _ in range(8):
        world.wait(10 * 60_000)
        epoch = world.join_streams("a").member_epoch
    assert list(world.coordinator.hard_state.offsets["g"]) == [("t", 0)], "nobody reads u"
    world.take(world.coordinator.on_topics_deleted(["t"], world.clock.now()))
    assert not world.coordinator.hard_state.has_offsets("g")
    world.beat_streams("a", -1)
    world.wait(10 * 60_000)
    assert (world.coordinator.hard_state.streams_groups, world.coordinator.groups_count) == ({}, 0)


def test_an_empty_group_makes_room_for_another() -> None:
    world = StreamsWorld(partita_groups_max=1)
    world.join_streams("a")
    world.beat_streams("a", -1)
    join = ConsumerGroupHeartbeatRequest(
        group_id="h", member_id="m", rebalance_timeout_ms=60_000, subscribed_topic_names=["t"], topic_partitions=[]
    )
    assert world.ask(join).error_code == NONE
    assert world.coordinator.hard_state.streams_groups == {}


def test_a_join_that_is_too_large_leaves_nothing_of_its_member() -> None:
    world = StreamsWorld(max_message_bytes=10_000)
    world.join_streams("a")
    tags = [StreamsKeyValue(key="k", value="x" * 10_000)]
    offsets = [StreamsTaskOffset(subtopology_id="0", partition=0, offset=5)]
    refused = world.join_streams("b", client_tags=tags, task_offsets=offsets)
    assert (refused.error_code, list(world.streams.members)) == (ErrorCode.UNKNOWN_SERVER_ERROR, ["a"])
    world.join_streams("b")
    assert [member.task_offsets for member in world.described_streams().members] == [[], []]


def test_records_are_written_in_kafkas_order() -> None:
    world = StreamsWorld()
    world.join_streams("a")
    kinds = [int.from_bytes(record.key[:2], "big") for record in world.log]
    assert kinds == [
        streams_log.MEMBER_KEY, streams_log.TOPOLOGY_KEY, streams_log.EPOCH_KEY, streams_log.TARGET_KEY,
        streams_log.TARGET_EPOCH_KEY, streams_log.ASSIGNMENT_KEY,
    ]  # fmt: skip
    world.beat_streams("a", 2)
    assert len(world.log) == len(kinds), "a heartbeat that changes nothing writes nothing"


def test_a_large_commit_is_refused_for_the_whole_group() -> None:
    world = StreamsWorld(max_message_bytes=400)
    assert world.join_streams("a" * 500).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert (world.log, world.coordinator.groups_count) == ([], 0)
