"""ListConfigResources: topics, nodes, subscriptions to metrics, and groups that have settings of their own.

(Kafka: KafkaApis.handleListConfigResources)
"""

from __future__ import annotations

from partita.broker.api.context import RequestContext
from partita.broker.api.needs import Needs
from partita.broker.api.served import Served
from partita.broker.client_metrics.subscriptions import subscriptions
from partita.broker.groups.settings import all_settings
from partita.broker.handlers._configs import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    ListedConfigResource,
)
from partita.security.rights.operations import Operation, ResourceType

API = Served(ListConfigResourcesRequest, rights=(Needs(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER),))

TYPES = {TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP}


def handle(ctx: RequestContext, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    """Version 0 asks for client metrics alone; afterwards an empty list asks for every type."""
    wanted = {CLIENT_METRICS} if ctx.version == 0 else set(request.resource_types) or TYPES
    if not wanted <= TYPES:
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    nodes = [str(node.node_id) for node in ctx.cluster.alive]
    names = {
        GROUP: list(all_settings(ctx.catalogue)),
        CLIENT_METRICS: list(subscriptions(ctx.catalogue)),
        BROKER_LOGGER: nodes,
        BROKER: nodes,
        TOPIC: list(ctx.catalogue.by_name),
    }
    return ListConfigResourcesResponse(
        config_resources=[
            ListedConfigResource(resource_name=name, resource_type=kind)
            for kind in names
            if kind in wanted
            for name in names[kind]
        ]
    )
