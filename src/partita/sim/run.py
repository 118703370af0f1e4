"""One simulation from its seed: draw the plan, build the world, run it with faults, heal it, judge it.

Safety mode runs with faults to the end. Liveness mode stops them, heals what remains, and then demands progress within
the bounds of the protocol.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from partita.sim.fault_plan import Plan, draw
from partita.sim.mischief import Mischief
from partita.sim.progress import ProgressRules
from partita.sim.rules.rule import RuleBroken
from partita.sim.simulation import Simulation
from partita.sim.world.dice import Dice
from partita.sim.world.trace import Trace

EVENTS_MAX = 20_000
"""A history ends here at the latest: short hostile ones find more than long quiet ones."""


@dataclass(frozen=True)
class Verdict:
    """How a simulation went; `broken` names the rule that did not hold."""

    seed: int
    liveness: bool
    plan: Plan
    events: int
    virtual_ms: int
    digest: int
    generations: int
    broken: str | None
    trace: Trace


def simulate(seed: int, *, liveness: bool = False, minutes: float = 2.0, keep_trace: bool = False) -> Verdict:
    """Run one seed. What breaks is in the verdict, not raised."""
    dice = Dice(f"partita {seed} {liveness}")
    plan = draw(dice)
    trace = Trace(keep_all=keep_trace)
    return run_plan(seed, plan, trace, liveness=liveness, minutes=minutes)


def run_plan(seed: int, plan: Plan, trace: Trace, *, liveness: bool, minutes: float) -> Verdict:
    """Run a given plan with the chances of the seed."""
    with _without_collector():
        return _run(seed, plan, trace, liveness=liveness, minutes=minutes)


@contextmanager
def _without_collector() -> Iterator[None]:
    """A history is over before its few cycles matter, and looking for them takes a seventh of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _run(seed: int, plan: Plan, trace: Trace, *, liveness: bool, minutes: float) -> Verdict:
    simulation = Simulation(seed, plan, trace)
    world = simulation.world
    broken = None
    try:
        mischief = Mischief(simulation)
        until = int(minutes * 60_000)
        for ms in range(0, until, 1_000):
            world.run(ms)
            if trace.events >= EVENTS_MAX:
                break
        if liveness:
            mischief.stop()
            simulation.heal()
            ProgressRules(simulation).judge()
    except RuleBroken as error:
        broken = str(error)
    except AssertionError as error:
        broken = f"ASSERT: {error}"
    if broken is not None:
        world.saw("E", "rules", broken)
    group = simulation.watch.group
    return Verdict(
        seed=seed,
        liveness=liveness,
        plan=plan,
        events=trace.events,
        virtual_ms=world.ms,
        digest=trace.digest,
        generations=group.generation if group is not None else 0,
        broken=broken,
        trace=trace,
    )
