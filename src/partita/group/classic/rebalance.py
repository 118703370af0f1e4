"""All state transitions of classic groups; no other module changes a group's state.

`prepare` asks members to rejoin, `complete_if_all_joined` and `complete_join` end the join phase, `become_stable` the
sync phase. (Kafka: GroupMetadataManager.prepareRebalance, maybeCompleteJoinPhase,
tryCompleteInitialRebalanceElseSchedule, completeClassicGroupJoin.)
"""

from __future__ import annotations

from itertools import islice

from partita.assignors.payloads import decode_assignment
from partita.group.config import NEW_MEMBER_JOIN_TIMEOUT_MS
from partita.group.notes import MEMBERS_TOLD_MAX, Cause, MemberGone, MemberHeld, Rebalanced, RebalanceStarted
from partita.group.state import answers
from partita.group.state.model import (
    COMPLETING,
    DEAD,
    EMPTY,
    NO_DEADLINE,
    PREPARING,
    STABLE,
    Group,
    GroupState,
    Member,
    topics_in,
)
from partita.group.state.stored import abandoned_record, empty_group_record
from partita.group.state.turn import Turn
from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import MalformedRequest
from partita.wording import What

ALLOWED_MOVES: dict[GroupState, tuple[GroupState, ...]] = {
    EMPTY: (PREPARING, DEAD),
    PREPARING: (COMPLETING, EMPTY, DEAD),
    COMPLETING: (STABLE, PREPARING, DEAD),
    STABLE: (PREPARING, DEAD),
    DEAD: (DEAD,),
}
"""Allowed transitions. Loading sets the state from the group's record directly, which is not a transition."""

_CAUSES_KEPT = 100


def move(turn: Turn, group: Group, to: GroupState) -> None:
    """Enter a state; asserts that the move is allowed. (Kafka: ClassicGroup.transitionTo)"""
    # An assertion and not a refusal: guards and tables have decided before, so a wrong move is a defect of ours, and
    # the shard is reloaded.
    assert to in ALLOWED_MOVES[group.state], f"{group.group_id} cannot go from {group.state.value} to {to.value}"
    group.state = to
    group.since_ms = turn.now.wall_ms


def rebalance(turn: Turn, group: Group, cause: Cause) -> None:
    """Start a rebalance for `cause`, or end the running join phase if every member has joined.

    (Kafka: maybePrepareRebalanceOrCompleteJoin)
    """
    note_cause(group, cause)
    if group.state is PREPARING:
        complete_if_all_joined(turn, group)
    else:
        prepare(turn, group, cause)


def note_cause(group: Group, cause: Cause) -> None:
    """Record why the group rebalances, for the note at the end; the first hundred causes are kept."""
    # Bounded: a group that never becomes stable would collect causes for ever.
    if len(group.causes) < _CAUSES_KEPT:
        group.causes.append(cause)


def prepare(turn: Turn, group: Group, cause: Cause) -> None:
    """Start a join phase; members learn from their next heartbeat or sync that they must rejoin."""
    if group.state is COMPLETING:
        # Its members already know this generation, but its assignment will never be stored.
        _store_generation(turn, group, [m for m in group.members.values() if not m.is_new])
        for member in group.members.values():
            member.assignment = b""
        answer_syncs(turn, group, ErrorCode.REBALANCE_IN_PROGRESS)
    group.pending_sync.clear()
    group.sync_deadline_ms = group.watch_ms = NO_DEADLINE
    # Only a group that was empty waits for more members to come; later rebalances wait for those it knows.
    group.is_initial = group.state is EMPTY
    group.join_started_ms = turn.now.mono_ms
    move(turn, group, PREPARING)
    turn.out.note(RebalanceStarted(group.group_id, group.generation, cause, turn.now.wall_ms))
    if group.is_initial:
        delay_ms = turn.state.config.group_initial_rebalance_delay_ms
        # The delay is extended for each newcomer, and in all never beyond the rebalance timeout, or a stream of them
        # would keep the group from ever starting.
        group.initial_remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        group.new_member_added = False
        _arm_initial(turn, group, delay_ms)
    elif group.has_all_joined:  # REJOIN parks the only member's join first, so no later join would end the phase
        complete_join(turn, group)
    else:
        arm_join(turn, group)


def arm_join(turn: Turn, group: Group, *, at_least_ms: int = 0) -> None:
    """Give the members the group's rebalance timeout to rejoin, and `at_least_ms` at the least."""
    group.join_deadline_ms = turn.now.mono_ms + max(group.rebalance_timeout_ms, at_least_ms)
    turn.state.arm(group, group.join_deadline_ms)


def _arm_initial(turn: Turn, group: Group, delay_ms: int) -> None:
    group.initial_delay_ms = delay_ms
    group.join_deadline_ms = turn.now.mono_ms + delay_ms
    turn.state.arm(group, group.join_deadline_ms)


def complete_if_all_joined(turn: Turn, group: Group, *, even_initial: bool = False) -> None:
    """End the join phase if all members have joined. Only expiries may end the initial phase (`even_initial`)."""
    if group.state is PREPARING and group.has_all_joined and (even_initial or not group.is_initial):
        complete_join(turn, group)


def join_deadline(turn: Turn, group: Group) -> None:
    """End the join phase at its deadline; new members extend the initial one."""
    if group.is_initial and group.new_member_added and group.initial_remaining_ms:
        group.new_member_added = False
        waited_ms, remaining_ms = group.initial_delay_ms, group.initial_remaining_ms
        group.initial_remaining_ms = max(remaining_ms - waited_ms, 0)
        _arm_initial(turn, group, min(turn.state.config.group_initial_rebalance_delay_ms, remaining_ms))
    else:
        complete_join(turn, group)


def complete_join(turn: Turn, group: Group) -> None:
    """End the join phase: remove dynamic members that have not rejoined and begin a new generation."""
    group.join_deadline_ms = NO_DEADLINE
    for member in [m for m in group.members.values() if m.join is None and m.instance_id is None]:
        drop_member(turn, group, member, member.cause(What.DID_NOT_REJOIN))
    if not _elect_joined_leader(group):  # only absent static members are left: wait for one, or for their sessions
        arm_join(turn, group, at_least_ms=1)
        return
    # Usually the leader's assignment stores the generation. A record is written now if a crash before that would bring
    # back replaced member ids, or a generation that clients know.
    must_store = group.has_unstored_ids or group.generation_told > group.generation
    # The larger of both: a client may know a generation that was never stored, and one number must not mean two things.
    group.generation = group.generation_told = max(group.generation_told, group.generation) + 1
    group.is_initial = False
    if group.members:
        _await_assignment(turn, group, must_store=must_store)
    else:
        _become_empty(turn, group)


def drop_member(turn: Turn, group: Group, member: Member, cause: Cause) -> None:
    """Remove a member from every index and answer its parked requests. Changes no state."""
    # Answered before it is removed, while the token is still found by its member: every token is answered once.
    turn.answer_join(group, member, answers.join_error(ErrorCode.UNKNOWN_MEMBER_ID, version=_join_version(member)))
    turn.answer_sync(member, answers.sync_error(ErrorCode.UNKNOWN_MEMBER_ID))
    del group.members[member.member_id]
    group.count_protocols(member.protocols, -1)
    if member.instance_id is not None:
        del group.static[member.instance_id]
        # The log still has the old id of this instance: if the instance joins again, the next generation is stored.
        group.removed_instances[member.instance_id] = None
    if group.leader_id == member.member_id:
        # Insertion order, so the oldest member leads: no walk over a set, whose order a seed would not repeat.
        group.leader_id = next(iter(group.members), None)
    note_cause(group, cause)
    turn.out.note(MemberGone(group.group_id, cause, turn.now.wall_ms))


def _join_version(member: Member) -> int:
    return 0 if member.join is None else member.join.version


def _elect_joined_leader(group: Group) -> bool:
    """Elect a leader that has rejoined; False if there are members and none has rejoined."""
    if not group.members:
        return True
    leader = group.members[group.leader_id] if group.leader_id else None
    if leader is None or leader.join is None:
        joined = next((m.member_id for m in group.members.values() if m.join is not None), None)
        if joined is None:
            return False
        group.leader_id = joined
    return True


def _become_empty(turn: Turn, group: Group) -> None:
    group.protocol_name = None
    group.subscriptions = ()
    group.is_stored()
    move(turn, group, EMPTY)
    turn.write([empty_group_record(group)])
    _note_end(turn, group, sync_phase_ms=0)


def _await_assignment(turn: Turn, group: Group, *, must_store: bool) -> None:
    group.protocol_name = group.vote()
    group.subscriptions = tuple(m.metadata(group.protocol_name) for m in group.members.values())
    move(turn, group, COMPLETING)
    group.sync_started_ms = turn.now.mono_ms
    if must_store:
        _store_generation(turn, group, list(group.members.values()))
    # Built once, and given to the leader only: ten thousand members would otherwise get ten thousand lists of all.
    everyone = answers.members_of(group)
    for member in group.members.values():
        member.is_new = False
        if member.join is not None:
            version = member.join.version
            is_leader = member.member_id == group.leader_id
            answer = answers.joined(group, member.member_id, version, everyone if is_leader else None)
            turn.answer_join(group, member, answer)
        # Sessions do not run while a join is parked; they begin again with its answer.
        turn.start_session(group, member)
    # A member that has joined and never syncs would hold the group here for ever: it is removed at this deadline.
    group.pending_sync = dict.fromkeys(group.members)
    group.sync_deadline_ms = turn.now.mono_ms + max(group.rebalance_timeout_ms, 0)
    turn.state.arm(group, group.sync_deadline_ms)


def _store_generation(turn: Turn, group: Group, members: list[Member]) -> None:
    """Store that these members know the generation, so that it is not reused after a crash."""
    group.is_stored()
    record = abandoned_record(group, members)
    # Members too many for one record: better to store the generation without them than to reuse it.
    turn.write([record if turn.state.fits([record]) else empty_group_record(group)])


def answer_syncs(turn: Turn, group: Group, error: ErrorCode = ErrorCode.NONE) -> None:
    """Answer every parked sync, with the member's assignment or the error, and restart those sessions."""
    for member in group.members.values():
        if member.sync is not None:
            turn.answer_sync(member, answers.sync_error(error) if error else answers.synced(group, member))
            turn.start_session(group, member)


def became_synced(group: Group, member_id: str) -> None:
    """Mark that the member has asked for its assignment; the sync deadline ends when all have."""
    group.pending_sync.pop(member_id, None)
    if not group.pending_sync:
        group.sync_deadline_ms = NO_DEADLINE


def become_stable(turn: Turn, group: Group) -> None:
    """Enter Stable and answer the parked syncs with the stored assignment."""
    group.is_stored()
    move(turn, group, STABLE)
    answer_syncs(turn, group)
    _note_end(turn, group, sync_phase_ms=turn.now.mono_ms - group.sync_started_ms)


def _note_end(turn: Turn, group: Group, *, sync_phase_ms: int) -> None:
    note = Rebalanced(
        group_id=group.group_id,
        generation=group.generation,
        protocol_name=group.protocol_name,
        leader_id=group.leader_id,
        members=len(group.members),
        causes=tuple(group.causes),
        join_phase_ms=turn.now.mono_ms - group.join_started_ms - sync_phase_ms,
        sync_phase_ms=sync_phase_ms,
        wall_ms=turn.now.wall_ms,
        held=held_by(group),
    )
    group.causes.clear()
    turn.out.note(note)


def add_member(turn: Turn, group: Group, member: Member) -> None:
    """Add a joining member; its join must be answered within five minutes, whatever its session timeout."""
    if group.state is PREPARING and group.is_initial:
        # A member came during the initial delay: it is extended once more when it ends.
        group.new_member_added = True
    member.is_new = True
    enter_member(turn, group, member, deadline_ms=turn.now.mono_ms + NEW_MEMBER_JOIN_TIMEOUT_MS)


def enter_member(turn: Turn, group: Group, member: Member, *, deadline_ms: int) -> None:
    """Add a member to every index of its group; the first one leads. Its session ends at `deadline_ms`."""
    if not group.members:
        group.leader_id = member.member_id
    group.members[member.member_id] = member
    if member.instance_id is not None:
        assert member.instance_id not in group.static, f"{member.instance_id} is held already"
        group.static[member.instance_id] = member.member_id
    group.count_protocols(member.protocols, 1)
    member.deadline_ms = deadline_ms
    turn.state.arm(group, deadline_ms)


def held_by(group: Group) -> tuple[MemberHeld, ...]:
    """Return the first `MEMBERS_TOLD_MAX` members with their partitions. Decodes one assignment per member."""
    told: dict[bytes, tuple[str, ...] | None] = {}  # members of one application send equal bytes: decode once
    return tuple(_held(group, member, told) for member in islice(group.members.values(), MEMBERS_TOLD_MAX))


def _held(group: Group, member: Member, told: dict[bytes, tuple[str, ...] | None]) -> MemberHeld:
    is_consumer, metadata = group.protocol_type == "consumer", member.metadata(group.protocol_name)
    if is_consumer and metadata not in told:
        topics = topics_in(metadata)
        told[metadata] = None if topics is None else tuple(sorted(topics))
    return MemberHeld(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topics=told.get(metadata),
        partitions=_partitions(member.assignment) if is_consumer else {},
        joined_ms=member.joined_ms,
        synced_ms=member.synced_ms,
    )


def _partitions(assignment: bytes) -> dict[str, list[int]]:
    """Decode the partitions by topic; empty for an assignment in a format of the client's own."""
    found: dict[str, list[int]] = {}
    try:
        for topic, number in sorted(decode_assignment(assignment)[0]):
            found.setdefault(topic, []).append(number)
    except (MalformedRequest, UnicodeDecodeError):
        return {}
    return found
