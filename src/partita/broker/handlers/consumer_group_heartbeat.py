"""ConsumerGroupHeartbeat: ask the group's shard. It is answered at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from partita.broker.api.context import Answer, RequestContext
from partita.broker.api.features import serves_consumer_groups
from partita.broker.api.needs import READ_GROUP, Checked, Verdict, refused
from partita.broker.api.served import Served
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from partita.security.rights.operations import Operation, ResourceType

if TYPE_CHECKING:
    from partita.broker.permits.rights import Asking

API = Served(
    ConsumerGroupHeartbeatRequest,
    rights=(
        READ_GROUP,
        Checked("DESCRIBE on each TOPIC named", "TOPIC_AUTHORIZATION_FAILED; a regular expression does not match it"),
    ),
)


def handle(ctx: RequestContext, request: ConsumerGroupHeartbeatRequest) -> Answer:
    """Ask the group's shard, unless KIP-848 groups are switched off."""
    if not serves_consumer_groups(ctx.config):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    answer: Answer = ctx.groups.ask(ctx, request, request.group_id, may_see=_may_see(ctx))
    return answer


def _may_see(ctx: RequestContext) -> Callable[[str], bool] | None:
    """Topics that a regular expression may match for this client."""
    asking = ctx.asking
    if asking is None:
        return None
    return lambda name: asking.may(Operation.DESCRIBE, ResourceType.TOPIC, name, is_logged=False)


def check_rights(asking: Asking, request: ConsumerGroupHeartbeatRequest) -> Verdict | None:
    """Require DESCRIBE on every topic that the request names, whether it exists or not."""
    names = list(dict.fromkeys(request.subscribed_topic_names or ()))
    if len(asking.may_all(Operation.DESCRIBE, ResourceType.TOPIC, names)) == len(names):
        return None
    return refused(asking, request, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
