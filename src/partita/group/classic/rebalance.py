"""Every move between the states of a classic group, and nothing else moves them.

`prepare` asks members to rejoin, `complete_if_all_joined` and `complete_join` end the join phase, `become_stable` the
sync phase; `resume` puts loaded groups where their records say. (Kafka: GroupMetadataManager.prepareRebalance,
tryCompleteInitialRebalanceElseSchedule, completeClassicGroupJoin; release 4.3.1.)
"""

from __future__ import annotations

from collections.abc import Mapping

from partita.group import answers
from partita.group.config import NEW_MEMBER_JOIN_TIMEOUT_MS
from partita.group.contract import Record, Step
from partita.group.notes import (
    DID_NOT_REJOIN,
    LOADED_OVER_SIZE,
    Cause,
    GroupsLoaded,
    MemberGone,
    Rebalanced,
    RebalanceStarted,
)
from partita.group.records import log_records
from partita.group.state.model import COMPLETING, DEAD, EMPTY, NEVER, PREPARING, STABLE, Group, GroupState, Member
from partita.group.state.shard import Shard
from partita.now import Now
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.group_log import GroupMetadataValue

ALLOWED_MOVES: dict[GroupState, tuple[GroupState, ...]] = {
    EMPTY: (PREPARING, DEAD),
    PREPARING: (COMPLETING, EMPTY, DEAD),
    COMPLETING: (STABLE, PREPARING, DEAD),
    STABLE: (PREPARING, DEAD),
    DEAD: (DEAD,),
}
"""Loading puts a new group straight into Stable or Empty; that is no move."""

_CAUSES_KEPT = 100


def move(shard: Shard, group: Group, to: GroupState) -> None:
    assert to in ALLOWED_MOVES[group.state], f"{group.group_id} cannot go from {group.state.value} to {to.value}"
    group.state = to
    group.since_ms = shard.now.wall_ms


def rebalance(shard: Shard, group: Group, cause: Cause) -> None:
    """Something happened that needs a new generation: begin one, or see whether the running join phase is over now."""
    note_cause(group, cause)
    if group.state is PREPARING:
        complete_if_all_joined(shard, group)
    else:
        prepare(shard, group, cause)


def note_cause(group: Group, cause: Cause) -> None:
    if len(group.causes) < _CAUSES_KEPT:
        group.causes.append(cause)


def prepare(shard: Shard, group: Group, cause: Cause) -> None:
    if group.state is COMPLETING:
        for member in group.members.values():
            member.assignment = b""
        answer_syncs(shard, group, ErrorCode.REBALANCE_IN_PROGRESS)
    group.pending_sync.clear()
    group.sync_deadline_ms = NEVER
    group.is_initial = group.state is EMPTY
    group.join_started_ms = shard.now.mono_ms
    move(shard, group, PREPARING)
    shard.note(RebalanceStarted(group.group_id, group.generation, cause, shard.now.wall_ms))
    if group.is_initial:
        delay_ms = shard.config.group_initial_rebalance_delay_ms
        group.initial_remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        group.new_member_added = False
        _arm_initial(shard, group, delay_ms)
    elif group.has_all_joined:
        complete_join(shard, group)
    else:
        arm_join(shard, group)


def arm_join(shard: Shard, group: Group, *, at_least_ms: int = 0) -> None:
    group.join_deadline_ms = shard.now.mono_ms + max(group.rebalance_timeout_ms, at_least_ms)
    shard.arm(group, group.join_deadline_ms)


def _arm_initial(shard: Shard, group: Group, delay_ms: int) -> None:
    group.initial_delay_ms = delay_ms
    group.join_deadline_ms = shard.now.mono_ms + delay_ms
    shard.arm(group, group.join_deadline_ms)


def complete_if_all_joined(shard: Shard, group: Group, *, even_initial: bool = False) -> None:
    """End the join phase if everybody is there. In the initial phase only expiries ask so (`even_initial`)."""
    if group.state is PREPARING and group.has_all_joined and (even_initial or not group.is_initial):
        complete_join(shard, group)


def join_deadline(shard: Shard, group: Group) -> None:
    """The join phase has lasted long enough; only newcomers can extend it, and only the initial one."""
    if group.is_initial and group.new_member_added and group.initial_remaining_ms:
        group.new_member_added = False
        waited_ms, remaining_ms = group.initial_delay_ms, group.initial_remaining_ms
        group.initial_remaining_ms = max(remaining_ms - waited_ms, 0)
        _arm_initial(shard, group, min(shard.config.group_initial_rebalance_delay_ms, remaining_ms))
    else:
        complete_join(shard, group)


def complete_join(shard: Shard, group: Group) -> None:
    group.join_deadline_ms = NEVER
    for member in [m for m in group.members.values() if m.join is None and m.instance_id is None]:
        drop_member(shard, group, member, member.cause(DID_NOT_REJOIN))
    if not _elect_joined_leader(group):  # only absent static members are left: wait for one, or for their sessions
        arm_join(shard, group, at_least_ms=1)
        return
    group.generation += group.generation_step
    group.generation_step = 1
    group.is_initial = False
    if group.members:
        _await_assignment(shard, group)
    else:
        _become_empty(shard, group)


def drop_member(shard: Shard, group: Group, member: Member, cause: Cause) -> None:
    """Take a member out of every index; answer what it has parked. Moves nothing."""
    shard.answer_join(group, member, answers.join_error(ErrorCode.UNKNOWN_MEMBER_ID, version=_join_version(member)))
    shard.answer_sync(member, answers.sync_error(ErrorCode.UNKNOWN_MEMBER_ID))
    del group.members[member.member_id]
    group.count_protocols(member.protocols, -1)
    if member.instance_id is not None:
        del group.static[member.instance_id]
    if group.leader_id == member.member_id:
        group.leader_id = next(iter(group.members), None)
    note_cause(group, cause)
    shard.note(MemberGone(group.group_id, cause, shard.now.wall_ms))


def _join_version(member: Member) -> int:
    return 0 if member.join is None else member.join.version


def _elect_joined_leader(group: Group) -> bool:
    """Make a member lead that has rejoined; False if there are members and none has."""
    if not group.members:
        return True
    leader = group.members[group.leader_id] if group.leader_id else None
    if leader is None or leader.join is None:
        joined = next((m.member_id for m in group.members.values() if m.join is not None), None)
        if joined is None:
            return False
        group.leader_id = joined
    return True


def _become_empty(shard: Shard, group: Group) -> None:
    group.protocol_name = None
    group.subscriptions = ()
    move(shard, group, EMPTY)
    value = log_records.empty_group(group.protocol_type, group.generation, group.since_ms)
    shard.write([Record(log_records.group_key(group.group_id), log_records.group_value(value))])
    _note_end(shard, group, sync_phase_ms=0)


def _await_assignment(shard: Shard, group: Group) -> None:
    group.protocol_name = group.vote()
    group.subscriptions = tuple(m.metadata(group.protocol_name) for m in group.members.values())
    move(shard, group, COMPLETING)
    group.sync_started_ms = shard.now.mono_ms
    everyone = answers.members_of(group)
    for member in group.members.values():
        member.is_new = False
        if member.join is not None:
            version = member.join.version
            is_leader = member.member_id == group.leader_id
            answer = answers.joined(group, member.member_id, version, everyone if is_leader else None)
            shard.answer_join(group, member, answer)
        shard.start_session(group, member)
    group.pending_sync = dict.fromkeys(group.members)
    group.sync_deadline_ms = shard.now.mono_ms + max(group.rebalance_timeout_ms, 0)
    shard.arm(group, group.sync_deadline_ms)


def answer_syncs(shard: Shard, group: Group, error: ErrorCode = ErrorCode.NONE) -> None:
    """Answer every parked sync, with the member's assignment if there is no error, and restart those sessions."""
    for member in group.members.values():
        if member.sync is not None:
            shard.answer_sync(member, answers.sync_error(error) if error else answers.synced(group, member))
            shard.start_session(group, member)


def became_synced(group: Group, member_id: str) -> None:
    """The member has asked for its assignment; when all have, no deadline is left."""
    group.pending_sync.pop(member_id, None)
    if not group.pending_sync:
        group.sync_deadline_ms = NEVER


def become_stable(shard: Shard, group: Group) -> None:
    """The assignment is stored: hand it out."""
    move(shard, group, STABLE)
    answer_syncs(shard, group)
    _note_end(shard, group, sync_phase_ms=shard.now.mono_ms - group.sync_started_ms)


def _note_end(shard: Shard, group: Group, *, sync_phase_ms: int) -> None:
    now = shard.now
    note = Rebalanced(
        group.group_id,
        group.generation,
        group.protocol_name,
        group.leader_id,
        len(group.members),
        tuple(group.causes),
        now.mono_ms - group.join_started_ms - sync_phase_ms,
        sync_phase_ms,
        now.wall_ms,
    )
    group.causes.clear()
    shard.note(note)


def resume(shard: Shard, now: Now, silences: Mapping[tuple[str, str], int], *, clean: bool) -> Step:
    """Make a group of each trace in the hard state, with fresh sessions less the known silence."""
    shard.now = now
    shard.hard.settle()
    for group_id in shard.hard.group_ids():
        value = shard.hard.groups.get(group_id)
        group = shard.create(group_id)
        if value is not None:
            _restore(shard, group, log_records.read_group_value(value), silences)
        if not clean:
            group.generation_step = 2
    shard.expiry_deadline_ms = now.mono_ms + shard.config.offsets_retention_check_interval_ms
    for group in list(shard.groups.values()):
        if len(group.members) > shard.config.group_max_size:
            rebalance(shard, group, Cause(LOADED_OVER_SIZE, detail=f"{len(group.members)} members"))
    shard.note(GroupsLoaded(len(shard.groups), shard.hard.skipped, now.wall_ms))
    return shard.take()


def _restore(shard: Shard, group: Group, record: GroupMetadataValue, silences: Mapping[tuple[str, str], int]) -> None:
    group.generation = record.generation
    group.protocol_type = record.protocol_type or None
    group.protocol_name = record.protocol
    group.since_ms = record.current_state_timestamp
    for stored in record.members:
        member = Member(
            stored.member_id,
            stored.group_instance_id,
            stored.client_id,
            stored.client_host,
            stored.rebalance_timeout,
            stored.session_timeout,
            ((record.protocol or "", bytes(stored.subscription)),),
        )
        member.assignment = bytes(stored.assignment)
        add_member(shard, group, member)
        member.deadline_ms = NEVER
        silent_ms = min(silences.get((group.group_id, member.member_id), 0), member.session_timeout_ms)
        member.is_new = False
        member.deadline_ms = shard.now.mono_ms + member.session_timeout_ms - silent_ms
        shard.arm(group, member.deadline_ms)
    if group.members:
        group.state = STABLE
        group.leader_id = record.leader if record.leader in group.members else next(iter(group.members))
        group.subscriptions = tuple(m.metadata(group.protocol_name) for m in group.members.values())


def add_member(shard: Shard, group: Group, member: Member) -> None:
    """Enter a new member into every index; it has five minutes to be answered."""
    if not group.members:
        group.leader_id = member.member_id
    if group.state is PREPARING and group.is_initial:
        group.new_member_added = True
    group.members[member.member_id] = member
    if member.instance_id is not None:
        assert member.instance_id not in group.static, f"{member.instance_id} is held already"
        group.static[member.instance_id] = member.member_id
    group.count_protocols(member.protocols, 1)
    member.is_new = True
    member.deadline_ms = shard.now.mono_ms + NEW_MEMBER_JOIN_TIMEOUT_MS
    shard.arm(group, member.deadline_ms)
