"""AlterShareGroupOffsets: share partitions of a group without members begin anew at the offsets given."""

from __future__ import annotations

from partita.broker.api.context import Answer, RequestContext
from partita.broker.api.features import serves_share_groups
from partita.broker.api.needs import READ_GROUP, NeedsEach
from partita.broker.api.served import Served
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from partita.security.rights.operations import Operation, ResourceType

API = Served(
    AlterShareGroupOffsetsRequest,
    rights=(READ_GROUP, NeedsEach(Operation.READ, ResourceType.TOPIC, "topics", "responses", "topic_name")),
)


def handle(ctx: RequestContext, request: AlterShareGroupOffsetsRequest) -> Answer:
    """Ask the group's shard, which asks the share coordinator before it answers."""
    if not serves_share_groups(ctx.config):
        return AlterShareGroupOffsetsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    answer: Answer = ctx.groups.ask(ctx, request, request.group_id)
    return answer
