"""SyncGroup: ask the group's shard; the answer may wait for the group leader's assignment."""

from __future__ import annotations

from partita.broker.requests.context import Answer, RequestContext
from partita.protocol.messages.sync_group import SyncGroupRequest


def handle(ctx: RequestContext, request: SyncGroupRequest) -> Answer:
    """Ask the group's shard; the answer waits until the leader's assignment is there."""
    answer: Answer = ctx.groups.ask(ctx, request, request.group_id)
    return answer
