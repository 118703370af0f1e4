"""The target of a group: each member's tasks, computed for the newest group epoch; for a large group, beside the loop.

(Kafka: maybeUpdateStreamsTargetAssignment, streams.TargetAssignmentBuilder, computeDelayedTargetAssignment.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import NamedTuple

from partita.group.consumer_group.outcomes import RETRY_MS
from partita.group.consumer_group.target import TARGETS
from partita.group.contract import Lane, Record
from partita.group.notes import MEMBERS_TOLD_MAX, AssignorRaised, MemberHeld, TargetComputed
from partita.group.records import streams_log
from partita.group.records.consumer_group import by_topic as by_subtopology
from partita.group.records.streams_group import NO_TASKS, StreamsGroup, StreamsMember, Tasks
from partita.group.state.settings import in_force
from partita.group.state.topology import Fit
from partita.group.state.turn import Turn
from partita.group.streams import timers
from partita.group.streams.assignor import NAME, Assignee, assign

COMPUTING = "Assignment delayed until it is computed."
_AT_ONCE = 500
"""Most members, tasks and standbys that are assigned on the event loop: about 3 ms."""


class ComputeTasks(NamedTuple):
    """Assigns the tasks of a group for one of its epochs. It holds copies only, so that it can run in any thread."""

    group_id: str
    epoch: int
    members: Mapping[str, Assignee]
    instances: Mapping[str, str]
    """The static members of these: group instance id -> member id."""
    fit: Fit
    standbys: int

    @property
    def lane(self) -> Lane:
        """The lane of the built-in assignors."""
        return TARGETS

    @property
    def is_small(self) -> bool:
        """Whether the heartbeat may run it itself."""
        subs = self.fit.subtopologies or {}
        return len(self.members) + sum(sub.tasks * (1 + self.standbys * sub.is_stateful) for sub in subs.values()) <= (
            _AT_ONCE
        )

    def run(self) -> dict[str, Tasks]:
        """Return the target of every member: no tasks while the topology does not fit the topics."""
        if self.fit.subtopologies is None or self.fit.status is not None:
            return dict.fromkeys(self.members, NO_TASKS)
        return assign(self.members, self.fit.subtopologies, self.standbys)


def computation(
    turn: Turn, group: StreamsGroup, members: Iterable[StreamsMember], found: Fit, epoch: int
) -> ComputeTasks:
    """Return the work for these members, which may include changes not yet written to the group."""
    offsets, members = turn.state.streams[group.group_id].offsets, list(members)
    return ComputeTasks(
        group.group_id,
        epoch,
        {m.member_id: Assignee(m.process_id, m.held, offsets.get(m.member_id, timers.NO_OFFSETS).now) for m in members},
        {m.instance_id: m.member_id for m in members if m.instance_id is not None},
        found,
        in_force(turn, group.group_id, "streams.num.standby.replicas"),
    )


def start(turn: Turn, work: ComputeTasks) -> None:
    """Have the work done beside the event loop; until then the old target holds."""
    turn.state.streams[work.group_id].computing = work
    turn.out.start(work)


def why_not_yet(turn: Turn, group: StreamsGroup) -> str | None:
    """Return why no new target can be computed now, for the members; None if it can."""
    soft = turn.state.streams[group.group_id]
    if soft.computing or turn.now.mono_ms < soft.computes_again_ms:
        return COMPUTING
    interval_ms = in_force(turn, group.group_id, "streams.assignment.interval.ms")
    if group.assigned_ms and not turn.has_passed(interval_ms, group.assigned_ms):
        return "Assignment delayed due to the configured assignment interval."
    return None


def target_records(
    turn: Turn, group: StreamsGroup, targets: Mapping[str, Tasks], previous: Mapping[str, Tasks], epoch: int
) -> list[Record]:
    """Return a record for each changed target, and one for their epoch."""
    changed = [
        streams_log.target_record(group.group_id, member_id, target)
        for member_id, target in targets.items()
        if previous.get(member_id) != target
    ]
    return [*changed, streams_log.target_epoch_record(group.group_id, epoch, turn.now.wall_ms)]


def write_target(turn: Turn, group: StreamsGroup, records: list[Record]) -> None:
    """Write a new target and what comes with it, and note it; a task counts by the partitions that it reads."""
    previous = dict(group.targets)
    turn.write(records)
    group = turn.state.hard.streams_groups[group.group_id]
    sources, session_ms = group.source_topics, in_force(turn, group.group_id, timers.SESSION)
    read, moved, held = Counter(sources.values()), 0, []
    for member_id, target in group.targets.items():
        moved += sum(read[sub] for sub, _ in previous.get(member_id, NO_TASKS).active - target.active)
    for member in islice(group.members.values(), MEMBERS_TOLD_MAX):
        tasks = by_subtopology(group.targets.get(member.member_id, NO_TASKS).active)
        partitions = {topic: tasks[sub] for topic, sub in sources.items() if sub in tasks}
        told = (member.member_id, member.instance_id, member.client_id, member.client_host)
        held.append(MemberHeld(*told, session_ms, member.rebalance_timeout_ms, tuple(sorted(sources)), partitions))
    epoch, count = group.assignment_epoch, len(group.members)
    turn.out.note(TargetComputed(group.group_id, epoch, NAME, count, moved, turn.now.wall_ms, tuple(held)))


def retarget(turn: Turn, group: StreamsGroup) -> None:
    """Compute the target that waited for the initial delay."""
    found = turn.state.streams[group.group_id].fit
    if not group.members or found is None or group.epoch <= group.assignment_epoch or why_not_yet(turn, group):
        return
    work = computation(turn, group, group.members.values(), found, group.epoch)
    if not work.is_small:
        start(turn, work)
        return
    written = target_records(turn, group, work.run(), group.targets, group.epoch)
    if turn.state.fits(written):
        write_target(turn, group, written)


def take(turn: Turn, job: ComputeTasks, outcome: object) -> None:
    """Record a target for the remaining members it was computed for; newer members wait for the next one."""
    group = turn.state.streams_group(job.group_id)
    if group is None:
        return
    soft = turn.state.streams[job.group_id]
    if soft.computing is not job:
        return
    soft.computing = None
    if not isinstance(outcome, dict):
        _put_off(turn, job, str(outcome))
        return
    found = _of_successors(group, job, outcome)
    is_for_everybody = found.keys() >= group.members.keys()
    is_late = not group.assignment_epoch < job.epoch <= group.epoch or soft.fit is not job.fit
    if is_late or (job.epoch == group.epoch and not is_for_everybody):
        return
    targets = {member_id: found.get(member_id, NO_TASKS) for member_id in group.members}
    written = target_records(turn, group, targets, group.targets, job.epoch)
    if turn.state.fits(written):
        write_target(turn, group, written)
    else:
        _put_off(turn, job, "its targets are more than the offsets topic takes as one batch")


def _put_off(turn: Turn, job: ComputeTasks, why: str) -> None:
    turn.state.streams[job.group_id].computes_again_ms = turn.now.mono_ms + RETRY_MS
    turn.out.note(AssignorRaised(job.group_id, NAME, why, turn.now.wall_ms))


def _of_successors(group: StreamsGroup, job: ComputeTasks, outcome: Mapping[str, Tasks]) -> dict[str, Tasks]:
    """Return the targets, with those of replaced static members under their successors: replacing begins no epoch."""
    found = dict(outcome)
    for instance_id, member_id in job.instances.items():
        heir = group.static.get(instance_id)
        if heir is not None and member_id not in group.members:
            found.setdefault(heir, found.pop(member_id, NO_TASKS))
    return found
