"""JoinGroup: ask the group's shard; the answer may wait until the other members have joined."""

from __future__ import annotations

from partita.broker.api.context import Answer, RequestContext
from partita.broker.api.needs import READ_GROUP
from partita.broker.api.served import Served
from partita.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

API = Served(
    JoinGroupRequest,
    rights=(READ_GROUP,),
    deviation="Partita answers NOT_COORDINATOR to a join that a newer one replaces, where Kafka never answers it",
)

_NULL_PROTOCOL_FROM = 7


def handle(ctx: RequestContext, request: JoinGroupRequest) -> Answer:
    """Ask the group's shard; the answer waits until the join phase ends."""
    answer: Answer = ctx.groups.ask(ctx, request, request.group_id)
    return answer


def finish_error(answer: JoinGroupResponse, request: JoinGroupRequest, version: int) -> JoinGroupResponse:
    """Before version 7 the name of the protocol has no null."""
    answer.protocol_name = "" if version < _NULL_PROTOCOL_FROM else None
    return answer
