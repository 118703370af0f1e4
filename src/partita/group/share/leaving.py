"""Sessions of members; removes those that leave or are silent too long.

The next heartbeat of another member computes the new target. (Kafka: scheduleShareGroupSessionTimeout)
"""

from __future__ import annotations

from collections.abc import Sequence

from partita.group.consumer_group.subscriptions import metadata_hash
from partita.group.contract import Record
from partita.group.notes import Cause, GroupEpochBumped, MemberGone
from partita.group.records import share_log
from partita.group.records.share_group import ShareGroup, ShareMember
from partita.group.state.settings import in_force
from partita.group.state.shard import ShareTimers
from partita.group.state.turn import Turn
from partita.wording import What

_AT_ONCE = 250
"""Members removed per call, so that one batch can hold the records; the rest is due at once again."""


def start_session(turn: Turn, group_id: str, member_id: str) -> None:
    """Start the member's session anew."""
    timeout_ms = in_force(turn, group_id, "share.session.timeout.ms")
    turn.run_session(turn.state.shares[group_id], member_id, timeout_ms)


def remove(turn: Turn, group: ShareGroup, members: Sequence[ShareMember], what: What) -> None:
    """Remove the members; one new epoch for all of them. Of an empty group it is the target's epoch, too."""
    group_id, epoch, image = group.group_id, group.epoch + 1, turn.state.topics
    gone = {member.member_id for member in members}
    left = [member for member in group.members.values() if member.member_id not in gone]
    found = metadata_hash(image, sorted({name for member in left for name in member.topics}))
    records: list[Record] = []
    for member in members:
        records += share_log.member_tombstones(group_id, member.member_id)
    records.append(share_log.epoch_record(group_id, epoch, found))
    if not left:
        records.append(share_log.target_epoch_record(group_id, epoch, 0))
    turn.write(records)
    timers = turn.state.shares[group_id]
    timers.seen_version = image.version
    for member in members:
        timers.sessions.pop(member.member_id, None)
        cause = Cause(what, member.member_id, None, member.client_id)
        turn.out.note(MemberGone(group_id, cause, turn.now.wall_ms))
    turn.out.note(GroupEpochBumped(group_id, epoch, cause, turn.now.wall_ms, "share"))


def remove_named(turn: Turn, group_id: str, member_id: str, what: What) -> bool:
    """Control: remove the member; False if there is no such share group."""
    group = turn.state.share_group(group_id)
    if group is None:
        return False
    member = group.members.get(member_id)
    if member is not None:
        remove(turn, group, [member], what)
    return True


def run(turn: Turn, timers: ShareTimers) -> None:
    """Remove the members whose sessions have ended, and set the next wake-up."""
    group = turn.state.share_group(timers.group_id)
    due = [member_id for member_id, due_ms in timers.sessions.items() if due_ms <= turn.now.mono_ms][:_AT_ONCE]
    if group is not None:
        silent = [group.members[member_id] for member_id in due if member_id in group.members]
        if silent:
            remove(turn, group, silent, What.EXPIRED)
    for member_id in due:
        timers.sessions.pop(member_id, None)
    if turn.state.shares.get(timers.group_id) is timers and timers.sessions:
        turn.state.arm(timers, min(timers.sessions.values()))


def resume(turn: Turn) -> None:
    """Start the sessions of all members anew after a load."""
    for group_id, group in turn.state.hard.share_groups.items():
        timers = turn.state.shares[group_id]
        timers.initializing_ms.update(dict.fromkeys(group.topics.initializing, turn.now.mono_ms))
        for member_id in group.members:
            start_session(turn, group_id, member_id)
