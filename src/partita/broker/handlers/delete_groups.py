"""DeleteGroups: each group is asked of its own shard; a name given twice is answered once."""

from __future__ import annotations

from partita.broker.groups.across_shards import when_all
from partita.broker.requests.context import Answer, RequestContext
from partita.group.requests import DeleteGroup
from partita.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


def handle(ctx: RequestContext, request: DeleteGroupsRequest) -> Answer:
    """Ask the shard of each group; a group named twice is asked once."""

    def merge(results: list[DeletableGroupResult]) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(results=results)

    groups = dict.fromkeys(request.groups_names)
    parts = [ctx.groups.ask(ctx, DeleteGroup(group_id), group_id) for group_id in groups]
    return when_all(parts, merge)
