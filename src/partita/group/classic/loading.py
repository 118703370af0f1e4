"""Loads a shard's groups from hard state, with running sessions, and unloads them.

`partita.group.consumer_group.loading` does it for KIP-848 groups.

(Kafka: GroupMetadataManager.onLoaded, onUnloaded.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from partita.group.classic import rebalance, unled
from partita.group.contract import Handover
from partita.group.notes import Cause, GroupsLoaded
from partita.group.records import log_records
from partita.group.state import answers
from partita.group.state.model import COMPLETING, DEAD, NO_DEADLINE, PREPARING, STABLE, Group
from partita.group.state.shard import ShardState
from partita.group.state.stored import stored_member
from partita.group.state.turn import Turn
from partita.now import Now
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.group_log import GroupMetadataValue
from partita.wording import What


def resume(turn: Turn, handover: Handover, *, clean: bool) -> None:
    """Create each group of the hard state, with full sessions less the known silence.

    If the load is not `clean`, clients may know a generation one higher than the log's.

    Raises MalformedRequest for an unreadable group record: the load has failed.
    """
    state = turn.state
    state.hard.settle()
    for group_id in state.hard.group_ids():
        if state.epoch_group(group_id) is not None:
            continue
        value = state.hard.groups.get(group_id)
        group = Group(group_id, turn.now.wall_ms)
        state.add(group)
        if value is not None:
            _restore(turn, group, log_records.read_group_value(value), handover.silences)
        told = handover.generations.get(group_id, group.generation)
        group.generation_told = told if clean else max(told, group.generation + 1)
    state.expiry_deadline_ms = turn.now.mono_ms + state.config.offsets_retention_check_interval_ms
    for group in list(state.groups.values()):
        if len(group.members) > state.config.group_max_size:
            rebalance.rebalance(turn, group, Cause(What.LOADED_OVER_SIZE, detail=f"{len(group.members)} members"))
        elif group.members and group.leader_id is None:
            group.leader_id = next(iter(group.members))
            rebalance.rebalance(turn, group, Cause(What.LOADED_UNASSIGNED))
    loaded = len(state.groups) + len(state.hard.consumer_groups) + len(state.hard.streams_groups)
    turn.out.note(GroupsLoaded(groups=loaded, skipped=state.hard.skipped, wall_ms=turn.now.wall_ms))


def _restore(turn: Turn, group: Group, record: GroupMetadataValue, silences: Mapping[tuple[str, str], int]) -> None:
    group.generation = record.generation
    group.protocol_type = record.protocol_type or None
    group.protocol_name = record.protocol
    group.since_ms = record.current_state_timestamp
    for stored in record.members:
        member = stored_member(stored, record.protocol)
        silent_ms = min(silences.get((group.group_id, member.member_id), 0), member.session_timeout_ms)
        deadline_ms = turn.now.mono_ms + member.session_timeout_ms - silent_ms
        rebalance.enter_member(turn, group, member, deadline_ms=deadline_ms)
    if group.protocol_type is not None:
        group.subscriptions = ()
    if group.members:
        group.state = STABLE
        known = record.leader is None or record.leader in group.members
        group.leader_id = record.leader if known else next(iter(group.members))
        if group.leader_id is None and any(stored.assignment for stored in record.members):
            group.leader_id = next(iter(group.members))
            unled.watch(turn, group, in_ms=0)
        group.subscriptions = tuple(m.metadata(group.protocol_name) for m in group.members.values())


def handover(state: ShardState, now: Now) -> Handover:
    """Return the state for the next load: silences of members with a running session, and unstored generations.

    Members that are only in the log were removed in an unfinished rebalance: their sessions are over.
    """
    silences = {
        (group.group_id, member.member_id): now.mono_ms - (member.deadline_ms - member.session_timeout_ms)
        for group in state.groups.values()
        for member in group.members.values()
        if member.deadline_ms != NO_DEADLINE and not member.is_new
    }
    for group in state.groups.values():
        if group.state in (PREPARING, COMPLETING):
            silences.update(_removed_but_stored(state, group))
    generations = {
        group.group_id: group.generation_told
        for group in state.groups.values()
        if group.state is COMPLETING or group.generation_told > group.generation
    }
    return Handover(silences, generations)


def _removed_but_stored(state: ShardState, group: Group) -> Iterator[tuple[tuple[str, str], int]]:
    value = state.hard.groups.get(group.group_id)
    if value is not None:
        for stored in log_records.read_group_value(value).members:
            if stored.member_id not in group.members:
                yield (group.group_id, stored.member_id), stored.session_timeout


def unload(turn: Turn, error: ErrorCode) -> None:
    """Answer every parked request with `error` and mark each group Dead. Writes nothing."""
    state = turn.state
    for group in state.groups.values():
        for member in list(group.members.values()):
            if member.join is not None:
                answer = answers.join_error(error, member.member_id, version=member.join.version)
                turn.answer_join(group, member, answer)
            turn.answer_sync(member, answers.sync_error(error))
        rebalance.move(turn, group, DEAD)
        group.wake_ms = NO_DEADLINE
        group.join_deadline_ms = group.sync_deadline_ms = NO_DEADLINE
    for timers in (state.consumers, state.shares, state.streams):
        timers.clear()
    state.wakes.clear()
    state.sweeps.clear()
    state.expiry_deadline_ms = NO_DEADLINE
