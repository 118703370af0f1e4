"""ListOffsets: the first offset, the last, or that of an instant. (Kafka: UnifiedLog.fetchOffsetByTimestamp.)"""

from __future__ import annotations

from partita.broker.handlers._partitions import find
from partita.broker.requests.context import RequestContext
from partita.broker.topics.catalogue import Partition
from partita.log.storage import StorageError
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from partita.records.header import InvalidBatch

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -4, -5, -6
READ_COMMITTED = 1
_SINCE = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
"""The version from which a special timestamp is understood."""


def handle(ctx: RequestContext, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Partitions named twice in one request are refused, as in Kafka.

    A client that claims to be a replica gets a consumer's answer and sees no further. (H27)

    Deviation: ListOffsets from a client that claims to be a replica, as kafka-python up to 3.0.11 does, is answered
    as for a consumer; Kafka answers with the log end offset, even under read_committed.
    """
    asked = [(topic.name, part.partition_index) for topic in request.topics for part in topic.partitions]
    twice = {key for key in asked if asked.count(key) > 1} if len(set(asked)) < len(asked) else set()
    response = ListOffsetsResponse()
    for topic in request.topics:
        parts = [
            _error(part, ErrorCode.INVALID_REQUEST)
            if (topic.name, part.partition_index) in twice
            else _partition(ctx, request, topic.name, part)
            for part in topic.partitions
        ]
        response.topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=parts))
    return response


def _partition(
    ctx: RequestContext, request: ListOffsetsRequest, name: str, part: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    if part.timestamp < 0 and (part.timestamp < EARLIEST_PENDING_UPLOAD or ctx.version < _SINCE.get(part.timestamp, 0)):
        return _error(part, ErrorCode.UNSUPPORTED_VERSION)
    partition = find(ctx, ctx.catalogue.get(name), part.partition_index, current_leader_epoch=part.current_leader_epoch)
    if isinstance(partition, ErrorCode):
        return _error(part, partition)
    try:
        timestamp, offset, leader_epoch = _look_up(partition, part.timestamp, request.isolation_level)
    except InvalidBatch as error:
        return _error(part, error.code)
    except StorageError:
        return _error(part, ErrorCode.KAFKA_STORAGE_ERROR)
    return ListOffsetsPartitionResponse(
        partition_index=part.partition_index, timestamp=timestamp, offset=offset, leader_epoch=leader_epoch
    )


def _look_up(partition: Partition, timestamp: int, isolation_level: int) -> tuple[int, int, int]:
    """Return (timestamp, offset, leader epoch), -1 each where there is none."""
    log = partition.log
    end = log.last_stable_offset if isolation_level == READ_COMMITTED else log.high_watermark
    match timestamp:
        case -1:
            return -1, end, partition.leader_epoch
        case -2 | -4:
            return -1, log.log_start_offset, log.epoch_at(log.log_start_offset)
        case -5 | -6:
            return -1, -1, -1
        case -3:
            found = log.offset_of_max_timestamp()
        case _:
            found = log.offset_for_timestamp(timestamp)
    if found is None or found.offset >= end:
        return -1, -1, -1
    return found.timestamp, found.offset, found.leader_epoch


def _error(part: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=part.partition_index, error_code=code, timestamp=-1, offset=-1, leader_epoch=-1
    )
