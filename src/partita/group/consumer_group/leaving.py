"""Removes members that leave, are silent too long, or do not revoke partitions in time.

The group gets a new epoch, and the next heartbeat of a remaining member computes the target for it. When the last
member of the new protocol leaves and classic members remain, the group becomes classic again. (Kafka:
consumerGroupFenceMembers, consumerGroupLeave; specification sections 20.8 and 21.4.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import itemgetter

from partita.group.consumer_group import conversion
from partita.group.consumer_group.change import cause_of
from partita.group.consumer_group.subscriptions import counts_after, hash_after
from partita.group.contract import Record
from partita.group.notes import Cause, GroupEpochBumped, MemberGone
from partita.group.records import consumer_log
from partita.group.records.consumer_group import LEFT_STATIC, ConsumerGroup, ConsumerMember
from partita.group.state.shard import ConsumerTimers
from partita.group.state.turn import Turn
from partita.wording import What


def fence(turn: Turn, group: ConsumerGroup, members: Sequence[ConsumerMember], what: What, detail: str = "") -> None:
    """Remove the members; one new epoch for all of them.."""
    causes = [cause_of(member, what, detail) for member in members]
    if conversion.can_downgrade(turn, group, members):
        conversion.downgrade(turn, group, members, causes[0])
    else:
        _remove(turn, group, members, causes[0])
    for cause in causes:
        turn.out.note(MemberGone(group.group_id, cause, turn.now.wall_ms))


def _remove(turn: Turn, group: ConsumerGroup, members: Sequence[ConsumerMember], cause: Cause) -> None:
    group_id, image, timers = group.group_id, turn.state.topics, turn.state.consumers[group.group_id]
    counts = counts_after(group, members, ())
    found = hash_after(image, group, counts, is_current=timers.seen_version == image.version)
    records: list[Record] = []
    for member in members:
        records += consumer_log.member_tombstones(group_id, member.member_id)
    records += [consumer_log.regex_tombstone(group_id, regex) for regex, count in counts.patterns.items() if not count]
    records.append(consumer_log.epoch_record(group_id, group.epoch + 1, found))
    if len(members) == len(group.members):
        # An empty group waits for no target, and the next member gets one at once. (KAFKA-20442)
        records.append(consumer_log.target_epoch_record(group_id, group.epoch + 1, 0))
    turn.write(records)
    timers.seen_version = image.version
    for member in members:
        timers.forget(member.member_id)
    turn.out.note(GroupEpochBumped(group_id, group.epoch, cause, turn.now.wall_ms))


def set_aside(turn: Turn, group: ConsumerGroup, member: ConsumerMember) -> None:
    """Mark a static member as temporarily gone: it keeps its partitions while its session runs."""
    away = replace(member, epoch=LEFT_STATIC, revoking={})
    turn.write([consumer_log.assignment_record(group.group_id, away)])
    turn.state.consumers[group.group_id].revocations.pop(member.member_id, None)


def fence_named(turn: Turn, group_id: str, name: str, what: What) -> bool:
    """Control: remove the member with this id or group instance id; False if there is no such KIP-848 group."""
    group = turn.state.consumer_group(group_id)
    if group is None:
        return False
    member = group.members.get(group.static.get(name, name))
    if member is not None:
        fence(turn, group, [member], what)
    return True


AT_ONCE = 250
"""Deadlines of a group handled per call, so that one batch can hold the records; the rest is due at once again."""


def run(turn: Turn, timers: ConsumerTimers) -> None:
    """Handle the due deadlines of this group, earliest first and up to `AT_ONCE`, and set the next wake-up."""
    for _, member_id, what in sorted(_due(timers, turn.now.mono_ms), key=itemgetter(0))[:AT_ONCE]:
        group = turn.state.consumer_group(timers.group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None:
            timers.forget(member_id)
        elif what == What.DID_NOT_REVOKE and timers.revocations[member_id].epoch != member.epoch:
            del timers.revocations[member_id]
        else:
            fence(turn, group, [member], what)
    if turn.state.consumers.get(timers.group_id) is timers:
        turn.state.arm(timers, timers.earliest())


def _due(timers: ConsumerTimers, now_ms: int) -> Iterator[tuple[int, str, What]]:
    for deadlines, what in (
        (timers.sessions, What.EXPIRED),
        (timers.joins, What.DID_NOT_REJOIN),
        (timers.syncs, What.DID_NOT_SYNC),
    ):
        yield from ((due_ms, member_id, what) for member_id, due_ms in deadlines.items() if due_ms <= now_ms)
    for member_id, revocation in timers.revocations.items():
        if revocation.deadline_ms <= now_ms:
            yield revocation.deadline_ms, member_id, What.DID_NOT_REVOKE
