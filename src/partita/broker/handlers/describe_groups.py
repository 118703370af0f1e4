"""DescribeGroups: the shard of each group is asked, and each group is answered separately."""

from __future__ import annotations

from partita.broker.api.context import Answer, RequestContext, Steps
from partita.broker.api.needs import NeedsEach
from partita.broker.api.served import Served
from partita.broker.handlers._described_groups import described
from partita.group.requests import DescribeGroup
from partita.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from partita.security.rights.operations import Operation, ResourceType

API = Served(DescribeGroupsRequest, rights=(NeedsEach(Operation.DESCRIBE, ResourceType.GROUP, "groups", "groups"),))


def handle(ctx: RequestContext, request: DescribeGroupsRequest) -> Steps[Answer]:
    """Ask the shard of each group; one that is named repeatedly is described once."""
    groups = yield from described(ctx, request.groups, DescribeGroup, request)
    return DescribeGroupsResponse(groups=groups)
