"""JoinGroup: guards, then a table of state by kind of join, then one short action.

Mirrors GroupMetadataManager.classicGroupJoin* (specification section 6).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import wraps

from partita.group.classic import rebalance
from partita.group.classic.rejoin_causes import rejoin_cause
from partita.group.classic.static_members import asks_for_other_topics, swap, swap_record
from partita.group.contract import GroupRequest, Token
from partita.group.guards import IDENTITY_GUARDS, IMPOSSIBLE, Guards, broker_is_full, first_error, group_is_dead
from partita.group.notes import MemberIdIssued, MemberRefused
from partita.group.offsets import expiration
from partita.group.offsets.delete import end_records
from partita.group.state import answers
from partita.group.state.model import (
    COMPLETING,
    DEAD,
    EMPTY,
    PREPARING,
    STABLE,
    Group,
    GroupState,
    Member,
    Protocols,
    Waiter,
)
from partita.group.state.shard import ShardState
from partita.group.state.stored import new_group_record
from partita.group.state.turn import Turn
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from partita.wording import What

_MEMBER_ID_REQUIRED_FROM = 4
_REBALANCE_TIMEOUT_FROM = 1
_SKIPS_ASSIGNMENT_FROM = 9
_NAMED_MAX = 5
_NOTED = frozenset(
    {
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.FENCED_INSTANCE_ID,
    }
)
"""Refusals that a client cannot cure by itself, so they are reported to the operator."""


class JoinCase(IntEnum):
    """Kinds of join that pass the guards; the columns of `JOIN`."""

    NEEDS_ID = 0
    """No member id, no instance id, version 4 or newer: is issued an id to rejoin with."""
    NEW = 1
    """No member id; an old version, or an instance id that no member holds."""
    RETURNING = 2
    """No member id; an instance id that a member holds: a restarted process takes it over."""
    PENDING = 3
    """The id was issued by NEEDS_ID and is used for the first time."""
    LEADER = 4
    """The group leader, same protocols as before: in Stable this is how it asks for a rebalance."""
    CHANGED = 5
    """A member, leader or not, with other protocols, metadata, or their order."""
    UNCHANGED = 6
    """A follower with the same protocols, for example because it lost the answer."""


NEEDS_ID, NEW, RETURNING, PENDING, LEADER, CHANGED, UNCHANGED = JoinCase


class Join:
    """One JoinGroup being decided."""

    __slots__ = ("group", "instance_id", "member", "member_id", "protocols", "request", "state", "token", "wire")

    def __init__(
        self, state: ShardState, group: Group, token: Token, request: GroupRequest, wire: JoinGroupRequest
    ) -> None:
        self.state = state
        self.group = group
        self.token = token
        self.request = request
        self.wire = wire
        self.member_id = wire.member_id
        self.instance_id = wire.group_instance_id
        self.member = group.members.get(wire.member_id)
        self.protocols: Protocols = tuple([(p.name, bytes(p.metadata)) for p in wire.protocols])

    @property
    def version(self) -> int:
        """The version of the request and of its response."""
        return self.request.version

    @property
    def waiter(self) -> Waiter:
        """The part of the request to keep while it is parked."""
        return Waiter(self.token, self.request.version)

    @property
    def rebalance_timeout_ms(self) -> int:
        """The rebalance timeout; version 0 has none. Later versions are taken literally, even -1."""
        wire = self.wire
        old = self.request.version < _REBALANCE_TIMEOUT_FROM
        return wire.session_timeout_ms if old else wire.rebalance_timeout_ms

    def new_member(self, member_id: str) -> Member:
        """Return the member that this request describes, under `member_id`."""
        return Member(
            member_id=member_id,
            instance_id=self.instance_id,
            client_id=self.request.client_id,
            client_host=self.request.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            session_timeout_ms=self.wire.session_timeout_ms,
            protocols=self.protocols,
        )


def join_group(turn: Turn, token: Token, request: GroupRequest) -> None:
    """Answer a JoinGroup, or park it until the join phase ends."""
    wire = request.message
    assert isinstance(wire, JoinGroupRequest)
    group = turn.state.find(wire.group_id, turn.now.wall_ms)
    join = Join(turn.state, group, token, request, wire)
    is_created = turn.state.is_absent(group)
    if is_created:
        if not wire.member_id:
            end_empty_group(turn, wire.group_id)
        if turn.state.is_full:
            expiration.make_room(turn, wire.group_id)
        error = first_error(JOIN_ABSENT_GUARDS, join)
        if error:
            refuse(turn, join, error)
            return
        turn.state.add(group)
    written = len(turn.out.records)
    error = first_error(JOIN_GUARDS, join)
    if error:
        refuse(turn, join, error)
    else:
        JOIN[group.state][classify(join)](turn, join)
    # A group that exists in memory must exist in the log, too, even if its only trace is an issued member id.
    if is_created and len(turn.out.records) == written:
        turn.write([new_group_record(group)])


def end_empty_group(turn: Turn, group_id: str) -> None:
    """End a KIP-848 or streams group without members: the first classic join converts it. Its offsets stay."""
    group = turn.state.epoch_group(group_id)
    if group is not None:
        assert not group.members, "a group with members serves or refuses the join itself"
        turn.write(end_records(turn, group_id))
        turn.state.forget_timers(group_id)


def names_a_member(join: Join) -> bool:
    """It has a member id, though the group is absent."""
    return bool(join.member_id)


def group_cannot_be_stored(join: Join) -> bool:
    """The group's first record is larger than the offsets topic accepts."""
    return not join.state.fits([new_group_record(join.group)])


JOIN_ABSENT_GUARDS: Guards[Join] = (
    (names_a_member, ErrorCode.UNKNOWN_MEMBER_ID),
    (broker_is_full, ErrorCode.GROUP_MAX_SIZE_REACHED),
    (group_cannot_be_stored, ErrorCode.UNKNOWN_SERVER_ERROR),
)
"""For an absent group. A join that passes creates the group, even if one of `JOIN_GUARDS` then refuses it."""


def group_is_full(join: Join) -> bool:
    """The group is at its maximum size. Pending ids do not count; in a rebalance the first to rejoin have priority."""
    group, size = join.group, join.state.config.group_max_size
    if group.state is EMPTY or group.state is DEAD:
        return False
    if group.state is PREPARING:
        has_place = join.member is not None and join.member.join is not None
        # In a rebalance places belong to those who have rejoined, not to those who were there before: a member that
        # comes too late finds the group full.
        return not has_place and group.joins_parked >= size
    return join.member is None and len(group.members) >= size


def too_many_ids_are_pending(join: Join) -> bool:
    """It asks for an id, and the shard already has `partita.pending.members.max` unused ids."""
    asks_for_id = not join.member_id and join.instance_id is None
    return asks_for_id and join.state.pending_count >= join.state.config.partita_pending_members_max


def protocols_are_too_large(join: Join) -> bool:
    """It lists more protocols, or more metadata for one, than the shard's limits allow."""
    config = join.state.config
    too_many = len(join.protocols) > config.partita_protocols_max
    return too_many or any(len(metadata) > config.partita_member_metadata_max_bytes for _, metadata in join.protocols)


def no_protocol_in_common(join: Join) -> bool:
    """It has another protocol type, or lists no protocol that every member lists."""
    return not join.group.supports_any(join.wire.protocol_type, join.protocols)


def pending_id_has_instance(join: Join) -> bool:
    """Its id was issued to a dynamic member, but it names a group instance id."""
    return join.member_id in join.group.pending and join.instance_id is not None


def claimed(guard: Callable[[Join], bool]) -> Callable[[Join], bool]:
    """Limit the guard to joins with a member id."""

    @wraps(guard)
    def holds(join: Join) -> bool:
        return bool(join.member_id) and guard(join)

    return holds


JOIN_GUARDS: Guards[Join] = (
    (group_is_full, ErrorCode.GROUP_MAX_SIZE_REACHED),
    (too_many_ids_are_pending, ErrorCode.GROUP_MAX_SIZE_REACHED),
    (group_is_dead, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    (protocols_are_too_large, ErrorCode.POLICY_VIOLATION),
    (no_protocol_in_common, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    (pending_id_has_instance, ErrorCode.UNKNOWN_SERVER_ERROR),
    *((claimed(guard), error) for guard, error in IDENTITY_GUARDS),
)


def refuse(turn: Turn, join: Join, error: ErrorCode) -> None:
    """Answer with the error. A member or pending id refused because the group is full is dropped."""
    member_id = join.member_id
    if error is ErrorCode.GROUP_MAX_SIZE_REACHED:
        if join.member is not None:
            rebalance.drop_member(turn, join.group, join.member, join.member.cause(What.REFUSED_FULL))
        else:
            turn.drop_pending(join.group, member_id, "refused")
        member_id = ""
    elif error is ErrorCode.UNKNOWN_SERVER_ERROR:
        member_id = ""
    if error in _NOTED:
        turn.out.note(
            MemberRefused(
                join.group.group_id, join.member_id, join.instance_id, join.request.client_id, error.name,
                _mismatch(join) if error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL else "", turn.now.wall_ms,
            )
        )  # fmt: skip
    turn.out.answer(join.token, answers.join_error(error, member_id, version=join.version))


def _mismatch(join: Join) -> str:
    """Describe its protocols and the group's, where known."""
    group, wire = join.group, join.wire
    if group.members and wire.protocol_type != group.protocol_type:
        return f"its protocol type is {wire.protocol_type}, the group's is {group.protocol_type}"
    offers = ", ".join(name for name, _ in join.protocols[:_NAMED_MAX])
    common = [name for name, number in group.support.items() if number == len(group.members)]
    return f"it offers {offers or 'no assignor'}, and the members have {', '.join(common[:_NAMED_MAX])} in common"


def classify(join: Join) -> JoinCase:
    """Return the column of `JOIN`."""
    group = join.group
    if not join.member_id:
        if join.instance_id is not None:
            return RETURNING if join.instance_id in group.static else NEW
        return NEEDS_ID if join.version >= _MEMBER_ID_REQUIRED_FROM else NEW
    if join.member_id in group.pending:
        return PENDING
    assert join.member is not None, "a guard answers unknown members"
    # Order counts, too: it is the order of preference, and decides the vote.
    if join.protocols != join.member.protocols:
        return CHANGED
    return LEADER if group.leader_id == join.member_id else UNCHANGED


def ISSUE_ID(turn: Turn, join: Join) -> None:
    """Issue an id to rejoin with; start no rebalance for a client that may never return.

    (Kafka: classicGroupJoinNewDynamicMember)
    """
    member_id = turn.state.new_member_id(join.request.client_id)
    # An id that is not used in time is dropped, so that clients which ask and never return do not pile up.
    deadline_ms = turn.now.mono_ms + join.wire.session_timeout_ms
    join.group.pending[member_id] = deadline_ms
    turn.state.pending_count += 1
    turn.state.arm(join.group, deadline_ms)
    turn.out.note(MemberIdIssued(join.group.group_id, member_id, join.request.client_id, turn.now.wall_ms))
    turn.out.answer(join.token, answers.join_error(ErrorCode.MEMBER_ID_REQUIRED, member_id, version=join.version))


def ADMIT(turn: Turn, join: Join) -> None:
    """Add the member, under its pending id or a new one; rebalance, or end the join phase if all have joined.

    (Kafka: addMemberThenRebalanceOrCompleteJoin)
    """
    group, wire = join.group, join.wire
    # First: the id is a member's from now on, and must not count as pending and as a member at once.
    turn.state.drop_pending(group, join.member_id)
    prefix = join.request.client_id if join.instance_id is None else join.instance_id
    member = join.new_member(join.member_id or turn.state.new_member_id(prefix))
    # The first member decides what the group is; a guard refuses all others that differ.
    if not group.members:
        group.protocol_type = wire.protocol_type
    rebalance.add_member(turn, group, member)
    # The log still maps this instance id to the removed member: reloading it would fence the process that joins now.
    group.has_unstored_ids |= member.instance_id in group.removed_instances
    # Parked before the rebalance begins: a group of one is complete at once, and its answer must find the token.
    turn.park_join(group, member, join.waiter)
    rebalance.rebalance(turn, group, member.cause(What.JOINED, wire.reason or ""))


def REJOIN(turn: Turn, join: Join) -> None:
    """Update the member and park the request; an earlier parked join of the member is superseded.

    (Kafka: updateMemberThenRebalanceOrCompleteJoin)
    """
    group, member = join.group, join.member
    assert member is not None
    cause = None if group.state is PREPARING else rejoin_cause(group, member, join.protocols, join.wire.reason or "")
    # The client has sent its join again: the older request can only be a lost one, and must still be answered.
    supersede_join(turn, group, member)
    group.update_member(member, join.protocols, join.rebalance_timeout_ms, join.wire.session_timeout_ms)
    if cause is None:
        turn.park_join(group, member, join.waiter)
        rebalance.complete_if_all_joined(turn, group)
        return
    if group.state is COMPLETING:  # its own parked sync is answered like the others', before its join is parked
        rebalance.answer_syncs(turn, group, ErrorCode.REBALANCE_IN_PROGRESS)
    turn.park_join(group, member, join.waiter)
    rebalance.rebalance(turn, group, cause)


def ECHO(turn: Turn, join: Join) -> None:
    """Repeat the current generation; nothing changes, no session restarts. (Kafka: classicGroupJoinExistingMember)"""
    group, member_id = join.group, join.member_id
    members = answers.members_of(group) if group.leader_id == member_id else None
    turn.out.answer(join.token, answers.joined(group, member_id, join.version, members))


def UNKNOWN(turn: Turn, join: Join) -> None:
    """Answer UNKNOWN_MEMBER_ID: an empty group has no members."""
    error = answers.join_error(ErrorCode.UNKNOWN_MEMBER_ID, join.member_id, version=join.version)
    turn.out.answer(join.token, error)


def SWAP_WAIT(turn: Turn, join: Join) -> None:
    """Replace the static member; its new process waits for the end of the join phase like the others.

    (Kafka: updateStaticMemberThenRebalanceOrCompleteJoin)
    """
    group, old = join.group, _holder(join)
    new = _replacement(turn, join, old)
    swap(turn, group, old, new)
    turn.park_join(group, new, join.waiter)
    rebalance.complete_if_all_joined(turn, group)


def SWAP_REBALANCE(turn: Turn, join: Join) -> None:
    """Replace the static member and rebalance again: the leader may be assigning to the old id at this moment.

    (Kafka: updateStaticMemberThenRebalanceOrCompleteJoin)
    """
    old = _holder(join)
    _swap_and_rebalance(turn, join, old, _replacement(turn, join, old))


def SWAP_PERSIST(turn: Turn, join: Join) -> None:
    """Replace the static member durably and without a rebalance, unless the selected protocol would change.

    (Kafka: updateStaticMemberThenRebalanceOrCompleteJoin)
    """
    group, old = join.group, _holder(join)
    new = _replacement(turn, join, old)
    # The vote as it would be after the swap: the protocol may change although only one member did.
    members = [new if member is old else member for member in group.members.values()]
    wants_other_topics = asks_for_other_topics(group, old, new)
    must_rebalance = wants_other_topics and turn.state.config.partita_rebalance_on_static_change
    if must_rebalance or group.vote(members) != group.protocol_name:
        _swap_and_rebalance(turn, join, old, new)
        return
    was_leader = group.leader_id == old.member_id
    record = swap_record(group, old, new)
    if not turn.state.fits([record]):  # refused before `swap`, so that nothing has to be undone
        turn.out.answer(join.token, _could_not_store(group, join.version))
        return
    swap(turn, group, old, new)
    turn.start_session(group, new)
    turn.write([record])
    group.is_stored()
    turn.out.answer(join.token, _took_over(group, old, new, join.version, was_leader=was_leader))


def _holder(join: Join) -> Member:
    """Return the member that holds the instance id of the join."""
    assert join.instance_id is not None, "only a static member is replaced"
    return join.group.members[join.group.static[join.instance_id]]


def _replacement(turn: Turn, join: Join, old: Member) -> Member:
    """Return the member that takes over the instance id, assignment and position of `old`.

    Deviation: Partita shows the client id and host of the new process of a static member in DescribeGroups, where Kafka
    shows those of the previous process.
    """
    assert old.instance_id is not None
    new = join.new_member(turn.state.new_member_id(old.instance_id))
    new.assignment = old.assignment
    return new


def _swap_and_rebalance(turn: Turn, join: Join, old: Member, new: Member) -> None:
    group = join.group
    swap(turn, group, old, new)
    rebalance.answer_syncs(turn, group, ErrorCode.REBALANCE_IN_PROGRESS)
    turn.park_join(group, new, join.waiter)
    rebalance.rebalance(turn, group, new.cause(What.STATIC_REPLACED))


def _took_over(group: Group, old: Member, new: Member, version: int, *, was_leader: bool) -> JoinGroupResponse:
    """Answer the new process. A leader learns that it must not assign; before version 9 it is called a follower."""
    if not was_leader:
        return answers.joined(group, new.member_id, version, None)
    if version < _SKIPS_ASSIGNMENT_FROM:
        return answers.joined(group, new.member_id, version, None, leader_id=old.member_id)
    return answers.joined(group, new.member_id, version, answers.members_of(group), skip_assignment=True)


def _could_not_store(group: Group, version: int) -> JoinGroupResponse:
    answer = answers.joined(group, "", version, None)
    answer.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
    return answer


def supersede_join(turn: Turn, group: Group, member: Member) -> None:
    """Answer the member's older join with a retriable error instead of dropping it (KAFKA-20938)."""
    if member.join is not None:
        error = answers.join_error(ErrorCode.NOT_COORDINATOR, member.member_id, version=member.join.version)
        turn.answer_join(group, member, error)


Action = Callable[[Turn, Join], None]
# fmt: off
JOIN: dict[GroupState, tuple[Action, ...]] = {
    #            NEEDS_ID  NEW    RETURNING       PENDING LEADER   CHANGED  UNCHANGED
    EMPTY:      (ISSUE_ID, ADMIT, IMPOSSIBLE,     ADMIT,  UNKNOWN, UNKNOWN, UNKNOWN),
    PREPARING:  (ISSUE_ID, ADMIT, SWAP_WAIT,      ADMIT,  REJOIN,  REJOIN,  REJOIN),
    COMPLETING: (ISSUE_ID, ADMIT, SWAP_REBALANCE, ADMIT,  ECHO,    REJOIN,  ECHO),
    STABLE:     (ISSUE_ID, ADMIT, SWAP_PERSIST,   ADMIT,  REJOIN,  REJOIN,  ECHO),
}  # DEAD never gets here: a guard answers COORDINATOR_NOT_AVAILABLE.
# fmt: on
