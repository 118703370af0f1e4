"""DeleteGroups: each group is asked of its own shard; a name given twice is answered once."""

from __future__ import annotations

from partita.broker.api.context import Answer, RequestContext, Steps, when_all
from partita.broker.api.needs import NeedsEach
from partita.broker.api.served import Errors, Served
from partita.group.requests import DeleteGroup
from partita.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from partita.security.rights.operations import Operation, ResourceType

API = Served(
    DeleteGroupsRequest,
    rights=(NeedsEach(Operation.DELETE, ResourceType.GROUP, "groups_names", "results"),),
    errors=Errors(says_once=True),
)


def handle(ctx: RequestContext, request: DeleteGroupsRequest) -> Steps[Answer]:
    """Ask the shard of each group; a group named twice is asked once."""

    def merge(results: list[DeletableGroupResult]) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(results=results)

    parts = []
    for group_id in dict.fromkeys(request.groups_names):
        yield None
        parts.append(ctx.groups.ask(ctx, DeleteGroup(group_id), group_id))
    return when_all(parts, merge)
