"""ConsumerGroupHeartbeat: ask the group's shard. It is answered at once."""

from __future__ import annotations

from collections.abc import Callable

from partita.broker.requests.context import Answer, RequestContext
from partita.broker.requests.features import serves_consumer_groups
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from partita.security.rights.acls import Operation, ResourceType


def handle(ctx: RequestContext, request: ConsumerGroupHeartbeatRequest) -> Answer:
    """Ask the group's shard, unless KIP-848 groups are switched off."""
    if not serves_consumer_groups(ctx.config):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    answer: Answer = ctx.groups.ask(ctx, request, request.group_id, may_see=_may_see(ctx))
    return answer


def _may_see(ctx: RequestContext) -> Callable[[str], bool] | None:
    """Which topics a regular expression may match for this client."""
    asking = ctx.asking
    if asking is None:
        return None
    return lambda name: asking.may(Operation.DESCRIBE, ResourceType.TOPIC, name, is_logged=False)
