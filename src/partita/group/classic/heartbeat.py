"""Heartbeat: one look-up, one comparison, one assignment; the most frequent request there is.

A heartbeat never writes, so it has no step of its own: `decide` gives the error code at once.
(Kafka: GroupMetadataManager.classicGroupHeartbeat, specification section 9.1.)
"""

from __future__ import annotations

from partita.group.contract import Reply, Step, Token
from partita.group.state.model import (
    COMPLETING,
    DEAD,
    EMPTY,
    NEVER,
    PREPARING,
    STABLE,
    Group,
    GroupState,
    unknown_identity,
)
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

HEARTBEAT: dict[GroupState, ErrorCode] = {
    EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,  # never gets here: an empty group has no members, which a guard answers
    PREPARING: ErrorCode.REBALANCE_IN_PROGRESS,
    COMPLETING: ErrorCode.NONE,
    STABLE: ErrorCode.NONE,
}
"""The answer to a valid member, whose session restarts in each of them. DEAD: a guard, COORDINATOR_NOT_AVAILABLE."""

_ANSWERS = {error: HeartbeatResponse(error_code=error) for error in ErrorCode}
"""Responses are never changed, so one of each will do."""


def answer(groups: dict[str, Group], token: Token, wire: HeartbeatRequest, mono_ms: int) -> Step:
    return Step((), (Reply(token, _ANSWERS[decide(groups, wire, mono_ms)]),))


def decide(groups: dict[str, Group], wire: HeartbeatRequest, mono_ms: int) -> ErrorCode:
    """The answer; an accepted heartbeat restarts the session. A later end of a session needs no new wake-up."""
    group = groups.get(wire.group_id)
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    member_id = wire.member_id
    if group.state is STABLE and wire.generation_id == group.generation:
        member = group.members.get(member_id)
        if member is not None and member.instance_id == wire.group_instance_id:
            member.deadline_ms = mono_ms + member.session_timeout_ms
            return ErrorCode.NONE
    if group.state is DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    error = unknown_identity(group, member_id, wire.group_instance_id)
    if error:
        return error
    if wire.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    member = group.members[member_id]
    if member.deadline_ms != NEVER and not member.is_new:
        member.deadline_ms = mono_ms + member.session_timeout_ms
    return HEARTBEAT[group.state]
