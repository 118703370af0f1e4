"""Heartbeat: guards, then a table of states. The most frequent request.

A heartbeat never writes, so it needs no `Turn`: `decide` returns the error code at once.
(Kafka: GroupMetadataManager.classicGroupHeartbeat, specification section 9.1.)
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from partita.group.contract import Reply, Step, Token
from partita.group.guards import IMPOSSIBLE, MEMBER_GUARDS, Guards, first_error, group_is_dead
from partita.group.notes import MemberRefused
from partita.group.state.model import COMPLETING, EMPTY, NO_DEADLINE, PREPARING, STABLE, Group, GroupState
from partita.now import Now
from partita.protocol.error_codes import NONE, ErrorCode
from partita.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

_FENCED, _REJOIN = ErrorCode.FENCED_INSTANCE_ID, ErrorCode.REBALANCE_IN_PROGRESS
_ANSWERS = {error: HeartbeatResponse(error_code=error) for error in ErrorCode}
"""One response per error code; responses are immutable, so they are shared."""


class HeartbeatCase(IntEnum):
    """Columns of the table; only members of the current generation pass the guards."""

    MEMBER = 0
    """A member of the current generation."""


MEMBER = HeartbeatCase.MEMBER


class Beat:
    """One Heartbeat being decided."""

    __slots__ = ("generation", "group", "instance_id", "member_id")

    def __init__(self, group: Group, wire: HeartbeatRequest) -> None:
        self.group = group
        self.member_id = wire.member_id
        self.instance_id = wire.group_instance_id
        self.generation = wire.generation_id


def answer(groups: dict[str, Group], token: Token, wire: HeartbeatRequest, client_id: str, now: Now) -> Step:
    """Return the step that answers a heartbeat. That of a fenced process shows that two use one instance id."""
    error = decide(groups, wire, now.mono_ms)
    replies = (Reply(token, _ANSWERS[error]),)
    if error is not _FENCED:
        return Step((), replies)
    twin = (wire.group_id, wire.member_id, wire.group_instance_id, client_id)
    return Step((), replies, (MemberRefused(*twin, error.name, "", now.wall_ms),))


def decide(groups: dict[str, Group], wire: HeartbeatRequest, mono_ms: int) -> ErrorCode:
    """Return the error code; an accepted heartbeat restarts the session. A later deadline needs no new wake-up."""
    group = groups.get(wire.group_id)
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    # Fast path: the outcome of guards and table for a member of a stable group, in three comparisons. In a stable
    # group no member is new or has a parked request, so the session restarts without further checks.
    if group.state is STABLE and wire.generation_id == group.generation:
        member = group.members.get(wire.member_id)
        if member is not None and member.instance_id == wire.group_instance_id:
            member.deadline_ms = mono_ms + member.session_timeout_ms
            return NONE
    beat = Beat(group, wire)
    error = first_error(HEARTBEAT_GUARDS, beat)
    return error or HEARTBEAT[group.state][MEMBER](beat, mono_ms)


HEARTBEAT_GUARDS: Guards[Beat] = (
    (group_is_dead, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    *MEMBER_GUARDS,
)
"""Guards; an absent group has already been answered with UNKNOWN_MEMBER_ID."""


def LIVE(beat: Beat, mono_ms: int) -> ErrorCode:
    """Restart the session and answer NONE. A member with a parked request has no session to restart."""
    member = beat.group.members[beat.member_id]
    if member.deadline_ms != NO_DEADLINE and not member.is_new:
        member.deadline_ms = mono_ms + member.session_timeout_ms
    return NONE


def LIVE_AND_REJOIN(beat: Beat, mono_ms: int) -> ErrorCode:
    """Restart the session and answer REBALANCE_IN_PROGRESS."""
    LIVE(beat, mono_ms)
    return _REJOIN


Action = Callable[[Beat, int], ErrorCode]
HEARTBEAT: dict[GroupState, tuple[Action, ...]] = {
    #            MEMBER
    EMPTY: (IMPOSSIBLE,),
    PREPARING: (LIVE_AND_REJOIN,),
    COMPLETING: (LIVE,),
    STABLE: (LIVE,),
}  # DEAD never gets here: a guard answers COORDINATOR_NOT_AVAILABLE.
