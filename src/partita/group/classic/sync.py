"""SyncGroup: guards, then a table of state by role.

The group leader's assignment is written, the group becomes Stable, and all answers wait until that record is durable.
(Kafka: GroupMetadataManager.classicGroupSyncToClassicGroup, specification section 8.)

Deviation: Partita calls a group Stable when the write of the leader's assignment begins, and reloads the shard if the
write fails, where Kafka waits for its end.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from partita.group.classic import rebalance
from partita.group.contract import GroupRequest, Token
from partita.group.guards import IMPOSSIBLE, MEMBER_GUARDS, Guards, first_error, group_is_dead
from partita.group.state import answers
from partita.group.state.model import COMPLETING, EMPTY, PREPARING, STABLE, Group, GroupState, Member, Waiter
from partita.group.state.stored import group_record
from partita.group.state.turn import Turn
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.sync_group import SyncGroupRequest
from partita.wording import What


class SyncCase(IntEnum):
    """The role of the member that syncs."""

    LEADER = 0
    """The group leader of this generation; the only one whose assignments count."""
    FOLLOWER = 1
    """Any other member."""


LEADER, FOLLOWER = SyncCase


class Sync:
    """One SyncGroup being decided."""

    __slots__ = ("generation", "group", "instance_id", "member_id", "token", "version", "wire")

    def __init__(self, group: Group, token: Token, version: int, wire: SyncGroupRequest) -> None:
        self.group = group
        self.token = token
        self.version = version
        self.wire = wire
        self.member_id = wire.member_id
        self.instance_id = wire.group_instance_id
        self.generation = wire.generation_id

    @property
    def member(self) -> Member:
        """The member that sent the request; the guards have verified it."""
        return self.group.members[self.member_id]


def sync_group(turn: Turn, token: Token, request: GroupRequest) -> None:
    """Answer a SyncGroup, or park it until the group leader has assigned."""
    wire = request.message
    assert isinstance(wire, SyncGroupRequest)
    group = turn.state.find(wire.group_id, turn.now.wall_ms)
    sync = Sync(group, token, request.version, wire)
    error = first_error(SYNC_GUARDS, sync)
    if error:
        turn.out.answer(token, answers.sync_error(error))
    else:
        SYNC[group.state][classify(sync)](turn, sync)


def protocol_is_another(sync: Sync) -> bool:
    """It names a protocol type or protocol other than the group's."""
    wire, group = sync.wire, sync.group
    return _differ(wire.protocol_type, group.protocol_type) or _differ(wire.protocol_name, group.protocol_name)


def _differ(given: str | None, agreed: str | None) -> bool:
    return given is not None and agreed is not None and given != agreed


SYNC_GUARDS: Guards[Sync] = (
    (group_is_dead, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    *MEMBER_GUARDS,
    (protocol_is_another, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
)


def classify(sync: Sync) -> SyncCase:
    """Return the column of `SYNC`."""
    return LEADER if sync.group.leader_id == sync.member_id else FOLLOWER


def REJOIN_FIRST(turn: Turn, sync: Sync) -> None:
    """Answer REBALANCE_IN_PROGRESS: a new generation is coming."""
    turn.out.answer(sync.token, answers.sync_error(ErrorCode.REBALANCE_IN_PROGRESS))


def WAIT(turn: Turn, sync: Sync) -> None:
    """Park until the leader has assigned; an older sync of the same member is superseded."""
    turn.answer_sync(sync.member, answers.sync_error(ErrorCode.NOT_COORDINATOR))
    turn.park_sync(sync.member, Waiter(sync.token, sync.version))
    rebalance.became_synced(sync.group, sync.member_id)


def ASSIGN(turn: Turn, sync: Sync) -> None:
    """Store the leader's assignment and hand it out; if it is too large for the log, all get the error and rejoin.

    (Kafka: setAndPropagateAssignment)
    """
    group = sync.group
    WAIT(turn, sync)
    given = {a.member_id: bytes(a.assignment) for a in sync.wire.assignments}
    record = group_record(group, assignments=given)
    if not turn.state.fits([record]):
        rebalance.answer_syncs(turn, group, ErrorCode.UNKNOWN_SERVER_ERROR)
        rebalance.rebalance(turn, group, sync.member.cause(What.ASSIGNMENT_TOO_LARGE))
        return
    for member in group.members.values():
        member.assignment = given.get(member.member_id, b"")
    turn.write([record])
    rebalance.become_stable(turn, group)


def HAND_OUT(turn: Turn, sync: Sync) -> None:
    """Repeat the stored assignment. Assignments a leader sends now are ignored; no session restarts."""
    member = sync.member
    rebalance.became_synced(sync.group, sync.member_id)
    member.synced_ms = turn.now.wall_ms
    turn.out.answer(sync.token, answers.synced(sync.group, member))


Action = Callable[[Turn, Sync], None]
# fmt: off
SYNC: dict[GroupState, tuple[Action, ...]] = {
    #            LEADER        FOLLOWER
    EMPTY:      (IMPOSSIBLE,   IMPOSSIBLE),
    PREPARING:  (REJOIN_FIRST, REJOIN_FIRST),
    COMPLETING: (ASSIGN,       WAIT),
    STABLE:     (HAND_OUT,     HAND_OUT),
}  # DEAD never gets here: a guard answers COORDINATOR_NOT_AVAILABLE.
# fmt: on
