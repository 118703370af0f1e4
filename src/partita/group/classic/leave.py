"""LeaveGroup: each entry is classified and answered on its own; one rebalance at the end covers them all.

(Kafka: GroupMetadataManager.classicGroupLeaveToClassicGroup, specification section 10.)
"""

from __future__ import annotations

from enum import Enum

from partita.group.classic import rebalance
from partita.group.contract import GroupRequest, Token
from partita.group.notes import LEFT, Cause
from partita.group.state.model import COMPLETING, DEAD, STABLE, Group
from partita.group.state.shard import Shard
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

_BATCH_FROM = 3


class LeaveCase(Enum):
    """How an entry is recognised, first match: (member id, instance id)."""

    INSTANCE_UNKNOWN = "no or any id, an instance id that nobody holds; or neither"
    BY_INSTANCE = "no id, an instance id somebody holds: an administrator removes it"
    PENDING = "an id handed out and not used yet"
    FENCED = "an id, and an instance id that another id holds"
    MEMBER = "a member's id, alone or with its own instance id"
    MEMBER_UNKNOWN = "an id that is nobody's"


LEAVE: dict[LeaveCase, ErrorCode] = {
    LeaveCase.INSTANCE_UNKNOWN: ErrorCode.UNKNOWN_MEMBER_ID,
    LeaveCase.BY_INSTANCE: ErrorCode.NONE,
    LeaveCase.PENDING: ErrorCode.NONE,
    LeaveCase.FENCED: ErrorCode.FENCED_INSTANCE_ID,
    LeaveCase.MEMBER: ErrorCode.NONE,
    LeaveCase.MEMBER_UNKNOWN: ErrorCode.UNKNOWN_MEMBER_ID,
}
"""In every live state alike; NONE removes."""


def leave_group(shard: Shard, token: Token, request: GroupRequest) -> None:
    wire = request.message
    assert isinstance(wire, LeaveGroupRequest)
    old_form = request.version < _BATCH_FROM
    entries = [MemberIdentity(member_id=wire.member_id)] if old_form else wire.members
    group = shard.groups.get(wire.group_id)
    if group is not None and group.state is DEAD:
        shard.answer(token, LeaveGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE))
        return
    errors = [ErrorCode.UNKNOWN_MEMBER_ID if group is None else _leave(shard, group, entry) for entry in entries]
    if old_form:
        shard.answer(token, LeaveGroupResponse(error_code=errors[0]))
    else:
        echoes = [_echo(entry, error) for entry, error in zip(entries, errors, strict=True)]
        shard.answer(token, LeaveGroupResponse(members=echoes))
    if group is not None and ErrorCode.NONE in errors:
        _after(shard, group)


def _echo(entry: MemberIdentity, error: ErrorCode) -> MemberResponse:
    return MemberResponse(member_id=entry.member_id, group_instance_id=entry.group_instance_id, error_code=error)


def classify(group: Group, member_id: str, instance_id: str | None) -> LeaveCase:
    if not member_id:
        return LeaveCase.BY_INSTANCE if instance_id in group.static else LeaveCase.INSTANCE_UNKNOWN
    if member_id in group.pending:
        return LeaveCase.PENDING
    if instance_id is not None:
        if instance_id not in group.static:
            return LeaveCase.INSTANCE_UNKNOWN
        if group.static[instance_id] != member_id:
            return LeaveCase.FENCED
    return LeaveCase.MEMBER if member_id in group.members else LeaveCase.MEMBER_UNKNOWN


def _leave(shard: Shard, group: Group, entry: MemberIdentity) -> ErrorCode:
    case = classify(group, entry.member_id, entry.group_instance_id)
    if case is LeaveCase.PENDING:
        del group.pending[entry.member_id]
        shard.pending_count -= 1
    elif case in (LeaveCase.MEMBER, LeaveCase.BY_INSTANCE):
        member_id = entry.member_id or group.static[entry.group_instance_id or ""]
        member = group.members[member_id]
        rebalance.drop_member(shard, group, member, member.cause(LEFT, entry.reason or ""))
    return LEAVE[case]


def _after(shard: Shard, group: Group) -> None:
    """A pending id that leaves starts a rebalance like a member: Kafka asks only whether an entry succeeded."""
    if group.state in (STABLE, COMPLETING):
        rebalance.prepare(shard, group, group.causes[-1] if group.causes else Cause(LEFT))
    else:
        rebalance.complete_if_all_joined(shard, group)
