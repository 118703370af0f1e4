"""ListGroups: the groups of every shard that this node leads. Clients ask each node."""

from __future__ import annotations

from typing import Any

from partita.broker.groups.across_shards import when_all
from partita.broker.requests.context import Answer, RequestContext
from partita.broker.shard_leadership import State
from partita.group.contract import GroupRequest
from partita.group.requests import ListShardGroups
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse


def handle(ctx: RequestContext, request: ListGroupsRequest) -> Answer:
    """While a shard loads nobody knows all groups: then none are listed."""
    runners = ctx.groups.led_by(ctx.node_id)
    if any(runner.state is State.LOADING for runner in runners):
        return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    ask = ListShardGroups(request.states_filter, request.types_filter)
    asked = GroupRequest(ask, ctx.version, ctx.client_id, ctx.client_host)
    parts: list[Any] = [runner.decide(asked) for runner in runners if runner.state is State.ACTIVE]
    return when_all(parts, _merge)


def _merge(parts: list[ListGroupsResponse]) -> ListGroupsResponse:
    return ListGroupsResponse(
        error_code=next((part.error_code for part in parts if part.error_code), ErrorCode.NONE),
        groups=[group for part in parts for group in part.groups],
    )
