"""Heartbeat: ask the group's shard. The hottest group request, so it has a quick way that makes no objects."""

from __future__ import annotations

from collections.abc import Callable

from partita.broker.api.context import Answer, RequestContext
from partita.broker.api.needs import READ_GROUP
from partita.broker.api.served import Served
from partita.broker.wire.memo import DECODE_IT
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.heartbeat import HeartbeatRequest

_FENCED = int(ErrorCode.FENCED_INSTANCE_ID)
API = Served(HeartbeatRequest, rights=(READ_GROUP,))


def handle(ctx: RequestContext, request: HeartbeatRequest) -> Answer:
    """Answer the heartbeat, and offer to answer the next ones without decoding them."""
    ctx.offer_shortcut(_shortcut(ctx, request))
    answer: Answer = ctx.groups.ask(ctx, request, request.group_id)
    return answer


def _shortcut(ctx: RequestContext, request: HeartbeatRequest) -> Callable[[], int]:
    """Return a function that answers this very heartbeat again and again: its error code, or DECODE_IT."""
    shards = ctx.groups
    by_group = shards.by_group
    mono_ms = ctx.cluster.clock.mono_ms
    node_id = ctx.node_id
    group_id = request.group_id

    def answer() -> int:
        runner = by_group.get(group_id)
        if runner is None or not runner.is_open or runner.node_id != node_id or group_id not in runner.classic_groups:
            return DECODE_IT
        code = runner.heartbeat(request, mono_ms())
        return DECODE_IT if code == _FENCED else code  # a twin is worth a note

    return answer
