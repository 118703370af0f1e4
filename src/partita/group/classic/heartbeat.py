"""Heartbeat: guards, then a table of state; the most frequent request there is.

A heartbeat never writes, so it has no turn of its own: `decide` gives the error code at once.
(Kafka: GroupMetadataManager.classicGroupHeartbeat, specification section 9.1.)
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from partita.group.contract import Reply, Step, Token
from partita.group.guards import IMPOSSIBLE, MEMBER_GUARDS, Guards, first_error, group_is_dead
from partita.group.state.model import COMPLETING, EMPTY, NO_DEADLINE, PREPARING, STABLE, Group, GroupState
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

_ANSWERS = {error: HeartbeatResponse(error_code=error) for error in ErrorCode}
"""Responses are immutable, so they are shared."""


class HeartbeatCase(IntEnum):
    """Only members of the current generation pass the guards."""

    MEMBER = 0
    """A member of the current generation."""


class Beat:
    """One Heartbeat being decided."""

    __slots__ = ("generation", "group", "instance_id", "member_id")

    def __init__(self, group: Group, wire: HeartbeatRequest) -> None:
        self.group = group
        self.member_id = wire.member_id
        self.instance_id = wire.group_instance_id
        self.generation = wire.generation_id


def answer(groups: dict[str, Group], token: Token, wire: HeartbeatRequest, mono_ms: int) -> Step:
    """The step that answers a heartbeat."""
    return Step((), (Reply(token, _ANSWERS[decide(groups, wire, mono_ms)]),))


def decide(groups: dict[str, Group], wire: HeartbeatRequest, mono_ms: int) -> ErrorCode:
    """The answer; an accepted heartbeat restarts the session. A later end of a session needs no new wake-up."""
    group = groups.get(wire.group_id)
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    # The usual case by itself: what guards and table say of a member of a stable group, in three comparisons. Nobody
    # in a stable group is new or has anything parked, so the session restarts without asking.
    if group.state is STABLE and wire.generation_id == group.generation:
        member = group.members.get(wire.member_id)
        if member is not None and member.instance_id == wire.group_instance_id:
            member.deadline_ms = mono_ms + member.session_timeout_ms
            return ErrorCode.NONE
    beat = Beat(group, wire)
    error = first_error(HEARTBEAT_GUARDS, beat)
    return error or HEARTBEAT[group.state][HeartbeatCase.MEMBER](beat, mono_ms)


HEARTBEAT_GUARDS: Guards[Beat] = (
    (group_is_dead, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    *MEMBER_GUARDS,
)
"""An absent group was answered before: UNKNOWN_MEMBER_ID."""


def LIVE(beat: Beat, mono_ms: int) -> ErrorCode:
    """Restart the session and answer NONE. A member that waits for an answer has no session to restart."""
    member = beat.group.members[beat.member_id]
    if member.deadline_ms != NO_DEADLINE and not member.is_new:
        member.deadline_ms = mono_ms + member.session_timeout_ms
    return ErrorCode.NONE


def LIVE_AND_REJOIN(beat: Beat, mono_ms: int) -> ErrorCode:
    """Restart the session and answer REBALANCE_IN_PROGRESS."""
    LIVE(beat, mono_ms)
    return ErrorCode.REBALANCE_IN_PROGRESS


Action = Callable[[Beat, int], ErrorCode]
HEARTBEAT: dict[GroupState, tuple[Action, ...]] = {
    #            MEMBER
    EMPTY: (IMPOSSIBLE,),
    PREPARING: (LIVE_AND_REJOIN,),
    COMPLETING: (LIVE,),
    STABLE: (LIVE,),
}  # DEAD never gets here: a guard answers COORDINATOR_NOT_AVAILABLE.
