"""Refusals that several requests share: guards inside a shard, and what is answered before and instead of one.

A guard is a predicate of a request and the error to answer with if it is true; the first guard of a request that is
true answers. They check the claimed group, member, instance and generation. The shell uses `first_check` before it
looks for the shard, and `while_loading` and `not_here` instead of the shard. (Kafka: GroupCoordinatorService,
ClassicGroup.validateMember, GroupMetadataManager.validateClassicGroupHeartbeat.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, Protocol, TypeAlias, TypeVar

from partita.group.config import GroupConfig
from partita.group.contract import GroupRequest
from partita.group.requests import EndTransaction
from partita.group.state.answers import refusal
from partita.group.state.model import DEAD, Group
from partita.group.state.shard import ShardState
from partita.protocol.error_codes import NONE, ErrorCode
from partita.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from partita.protocol.messages.join_group import JoinGroupRequest
from partita.protocol.messages.leave_group import LeaveGroupRequest
from partita.protocol.messages.offset_delete import OffsetDeleteRequest
from partita.protocol.messages.sync_group import SyncGroupRequest
from partita.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from partita.protocol.primitives import Structure

Asked = TypeVar("Asked")
Guards: TypeAlias = tuple[tuple[Callable[[Asked], bool], ErrorCode], ...]


class Identified(Protocol):
    """A request that names a group and a member of it."""

    group: Group
    member_id: str
    instance_id: str | None


class Claim(Identified, Protocol):
    """A request that also names a generation; -1 names none."""

    generation: int


class Creating(Protocol):
    """A request that may create its group."""

    state: ShardState


def first_error(guards: Guards[Asked], asked: Asked) -> ErrorCode:
    """Return the error of the first guard that holds; NONE if none does."""
    for holds, error in guards:
        if holds(asked):
            return error
    return NONE


def group_is_dead(asked: Identified) -> bool:
    """The shard was unloaded."""
    return asked.group.state is DEAD


def broker_is_full(asked: Creating) -> bool:
    """The number of groups over all shards has reached `partita.groups.max`."""
    return asked.state.is_full


def instance_is_unknown(asked: Identified) -> bool:
    """It names a group instance id that no member has."""
    return asked.instance_id is not None and asked.instance_id not in asked.group.static


def instance_is_anothers(asked: Identified) -> bool:
    """Its group instance id belongs to another member id: the process was replaced and is fenced."""
    return asked.instance_id is not None and asked.group.static.get(asked.instance_id) != asked.member_id


def member_is_unknown(asked: Identified) -> bool:
    """No member has its member id."""
    return asked.member_id not in asked.group.members


def id_is_unknown(asked: Identified) -> bool:
    """No member has its member id, and it is not a pending id."""
    return asked.member_id not in asked.group.members and asked.member_id not in asked.group.pending


def generation_is_another(asked: Claim) -> bool:
    """Its generation is not the current one."""
    return asked.generation != asked.group.generation


IDENTITY_GUARDS: Guards[Identified] = (
    (instance_is_unknown, ErrorCode.UNKNOWN_MEMBER_ID),
    (instance_is_anothers, ErrorCode.FENCED_INSTANCE_ID),
    (id_is_unknown, ErrorCode.UNKNOWN_MEMBER_ID),
)
"""Guards of requests that pending ids may send, too."""

MEMBER_GUARDS: Guards[Claim] = (
    (instance_is_unknown, ErrorCode.UNKNOWN_MEMBER_ID),
    (instance_is_anothers, ErrorCode.FENCED_INSTANCE_ID),
    (member_is_unknown, ErrorCode.UNKNOWN_MEMBER_ID),
    (generation_is_another, ErrorCode.ILLEGAL_GENERATION),
)
"""Guards that pass members of the current generation only. An absent group has no members, so these cover it too."""


def IMPOSSIBLE(*asked: object) -> NoReturn:
    """Fill a cell that is never reached, since a guard answers before."""
    raise AssertionError(f"a guard must have answered {asked[-1]}")


_NEED_A_GROUP_ID = (
    JoinGroupRequest,
    SyncGroupRequest,
    HeartbeatRequest,
    LeaveGroupRequest,
    TxnOffsetCommitRequest,
    OffsetDeleteRequest,
)
_NAMES_PROTOCOL = 5
_KNOWS_LOAD_IN_PROGRESS = 2

# Deviation: Partita answers NOT_COORDINATOR to all requests that wait for a failed write to `__consumer_offsets` and
# reloads the shard, where Kafka undoes the change in memory and answers by the kind of failure.


def first_check(request: GroupRequest, config: GroupConfig) -> Structure | None:
    """Return a refusal that needs no group state: no group id, no protocol, session timeout out of bounds."""
    message = request.message
    if (
        isinstance(message, SyncGroupRequest)
        and request.version >= _NAMES_PROTOCOL
        and (message.protocol_type is None or message.protocol_name is None)
    ):
        return refusal(request, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if isinstance(message, _NEED_A_GROUP_ID) and not message.group_id:
        return refusal(request, ErrorCode.INVALID_GROUP_ID)
    if isinstance(message, JoinGroupRequest):
        low, high = config.group_min_session_timeout_ms, config.group_max_session_timeout_ms
        if not low <= message.session_timeout_ms <= high:
            return refusal(request, ErrorCode.INVALID_SESSION_TIMEOUT)
    return None


def while_loading(request: GroupRequest) -> Structure:
    """Return the answer while the group's shard loads. Heartbeats succeed, so that a failover removes no member."""
    message = request.message
    if isinstance(message, HeartbeatRequest):
        return HeartbeatResponse()
    if isinstance(message, TxnOffsetCommitRequest) and request.version < _KNOWS_LOAD_IN_PROGRESS:
        return refusal(request, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if isinstance(message, EndTransaction):
        return refusal(request, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return refusal(request, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def not_here(request: GroupRequest) -> Structure:
    """Return the answer of a broker that does not own the group's shard, or could not load it."""
    if isinstance(request.message, EndTransaction):
        return refusal(request, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return refusal(request, ErrorCode.NOT_COORDINATOR)
