"""Work that would block the event loop: matching regular expressions, user assignors, targets of large groups.

A step names the job; the shell runs it outside the loop and returns the outcome through
`partita.group.coordinator.GroupCoordinator.job_done`. Until then the group keeps its current state. A job holds only
copies, so that it can run in any thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from partita.expressions import InvalidExpression
from partita.group.consumer_group.subscriptions import compile_expression
from partita.group.consumer_group.target import AssignorFailed, Problem
from partita.group.contract import Lane
from partita.group.records.consumer_group import Target

_AT_ONCE, _ALIKE_AT_ONCE = 200, 2_000
"""Most members and partitions that a built-in assignor handles on the event loop.

If all members subscribe alike, assigning takes 3 ms at most (`_ALIKE_AT_ONCE`). That is worth it, since a target
that is computed later reaches the members one heartbeat interval later.
"""


_EXPRESSIONS, _TARGETS = Lane("regular expressions"), Lane("targets")
_USERS_MOST = 4


class MatchExpressions(NamedTuple):
    """All regular expressions of a group against all topic names."""

    group_id: str
    expressions: tuple[str, ...]
    names: tuple[str, ...]
    version: int
    """Version of the topic image that the names come from."""
    may_see: Callable[[str], bool] | None
    """Excludes topics that the requesting member may not describe; None: it may describe all."""

    @property
    def lane(self) -> Lane:
        """The lane of all expressions."""
        return _EXPRESSIONS

    def run(self) -> dict[str, tuple[str, ...]]:
        """Return the sorted names that each expression matches; an invalid expression matches nothing."""
        found: dict[str, tuple[str, ...]] = {}
        for expression in self.expressions:
            try:
                matches = compile_expression(expression)
            except InvalidExpression:
                found[expression] = ()
            else:
                found[expression] = tuple(sorted(filter(matches, self.names)))
        return found


class ComputeTarget(NamedTuple):
    """Computes the target for one epoch of a group."""

    group_id: str
    epoch: int
    problem: Problem

    @property
    def lane(self) -> Lane:
        """One lane per user assignor, and one for all built-in assignors."""
        if self.problem.is_ours:
            return _TARGETS
        return Lane(f"assignor {self.problem.assignor.name}", _USERS_MOST, is_users=True)

    def run(self) -> dict[str, Target] | AssignorFailed:
        """Return the targets, or the failure of the assignor."""
        try:
            return self.problem.run()
        except AssignorFailed as error:
            return error


Job = MatchExpressions | ComputeTarget
Outcome = dict[str, tuple[str, ...]] | dict[str, Target] | AssignorFailed


def runs_at_once(problem: Problem) -> bool:
    """Whether the heartbeat may solve the problem itself: only a small one, with a built-in assignor."""
    return problem.is_ours and problem.size <= (_ALIKE_AT_ONCE if problem.is_alike else _AT_ONCE)
