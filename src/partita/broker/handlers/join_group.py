"""JoinGroup: ask the group's shard; the answer may wait until the other members have joined."""

from __future__ import annotations

from partita.broker.requests.context import Answer, RequestContext
from partita.protocol.messages.join_group import JoinGroupRequest


def handle(ctx: RequestContext, request: JoinGroupRequest) -> Answer:
    """Ask the group's shard; the answer waits until the join phase ends."""
    answer: Answer = ctx.groups.ask(ctx, request, request.group_id)
    return answer
