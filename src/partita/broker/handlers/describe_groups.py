"""DescribeGroups: the shard of each group is asked, and each group is answered separately."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from partita.broker.api.context import Answer, RequestContext, Steps
from partita.broker.api.needs import NeedsEach
from partita.broker.api.served import Served
from partita.broker.handlers._operations import group_operations
from partita.group.requests import DescribeGroup
from partita.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from partita.security.rights.operations import Operation, ResourceType

API = Served(DescribeGroupsRequest, rights=(NeedsEach(Operation.DESCRIBE, ResourceType.GROUP, "groups", "groups"),))


def handle(ctx: RequestContext, request: DescribeGroupsRequest) -> Answer | Steps[Answer]:
    """Ask the shard of each group; groups are answered in the order asked.

    A group that is named repeatedly is described once, so that a small request makes no huge answer in memory.
    """

    def merge(groups: list[DescribedGroup]) -> DescribeGroupsResponse:
        for group in groups:
            if request.include_authorized_operations and not group.error_code:
                group.authorized_operations = group_operations(ctx, group.group_id)
        return DescribeGroupsResponse(groups=groups)

    return _asked(ctx, request, merge)


def _asked(
    ctx: RequestContext, request: DescribeGroupsRequest, merge: Callable[[list[DescribedGroup]], DescribeGroupsResponse]
) -> Steps[DescribeGroupsResponse]:
    groups: list[DescribedGroup] = []
    for group_id in dict.fromkeys(request.groups):
        yield None
        described = ctx.groups.ask(ctx, DescribeGroup(group_id), group_id)
        groups.append((yield described) if isinstance(described, asyncio.Future) else described)
    return merge(groups)
