"""Takes the outcomes of jobs (`partita.group.consumer_group.jobs`) back into groups that may have changed meanwhile."""

from __future__ import annotations

from partita.group.consumer_group import expressions
from partita.group.consumer_group.change import computed_note
from partita.group.consumer_group.jobs import ComputeTarget, MatchExpressions
from partita.group.consumer_group.target import target_records
from partita.group.contract import Job
from partita.group.notes import AssignorRaised
from partita.group.records.consumer_group import NO_PARTITIONS
from partita.group.state.turn import Turn

RETRY_MS = 5_000
"""How long a group whose assignor has failed waits before it is asked again."""


def take(turn: Turn, job: Job, outcome: object) -> None:
    """Record the outcome if the group still wants it; an error is told, and leaves the group as it is."""
    if isinstance(job, MatchExpressions):
        expressions.matched(turn, job, outcome if isinstance(outcome, dict) else {})
    elif isinstance(job, ComputeTarget):
        _target(turn, job, outcome)


def _target(turn: Turn, job: ComputeTarget, outcome: object) -> None:
    """A target counts for the members it was computed for: some may be gone, and new ones wait for the next one."""
    group = turn.state.consumer_group(job.group_id)
    if group is None:
        return
    timers = turn.state.timers_of(job.group_id)
    timers.computing = False
    if not isinstance(outcome, dict):
        timers.computes_again_ms = turn.now.mono_ms + RETRY_MS
        name = job.problem.assignor.name
        turn.out.note(AssignorRaised(job.group_id, name, str(outcome), turn.now.wall_ms))
        return
    if job.epoch <= group.assignment_epoch:
        return
    targets = {member_id: outcome.get(member_id, NO_PARTITIONS) for member_id in group.members}
    records = target_records(job.group_id, targets, group.targets, job.epoch, turn.now.wall_ms)
    if turn.state.fits(records):
        note = computed_note(turn, group, job.problem, targets, job.epoch)
        turn.write(records)
        turn.out.note(note)
