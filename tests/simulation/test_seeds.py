"""Fifty histories under faults, in which rules hold, and twenty-five that heal: progress is made once faults stop."""

from __future__ import annotations

from functools import cache

import pytest

from partita.sim.fault_plan import KINDS, Plan
from partita.sim.run import Verdict, simulate
from partita.sim.world.faults import STOP

SEEDS = range(50)


@cache
def under_faults(seed: int) -> Verdict[Plan]:
    return simulate(seed, minutes=1)


def _told(verdict: Verdict[Plan]) -> str:
    lines = "\n".join([*verdict.plan.lines(), *verdict.trace.lines()])
    return f"seed {verdict.seed}: {verdict.broken}\n{lines}"


@pytest.mark.parametrize("seed", SEEDS)
def test_every_rule_holds_under_faults(seed: int) -> None:
    verdict = under_faults(seed)
    assert verdict.broken is None, _told(verdict)


@pytest.mark.parametrize("seed", SEEDS[::2])
def test_once_healed_the_group_makes_progress(seed: int) -> None:
    verdict = simulate(seed, liveness=True, minutes=0.5)
    assert verdict.broken is None, _told(verdict)


def test_the_seeds_together_reach_what_they_are_for() -> None:
    """Most histories have several generations, and together they see every kind of fault and of commit."""
    verdicts = [under_faults(seed) for seed in range(30)]
    kinds = {kind for v in verdicts for kind, _ in v.plan.faults}
    assert kinds == {*KINDS, STOP}
    assert {v.plan.commit for v in verdicts} == {"auto", "sync", "async", "done"}
    assert {v.plan.eager for v in verdicts} == {True, False}
    assert {v.plan.static for v in verdicts} == {True, False}
    assert sum(v.generations >= 3 for v in verdicts) >= 10
