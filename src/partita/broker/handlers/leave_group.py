"""LeaveGroup: ask the group's shard."""

from __future__ import annotations

from partita.broker.api.context import Answer, RequestContext
from partita.broker.api.needs import READ_GROUP
from partita.broker.api.served import Served
from partita.protocol.messages.leave_group import LeaveGroupRequest

API = Served(LeaveGroupRequest, rights=(READ_GROUP,))


def handle(ctx: RequestContext, request: LeaveGroupRequest) -> Answer:
    """Ask the group's shard."""
    answer: Answer = ctx.groups.ask(ctx, request, request.group_id)
    return answer
