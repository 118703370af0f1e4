"""Removes members that leave, are silent too long, or do not revoke partitions in time.

The group gets a new epoch, and the next heartbeat of a remaining member computes the target for it. When the last
member of the new protocol leaves and classic members remain, the group becomes classic again. (Kafka:
consumerGroupFenceMembers, consumerGroupLeave; specification sections 20.8 and 21.4.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from partita.group.consumer_group import conversion
from partita.group.consumer_group.change import cause_of
from partita.group.consumer_group.subscriptions import counts_after, hash_after
from partita.group.contract import Record
from partita.group.notes import Cause, GroupEpochBumped, MemberGone
from partita.group.records import consumer_log
from partita.group.records.consumer_group import LEFT_STATIC, ConsumerGroup, ConsumerMember
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
    group_id, image, timers = group.group_id, turn.state.topics, turn.state.timers_of(group.group_id)
    counts = counts_after(group, members, ())
    found = hash_after(image, group, counts, is_current=timers.seen_version == image.version)
    records: list[Record] = []
    for member in members:
        records += consumer_log.member_tombstones(group_id, member.member_id)
    records += [consumer_log.regex_tombstone(group_id, regex) for regex, count in counts.patterns.items() if not count]
    records.append(consumer_log.epoch_record(group_id, group.epoch + 1, found))
    turn.write(records)
    timers.seen_version = image.version
    for member in members:
        timers.forget(member.member_id)
    turn.out.note(GroupEpochBumped(group_id, group.epoch, cause, turn.now.wall_ms))


def set_aside(turn: Turn, group: ConsumerGroup, member: ConsumerMember) -> None:
    """Mark a static member as temporarily gone: it keeps its partitions while its session runs."""
    away = replace(member, epoch=LEFT_STATIC, revoking={})
    turn.write([consumer_log.assignment_record(group.group_id, away)])
    turn.state.timers_of(group.group_id).revocations.pop(member.member_id, None)


def fence_named(turn: Turn, group_id: str, name: str, what: What) -> bool:
    """Control: remove the member with this id or group instance id; False if there is no such KIP-848 group."""
    group = turn.state.consumer_group(group_id)
    if group is None:
        return False
    member = group.members.get(group.static.get(name, name))
    if member is not None:
        fence(turn, group, [member], what)
    return True
