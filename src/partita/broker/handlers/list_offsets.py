"""ListOffsets: the first offset, the last, or that of an instant. (Kafka: UnifiedLog.fetchOffsetByTimestamp.)"""

from __future__ import annotations

from collections import defaultdict
from functools import partial

from partita.broker.api.context import RequestContext, Steps
from partita.broker.api.needs import NeedsEach
from partita.broker.api.served import ALONE_MAX, PARTITIONS_MAX, Served
from partita.broker.handlers._partitions import find
from partita.broker.topics.catalogue import Partition
from partita.broker.wire.turns import let_go
from partita.log.storage import StorageError
from partita.log.timestamp_search import TimestampOffset, first_in
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from partita.records.header import InvalidBatch, read_header
from partita.records.opened.inspect import is_long
from partita.records.validate import inflated_bytes_max
from partita.security.rights.operations import Operation, ResourceType

API = Served(
    ListOffsetsRequest,
    rights=(NeedsEach(Operation.DESCRIBE, ResourceType.TOPIC, "topics", "topics", "name"),),
    elements_max=PARTITIONS_MAX,
    alone_max=ALONE_MAX,
)

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -4, -5, -6
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
COUNTERS = 64
_SINCE = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
"""The version from which a special timestamp is understood."""


def handle(ctx: RequestContext, request: ListOffsetsRequest) -> Steps[ListOffsetsResponse]:
    """Partitions named twice in one request are refused, as in Kafka, and all with an unknown isolation level.

    A client that claims to be a replica gets a consumer's answer and sees no further. (H27)

    Deviation: Partita answers ListOffsets of a client that claims to be a replica, as kafka-python up to 3.0.11 does,
    as for a consumer, where Kafka answers with the log end offset even under read_committed.
    """
    # Many small ones: one that grows to 300,000 entries moves all of them whenever it does, which takes 9 ms.
    counts: defaultdict[int, dict[tuple[str, int], int]] = defaultdict(dict)
    asked = ((topic.name, part.partition_index) for topic in request.topics for part in topic.partitions)
    for place in asked:
        yield None
        some = counts[hash(place) % COUNTERS]
        some[place] = some.get(place, 0) + 1
    response = ListOffsetsResponse()
    for topic in request.topics:
        yield None
        answers: list[ListOffsetsPartitionResponse] = []
        response.topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
        for part in topic.partitions:
            yield None
            place = (topic.name, part.partition_index)
            if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
                answers.append(_error(part, ErrorCode.UNKNOWN_SERVER_ERROR))
            elif counts[hash(place) % COUNTERS][place] > 1:
                answers.append(_error(part, ErrorCode.INVALID_REQUEST))
            else:
                answers.append((yield from _partition(ctx, request, topic.name, part)))
    yield from let_go(*counts.values())
    return response


def _partition(
    ctx: RequestContext, request: ListOffsetsRequest, name: str, part: ListOffsetsPartition
) -> Steps[ListOffsetsPartitionResponse]:
    if part.timestamp < 0 and (part.timestamp < EARLIEST_PENDING_UPLOAD or ctx.version < _SINCE.get(part.timestamp, 0)):
        return _error(part, ErrorCode.UNSUPPORTED_VERSION)
    partition = find(ctx, ctx.catalogue.get(name), part.partition_index, current_leader_epoch=part.current_leader_epoch)
    if isinstance(partition, ErrorCode):
        return _error(part, partition)
    try:
        timestamp, offset, leader_epoch = yield from _look_up(ctx, partition, part.timestamp, request.isolation_level)
    except InvalidBatch as error:
        return _error(part, error.code)
    except StorageError:
        return _error(part, ErrorCode.KAFKA_STORAGE_ERROR)
    return ListOffsetsPartitionResponse(
        partition_index=part.partition_index, timestamp=timestamp, offset=offset, leader_epoch=leader_epoch
    )


def _look_up(
    ctx: RequestContext, partition: Partition, timestamp: int, isolation_level: int
) -> Steps[tuple[int, int, int]]:
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
    wanted = log.largest_timestamp if timestamp == MAX_TIMESTAMP else timestamp
    found = (yield from _search(ctx, partition, wanted)) if wanted >= 0 else None
    if found is None or found.offset >= end:
        return -1, -1, -1
    return found.timestamp, found.offset, found.leader_epoch


def _search(ctx: RequestContext, partition: Partition, timestamp: int) -> Steps[TimestampOffset | None]:
    """The first record that is not older. Small batches are opened here, large ones beside the event loop."""
    max_bytes = inflated_bytes_max(partition.topic.config.int("max.message.bytes"))
    start = partition.log.log_start_offset
    for batch in partition.log.batches_from_timestamp(timestamp):
        look = partial(first_in, batch, timestamp, start, max_bytes)
        found = (yield ctx.run_beside(look)) if is_long(read_header(batch)) else look()
        if found is not None:
            assert isinstance(found, TimestampOffset), "that is what a look gives"
            return found
        yield None
    return None


def _error(part: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=part.partition_index, error_code=code, timestamp=-1, offset=-1, leader_epoch=-1
    )
