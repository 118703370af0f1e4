"""LeaveGroup: ask the group's shard."""

from __future__ import annotations

from partita.broker.requests.context import Answer, RequestContext
from partita.protocol.messages.leave_group import LeaveGroupRequest


def handle(ctx: RequestContext, request: LeaveGroupRequest) -> Answer:
    """Ask the group's shard."""
    answer: Answer = ctx.groups.ask(ctx, request, request.group_id)
    return answer
