"""Guards shared by several requests: they check the claimed group, member, instance and generation.

A guard is a predicate of a request and the error to answer with if it is true; the first guard of a request that is
true answers. (Kafka: ClassicGroup.validateMember, GroupMetadataManager.validateClassicGroupHeartbeat)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, Protocol, TypeAlias, TypeVar

from partita.group.state.model import DEAD, Group
from partita.group.state.shard import ShardState
from partita.protocol.error_codes import ErrorCode

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
    return ErrorCode.NONE


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
