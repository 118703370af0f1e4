"""AlterPartitionReassignments: give partitions other replicas. (Kafka: ReplicationControlManager.)

All nodes see one store, so that nothing is copied: a move is over when the answer leaves, and none can be cancelled.
"""

from __future__ import annotations

from partita.broker.api.context import Answer, RequestContext, Steps
from partita.broker.api.needs import Needs
from partita.broker.api.served import Errors, Served
from partita.broker.topics import checks as topic_admin
from partita.broker.topics.checks import Refused
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from partita.security.rights.operations import Operation, ResourceType

API = Served(
    AlterPartitionReassignmentsRequest,
    rights=(Needs(Operation.ALTER, ResourceType.CLUSTER),),
    errors=Errors(also_in_items=True),
    deviation="Partita completes a reassignment at once and copies no data, where Kafka copies it to the new replicas",
)


def handle(ctx: RequestContext, request: AlterPartitionReassignmentsRequest) -> Steps[Answer]:
    """Each partition succeeds or fails alone."""
    may_resize = request.allow_replication_factor_change
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=may_resize,
        error_message=None,
    )
    for topic in request.topics:
        yield None
        answered = ReassignableTopicResponse(name=topic.name)
        response.responses.append(answered)
        for part in topic.partitions:
            yield None
            answered.partitions.append(_one(ctx, topic.name, part, may_resize))
    return ctx.when_durable(response)


def _one(
    ctx: RequestContext, name: str, asked: ReassignablePartition, may_resize: bool
) -> ReassignablePartitionResponse:
    code, message = ErrorCode.NONE, None
    try:
        _reassign(ctx, name, asked, may_resize)
    except Refused as refused:
        code, message = refused.code, str(refused) or None
    return ReassignablePartitionResponse(partition_index=asked.partition_index, error_code=code, error_message=message)


def _reassign(ctx: RequestContext, name: str, asked: ReassignablePartition, may_resize: bool) -> None:
    topic = ctx.catalogue.get(name)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    partition = topic.partition(asked.partition_index)
    if partition is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{asked.partition_index}.")
    if asked.replicas is None:
        raise Refused(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "")
    topic_admin.check_replicas([asked.replicas], {node.node_id for node in ctx.cluster.alive})
    before, after = len(partition.replicas), len(asked.replicas)
    if before != after and not may_resize:
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR, f"The replication factor is changed from {before} to {after}"
        )
    with topic_admin.stored():
        ctx.cluster.reassign(partition, asked.replicas)
