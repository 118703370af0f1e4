"""DescribeQuorum: there is no quorum of controllers; the controller is the first live node, and the only voter.

Deviation: Partita reports a quorum of one voter, the controller, with offsets of 0, in DescribeQuorum, where Kafka has
a log of metadata.
"""

from __future__ import annotations

from partita.broker.api.context import RequestContext, Steps
from partita.broker.api.needs import Needs
from partita.broker.api.served import Errors, Served
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
from partita.security.rights.operations import Operation, ResourceType

API = Served(
    DescribeQuorumRequest,
    rights=(Needs(Operation.DESCRIBE, ResourceType.CLUSTER),),
    errors=Errors(fields={"error_message": ""}),
)

METADATA_TOPIC = "__cluster_metadata"


def handle(ctx: RequestContext, request: DescribeQuorumRequest) -> Steps[DescribeQuorumResponse]:
    """Describe partition 0 of the metadata topic, as Kafka's tools ask for it; any other is unknown."""
    controller = ctx.cluster.controller
    topics = request.topics
    is_known = len(topics) == 1 and topics[0].topic_name == METADATA_TOPIC
    if not is_known or [p.partition_index for p in topics[0].partitions] != [0]:
        return (yield from _unknown(request))
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


def _unknown(request: DescribeQuorumRequest) -> Steps[DescribeQuorumResponse]:
    response, code = DescribeQuorumResponse(), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for topic in request.topics:
        yield None
        result = DescribeQuorumTopicResult(topic_name=topic.topic_name)
        response.topics.append(result)
        for part in topic.partitions:
            yield None
            result.partitions.append(
                DescribeQuorumPartitionResult(partition_index=part.partition_index, error_code=code)
            )
    return response
