"""The operations a client is authorized for, as the bits it reads: 1 << the number of the operation.

Upstream: AclEntry.supportedOperations. The operations: read 3, write 4, create 5, delete 6, alter 7, describe 8,
cluster action 9, describe configs 10, alter configs 11, idempotent write 12.
"""

from __future__ import annotations

from partita.broker.api.context import RequestContext
from partita.security.rights.operations import Operation, ResourceType

TOPIC_OPERATIONS = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
GROUP_OPERATIONS = sum(1 << operation for operation in (3, 6, 8, 10, 11))
CLUSTER_OPERATIONS = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))


def topic_operations(ctx: RequestContext, name: str) -> int:
    """Return the operations the client may do on the topic: all without an authorizer."""
    asking = ctx.asking
    return TOPIC_OPERATIONS if asking is None else asking.operations(ResourceType.TOPIC, name)


def group_operations(ctx: RequestContext, group_id: str) -> int:
    """Return the operations the client may do on the group: all without an authorizer."""
    asking = ctx.asking
    return GROUP_OPERATIONS if asking is None else asking.operations(ResourceType.GROUP, group_id)


def cluster_operations(ctx: RequestContext) -> int:
    """Return the operations the client may do on the cluster: all without an authorizer, else none without DESCRIBE."""
    asking = ctx.asking
    if asking is None:
        return CLUSTER_OPERATIONS
    may_know = asking.may(Operation.DESCRIBE, ResourceType.CLUSTER, is_logged=False)
    return asking.operations(ResourceType.CLUSTER) if may_know else 0
