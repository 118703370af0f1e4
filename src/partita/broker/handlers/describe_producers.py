"""DescribeProducers: the producers that the leader of each partition remembers. (§17)"""

from __future__ import annotations

from partita.broker.api.context import RequestContext, Steps
from partita.broker.api.needs import NeedsEach
from partita.broker.api.served import Errors, Served
from partita.broker.handlers._partitions import find
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
from partita.security.rights.operations import Operation, ResourceType

API = Served(
    DescribeProducersRequest,
    rights=(NeedsEach(Operation.READ, ResourceType.TOPIC, "topics", "topics", "name"),),
    errors=Errors(says_why=True),
)


def handle(ctx: RequestContext, request: DescribeProducersRequest) -> Steps[DescribeProducersResponse]:
    """Answer every partition by itself.

    One that is named repeatedly is described once, so that a small request makes no huge answer in memory.
    """
    topics: dict[str, dict[int, None]] = {}
    for asked in request.topics:
        yield None
        topics.setdefault(asked.name, {}).update(dict.fromkeys(asked.partition_indexes))
    results = {name: DescribeProducersTopicResult(name=name) for name in topics}
    partitions = ((name, index) for name, indexes in topics.items() for index in indexes)
    for name, index in partitions:
        yield None
        results[name].partitions.append(_describe(ctx, name, index))
    return DescribeProducersResponse(topics=list(results.values()))


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
