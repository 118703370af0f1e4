"""Applies a member's join or heartbeat: the group's epoch, a target, and the member's part of it.

Records are written in Kafka's order: member, group epoch, targets, current assignment, share partitions that get their
state. (Kafka: GroupMetadataManager.shareGroupHeartbeat.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from partita.assignors.interface import Subscription
from partita.assignors.simple import share
from partita.group.consumer_group.errors import Refused, too_large
from partita.group.consumer_group.subscriptions import metadata_hash
from partita.group.contract import Record
from partita.group.notes import Cause, GroupEpochBumped
from partita.group.records import share_log
from partita.group.records.consumer_group import NO_PARTITIONS, Target
from partita.group.records.share_group import ShareGroup, ShareMember
from partita.group.share.initializing import forget_topics_gone, initialize_missing, is_settled
from partita.group.share.leaving import start_session
from partita.group.state.settings import in_force
from partita.group.state.turn import Turn
from partita.wording import What


class ShareChange(NamedTuple):
    """One member of a group, before and after; epochs and partitions are those of `before`."""

    group: ShareGroup
    before: ShareMember
    after: ShareMember
    is_new: bool


class _Aim(NamedTuple):
    """The target that the member follows, and its records if it is a new one."""

    epoch: int
    target: Target
    records: list[Record]


def apply(turn: Turn, change: ShareChange) -> ShareMember | Refused:
    """Decide, write, and ask for the state of partitions without any; return the member after the change."""
    group_id = change.group.group_id
    records = []
    if change.is_new or change.after != change.before:
        records.append(share_log.member_record(group_id, change.after))
    epoch, why, bumped = _epoch(turn, change)
    aim = _aim(turn, change, epoch)
    member = _with_target(turn, change, aim)
    records += [*bumped, *aim.records]
    if member != change.after:
        records.append(share_log.assignment_record(group_id, member))
    if not turn.state.fits(records):
        return too_large()
    turn.write(records)
    if why is not None:
        cause = Cause(why, member.member_id, None, member.client_id)
        turn.out.note(GroupEpochBumped(group_id, epoch, cause, turn.now.wall_ms, "share"))
    turn.state.shares[group_id].seen_version = turn.state.topics.version
    start_session(turn, group_id, member.member_id)
    group = turn.state.hard.share_groups.get(group_id)
    if group is not None and (change.after.topics != change.before.topics or not is_settled(turn, group)):
        forget_topics_gone(turn, group)
        initialize_missing(turn, group)
    return member


def _epoch(turn: Turn, change: ShareChange) -> tuple[int, What | None, list[Record]]:
    """Return the group epoch after the change, the cause if it is a new one, and then its record."""
    group, image = change.group, turn.state.topics
    why: What | None = None
    if change.after.topics != change.before.topics:
        why = What.JOINED if change.is_new else What.SUBSCRIPTION_CHANGED
    elif _has_unassigned(group):
        why = What.TOPICS_CHANGED
    if why is None and turn.state.shares[group.group_id].seen_version == image.version:
        return group.epoch, None, []
    found = metadata_hash(image, sorted({name for member in _members(change) for name in member.topics}))
    if why is None and found != group.metadata_hash:
        why = What.TOPICS_CHANGED
    if why is None:
        return group.epoch, None, []
    return group.epoch + 1, why, [share_log.epoch_record(group.group_id, group.epoch + 1, found)]


def _has_unassigned(group: ShareGroup) -> bool:
    """Whether partitions of subscribed topics have state by now that the newest target does not cover."""
    if group.assignment_epoch != group.epoch:
        return False
    covered = set().union(*group.targets.values()) if group.targets else set()
    return any(
        (topic_id, number) not in covered
        for topic_id, topic in group.topics.initialized.items()
        if topic.name in group.names
        for number in topic.partitions
    )


def _members(change: ShareChange) -> list[ShareMember]:
    mine = change.after.member_id
    return [*(m for m in change.group.members.values() if m.member_id != mine), change.after]


def _aim(turn: Turn, change: ShareChange, epoch: int) -> _Aim:
    """Return a new target if the group epoch is ahead of the old one, and the old one is old enough."""
    group = change.group
    old = group.targets.get(change.after.member_id, NO_PARTITIONS)
    if epoch <= group.assignment_epoch or not _is_due(turn, group):
        return _Aim(group.assignment_epoch, old, [])
    targets = _assigned(turn, group, _members(change))
    changed = [
        share_log.target_record(group.group_id, member_id, target)
        for member_id, target in targets.items()
        if group.targets.get(member_id) != target
    ]
    records = [*changed, share_log.target_epoch_record(group.group_id, epoch, turn.now.wall_ms)]
    return _Aim(epoch, targets[change.after.member_id], records)


def _is_due(turn: Turn, group: ShareGroup) -> bool:
    interval_ms = in_force(turn, group.group_id, "share.assignment.interval.ms")
    return not group.assigned_ms or turn.has_passed(interval_ms, group.assigned_ms)


def _assigned(turn: Turn, group: ShareGroup, members: Iterable[ShareMember]) -> dict[str, Target]:
    """Share the partitions that have state among the members."""
    name_of = turn.state.topics.name_of
    ids = {name: topic_id for topic_id in group.topics.initialized if (name := name_of(topic_id)) is not None}
    partitions = {
        name: [(name, number) for number in sorted(group.topics.initialized[topic_id].partitions)]
        for name, topic_id in sorted(ids.items())
    }
    subscriptions = {
        member.member_id: Subscription(
            member.topics,
            owned_partitions=[
                (name, number)
                for topic_id, number in sorted(group.targets.get(member.member_id, NO_PARTITIONS))
                if (name := name_of(topic_id)) is not None
            ],
        )
        for member in members
    }
    found = share(partitions, subscriptions)
    return {
        member_id: frozenset((ids[name], number) for name, number in assigned) for member_id, assigned in found.items()
    }


def _with_target(turn: Turn, change: ShareChange, aim: _Aim) -> ShareMember:
    """Return the member with its part of the target, less topics to which it no longer subscribes."""
    after = change.after
    if after.epoch == aim.epoch and after.topics == change.before.topics:
        return after
    facts = (turn.state.topics.get(name) for name in after.topics)
    wanted = {topic.topic_id for topic in facts if topic is not None}
    assigned = frozenset(partition for partition in aim.target if partition[0] in wanted)
    if after.epoch == aim.epoch:
        return replace(after, assigned=assigned)
    return replace(after, epoch=aim.epoch, previous_epoch=after.epoch, assigned=assigned)
