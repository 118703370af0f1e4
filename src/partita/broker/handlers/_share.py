"""Common parts of ShareFetch and ShareAcknowledge: first checks, leaders in answers, the end of a session."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol, TypeVar

from partita.broker.api.context import RequestContext, Steps
from partita.broker.api.needs import Needs
from partita.broker.handlers._partitions import Endpoint, endpoints
from partita.broker.share.acknowledging import Partitions
from partita.broker.share.node import ShareNode
from partita.broker.wire.contract import ConnectionHandle
from partita.protocol.error_codes import ErrorCode
from partita.security.rights.operations import Operation, ResourceType
from partita.share.sessions import Key, Plan

READ_SHARE_GROUP = Needs(Operation.READ, ResourceType.GROUP, "group_id", optional=True)
MEMBER_ID_CHARACTERS_MAX = 36


class Asked(Protocol):
    """A request of either API."""

    group_id: str | None
    member_id: str | None


class LeaderFields(Protocol):
    """A ShareLeaderIdAndEpoch of either API."""

    def __init__(self, *, leader_id: int = 0, leader_epoch: int = 0) -> None: ...


Leader = TypeVar("Leader", bound=LeaderFields)


def first_error(ctx: RequestContext, request: Asked) -> ErrorCode:
    """Why the request cannot be served at all."""
    if ctx.services.share_node(ctx.node_id) is None:
        return ErrorCode.UNSUPPORTED_VERSION
    if request.group_id is None or not 0 < len(request.member_id or "") <= MEMBER_ID_CHARACTERS_MAX:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def partitions_of(ctx: RequestContext) -> Partitions:
    """Finds the partitions that this client asks this node for."""
    return Partitions(ctx.catalogue, ctx.node_id, ctx.asking)


def leader(partitions: Partitions, key: Key, code: int, kind: type[Leader], leaders: list[int]) -> Leader:
    """Return the leader of a partition that is led elsewhere, and add it to `leaders`."""
    partition = partitions.known(key) if code == ErrorCode.NOT_LEADER_OR_FOLLOWER else None
    if partition is None:
        return kind()
    leaders.append(partition.leader)
    return kind(leader_id=partition.leader, leader_epoch=partition.leader_epoch)


def node_endpoints(ctx: RequestContext, leaders: Iterable[int], kind: type[Endpoint]) -> list[Endpoint]:
    """Return the addresses of these nodes."""
    return endpoints(ctx, leaders, kind)


def end_session(node: ShareNode, plan: Plan[ConnectionHandle]) -> Steps[None]:
    """Give back what the member holds, if its session is over, and wait until that is stored."""
    if plan.is_final:
        for write in node.ended(plan.session):
            yield asyncio.shield(write)
