"""WriteTxnMarkers: end a transaction in the partitions named, by a control batch in each. (§10.2)

A partition of `__consumer_offsets` is left to its shard, which then knows what became of the pending offsets. (Kafka:
KafkaApis.handleWriteTxnMarkersRequest.)
"""

from __future__ import annotations

import asyncio

from partita.broker.groups.across_shards import when_all
from partita.broker.handlers._transactions import may_act_as_broker
from partita.broker.requests.context import Answer, RequestContext
from partita.broker.requests.slices import Steps, answered, settled, sliced
from partita.broker.transactions.marker_writing import EndMarker
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


def handle(ctx: RequestContext, request: WriteTxnMarkersRequest) -> Answer:
    """Every partition of every marker is answered for itself, once its marker is durable."""
    return answered(ctx, _answer(ctx, request))


def _answer(ctx: RequestContext, request: WriteTxnMarkersRequest) -> Steps[WriteTxnMarkersResponse]:
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
    for (end_marker, name, index), others_turn in sliced(asked, ctx.stopwatch):
        if others_turn:
            yield None
        codes.append(_end(ctx, end_marker, name, index) if may else ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    merged: WriteTxnMarkersResponse = yield from settled(when_all(codes, lambda ended: _merge(request, ended)))
    return merged


def _end(ctx: RequestContext, marker: EndMarker, name: str, index: int) -> ErrorCode | asyncio.Future[ErrorCode]:
    partition = ctx.catalogue.partition(name, index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if partition.leader != ctx.node_id:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ctx.transactions.markers.write(partition, marker)


def _merge(request: WriteTxnMarkersRequest, codes: list[ErrorCode]) -> WriteTxnMarkersResponse:
    left = iter(codes)
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=next(left))
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )
