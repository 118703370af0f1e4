"""ListGroups: the groups of every shard that this node leads. Clients ask each node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from partita.broker.api.context import Answer, RequestContext, Steps, when_all
from partita.broker.api.needs import Checked, Verdict
from partita.broker.api.served import Served
from partita.broker.shard_life import State
from partita.group.contract import GroupRequest
from partita.group.requests import ListShardGroups
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from partita.security.rights.operations import Operation, ResourceType

if TYPE_CHECKING:
    from partita.broker.permits.rights import Asking

API = Served(ListGroupsRequest, rights=(Checked("DESCRIBE CLUSTER, or DESCRIBE on each GROUP", "left out"),))


def handle(ctx: RequestContext, request: ListGroupsRequest) -> Steps[Answer]:
    """List the groups; none while a shard loads, when the list would be incomplete."""
    runners = ctx.groups.led_by(ctx.node_id)
    if any(runner.state is State.LOADING for runner in runners):
        return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    ask = ListShardGroups(request.states_filter, request.types_filter)
    asked = GroupRequest(ask, ctx.version, ctx.client_id, ctx.client_host)
    parts: list[Any] = []
    for runner in runners:
        yield None
        if runner.state is State.ACTIVE:
            parts.append(runner.decide(asked))
    return when_all(parts, _merge)


def _merge(parts: list[ListGroupsResponse]) -> ListGroupsResponse:
    return ListGroupsResponse(
        error_code=next((part.error_code for part in parts if part.error_code), ErrorCode.NONE),
        groups=[group for part in parts for group in part.groups],
    )


def check_rights(asking: Asking, request: ListGroupsRequest) -> Verdict | None:
    """List all groups to clients that may describe the cluster, to others those that they may describe."""
    if asking.may(Operation.DESCRIBE, ResourceType.CLUSTER, is_logged=False):
        return None

    def complete(answer: ListGroupsResponse) -> None:
        answer.groups = [
            group
            for group in answer.groups
            if asking.may(Operation.DESCRIBE, ResourceType.GROUP, group.group_id, is_logged=False)
        ]

    return Verdict(complete=complete)
