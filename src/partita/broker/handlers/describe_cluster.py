"""DescribeCluster: the nodes and which of them is the controller. (Kafka: KafkaApis.)"""

from __future__ import annotations

from partita.broker.api.context import RequestContext
from partita.broker.api.served import Served
from partita.broker.handlers._operations import cluster_operations
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

API = Served(DescribeClusterRequest)

BROKERS, CONTROLLERS = 1, 2


def handle(ctx: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Endpoint type 1 means brokers; controllers have no listener of their own here."""
    if request.endpoint_type == CONTROLLERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type "
            "CONTROLLER",
        )
    if request.endpoint_type != BROKERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"Unsupported endpoint type {request.endpoint_type}",
        )
    rack = ctx.config.get("broker.rack")
    controller = ctx.cluster.controller
    response = DescribeClusterResponse(
        cluster_id=ctx.catalogue.cluster_id,
        controller_id=-1 if controller is None else controller.node_id,
        brokers=[
            DescribeClusterBroker(
                broker_id=node.node_id,
                host=ctx.endpoint(node).host,
                port=ctx.endpoint(node).port,
                rack=None if rack is None else str(rack),
                is_fenced=not node.is_alive,
            )
            for node in ctx.cluster.nodes.values()
            if node.is_alive or request.include_fenced_brokers
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(ctx)
    return response
