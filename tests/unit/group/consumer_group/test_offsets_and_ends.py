"""Offsets of KIP-848 groups, and how such groups are described, listed, deleted and forgotten."""

from typing import Any

import pytest

from partita.group.requests import DeleteGroup, DescribeGroup, FetchOffsets, ListShardGroups
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from partita.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from partita.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from partita.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from support.group.consumers import World, error, topic_id

NONE, STALE = ErrorCode.NONE, ErrorCode.STALE_MEMBER_EPOCH


def commit(world: World, member: str, epoch: int, *topics: str, version: int = 9) -> set[ErrorCode]:
    request = OffsetCommitRequest(
        group_id="g",
        member_id=member,
        generation_id_or_member_epoch=epoch,
        topics=[
            OffsetCommitRequestTopic(
                name=name,
                topic_id=topic_id(name),
                partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=7)],
            )
            for name in topics or ("t",)
        ],
    )
    answer = world.ask(request, version)
    return {error(partition) for topic in answer.topics for partition in topic.partitions}


def fetch(world: World, member: str | None, epoch: int) -> Any:
    topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    group = OffsetFetchRequestGroup(group_id="g", member_id=member, member_epoch=epoch, topics=topics)
    return world.ask(FetchOffsets(group), 9)


def listed(world: World, **filters: list[str]) -> list[tuple[str, str, str, str]]:
    groups = world.ask(ListShardGroups(**filters), 5).groups
    return [(g.group_id, g.group_type, g.group_state, g.protocol_type) for g in groups]


@pytest.mark.case("GC-T41")
def test_only_a_member_at_its_epoch_may_commit() -> None:
    world = World({"t": 1})
    world.join("a")
    assert commit(world, "a", 2) == {NONE}
    assert commit(world, "a", 2, version=8) == {ErrorCode.UNSUPPORTED_VERSION}
    assert commit(world, "b", 2) == {ErrorCode.UNKNOWN_MEMBER_ID}
    assert commit(world, "a", 3) == {STALE}
    assert commit(world, "", -1) == {ErrorCode.UNKNOWN_MEMBER_ID}
    world.beat("a", -1)
    assert commit(world, "", -1) == {NONE}


@pytest.mark.case("GC-T52", "BM-101", "BM-106")
def test_an_older_epoch_will_do_for_partitions_held_since_then() -> None:
    world = World({"t": 1, "t1": 1, "u": 1})
    world.join("a")
    world.go_on("a", {"t": [0]}, topics=["t", "t1"])
    assert commit(world, "a", 2) == {NONE}
    for topics in (["t1"], ["u"], ["t", "t1"]):
        assert commit(world, "a", 2, *topics) == {STALE}
    assert commit(world, "a", 3, "u") == {NONE}


@pytest.mark.case("GC-T42")
def test_only_a_member_at_its_epoch_or_nobody_in_particular_may_fetch() -> None:
    world = World({"t": 1})
    world.join("a")
    commit(world, "a", 2)
    assert error(fetch(world, "a", 1)) == STALE
    assert error(fetch(world, "b", 2)) == ErrorCode.UNKNOWN_MEMBER_ID
    for member, epoch in (("a", 2), (None, -1)):
        answer = fetch(world, member, epoch)
        assert (error(answer), answer.topics[0].partitions[0].committed_offset) == (NONE, 7)


@pytest.mark.case("GC-T48")
def test_a_transaction_of_a_stale_member_is_of_an_illegal_generation_before_version_6() -> None:
    world = World({"t": 1})
    world.join("a")

    def txn(member: str, epoch: int, version: int = 3) -> ErrorCode:
        topics = [
            TxnOffsetCommitRequestTopic(
                name="t", partitions=[TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
            )
        ]
        request = TxnOffsetCommitRequest(
            group_id="g",
            transactional_id="x",
            producer_id=1,
            member_id=member,
            generation_id_or_member_epoch=epoch,
            topics=topics,
        )
        return error(world.ask(request, version).topics[0].partitions[0])

    assert txn("a", 1) == ErrorCode.ILLEGAL_GENERATION
    assert txn("a", 1, version=6) == ErrorCode.STALE_MEMBER_EPOCH
    assert txn("b", 2, version=6) == ErrorCode.UNKNOWN_MEMBER_ID
    assert txn("", -1) == NONE, "a producer need not say for which member it commits"
    assert txn("a", 2) == NONE


@pytest.mark.case("GC-T40")
def test_a_group_is_described_with_current_and_target_assignments() -> None:
    world = World({"t": 2})
    world.join("a", rack="r", instance="i")
    world.join("b", regex="x.*", topics=[])
    described = world.describe()
    assert (described.group_epoch, described.assignment_epoch, described.assignor_name) == (2, 2, "uniform")
    a, b = described.members
    assert (a.member_id, a.instance_id, a.rack_id, a.member_epoch, a.client_id, a.client_host, a.member_type) == (
        "a", "i", "r", 2, "c", "/h", 1,
    )  # fmt: skip
    assert (a.subscribed_topic_names, a.subscribed_topic_regex, b.subscribed_topic_regex) == (["t"], "", "x.*")
    for assignment in (a.assignment, a.target_assignment):
        (topic,) = assignment.topic_partitions
        assert (topic.topic_id, topic.topic_name, topic.partitions) == (topic_id("t"), "t", [0, 1])
    commit_only = OffsetCommitRequest(group_id="simple", generation_id_or_member_epoch=-1)
    commit_only.topics = [
        OffsetCommitRequestTopic(name="t", partitions=[OffsetCommitRequestPartition(partition_index=0)])
    ]
    world.ask(commit_only, 9)
    assert error(world.describe("simple")) == ErrorCode.GROUP_ID_NOT_FOUND
    assert error(world.describe("none")) == ErrorCode.GROUP_ID_NOT_FOUND
    assert error(world.describe("")) == ErrorCode.INVALID_GROUP_ID


@pytest.mark.case("GC-T35")
def test_groups_are_listed_by_type_and_state_and_classic_describe_says_what_it_is() -> None:
    world = World({"t": 2})
    world.join("a")
    assert listed(world) == [("g", "consumer", "Stable", "consumer")]
    assert listed(world, types_filter=["Consumer"], states_filter=[" stable "]) == listed(world)
    assert listed(world, types_filter=["classic"]) == []
    assert listed(world, states_filter=["Assigning"]) == []
    described = world.ask(DescribeGroup("g"), 6)
    assert (error(described), described.error_message, described.group_state) == (
        ErrorCode.GROUP_ID_NOT_FOUND, "Group g is not a classic group.", "Dead",
    )  # fmt: skip
    assert error(world.ask(DescribeGroup("g"), 5)) == NONE


@pytest.mark.case("GC-T47")
def test_an_empty_group_is_deleted_by_all_its_tombstones_and_one_with_members_is_not() -> None:
    world = World({"t": 2})
    world.join("a", regex="x")
    commit(world, "a", 2)
    assert error(world.ask(DeleteGroup("g"))) == ErrorCode.NON_EMPTY_GROUP
    world.beat("a", -1)
    written = len(world.log)
    assert error(world.ask(DeleteGroup("g"))) == NONE
    assert world.kinds(world.log[written:]) == "-1 -6 -3"
    assert error(world.ask(DeleteGroup("g"))) == ErrorCode.GROUP_ID_NOT_FOUND
    assert listed(world) == []


def test_offsets_of_topics_subscribed_to_are_not_deleted() -> None:
    world = World({"t": 1, "order-1": 1, "u": 1})
    world.join("a", regex="order.*")
    commit(world, "a", 2, "t", "order-1", "u")
    partitions = [OffsetDeleteRequestPartition(partition_index=0)]
    topics = [OffsetDeleteRequestTopic(name=name, partitions=partitions) for name in ("t", "order-1", "u")]
    answer = world.ask(OffsetDeleteRequest(group_id="g", topics=topics), 0)
    subscribed = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert [error(topic.partitions[0]) for topic in answer.topics] == [subscribed, subscribed, NONE]


def test_offsets_expire_by_their_commit_unless_somebody_subscribes_and_an_empty_group_ends_with_them() -> None:
    world = World({"t": 1, "u": 1}, offsets_retention_minutes=60)
    world.join("a")
    commit(world, "a", 2, "t", "u")
    for _ in range(140):
        world.wait(30_000)
        world.go_on("a", {"t": [0]})
    assert set(world.coordinator.hard_state.offsets["g"]) == {("t", 0)}
    world.beat("a", -1)
    world.wait(600_000)
    assert not world.coordinator.hard_state.offsets
    assert "g" not in world.coordinator.consumer_groups
    assert world.coordinator.groups_count == 0


def test_a_group_that_only_stored_offsets_becomes_a_consumer_group_and_keeps_them() -> None:
    world = World({"t": 1})
    assert commit(world, "", -1) == {NONE}
    assert world.join("a").member_epoch == 2
    assert world.coordinator.groups_count == 1
    assert fetch(world, "a", 2).topics[0].partitions[0].committed_offset == 7
