"""Removes members that leave, are silent too long, or do not revoke tasks in time; runs the deadlines of a group.

The next heartbeat of another member computes the new target. (Kafka: streamsGroupLeave, streamsGroupFenceMember)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from partita.group.contract import Record
from partita.group.notes import Cause, GroupEpochBumped, MemberGone
from partita.group.records import streams_log
from partita.group.records.consumer_group import LEFT_STATIC
from partita.group.records.streams_group import NOTHING_HELD, StreamsGroup, StreamsMember
from partita.group.state.model import NO_DEADLINE
from partita.group.state.settings import in_force
from partita.group.state.shard import StreamsTimers
from partita.group.state.turn import Turn
from partita.group.streams import target, timers
from partita.wording import What

_AT_ONCE = 250
"""Members removed per call, so that one batch can hold the records; the rest is due at once again."""


def remove(turn: Turn, group: StreamsGroup, members: Sequence[StreamsMember], what: What) -> None:
    """Remove the members; one new epoch for all of them. Of an empty group it is the target's epoch, too."""
    group_id, epoch = group.group_id, group.epoch + 1
    records: list[Record] = []
    for member in members:
        records += streams_log.member_tombstones(group_id, member.member_id)
    records.append(streams_log.epoch_record(group_id, group.hard._replace(epoch=epoch)))
    if len(members) == len(group.members):
        records.append(streams_log.target_epoch_record(group_id, epoch, 0))
    turn.write(records)
    soft = turn.state.streams[group_id]
    for member in members:
        soft.forget(member.member_id)
        cause = Cause(what, member.member_id, member.instance_id, member.client_id)
        turn.out.note(MemberGone(group_id, cause, turn.now.wall_ms))
    if not group.members:
        soft.shutdown_by = None
    turn.out.note(GroupEpochBumped(group_id, epoch, cause, turn.now.wall_ms, "streams"))


def set_aside(turn: Turn, group: StreamsGroup, member: StreamsMember) -> None:
    """Mark a static member as temporarily gone: it keeps its tasks while its session runs."""
    held = member.held._replace(active=dict.fromkeys(member.held.active, 0))
    away = replace(member, epoch=LEFT_STATIC, held=held, revoking=NOTHING_HELD)
    turn.write([streams_log.assignment_record(group.group_id, away)])
    turn.state.streams[group.group_id].revocations.pop(member.member_id, None)


def ask_for_shutdown(turn: Turn, group: StreamsGroup, member_id: str) -> None:
    """Have every member shut down, because one of them asks for it."""
    soft = turn.state.streams[group.group_id]
    soft.shutdown_by = soft.shutdown_by or member_id


def remove_named(turn: Turn, group_id: str, name: str, what: What) -> bool:
    """Control: remove the member with this id or group instance id; False if there is no such streams group."""
    group = turn.state.streams_group(group_id)
    if group is None:
        return False
    member = group.members.get(group.static.get(name, name))
    if member is not None:
        remove(turn, group, [member], what)
    return True


def run(turn: Turn, soft: StreamsTimers) -> None:
    """Handle the due deadlines, and set the next wake-up."""
    now_ms = turn.now.mono_ms
    group = turn.state.streams_group(soft.group_id)
    silent = [member_id for member_id, due_ms in soft.sessions.items() if due_ms <= now_ms]
    late = [member_id for member_id, due in soft.revocations.items() if due.deadline_ms <= now_ms]
    for due, what in ((silent, What.EXPIRED), (late, What.DID_NOT_REVOKE)):
        due = due[:_AT_ONCE]
        members = [] if group is None else [group.members[name] for name in due if name in group.members]
        if what is What.DID_NOT_REVOKE:
            members = [m for m in members if m.member_id in soft.revocations]
            members = [m for m in members if soft.revocations[m.member_id].epoch == m.epoch]
        if group is not None and members:
            remove(turn, group, members, what)
        for member_id in due:
            (soft.sessions if what is What.EXPIRED else soft.revocations).pop(member_id, None)
    if soft.delayed_ms <= now_ms:
        soft.delayed_ms = NO_DEADLINE
        if group is not None:
            target.retarget(turn, group)
    if turn.state.streams.get(soft.group_id) is soft:
        turn.state.arm(soft, soft.earliest())


def resume(turn: Turn, silences: Mapping[tuple[str, str], int]) -> None:
    """Give each loaded member a full session less the known silence, and its rebalance timeout if it has to revoke."""
    for group_id, group in turn.state.hard.streams_groups.items():
        turn.state.streams[group_id]  # made, so that the group counts
        for member in group.members.values():
            timers.start_session(turn, group_id, member, silent_ms=silences.get((group_id, member.member_id), 0))
            timers.follow_state(turn, group_id, member)


def silences(turn: Turn) -> dict[tuple[str, str], int]:
    """Return for how many milliseconds each member was silent, by group id and member id."""
    return {
        (group_id, member_id): turn.now.mono_ms - deadline_ms + in_force(turn, group_id, timers.SESSION)
        for group_id, soft in turn.state.streams.items()
        for member_id, deadline_ms in soft.sessions.items()
    }
