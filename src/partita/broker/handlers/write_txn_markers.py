"""WriteTxnMarkers: end a transaction in the partitions named, by a control batch in each.

A partition of `__consumer_offsets` is left to its shard, which then knows what became of the pending offsets. (Kafka:
KafkaApis.handleWriteTxnMarkersRequest.)
"""

from __future__ import annotations

from typing import Any

from partita.broker.groups.across_shards import when_all
from partita.broker.groups.runner import State
from partita.broker.requests.context import Answer, RequestContext
from partita.broker.topics.catalogue import OFFSETS_TOPIC
from partita.group.contract import GroupRequest
from partita.group.requests import EndTransaction, TransactionEnded
from partita.log.partition_log import AppendRefused
from partita.log.storage import StorageError
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from partita.records.builder import build_marker
from partita.records.control import ABORT, COMMIT


def handle(ctx: RequestContext, request: WriteTxnMarkersRequest) -> Answer:
    """Every partition of every marker is answered for itself."""
    asked = [
        (marker, topic.name, index)
        for marker in request.markers
        for topic in marker.topics
        for index in topic.partition_indexes
    ]
    codes = [_end(ctx, marker, name, index) for marker, name, index in asked]
    return when_all(codes, lambda ended: _merge(request, [each.error_code for each in ended]))


def _end(ctx: RequestContext, marker: WritableTxnMarker, name: str, index: int) -> Any:
    partition = ctx.catalogue.partition(name, index)
    if partition is None:
        return TransactionEnded(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if partition.leader != ctx.node_id:
        return TransactionEnded(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if name == OFFSETS_TOPIC:
        runner = ctx.groups.runners.get(index)
        if runner is None or runner.state is not State.ACTIVE:
            return TransactionEnded(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        end = EndTransaction(
            marker.producer_id,
            marker.producer_epoch,
            committed=marker.transaction_result,
            coordinator_epoch=marker.coordinator_epoch,
        )
        return runner.decide(GroupRequest(end, ctx.version, ctx.client_id, ctx.client_host))
    now = ctx.now()
    batch = build_marker(
        COMMIT if marker.transaction_result else ABORT,
        timestamp=now.wall_ms,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        coordinator_epoch=marker.coordinator_epoch,
    )
    try:
        partition.log.append(batch, partition.leader_epoch, now)
    except AppendRefused as refused:
        return TransactionEnded(refused.code)
    except StorageError:
        return TransactionEnded(ErrorCode.KAFKA_STORAGE_ERROR)
    return TransactionEnded()


def _merge(request: WriteTxnMarkersRequest, codes: list[int]) -> WriteTxnMarkersResponse:
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
