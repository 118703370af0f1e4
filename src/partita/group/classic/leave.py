"""LeaveGroup: guards and a table decide each entry; one rebalance at the end covers them all.

(Kafka: GroupMetadataManager.classicGroupLeaveToClassicGroup, specification section 10.)
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from partita.group.classic import rebalance
from partita.group.contract import GroupRequest, Token
from partita.group.guards import IDENTITY_GUARDS, IMPOSSIBLE, Guards, first_error
from partita.group.notes import Cause
from partita.group.state.model import COMPLETING, DEAD, EMPTY, PREPARING, STABLE, Group, GroupState
from partita.group.state.turn import Turn
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from partita.wording import What

_BATCH_FROM = 3


class LeaveCase(IntEnum):
    """Kinds of entry that pass the guards; the columns of `LEAVE`."""

    MEMBER = 0
    """A member id, alone or with its own instance id; or only the instance id of a member, as
    administrators send it."""
    PENDING = 1
    """An id that was issued and not used yet; an instance id beside it is ignored."""


class Leave:
    """One entry of a LeaveGroup being decided. An instance id alone stands for the member that holds it."""

    __slots__ = ("group", "instance_id", "member_id", "reason")

    def __init__(self, group: Group, entry: MemberIdentity) -> None:
        self.group = group
        self.instance_id = None if entry.member_id in group.pending else entry.group_instance_id
        self.member_id = entry.member_id or group.static.get(entry.group_instance_id or "", "")
        self.reason = entry.reason or ""


def leave_group(turn: Turn, token: Token, request: GroupRequest) -> None:
    """Remove the named members. Each entry has its own result; before version 3 there is only one."""
    wire = request.message
    assert isinstance(wire, LeaveGroupRequest)
    old_form = request.version < _BATCH_FROM
    entries = [MemberIdentity(member_id=wire.member_id)] if old_form else wire.members
    group = turn.state.find(wire.group_id, turn.now.wall_ms)
    if group.state is DEAD:
        turn.out.answer(token, LeaveGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE))
        return
    errors = [_leave(turn, Leave(group, entry)) for entry in entries]
    if old_form:
        turn.out.answer(token, LeaveGroupResponse(error_code=errors[0]))
    else:
        echoes = [_echo(entry, error) for entry, error in zip(entries, errors, strict=True)]
        turn.out.answer(token, LeaveGroupResponse(members=echoes))
    if ErrorCode.NONE in errors:
        _rebalance(turn, group)


def _echo(entry: MemberIdentity, error: ErrorCode) -> MemberResponse:
    return MemberResponse(member_id=entry.member_id, group_instance_id=entry.group_instance_id, error_code=error)


LEAVE_GUARDS: Guards[Leave] = IDENTITY_GUARDS
"""Guards of each entry. An absent group has no members, so these cover it too."""


def classify(leave: Leave) -> LeaveCase:
    """Return the column of `LEAVE`."""
    return LeaveCase.PENDING if leave.member_id in leave.group.pending else LeaveCase.MEMBER


def _leave(turn: Turn, leave: Leave) -> ErrorCode:
    error = first_error(LEAVE_GUARDS, leave)
    if not error:
        LEAVE[leave.group.state][classify(leave)](turn, leave)
    return error


def REMOVE(turn: Turn, leave: Leave) -> None:
    """Remove the member. (Kafka: removeMember)"""
    member = leave.group.members[leave.member_id]
    rebalance.drop_member(turn, leave.group, member, member.cause(What.LEFT, leave.reason))


def FORGET_ID(turn: Turn, leave: Leave) -> None:
    """Drop the pending id. (Kafka: removePendingMemberAndUpdateClassicGroup)"""
    turn.drop_pending(leave.group, leave.member_id, "left")


Action = Callable[[Turn, Leave], None]
# fmt: off
LEAVE: dict[GroupState, tuple[Action, ...]] = {
    #            MEMBER      PENDING
    EMPTY:      (IMPOSSIBLE, FORGET_ID),
    PREPARING:  (REMOVE,     FORGET_ID),
    COMPLETING: (REMOVE,     FORGET_ID),
    STABLE:     (REMOVE,     FORGET_ID),
}  # DEAD never gets here: the whole request is answered COORDINATOR_NOT_AVAILABLE.
# fmt: on


def _rebalance(turn: Turn, group: Group) -> None:
    """Rebalance after an entry succeeded. As in Kafka a leaving pending id rebalances like a member."""
    if group.state in (STABLE, COMPLETING):
        rebalance.prepare(turn, group, group.causes[-1] if group.causes else Cause(What.LEFT))
    else:
        rebalance.complete_if_all_joined(turn, group)
