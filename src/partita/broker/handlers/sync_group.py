"""SyncGroup: ask the group's shard; the answer may wait for the group leader's assignment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partita.broker.api.context import Answer, RequestContext
from partita.broker.api.needs import READ_GROUP, Checked, Verdict, refused
from partita.broker.api.served import Served
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.sync_group import SyncGroupRequest

if TYPE_CHECKING:
    from partita.broker.permits.rights import Asking

API = Served(
    SyncGroupRequest,
    rights=(
        Checked("from version 5 on protocol type and name", "INCONSISTENT_GROUP_PROTOCOL"),
        READ_GROUP,
    ),
    deviation="Partita answers NOT_COORDINATOR to a sync that a newer one replaces, where Kafka never answers it",
)


def handle(ctx: RequestContext, request: SyncGroupRequest) -> Answer:
    """Ask the group's shard; the answer waits until the leader's assignment is there."""
    answer: Answer = ctx.groups.ask(ctx, request, request.group_id)
    return answer


def check_rights(asking: Asking, request: SyncGroupRequest) -> Verdict | None:
    """Refuse a sync without protocol type or name, from version 5 on, whatever the client's rights."""
    if asking.version >= 5 and (request.protocol_type is None or request.protocol_name is None):
        return refused(asking, request, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return None
