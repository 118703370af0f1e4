"""DescribeGroups: each group is asked of its own shard and answered on its own."""

from __future__ import annotations

from partita.broker.groups.across_shards import when_all
from partita.broker.handlers._operations import GROUP_OPERATIONS
from partita.broker.requests.context import Answer, RequestContext
from partita.group.requests import DescribeGroup
from partita.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse


def handle(ctx: RequestContext, request: DescribeGroupsRequest) -> Answer:
    """Ask the shard of each group; groups are answered in the order asked."""

    def merge(groups: list[DescribedGroup]) -> DescribeGroupsResponse:
        for group in groups:
            if request.include_authorized_operations and not group.error_code:
                group.authorized_operations = GROUP_OPERATIONS
        return DescribeGroupsResponse(groups=groups)

    parts = [ctx.groups.ask(ctx, DescribeGroup(group_id), group_id) for group_id in request.groups]
    return when_all(parts, merge)
