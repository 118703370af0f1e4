"""WriteTxnMarkers: end a transaction in the partitions named, by a control batch in each. (§10.2)

A partition of `__consumer_offsets` is left to its shard, which then knows what became of the pending offsets. (Kafka:
KafkaApis.handleWriteTxnMarkersRequest.)
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from partita.broker.api.context import RequestContext, Steps, settled
from partita.broker.api.needs import Needs
from partita.broker.api.served import Served
from partita.broker.handlers._transactions import may_act_as_broker
from partita.broker.transactions.marker_writing import EndMarker
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from partita.security.rights.operations import Operation, ResourceType

API = Served(
    WriteTxnMarkersRequest,
    rights=(Needs(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, or_else=Operation.ALTER),),
)


def handle(ctx: RequestContext, request: WriteTxnMarkersRequest) -> Steps[WriteTxnMarkersResponse]:
    """Answer every partition of every marker by itself, once its marker is durable."""
    may = may_act_as_broker(ctx)
    asked = (
        (
            EndMarker(
                marker.producer_id,
                marker.producer_epoch,
                marker.transaction_result,
                marker.coordinator_epoch,
                marker.transaction_version,
            ),
            topic.name,
            index,
        )
        for marker in request.markers
        for topic in marker.topics
        for index in topic.partition_indexes
    )
    codes: list[ErrorCode | asyncio.Future[ErrorCode]] = []
    for end_marker, name, index in asked:
        yield None
        codes.append(_end(ctx, end_marker, name, index) if may else ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return (yield from _merge(request, iter(codes)))


def _end(ctx: RequestContext, marker: EndMarker, name: str, index: int) -> ErrorCode | asyncio.Future[ErrorCode]:
    partition = ctx.catalogue.partition(name, index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if partition.leader != ctx.node_id:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ctx.transactions.markers.write(partition, marker)


def _merge(
    request: WriteTxnMarkersRequest, codes: Iterator[ErrorCode | asyncio.Future[ErrorCode]]
) -> Steps[WriteTxnMarkersResponse]:
    """The codes in the order of the request, each once it is known."""
    response = WriteTxnMarkersResponse()
    for marker in request.markers:
        yield None
        result = WritableTxnMarkerResult(producer_id=marker.producer_id)
        response.markers.append(result)
        for topic in marker.topics:
            yield None
            ended = WritableTxnMarkerTopicResult(name=topic.name)
            result.topics.append(ended)
            for index in topic.partition_indexes:
                code = yield from settled(next(codes))
                yield None
                ended.partitions.append(WritableTxnMarkerPartitionResult(partition_index=index, error_code=code))
    return response
