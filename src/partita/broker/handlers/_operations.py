"""What whoever asks may do, as the bits clients read: 1 << the number of the operation.

Upstream: AclEntry.supportedOperations. The operations: read 3, write 4, create 5, delete 6, alter 7, describe 8,
cluster action 9, describe configs 10, alter configs 11, idempotent write 12.
"""

from __future__ import annotations

from partita.broker.requests.context import RequestContext
from partita.security.rights.acls import Operation, ResourceType

TOPIC_OPERATIONS = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
GROUP_OPERATIONS = sum(1 << operation for operation in (3, 6, 8, 10, 11))
CLUSTER_OPERATIONS = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))


def topic_operations(ctx: RequestContext, name: str) -> int:
    """What may be done to the topic: without an authorizer everything."""
    asking = ctx.asking
    return TOPIC_OPERATIONS if asking is None else asking.operations(ResourceType.TOPIC, name)


def group_operations(ctx: RequestContext, group_id: str) -> int:
    """What may be done to the group: without an authorizer everything."""
    asking = ctx.asking
    return GROUP_OPERATIONS if asking is None else asking.operations(ResourceType.GROUP, group_id)


def cluster_operations(ctx: RequestContext) -> int:
    """What may be done to the cluster: without an authorizer everything; nothing for who may not describe it."""
    asking = ctx.asking
    if asking is None:
        return CLUSTER_OPERATIONS
    may_know = asking.may(Operation.DESCRIBE, ResourceType.CLUSTER, is_logged=False)
    return asking.operations(ResourceType.CLUSTER) if may_know else 0
