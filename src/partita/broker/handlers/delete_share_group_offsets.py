"""DeleteShareGroupOffsets: a group without members forgets what it has read of topics."""

from __future__ import annotations

from partita.broker.api.context import Answer, RequestContext
from partita.broker.api.features import serves_share_groups
from partita.broker.api.needs import Needs, NeedsEach
from partita.broker.api.served import Served
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from partita.security.rights.operations import Operation, ResourceType

API = Served(
    DeleteShareGroupOffsetsRequest,
    rights=(
        Needs(Operation.DELETE, ResourceType.GROUP, "group_id"),
        NeedsEach(Operation.READ, ResourceType.TOPIC, "topics", "responses", "topic_name"),
    ),
)


def handle(ctx: RequestContext, request: DeleteShareGroupOffsetsRequest) -> Answer:
    """Ask the group's shard, which asks the share coordinator before it answers."""
    if not serves_share_groups(ctx.config):
        return DeleteShareGroupOffsetsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    answer: Answer = ctx.groups.ask(ctx, request, request.group_id)
    return answer
