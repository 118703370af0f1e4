"""ShareGroupHeartbeat: ask the group's shard. It is answered at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partita.broker.api.context import Answer, RequestContext
from partita.broker.api.features import serves_share_groups
from partita.broker.api.needs import READ_GROUP, Checked, Verdict, refused
from partita.broker.api.served import Served
from partita.group.share.heartbeat import member_id_problem
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from partita.security.rights.operations import Operation, ResourceType

if TYPE_CHECKING:
    from partita.broker.permits.rights import Asking

API = Served(
    ShareGroupHeartbeatRequest,
    rights=(READ_GROUP, Checked("DESCRIBE on each TOPIC named", "TOPIC_AUTHORIZATION_FAILED")),
)


def handle(ctx: RequestContext, request: ShareGroupHeartbeatRequest) -> Answer:
    """Ask the group's shard, unless share groups are switched off."""
    if not serves_share_groups(ctx.config):
        return ShareGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    answer: Answer = ctx.groups.ask(ctx, request, request.group_id)
    return answer


def check_rights(asking: Asking, request: ShareGroupHeartbeatRequest) -> Verdict | None:
    """Require DESCRIBE on every topic that the request names, unless its member id is refused before."""
    names = list(dict.fromkeys(request.subscribed_topic_names or ()))
    if member_id_problem(request) is not None:
        return None
    if len(asking.may_all(Operation.DESCRIBE, ResourceType.TOPIC, names)) == len(names):
        return None
    return refused(asking, request, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
