"""Heartbeat: ask the group's shard. The hottest group request, so it has a quick way that makes no objects."""

from __future__ import annotations

from collections.abc import Callable

from partita.broker.requests.context import Answer, RequestContext
from partita.broker.wire.repeats import TAKE_THE_LONG_WAY
from partita.protocol.messages.heartbeat import HeartbeatRequest


def handle(ctx: RequestContext, request: HeartbeatRequest) -> Answer:
    answer: Answer = ctx.cluster.groups.handle(ctx, request, request.group_id)
    return answer


def quick(ctx: RequestContext, request: HeartbeatRequest) -> Callable[[], int]:
    """What answers this very heartbeat again and again: its error code, or TAKE_THE_LONG_WAY."""
    shards = ctx.cluster.groups
    by_group = shards.by_group
    mono_ms = ctx.cluster.clock.mono_ms
    node_id = ctx.node.node_id
    group_id = request.group_id

    def answer() -> int:
        runner = by_group.get(group_id)
        if runner is None or not runner.is_open or runner.node_id != node_id or not group_id:
            return TAKE_THE_LONG_WAY
        return runner.heartbeat(request, mono_ms())

    return answer
