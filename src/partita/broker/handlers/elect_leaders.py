"""ElectLeaders: give partitions back to the first of their replicas. (Kafka: ReplicationControlManager.electLeaders.)

All nodes see one store, so that an unclean election, which may lose records in Kafka, loses none here.
"""

from __future__ import annotations

from collections.abc import Iterator

from partita.broker.api.context import Answer, RequestContext, Steps
from partita.broker.api.needs import Needs
from partita.broker.api.served import Errors, Served
from partita.broker.topics.catalogue import NO_LEADER
from partita.broker.topics.checks import Refused, stored
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.elect_leaders import (
    ElectLeadersPartitionResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ElectLeadersTopic,
    ElectLeadersTopicResult,
)
from partita.security.rights.operations import Operation, ResourceType

API = Served(
    ElectLeadersRequest, rights=(Needs(Operation.ALTER, ResourceType.CLUSTER),), errors=Errors(also_in_items=True)
)

PREFERRED, UNCLEAN = 0, 1


def handle(ctx: RequestContext, request: ElectLeadersRequest) -> Steps[Answer]:
    """Asked for every partition (null), only those are named whose leader changed or should have."""
    is_known, everything = request.election_type in (PREFERRED, UNCLEAN), request.topic_partitions is None
    results = []
    for asked in _every_partition(ctx) if request.topic_partitions is None else request.topic_partitions:
        yield None
        topic = ElectLeadersTopicResult(topic=asked.topic)
        results.append(topic)
        for index in asked.partitions:
            yield None
            result = (
                _elect(ctx, asked.topic, index, request.election_type)
                if is_known
                else _result(index, ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
            )
            if not everything or result.error_code != ErrorCode.ELECTION_NOT_NEEDED:
                topic.partition_result.append(result)
    code = ErrorCode.NONE if is_known else ErrorCode.INVALID_REQUEST
    return ctx.when_durable(ElectLeadersResponse(error_code=code, replica_election_results=results))


def _every_partition(ctx: RequestContext) -> Iterator[ElectLeadersTopic]:
    for topic in tuple(ctx.catalogue):
        yield ElectLeadersTopic(topic=topic.name, partitions=list(range(len(topic.partitions))))


def _elect(ctx: RequestContext, name: str, index: int, election_type: int) -> ElectLeadersPartitionResult:
    topic = ctx.catalogue.get(name)
    if topic is None:
        return _result(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    partition = topic.partition(index)
    if partition is None:
        return _result(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    preferred = partition.replicas[0]
    if partition.leader == preferred or (election_type == UNCLEAN and partition.leader != NO_LEADER):
        return _result(index, ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
    live = {node.node_id for node in ctx.cluster.alive}
    if election_type == PREFERRED and preferred not in live:
        return _result(
            index, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available for election."
        )
    try:
        with stored():
            ctx.cluster.elect(partition, next(node for node in (*partition.replicas, ctx.node_id) if node in live))
    except Refused as refused:
        return _result(index, refused.code, str(refused))
    return _result(index, ErrorCode.NONE, None)


def _result(index: int, code: ErrorCode, message: str | None) -> ElectLeadersPartitionResult:
    return ElectLeadersPartitionResult(partition_id=index, error_code=code, error_message=message)
