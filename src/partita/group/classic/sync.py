"""SyncGroup: guards, then a table of state by role.

The group leader's assignment is written, the group becomes Stable, and everybody's answer waits behind that record.
Deviation: what Kafka does when that write ends happens here when it begins, since a failed append drops the shard.
(Kafka: GroupMetadataManager.classicGroupSync, specification section 8.)
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from partita.group import answers
from partita.group.classic import rebalance
from partita.group.contract import GroupRequest, Token
from partita.group.notes import ASSIGNMENT_TOO_LARGE
from partita.group.state.model import (
    COMPLETING,
    DEAD,
    EMPTY,
    PREPARING,
    STABLE,
    Group,
    GroupState,
    Member,
    Waiter,
    unknown_identity,
)
from partita.group.state.shard import Shard
from partita.group.state.stored import group_record
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.sync_group import SyncGroupRequest


class SyncCase(IntEnum):
    LEADER = 0
    """The group leader of this generation; the only one whose assignments count."""
    FOLLOWER = 1


class Sync:
    """One SyncGroup being decided."""

    __slots__ = ("group", "member", "token", "version", "wire")

    def __init__(self, group: Group, member: Member, token: Token, version: int, wire: SyncGroupRequest) -> None:
        self.group = group
        self.member = member
        self.token = token
        self.version = version
        self.wire = wire


def sync_group(shard: Shard, token: Token, request: GroupRequest) -> None:
    wire = request.message
    assert isinstance(wire, SyncGroupRequest)
    group = shard.groups.get(wire.group_id)
    error = refuse(group, wire)
    if group is None or error:
        shard.answer(token, answers.sync_error(error))
        return
    member = group.members[wire.member_id]
    case = SyncCase.LEADER if group.leader_id == member.member_id else SyncCase.FOLLOWER
    SYNC[group.state][case](shard, Sync(group, member, token, request.version, wire))


def refuse(group: Group | None, wire: SyncGroupRequest) -> ErrorCode:
    """The first guard that holds."""
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if group.state is DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    error = unknown_identity(group, wire.member_id, wire.group_instance_id)
    if error:
        return error
    if wire.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    for given, agreed in ((wire.protocol_type, group.protocol_type), (wire.protocol_name, group.protocol_name)):
        if given is not None and agreed is not None and given != agreed:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.NONE


def NEVER(shard: Shard, sync: Sync) -> None:
    raise AssertionError("an empty group has no members; a guard answers")


def REJOIN_FIRST(shard: Shard, sync: Sync) -> None:
    """A new generation is coming."""
    shard.answer(sync.token, answers.sync_error(ErrorCode.REBALANCE_IN_PROGRESS))


def WAIT(shard: Shard, sync: Sync) -> None:
    """Park until the leader has assigned; an older sync of the same member is superseded."""
    shard.answer_sync(sync.member, answers.sync_error(ErrorCode.NOT_COORDINATOR))
    shard.park_sync(sync.member, Waiter(sync.token, sync.version))
    rebalance.became_synced(sync.group, sync.member.member_id)


def ASSIGN(shard: Shard, sync: Sync) -> None:
    """Store the leader's assignment and hand it out; too large for the log, everybody hears of it and rejoins."""
    group = sync.group
    WAIT(shard, sync)
    given = {a.member_id: bytes(a.assignment) for a in sync.wire.assignments}
    record = group_record(group, assignments=given)
    if not shard.fits([record]):
        rebalance.answer_syncs(shard, group, ErrorCode.UNKNOWN_SERVER_ERROR)
        rebalance.rebalance(shard, group, sync.member.cause(ASSIGNMENT_TOO_LARGE))
        return
    for member in group.members.values():
        member.assignment = given.get(member.member_id, b"")
    shard.write([record])
    rebalance.become_stable(shard, group)


def HAND_OUT(shard: Shard, sync: Sync) -> None:
    """Repeat the stored assignment. What a leader sends now is ignored; no session restarts."""
    rebalance.became_synced(sync.group, sync.member.member_id)
    shard.answer(sync.token, answers.synced(sync.group, sync.member))


Action = Callable[[Shard, Sync], None]
# fmt: off
SYNC: dict[GroupState, tuple[Action, ...]] = {
    #            LEADER        FOLLOWER
    EMPTY:      (NEVER,        NEVER),
    PREPARING:  (REJOIN_FIRST, REJOIN_FIRST),
    COMPLETING: (ASSIGN,       WAIT),
    STABLE:     (HAND_OUT,     HAND_OUT),
}  # DEAD never gets here: a guard answers COORDINATOR_NOT_AVAILABLE.
# fmt: on
