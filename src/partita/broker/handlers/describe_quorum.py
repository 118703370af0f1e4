"""DescribeQuorum: there is no quorum of controllers; the controller is the first live node, and the only voter.

Deviation: DescribeQuorum tells of a quorum of one voter, the controller, without a log of metadata: its offsets are 0.
"""

from __future__ import annotations

from partita.broker.requests.context import RequestContext
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.describe_quorum import (
    DescribeQuorumPartitionResult,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumTopicResult,
    QuorumListener,
    QuorumNode,
    QuorumVoterState,
)

METADATA_TOPIC = "__cluster_metadata"


def handle(ctx: RequestContext, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """Partition 0 of the metadata topic is told, as Kafka's tools ask for it; anything else is not known."""
    asked = [(topic.topic_name, [p.partition_index for p in topic.partitions]) for topic in request.topics]
    controller = ctx.cluster.controller
    if asked != [(METADATA_TOPIC, [0])]:
        return DescribeQuorumResponse(topics=[_unknown(name, indexes) for name, indexes in asked])
    leader = -1 if controller is None else controller.node_id
    partition = DescribeQuorumPartitionResult(
        leader_id=leader, current_voters=[QuorumVoterState(replica_id=leader)] if leader >= 0 else []
    )
    nodes = []
    if controller is not None:
        host, port = ctx.endpoint(controller)
        nodes.append(QuorumNode(node_id=leader, listeners=[QuorumListener(name=ctx.listener, host=host, port=port)]))
    topic = DescribeQuorumTopicResult(topic_name=METADATA_TOPIC, partitions=[partition])
    return DescribeQuorumResponse(topics=[topic], nodes=nodes)


def _unknown(name: str, indexes: list[int]) -> DescribeQuorumTopicResult:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return DescribeQuorumTopicResult(
        topic_name=name,
        partitions=[DescribeQuorumPartitionResult(partition_index=index, error_code=code) for index in indexes],
    )
