"""DescribeGroups: the shard of each group is asked, and each group is answered separately."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from partita.broker.handlers._operations import group_operations
from partita.broker.requests.context import Answer, RequestContext
from partita.broker.requests.slices import Steps, answered, sliced
from partita.group.requests import DescribeGroup
from partita.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse


def handle(ctx: RequestContext, request: DescribeGroupsRequest) -> Answer:
    """Ask the shard of each group; groups are answered in the order asked.

    A group that is named repeatedly is described once, so that a small request makes no huge answer in memory.
    """

    def merge(groups: list[DescribedGroup]) -> DescribeGroupsResponse:
        for group in groups:
            if request.include_authorized_operations and not group.error_code:
                group.authorized_operations = group_operations(ctx, group.group_id)
        return DescribeGroupsResponse(groups=groups)

    return answered(ctx, _asked(ctx, request, merge))


def _asked(
    ctx: RequestContext, request: DescribeGroupsRequest, merge: Callable[[list[DescribedGroup]], DescribeGroupsResponse]
) -> Steps[DescribeGroupsResponse]:
    groups: list[DescribedGroup] = []
    for group_id, others_turn in sliced(dict.fromkeys(request.groups), ctx.stopwatch):
        if others_turn:
            yield None
        described = ctx.groups.ask(ctx, DescribeGroup(group_id), group_id)
        groups.append((yield described) if isinstance(described, asyncio.Future) else described)
    return merge(groups)
