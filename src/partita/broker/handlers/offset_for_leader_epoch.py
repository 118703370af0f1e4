"""OffsetForLeaderEpoch: where a leader epoch ended, so that a client notices a truncation. (KIP-320)"""

from __future__ import annotations

from partita.broker.api.context import RequestContext, Steps
from partita.broker.api.needs import NeedsEach
from partita.broker.api.served import Served
from partita.broker.handlers._partitions import find
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from partita.security.rights.operations import Operation, ResourceType

API = Served(
    OffsetForLeaderEpochRequest,
    rights=(
        NeedsEach(Operation.DESCRIBE, ResourceType.TOPIC, "topics", "topics", "topic", unless=Operation.CLUSTER_ACTION),
    ),
)


def handle(ctx: RequestContext, request: OffsetForLeaderEpochRequest) -> Steps[OffsetForLeaderEpochResponse]:
    """The end offset of an epoch, for each partition that this node leads."""
    topics = [OffsetForLeaderTopicResult(topic=topic.topic, partitions=[]) for topic in request.topics]
    for into, topic in zip(topics, request.topics, strict=True):
        yield None
        for part in topic.partitions:
            yield None
            into.partitions.append(_partition(ctx, into.topic, part))
    return OffsetForLeaderEpochResponse(topics=topics)


def _partition(ctx: RequestContext, name: str, part: OffsetForLeaderPartition) -> EpochEndOffset:
    partition = find(ctx, ctx.catalogue.get(name), part.partition, current_leader_epoch=part.current_leader_epoch)
    if isinstance(partition, ErrorCode):
        return EpochEndOffset(partition=part.partition, error_code=partition)
    leader_epoch, end_offset = partition.log.epoch_end_offset(part.leader_epoch, partition.leader_epoch)
    return EpochEndOffset(partition=part.partition, leader_epoch=leader_epoch, end_offset=end_offset)
