"""Reconciles one member with its target: tasks it holds, tasks to revoke, and its epoch.

A task becomes active only after the process that ran it has given it up, and a process holds a task in one role at a
time; a member that has it in another role already changes the role at once. (Kafka: streams.CurrentAssignmentBuilder,
release 4.4.0.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from partita.group.records.streams_group import (
    NOTHING_HELD,
    Held,
    StreamsGroup,
    StreamsMember,
    StreamsMemberState,
    Task,
    Tasks,
)


class Reconciling(NamedTuple):
    """One member being reconciled. `owned` is what it reports; None: as before."""

    group: StreamsGroup
    member: StreamsMember
    epoch: int
    """The epoch of the target."""
    target: Tasks
    owned: Tasks | None


def reconcile(asked: Reconciling) -> StreamsMember | None:
    """Return the member after one step; None: it must be fenced, since its tasks are unknown."""
    member = asked.member
    if member.state is StreamsMemberState.STABLE:
        return member if member.epoch == asked.epoch else _towards_target(asked, member.epoch)
    if member.state is StreamsMemberState.UNREVOKED:
        return member if _still_owns(asked, member.revoking) else _towards_target(asked, member.epoch + 1)
    if member.state is StreamsMemberState.UNRELEASED:
        return _towards_target(asked, member.epoch)
    if asked.owned is None or any(asked.owned):
        return None
    return _towards_target(asked, asked.epoch)


def _still_owns(asked: Reconciling, revoking: Held) -> bool:
    """Whether the member has not said that it gave these tasks up."""
    return asked.owned is None or any(role & old for role, old in zip(asked.owned, revoking.tasks, strict=True))


class _Role(NamedTuple):
    """The tasks of one role: those that stay, those to give up, and those to get now. `waits`: some are not free."""

    kept: set[Task]
    dropped: set[Task]
    granted: set[Task]
    waits: bool


def _split(held: frozenset[Task], target: frozenset[Task], is_taken: Callable[[Task], bool]) -> _Role:
    wanted = target - held
    granted = {task for task in wanted if not is_taken(task)}
    return _Role(set(held & target), set(held - target), granted, len(granted) < len(wanted))


def _towards_target(asked: Reconciling, epoch: int) -> StreamsMember:
    """Revoke first, then take what is free, then wait for the rest. `epoch` is the member's while it revokes."""
    member, target, held = asked.member, asked.target, asked.member.held
    active, standby, warmup = _roles(asked)
    for task in [task for task in held.active if task in standby.granted]:
        _move(task, standby.granted, standby.kept)  # it still has the state
    for outgoing, old, incoming in ((standby, held.standby, warmup), (warmup, held.warmup, standby)):
        for task in [task for task in old if task in incoming.granted]:
            _move(task, incoming.granted, incoming.kept)
            outgoing.dropped.discard(task)
    # A standby or warm-up that becomes active needs no revocation; it stays until it is active.
    promoted = ((standby, held.standby & target.active), (warmup, held.warmup & target.active))
    for role, tasks in promoted:
        role.dropped.difference_update(tasks)
    revoking = Held(
        {task: held.active[task] for task in active.dropped}, frozenset(standby.dropped), frozenset(warmup.dropped)
    )
    must_revoke = bool(revoking) and _still_owns(asked, revoking)
    for role, tasks in promoted:
        role.kept.update(tasks if must_revoke else tasks - active.granted)
    kept = {task: held.active[task] for task in active.kept}
    if must_revoke:
        state, held, revokes = StreamsMemberState.UNREVOKED, _held(kept, standby.kept, warmup.kept), revoking
    else:
        waits = active.waits or standby.waits or warmup.waits
        state = StreamsMemberState.UNRELEASED if waits else StreamsMemberState.STABLE
        epoch, revokes = asked.epoch, NOTHING_HELD
        gets = dict.fromkeys(active.granted, asked.epoch)
        held = _held({**kept, **gets}, standby.kept | standby.granted, warmup.kept | warmup.granted)
    return replace(member, epoch=epoch, previous_epoch=member.epoch, state=state, held=held, revoking=revokes)


def _held(active: dict[Task, int], standby: set[Task], warmup: set[Task]) -> Held:
    return Held(active, frozenset(standby), frozenset(warmup))


def _move(task: Task, source: set[Task], target: set[Task]) -> None:
    source.discard(task)
    target.add(task)


def _roles(asked: Reconciling) -> tuple[_Role, _Role, _Role]:
    group, target, held = asked.group, asked.target, asked.member.held
    process = asked.member.process_id

    def runs_here(task: Task) -> bool:
        return group.active.get(task) == process

    def is_standby_of_another(task: Task) -> bool:
        return (task, process) in group.standby and task not in held.standby

    def is_warmup_of_another(task: Task) -> bool:
        return (task, process) in group.warmup and task not in held.warmup

    return (
        _split(
            frozenset(held.active),
            target.active,
            lambda task: task in group.active or is_standby_of_another(task) or is_warmup_of_another(task),
        ),
        _split(
            held.standby,
            target.standby,
            lambda task: (
                (runs_here(task) and task not in held.active)
                or (task, process) in group.standby
                or is_warmup_of_another(task)
            ),
        ),
        _split(
            held.warmup,
            target.warmup,
            lambda task: runs_here(task) or is_standby_of_another(task) or (task, process) in group.warmup,
        ),
    )
