"""Applies the outcomes of jobs, targets and matched expressions, to groups that may have changed meanwhile."""

from __future__ import annotations

from collections.abc import Mapping

from partita.group.consumer_group import subscriptions
from partita.group.consumer_group.change import computed_note
from partita.group.consumer_group.subscriptions import MatchExpressions
from partita.group.consumer_group.target import ComputeTarget, target_records
from partita.group.contract import Job
from partita.group.notes import AssignorRaised
from partita.group.records.consumer_group import NO_PARTITIONS, ConsumerGroup, Target
from partita.group.state.turn import Turn

_WHY_LENGTH_MAX = 1_000
RETRY_MS = 5_000
"""Time before a failed assignor is tried again for the group."""


def take(turn: Turn, job: Job, outcome: object) -> None:
    """Record the outcome if the group still needs it; an error is noted and leaves the group unchanged."""
    if isinstance(job, MatchExpressions):
        subscriptions.matched(turn, job, outcome if isinstance(outcome, dict) else {})
    elif isinstance(job, ComputeTarget):
        _target(turn, job, outcome)


def _target(turn: Turn, job: ComputeTarget, outcome: object) -> None:
    """Record a target for the remaining members it was computed for; newer members wait for the next one."""
    group = turn.state.consumer_group(job.group_id)
    if group is None:
        return
    timers = turn.state.consumers[job.group_id]
    if timers.computing is not job:
        return
    timers.computing = None
    if not isinstance(outcome, dict):
        _put_off(turn, job, str(outcome))
        return
    found = _of_successors(group, job, outcome)
    is_for_everybody = found.keys() >= group.members.keys()
    if not group.assignment_epoch < job.epoch <= group.epoch or (job.epoch == group.epoch and not is_for_everybody):
        return
    targets = {member_id: found.get(member_id, NO_PARTITIONS) for member_id in group.members}
    records = target_records(job.group_id, targets, group.targets, job.epoch, turn.now.wall_ms)
    if not turn.state.fits(records):
        _put_off(turn, job, "its targets are more than the offsets topic takes as one batch")
        return
    note = computed_note(turn, group, job.problem, targets, job.epoch)
    turn.write(records)
    turn.out.note(note)


def _put_off(turn: Turn, job: ComputeTarget, why: str) -> None:
    turn.state.consumers[job.group_id].computes_again_ms = turn.now.mono_ms + RETRY_MS
    turn.out.note(AssignorRaised(job.group_id, job.problem.assignor.name, _one_line(why), turn.now.wall_ms))


def _one_line(text: str) -> str:
    """Return an assignor's text on one line, with characters replaced that a log line must not contain."""
    cut = text[:_WHY_LENGTH_MAX]
    return cut if cut.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in cut)


def _of_successors(group: ConsumerGroup, job: ComputeTarget, outcome: Mapping[str, Target]) -> dict[str, Target]:
    """Return the targets, with those of replaced static members under their successors: replacing begins no epoch."""
    found = dict(outcome)
    for member_id, subscription in job.problem.subscriptions.items():
        heir = group.static.get(subscription.group_instance_id or "")
        if heir is not None and member_id not in group.members:
            found.setdefault(heir, found.pop(member_id, NO_PARTITIONS))
    return found
