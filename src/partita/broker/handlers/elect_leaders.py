"""ElectLeaders: give partitions back to the first of their replicas. (Kafka: ReplicationControlManager.electLeaders.)

All nodes see one store, so that an unclean election, which may lose records in Kafka, loses none here.
"""

from __future__ import annotations

from partita.broker.requests.context import RequestContext
from partita.broker.topics.catalogue import NO_LEADER
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.elect_leaders import (
    ElectLeadersPartitionResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ElectLeadersTopic,
    ElectLeadersTopicResult,
)

PREFERRED, UNCLEAN = 0, 1


def handle(ctx: RequestContext, request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Asked for every partition (null), only those are named whose leader changed or should have."""
    everything = [ElectLeadersTopic(topic=t.name, partitions=[p.index for p in t.partitions]) for t in ctx.catalogue]
    is_known = request.election_type in (PREFERRED, UNCLEAN)
    results = [
        ElectLeadersTopicResult(
            topic=asked.topic,
            partition_result=[
                _elect(ctx, asked.topic, index, request.election_type)
                if is_known
                else _result(index, ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
                for index in asked.partitions
            ],
        )
        for asked in (everything if request.topic_partitions is None else request.topic_partitions)
    ]
    if request.topic_partitions is None:
        for topic in results:
            topic.partition_result = [
                p for p in topic.partition_result if p.error_code != ErrorCode.ELECTION_NOT_NEEDED
            ]
    return ElectLeadersResponse(
        error_code=ErrorCode.NONE if is_known else ErrorCode.INVALID_REQUEST, replica_election_results=results
    )


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
    ctx.cluster.elect(partition, next(node for node in (*partition.replicas, ctx.node_id) if node in live))
    return _result(index, ErrorCode.NONE, None)


def _result(index: int, code: ErrorCode, message: str | None) -> ElectLeadersPartitionResult:
    return ElectLeadersPartitionResult(partition_id=index, error_code=code, error_message=message)
