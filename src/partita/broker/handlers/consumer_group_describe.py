"""ConsumerGroupDescribe: the shard of each group is asked, and each group is answered separately."""

from __future__ import annotations

import asyncio

from partita.broker.handlers._operations import group_operations
from partita.broker.requests.context import Answer, RequestContext
from partita.broker.requests.features import serves_consumer_groups
from partita.broker.requests.slices import Steps, answered, sliced
from partita.group.requests import DescribeConsumerGroup
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedConsumerGroup,
)


def handle(ctx: RequestContext, request: ConsumerGroupDescribeRequest) -> Answer:
    """Ask the shard of each group; groups are answered in the order asked.

    A group that is named repeatedly is described once, so that a small request makes no huge answer in memory.
    """
    if not serves_consumer_groups(ctx.config):
        code = ErrorCode.UNSUPPORTED_VERSION
        groups = [DescribedConsumerGroup(group_id=group_id, error_code=code) for group_id in request.group_ids]
        return ConsumerGroupDescribeResponse(groups=groups)
    return answered(ctx, _asked(ctx, request))


def _asked(ctx: RequestContext, request: ConsumerGroupDescribeRequest) -> Steps[ConsumerGroupDescribeResponse]:
    groups: list[DescribedConsumerGroup] = []
    for group_id, others_turn in sliced(dict.fromkeys(request.group_ids), ctx.stopwatch):
        if others_turn:
            yield None
        described = ctx.groups.ask(ctx, DescribeConsumerGroup(group_id), group_id)
        group = (yield described) if isinstance(described, asyncio.Future) else described
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = group_operations(ctx, group_id)
        groups.append(group)
    return ConsumerGroupDescribeResponse(groups=groups)
