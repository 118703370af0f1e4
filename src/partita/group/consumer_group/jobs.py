"""Work that would hold the event loop up: matching regular expressions, assignors of users, targets of large groups.

A step names the job; the shell runs it beside the loop and brings the outcome back with
`partita.group.coordinator.GroupCoordinator.job_done`. Until then the group goes on with what it has. A job holds copies
only, so that it can run anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from partita.expressions import InvalidExpression
from partita.group.consumer_group.subscriptions import compile_expression
from partita.group.consumer_group.target import AssignorFailed, Problem
from partita.group.records.consumer_group import Target

_AT_ONCE, _ALIKE_AT_ONCE = 200, 2_000
"""A built-in assignor that has more members and partitions than this to share is not run on the event loop.

Members that all subscribe alike are quickly served: sharing takes 3 ms at most (`_ALIKE_AT_ONCE`). A target that comes
later than the heartbeats of a group costs its members a whole interval, so it is worth these.
"""


class MatchExpressions(NamedTuple):
    """All regular expressions of a group against all topic names."""

    group_id: str
    expressions: tuple[str, ...]
    names: tuple[str, ...]
    version: int
    """Of the topics the names are from."""
    may_see: Callable[[str], bool] | None
    """Topics that the member who asked may not describe are left out; None: it may describe all."""

    def run(self) -> dict[str, tuple[str, ...]]:
        """For each expression the names it matches, sorted; an expression that cannot be read matches nothing."""
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
    """A target for one epoch of a group."""

    group_id: str
    epoch: int
    problem: Problem

    def run(self) -> dict[str, Target] | AssignorFailed:
        """The targets, or why there are none."""
        try:
            return self.problem.run()
        except AssignorFailed as error:
            return error


Job = MatchExpressions | ComputeTarget
Outcome = dict[str, tuple[str, ...]] | dict[str, Target] | AssignorFailed


def runs_at_once(problem: Problem) -> bool:
    """May the problem be solved within the heartbeat that asks for it? Only a small one, by an assignor of ours."""
    is_ours = type(problem.assignor).__module__.startswith("partita.assignors.")
    return is_ours and problem.size <= (_ALIKE_AT_ONCE if problem.is_alike else _AT_ONCE)
