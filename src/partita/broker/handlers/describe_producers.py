"""DescribeProducers: what the leader of each partition remembers of its producers. (§17)"""

from __future__ import annotations

from partita.broker.handlers._partitions import find
from partita.broker.requests.context import RequestContext
from partita.broker.topics.catalogue import name_problem
from partita.log.storage import StorageError
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.describe_producers import (
    DescribeProducersPartitionResult,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopicResult,
    ProducerState,
)


def handle(ctx: RequestContext, request: DescribeProducersRequest) -> DescribeProducersResponse:
    """Every partition is answered for itself."""
    return DescribeProducersResponse(
        topics=[
            DescribeProducersTopicResult(
                name=topic.name, partitions=[_describe(ctx, topic.name, index) for index in topic.partition_indexes]
            )
            for topic in request.topics
        ]
    )


def _describe(ctx: RequestContext, name: str, index: int) -> DescribeProducersPartitionResult:
    if name_problem(name) is not None:
        return _refused(index, ErrorCode.INVALID_TOPIC_EXCEPTION)
    partition = find(ctx, ctx.catalogue.get(name), index)
    if isinstance(partition, ErrorCode):
        return _refused(index, partition)
    if partition.is_untouched:
        return DescribeProducersPartitionResult(partition_index=index)
    try:
        states = partition.log.producers.producers
    except StorageError:
        return _refused(index, ErrorCode.KAFKA_STORAGE_ERROR)
    return DescribeProducersPartitionResult(
        partition_index=index,
        active_producers=[
            ProducerState(
                producer_id=producer_id,
                producer_epoch=known.epoch,
                last_sequence=known.last_sequence,
                last_timestamp=known.last_timestamp,
                coordinator_epoch=known.coordinator_epoch,
                current_txn_start_offset=-1 if known.transaction_start is None else known.transaction_start,
            )
            for producer_id, known in states.items()
        ],
    )


def _refused(index: int, code: ErrorCode) -> DescribeProducersPartitionResult:
    return DescribeProducersPartitionResult(partition_index=index, error_code=code, error_message=code.meaning)
