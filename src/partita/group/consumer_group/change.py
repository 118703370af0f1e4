"""Applies a member's join, heartbeat or change: epochs, a target, and one step of reconciliation.

Everything is decided before anything is written, so that a failure leaves no trace. Records are written in Kafka's
order: member, expressions, group epoch, targets, current assignment. (Kafka:
GroupMetadataManager.consumerGroupHeartbeat; specification section 20.3.)
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice
from typing import NamedTuple

from partita.group.consumer_group import conversion, errors, timers
from partita.group.consumer_group.errors import Refused
from partita.group.consumer_group.reconcile import Reconciling, reconcile
from partita.group.consumer_group.subscriptions import MaySee, counts_after, hash_after, refresh
from partita.group.consumer_group.target import (
    AssignorFailed,
    ComputeTarget,
    Problem,
    chosen_assignor,
    problem,
    runs_at_once,
    target_records,
)
from partita.group.contract import Record
from partita.group.notes import MEMBERS_TOLD_MAX, AssignorRaised, Cause, GroupEpochBumped, MemberHeld, TargetComputed
from partita.group.records import consumer_log
from partita.group.records.consumer_group import (
    NO_PARTITIONS,
    ConsumerGroup,
    ConsumerMember,
    Partition,
    Target,
    by_topic,
)
from partita.group.state.turn import Turn
from partita.protocol.error_codes import ErrorCode
from partita.wording import What


class Change(NamedTuple):
    """One member of a group, before and after the change."""

    group: ConsumerGroup
    before: ConsumerMember
    after: ConsumerMember
    """Epochs, state and partitions are those of `before`."""
    is_new: bool
    owned: Collection[Partition] | None
    """Partitions it reports to own; None: unchanged."""
    replaces: ConsumerMember | None = None
    """The static member that it replaces."""

    @property
    def leaves(self) -> ConsumerMember | None:
        """The member value that the group no longer has after the change."""
        return self.replaces or (None if self.is_new else self.before)

    @property
    def subscription_changed(self) -> bool:
        """Whether the member's subscription changed."""
        return self.after.topics != self.before.topics or self.after.regex != self.before.regex


class _Epoch(NamedTuple):
    """The group epoch after a change, and the cause if it is a new one."""

    epoch: int
    why: What | None
    records: list[Record]


class _Aim(NamedTuple):
    """The target assignment a member follows after a change."""

    epoch: int
    target: Target
    records: list[Record]
    job: Problem | None = None
    """To be solved outside the event loop; until then the old target holds."""
    note: TargetComputed | None = None


def apply(turn: Turn, change: Change, may_see: MaySee = None) -> ConsumerMember | Refused:
    """Decide, write, and start background jobs; return the member after the change."""
    group = change.group
    group_id = group.group_id
    # Records first, effects later: up to `turn.write` nothing has happened, so every refusal on the way is free.
    ends_classic = group_id in turn.state.groups
    records = [*conversion.classic_tombstone(turn, group_id)] if ends_classic else []
    records += _member_records(change)
    bumped = _epoch(turn, change)
    aim = _aim(turn, change, bumped.epoch)
    if isinstance(aim, Refused):
        return aim
    member = _reconciled(turn, change, aim)
    if member is None:
        return errors.unknown_state(change.after)
    records += [*bumped.records, *aim.records]
    # The assignment is written only if it changed: a heartbeat in a stable group writes nothing.
    if member != change.after:
        records.append(consumer_log.assignment_record(group_id, member))
    # All refusals come before the first effect, so there is nothing to undo.
    if not turn.state.fits(records):
        return errors.too_large()
    if change.replaces is not None:
        turn.state.consumers[group_id].forget(change.replaces.member_id)
    if ends_classic:
        conversion.end_classic(turn, group_id)
    turn.write(records)
    _note_changes(turn, change, bumped, aim)
    state = turn.state.consumers[group_id]
    # The topics were looked at in this version: later heartbeats compare one number instead of every topic.
    state.seen_version = turn.state.topics.version
    timers.start_session(turn, group_id, member)
    timers.follow_state(turn, group_id, member)
    if aim.job is not None:
        state.computing = ComputeTarget(group_id, bumped.epoch, aim.job)
        turn.out.start(state.computing)
    # Looked up again: `turn.write` may have created the group, and `change.group` was a draft.
    refresh(turn, turn.state.hard.consumer_groups[group_id], may_see)
    return member


def _member_records(change: Change) -> list[Record]:
    group, before, after = change.group, change.before, change.after
    records: list[Record] = []
    if change.replaces is not None:
        records += consumer_log.member_tombstones(group.group_id, change.replaces.member_id)
        records.append(consumer_log.member_record(group.group_id, before))
        target = group.targets.get(change.replaces.member_id, NO_PARTITIONS)
        records.append(consumer_log.target_record(group.group_id, before.member_id, target))
        # The successor gets all three records, as a member that came by itself has: a replay must not need to know of
        # the old one.
        records.append(consumer_log.assignment_record(group.group_id, before))
    if (change.is_new and change.replaces is None) or before != after:
        records.append(consumer_log.member_record(group.group_id, after))
    if before.regex and before.regex != after.regex and group.patterns.get(before.regex, 0) <= 1:
        records.append(consumer_log.regex_tombstone(group.group_id, before.regex))
    return records


def _epoch(turn: Turn, change: Change) -> _Epoch:
    """Return a new epoch if the group's subscription or its topics have changed."""
    group, image = change.group, turn.state.topics
    # Two causes can raise the epoch: the member asks for something else, or the topics are others. Without either the
    # hash is not even computed.
    why = _why_bumped(turn, change)
    is_current = turn.state.consumers[group.group_id].seen_version == image.version
    if why is None and is_current:
        return _Epoch(group.epoch, None, [])
    leaves = () if change.leaves is None else (change.leaves,)
    counts = counts_after(group, leaves, (change.after,))
    found = hash_after(image, group, counts, is_current=is_current)
    # A new version of the image need not concern this group's topics; the hash says whether it does.
    if why is None and found != group.metadata_hash:
        why = What.TOPICS_CHANGED
    if why is None:
        return _Epoch(group.epoch, None, [])
    return _Epoch(group.epoch + 1, why, [consumer_log.epoch_record(group.group_id, group.epoch + 1, found)])


def _why_bumped(turn: Turn, change: Change) -> What | None:
    group, before, after = change.group, change.before, change.after
    resolved = group.regexes
    # A new expression bumps the epoch only if it has been resolved for another member; otherwise `matched` does so when
    # its topics are known.
    differs = after.topics != before.topics or (
        after.regex != before.regex and (after.regex in resolved or (not after.regex and before.regex in resolved))
    )
    if not differs and not _assignor_changes(turn, change):
        return None
    return What.JOINED if change.is_new and change.replaces is None else What.SUBSCRIPTION_CHANGED


def _assignor_changes(turn: Turn, change: Change) -> bool:
    """Whether most members prefer another assignor after the change, so that the next target is another one's."""
    # Only the member's own vote can change that; most heartbeats do not, so the votes need not be counted.
    if change.after.server_assignor == change.before.server_assignor:
        return False
    members, assignors, leaves = change.group.members.values(), turn.state.assignors, change.leaves
    after = [member for member in members if leaves is None or member.member_id != leaves.member_id]
    return chosen_assignor([*after, change.after], assignors) != chosen_assignor(members, assignors)


def _aim(turn: Turn, change: Change, epoch: int) -> _Aim | Refused:
    """Return the target: a new one if the group epoch is ahead of the old one, and the old one is old enough."""
    group, after = change.group, change.after
    inherits_from = after.member_id if change.replaces is None else change.replaces.member_id
    # The old target holds while a new one is not due, is computed beside the loop, or has failed.
    old = _Aim(group.assignment_epoch, group.targets.get(inherits_from, NO_PARTITIONS), [])
    if epoch <= group.assignment_epoch or not is_due(turn, group):
        return old
    previous = dict(group.targets)
    if change.replaces is not None:
        # The successor counts as the owner, so that a sticky assignor leaves the partitions where they are.
        previous[after.member_id] = previous.pop(inherits_from, NO_PARTITIONS)
    leaves = change.leaves
    members = [m for m in group.members.values() if leaves is None or m.member_id != leaves.member_id]
    asked = problem(group, [*members, after], previous, turn.state.topics, turn.state.assignors)
    # A target of a large group takes longer than others may wait; members get it with a later heartbeat.
    if not runs_at_once(asked):
        return old._replace(job=asked)
    try:
        targets = asked.run()
    except AssignorFailed as error:
        turn.out.note(AssignorRaised(group.group_id, asked.assignor.name, str(error), turn.now.wall_ms))
        return Refused(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
    if change.replaces is not None:
        targets.pop(change.replaces.member_id, None)
    return _Aim(
        epoch,
        targets[after.member_id],
        target_records(group.group_id, targets, previous, epoch, turn.now.wall_ms),
        note=computed_note(turn, group, asked, targets, epoch, after),
    )


def is_due(turn: Turn, group: ConsumerGroup) -> bool:
    """Whether the last target is old enough to be replaced and none is being computed.

    (`group.consumer.assignment.interval.ms`, KIP-1263)
    """
    timers = turn.state.consumers[group.group_id]
    if timers.computing or turn.now.mono_ms < timers.computes_again_ms:
        return False
    interval_ms = turn.state.config.group_consumer_assignment_interval_ms
    return not group.assigned_ms or turn.has_passed(interval_ms, group.assigned_ms)


def computed_note(
    turn: Turn,
    group: ConsumerGroup,
    asked: Problem,
    targets: dict[str, Target],
    epoch: int,
    changed: ConsumerMember | None = None,
) -> TargetComputed:
    """Return the note about a new target; `changed` is the member that is about to be written."""
    moved = sum(len(group.targets.get(member_id, NO_PARTITIONS) - target) for member_id, target in targets.items())
    members = group.members if changed is None else {**group.members, changed.member_id: changed}
    held = tuple(
        _held(turn, group, members[member_id], target)
        for member_id, target in islice(targets.items(), MEMBERS_TOLD_MAX)
        if member_id in members
    )
    name = asked.assignor.name
    return TargetComputed(group.group_id, epoch, name, len(targets), moved, turn.now.wall_ms, held)


def _held(turn: Turn, group: ConsumerGroup, member: ConsumerMember, target: Target) -> MemberHeld:
    partitions: dict[str, list[int]] = {}
    for topic_id, numbers in by_topic(target).items():
        name = turn.state.topics.name_of(topic_id)
        if name is not None:
            partitions.setdefault(name, []).extend(numbers)
    return MemberHeld(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=timers.session_timeout_ms(turn, group.group_id, member),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topics=tuple(sorted(group.topics_of(member))),
        partitions=partitions,
    )


def _reconciled(turn: Turn, change: Change, aim: _Aim) -> ConsumerMember | None:
    group, after = change.group, change.after
    mine = (after.member_id, change.replaces.member_id if change.replaces else after.member_id)
    target = aim.target
    # The old target may hold topics that the member no longer subscribes to; it must not keep reading them.
    if change.subscription_changed and target:
        facts = (turn.state.topics.get(name) for name in group.topics_of(after))
        wanted = {topic.topic_id for topic in facts if topic is not None}
        target = frozenset(partition for partition in target if partition[0] in wanted)
    owners = group.owners
    return reconcile(
        Reconciling(
            member=after,
            epoch=aim.epoch,
            target=target,
            owned=change.owned,
            # A partition of the static member that is being replaced counts as free: its process is gone.
            is_free=lambda partition: owners.get(partition) is None or owners[partition] in mine,
            narrows=change.subscription_changed,
        )
    )


def _note_changes(turn: Turn, change: Change, bumped: _Epoch, aim: _Aim) -> None:
    if bumped.why is not None:
        what = What.STATIC_REPLACED if change.replaces is not None and bumped.why == What.JOINED else bumped.why
        cause = cause_of(change.after, what)
        turn.out.note(GroupEpochBumped(change.group.group_id, bumped.epoch, cause, turn.now.wall_ms))
    if aim.note is not None:
        turn.out.note(aim.note)


def cause_of(member: ConsumerMember, what: What, detail: str = "") -> Cause:
    """Return a cause that names this member."""
    return Cause(what, member.member_id, member.instance_id, member.client_id, detail)
