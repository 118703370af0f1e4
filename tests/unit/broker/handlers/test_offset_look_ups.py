"""ListOffsets, OffsetForLeaderEpoch, InitProducerId, DeleteRecords."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from partita.broker.topics.catalogue import OFFSETS_TOPIC
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from partita.protocol.messages.init_producer_id import InitProducerIdRequest
from partita.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from partita.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from support.broker.data_plane import DataPlane, data_plane
from support.log.logs import at, batch


@pytest.fixture
def plane() -> Iterator[DataPlane]:
    with data_plane() as made:
        made.topic()
        yield made


def look_up(
    plane: DataPlane, timestamp: int, version: int = 11, isolation: int = 0, **fields: int
) -> tuple[int, int, int, int]:
    """(error, timestamp, offset, leader epoch)"""
    part = ListOffsetsPartition(partition_index=0, timestamp=timestamp, **fields)
    request = ListOffsetsRequest(
        replica_id=-1, isolation_level=isolation, topics=[ListOffsetsTopic(name="t", partitions=[part])]
    )
    answer = plane.ask("list_offsets", version, request).topics[0].partitions[0]
    return answer.error_code, answer.timestamp, answer.offset, answer.leader_epoch


def test_special_timestamps(plane: DataPlane) -> None:
    partition = plane.cluster.catalogue.by_name["t"].partitions[0]
    for ms in (10, 30, 20):
        plane.produce(batch("x", ms=ms))
    partition.leader_epoch = 2
    assert look_up(plane, -1) == (0, -1, 3, 2)
    assert look_up(plane, -2) == look_up(plane, -4) == (0, -1, 0, 0)
    assert look_up(plane, -3) == (0, at(30).wall_ms, 1, 0)
    assert look_up(plane, -5) == look_up(plane, -6) == (0, -1, -1, -1)
    assert look_up(plane, at(15).wall_ms) == (0, at(30).wall_ms, 1, 0)
    assert look_up(plane, at(31).wall_ms) == (0, -1, -1, -1)


def test_an_unknown_isolation_level_is_refused(plane: DataPlane) -> None:
    for level in (-1, 2, 127):
        assert look_up(plane, -1, isolation=level) == (ErrorCode.UNKNOWN_SERVER_ERROR, -1, -1, -1)


def test_an_empty_partition_begins_and_ends_at_zero(plane: DataPlane) -> None:
    assert look_up(plane, -1)[2] == look_up(plane, -2)[2] == 0
    assert look_up(plane, -3) == look_up(plane, 0) == (0, -1, -1, -1)


@pytest.mark.parametrize(("timestamp", "version"), [(-3, 6), (-4, 7), (-5, 8), (-6, 10), (-7, 11)])
def test_special_timestamps_need_their_version(plane: DataPlane, timestamp: int, version: int) -> None:
    assert look_up(plane, timestamp, version)[0] == ErrorCode.UNSUPPORTED_VERSION


def test_read_committed_ends_at_the_last_stable_offset(plane: DataPlane) -> None:
    log = plane.cluster.catalogue.by_name["t"].partitions[0].log
    plane.produce(batch("x"))
    fields: dict[str, Any] = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    log.append(batch("open", ms=50, **fields), 0, at(0))
    assert (look_up(plane, -1)[2], look_up(plane, -1, isolation=1)[2]) == (2, 1)
    assert (look_up(plane, at(50).wall_ms)[2], look_up(plane, at(50).wall_ms, isolation=1)[2]) == (1, -1)


def test_the_leader_epoch_of_the_client_is_checked(plane: DataPlane) -> None:
    plane.cluster.catalogue.by_name["t"].partitions[0].leader_epoch = 1
    codes = [look_up(plane, -1, current_leader_epoch=epoch)[0] for epoch in (-1, 0, 1, 2)]
    assert codes == [0, ErrorCode.FENCED_LEADER_EPOCH, 0, ErrorCode.UNKNOWN_LEADER_EPOCH]


def test_a_partition_named_twice_is_an_invalid_request(plane: DataPlane) -> None:
    parts = [ListOffsetsPartition(partition_index=0, timestamp=-1) for _ in range(2)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=parts)])
    answer = plane.ask("list_offsets", 5, request)
    assert {p.error_code for p in answer.topics[0].partitions} == {ErrorCode.INVALID_REQUEST}


@pytest.mark.case("SE-P17")
@pytest.mark.parametrize("replica_id", [0, 1])
def test_whoever_claims_to_be_a_replica_sees_no_more_than_a_consumer(plane: DataPlane, replica_id: int) -> None:
    """H27; kafka-python 3.0.0 to 3.0.11 ask as replica 0."""
    plane.produce(batch("x"))
    fields: dict[str, Any] = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    plane.cluster.catalogue.by_name["t"].partitions[0].log.append(batch("open", **fields), 0, at(0))
    part = ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(
        replica_id=replica_id, isolation_level=1, topics=[ListOffsetsTopic(name="t", partitions=[part])]
    )
    answer = plane.ask("list_offsets", 5, request).topics[0].partitions[0]
    assert (answer.error_code, answer.offset) == (ErrorCode.NONE, 1)


def epoch_end(plane: DataPlane, leader_epoch: int, name: str = "t", current: int = -1) -> tuple[int, int, int]:
    part = OffsetForLeaderPartition(partition=0, leader_epoch=leader_epoch, current_leader_epoch=current)
    request = OffsetForLeaderEpochRequest(replica_id=-1, topics=[OffsetForLeaderTopic(topic=name, partitions=[part])])
    answer = plane.ask("offset_for_leader_epoch", 4, request).topics[0].partitions[0]
    return answer.error_code, answer.leader_epoch, answer.end_offset


def test_a_leader_epoch_ends_where_the_next_begins(plane: DataPlane) -> None:
    partition = plane.cluster.catalogue.by_name["t"].partitions[0]
    plane.produce(batch("a"))
    partition.leader_epoch = 4
    assert epoch_end(plane, 0) == (0, 0, 1)
    assert epoch_end(plane, 4) == (0, 4, 1)
    plane.produce(batch("b"))
    assert [epoch_end(plane, epoch) for epoch in (0, 2, 4, 5)] == [(0, 0, 1), (0, 0, 1), (0, 4, 2), (0, -1, -1)]
    assert epoch_end(plane, 0, "nobody")[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert epoch_end(plane, 0, current=3)[0] == ErrorCode.FENCED_LEADER_EPOCH


def test_every_idempotent_producer_gets_its_own_id(plane: DataPlane) -> None:
    answers = [plane.ask("init_producer_id", 4, InitProducerIdRequest(transactional_id=None)) for _ in range(3)]
    assert len({a.producer_id for a in answers}) == 3
    assert {(a.error_code, a.producer_epoch) for a in answers} == {(0, 0)}


def delete(plane: DataPlane, offset: int, name: str = "t") -> tuple[int, int]:
    part = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=name, partitions=[part])])
    answer = plane.ask("delete_records", 2, request).topics[0].partitions[0]
    return answer.error_code, answer.low_watermark


def test_records_are_deleted_up_to_an_offset_or_all(plane: DataPlane) -> None:
    for i in range(5):
        plane.produce(batch(str(i)))
    assert delete(plane, 3) == (0, 3)
    assert plane.fetch(2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert look_up(plane, -2)[2] == 3
    assert delete(plane, 9) == delete(plane, -2) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert delete(plane, -1) == (0, 5)


def test_records_of_compacted_and_internal_topics_stay(plane: DataPlane) -> None:
    plane.topic("compacted", cleanup_policy=("compact",))
    plane.cluster.ensure_state_topic(OFFSETS_TOPIC)
    assert delete(plane, 0, "compacted")[0] == ErrorCode.POLICY_VIOLATION
    assert delete(plane, 0, "__consumer_offsets")[0] == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert delete(plane, 0, "nobody")[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
