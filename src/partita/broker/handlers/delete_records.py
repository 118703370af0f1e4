"""DeleteRecords: raise the log start offset of partitions. (Kafka: ReplicaManager.deleteRecords.)"""

from __future__ import annotations

from partita.broker.api.context import RequestContext, Steps, settled
from partita.broker.api.needs import NeedsEach
from partita.broker.api.served import Errors, Served
from partita.broker.handlers._partitions import find
from partita.log.partition_log import OffsetOutOfRange
from partita.log.storage import StorageError
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from partita.security.rights.operations import Operation, ResourceType

API = Served(
    DeleteRecordsRequest,
    rights=(NeedsEach(Operation.DELETE, ResourceType.TOPIC, "topics", "topics", "name"),),
    errors=Errors(fields={"low_watermark": -1}),
)


def handle(ctx: RequestContext, request: DeleteRecordsRequest) -> Steps[DeleteRecordsResponse]:
    """Move the log start offset of each partition forward."""
    topics = [DeleteRecordsTopicResult(name=topic.name, partitions=[]) for topic in request.topics]
    for into, topic in zip(topics, request.topics, strict=True):
        yield None
        for part in topic.partitions:
            yield None
            into.partitions.append(_partition(ctx, into.name, part))
    durable: DeleteRecordsResponse = yield from settled(ctx.when_durable(DeleteRecordsResponse(topics=topics)))
    return durable


def _partition(ctx: RequestContext, name: str, part: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    topic = ctx.catalogue.get(name)
    if topic is not None and topic.is_internal:
        return _error(part, ErrorCode.INVALID_TOPIC_EXCEPTION)
    partition = find(ctx, topic, part.partition_index)
    if isinstance(partition, ErrorCode):
        return _error(part, partition)
    if not partition.log.config.delete:
        return _error(part, ErrorCode.POLICY_VIOLATION)
    try:
        low_watermark = partition.log.delete_records_before(part.offset)
    except OffsetOutOfRange:
        return _error(part, ErrorCode.OFFSET_OUT_OF_RANGE)
    except StorageError:
        return _error(part, ErrorCode.KAFKA_STORAGE_ERROR)
    return DeleteRecordsPartitionResult(partition_index=part.partition_index, low_watermark=low_watermark)


def _error(part: DeleteRecordsPartition, code: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition_index=part.partition_index, error_code=code, low_watermark=-1)
