"""Requests of the state APIs about one share partition, and its records in the log."""

from __future__ import annotations

from partita import Broker
from partita.broker.topics.catalogue import SHARE_STATE_TOPIC
from partita.group import partition_for
from partita.protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteStatePartition,
    DeleteStateTopic,
)
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest
from partita.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeStatePartition,
    InitializeStateTopic,
)
from partita.protocol.messages.read_share_group_state import (
    ReadShareGroupStateRequest,
    ReadStatePartition,
    ReadStateTopic,
)
from partita.protocol.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadStateSummaryPartition,
    ReadStateSummaryTopic,
)
from partita.protocol.messages.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteStateBatch,
    WriteStatePartition,
    WriteStateTopic,
)
from partita.records.batch import iter_records
from partita.records.header import iter_batches
from partita.share.coordinator.log_records import Record
from partita.share.coordinator.model import ShareKey, StateBatch
from support.broker.raw import Raw


def find_share(raw: Raw, key: str, version: int = 6) -> int:
    """The error code of the key's coordinator."""
    request = FindCoordinatorRequest(key_type=2, coordinator_keys=[key])
    return int(raw.ask(request, version).coordinators[0].error_code)


def initialize(key: ShareKey, state_epoch: int = 3, start_offset: int = -1) -> InitializeShareGroupStateRequest:
    part = InitializeStatePartition(partition=key.partition, state_epoch=state_epoch, start_offset=start_offset)
    topic = InitializeStateTopic(topic_id=key.topic_id, partitions=[part])
    return InitializeShareGroupStateRequest(group_id=key.group_id, topics=[topic])


def read(key: ShareKey, leader_epoch: int = 0) -> ReadShareGroupStateRequest:
    part = ReadStatePartition(partition=key.partition, leader_epoch=leader_epoch)
    topic = ReadStateTopic(topic_id=key.topic_id, partitions=[part])
    return ReadShareGroupStateRequest(group_id=key.group_id, topics=[topic])


def write(
    key: ShareKey,
    *batches: StateBatch,
    start_offset: int = -1,
    state_epoch: int = 3,
    leader_epoch: int = 0,
    completed: int = 0,
) -> WriteShareGroupStateRequest:
    part = WriteStatePartition(
        partition=key.partition,
        state_epoch=state_epoch,
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=completed,
        state_batches=[
            WriteStateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
            for first, last, state, count in batches
        ],
    )
    topic = WriteStateTopic(topic_id=key.topic_id, partitions=[part])
    return WriteShareGroupStateRequest(group_id=key.group_id, topics=[topic])


def delete(key: ShareKey) -> DeleteShareGroupStateRequest:
    topic = DeleteStateTopic(topic_id=key.topic_id, partitions=[DeleteStatePartition(partition=key.partition)])
    return DeleteShareGroupStateRequest(group_id=key.group_id, topics=[topic])


def summary(key: ShareKey) -> ReadShareGroupStateSummaryRequest:
    part = ReadStateSummaryPartition(partition=key.partition)
    topic = ReadStateSummaryTopic(topic_id=key.topic_id, partitions=[part])
    return ReadShareGroupStateSummaryRequest(group_id=key.group_id, topics=[topic])


def stored(broker: Broker, key: str) -> list[Record]:
    """The records in the partition that the key "group:topicId:partition" hashes to."""

    def records() -> list[Record]:
        topic = broker.cluster.catalogue.by_name[SHARE_STATE_TOPIC]
        log = topic.partitions[partition_for(key, len(topic.partitions))].log
        view = log.read(log.log_start_offset, 1 << 20)
        return [
            Record(_bytes(record.key) or b"", _bytes(record.value))
            for _, batch in iter_batches(view)
            for record in iter_records(batch)
        ]

    return broker.run(records)


def _bytes(field: object) -> bytes | None:
    assert field is None or isinstance(field, bytes)
    return field
