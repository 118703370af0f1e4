"""One simulation from its seed: draw the plan, build the world, run it with faults, heal it, judge it.

Safety mode runs with faults to the end. Liveness mode stops them, heals what remains, and then demands progress within
the bounds of the protocol.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from partita.sim.fault_plan import CLASSIC, Plan, draw, with_protocol
from partita.sim.mischief import Mischief
from partita.sim.progress import ProgressRules
from partita.sim.rules.rule import RuleBroken
from partita.sim.shell.process import broker_alarm
from partita.sim.simulation import Simulation
from partita.sim.transactions import mischief as transaction_mischief
from partita.sim.transactions import plan as transaction_plan
from partita.sim.transactions import progress as transaction_progress
from partita.sim.transactions import simulation as transaction_simulation
from partita.sim.world.world import Dice, Trace, World

EVENTS_MAX = 20_000
"""A history ends here at the latest: short hostile ones find more than long quiet ones."""


TRANSACTION_EVENTS_MAX = 6_000
"""The same for transactions, of which each event does more."""


class Drawn(Protocol):
    """A plan that was drawn from a seed."""

    def lines(self) -> list[str]:
        """The plan as text."""


P = TypeVar("P", bound=Drawn, covariant=True)
Q = TypeVar("Q", bound=Drawn)


@dataclass(frozen=True)
class Verdict(Generic[P]):
    """How a simulation went; `broken` names the rule that did not hold."""

    seed: int
    liveness: bool
    plan: P
    events: int
    virtual_ms: int
    digest: int
    broken: str | None
    trace: Trace
    generations: int = 0
    """Of a simulation of groups: how many the group had."""
    transactions: int = 0
    """Of a simulation of transactions: how many were begun."""

    @property
    def done(self) -> str:
        """The work done, in words."""
        return f"{self.transactions} transactions" if self.transactions else f"{self.generations} generations"


def simulate(
    seed: int, *, protocol: str = CLASSIC, liveness: bool = False, minutes: float = 2.0, keep_trace: bool = False
) -> Verdict[Plan]:
    """Run one seed with members of this protocol (`PROTOCOLS`). What breaks is in the verdict, not raised."""
    dice = Dice(f"partita {seed} {liveness}")
    plan = with_protocol(draw(dice), protocol, dice)
    trace = Trace(keep_all=keep_trace)
    return run_plan(seed, plan, trace, liveness=liveness, minutes=minutes)


def run_plan(seed: int, plan: Plan, trace: Trace, *, liveness: bool, minutes: float) -> Verdict[Plan]:
    """Run a given plan with the chances of the seed."""
    with broker_alarm() as alarms:
        simulation = Simulation(seed, plan, trace)

        def play() -> None:
            mischief = Mischief(simulation)
            _storm(simulation.world, minutes, EVENTS_MAX)
            if liveness:
                mischief.stop()
                simulation.heal()
                ProgressRules(simulation).judge()
            if alarms:
                raise RuleBroken("E", f"the broker logged: {alarms[0]}")

        broken = _broken_by(play, simulation.world)
    generations = simulation.watch.generation
    return _verdict(seed, liveness, plan, simulation.world, broken, generations=generations)


def simulate_transactions(
    seed: int, *, liveness: bool = False, minutes: float = 1.0, keep_trace: bool = False
) -> Verdict[transaction_plan.Plan]:
    """Run one seed with transactional producers and read_committed readers. What breaks is in the verdict."""
    plan = transaction_plan.draw(Dice(f"partita transactions {seed} {liveness}"))
    return run_transactions(seed, plan, Trace(keep_all=keep_trace), liveness=liveness, minutes=minutes)


def run_transactions(
    seed: int, plan: transaction_plan.Plan, trace: Trace, *, liveness: bool, minutes: float
) -> Verdict[transaction_plan.Plan]:
    """Run a given plan of transactions with the chances of the seed."""
    with broker_alarm() as alarms:
        simulation = transaction_simulation.Simulation(seed, plan, trace)

        def play() -> None:
            mischief = transaction_mischief.Mischief(simulation)
            _storm(simulation.world, minutes, TRANSACTION_EVENTS_MAX)
            if liveness:
                mischief.stop()
                simulation.heal()
                transaction_progress.ProgressRules(simulation).judge()
            if alarms:
                raise RuleBroken("E", f"the broker logged: {alarms[0]}")

        broken = _broken_by(play, simulation.world)
    transactions = len(simulation.ledger.transactions)
    return _verdict(seed, liveness, plan, simulation.world, broken, transactions=transactions)


def _storm(world: World, minutes: float, events_max: int) -> None:
    """Let the faults have their time."""
    for ms in range(0, int(minutes * 60_000), 1_000):
        world.run(ms)
        if world.trace.events >= events_max:
            break


def _broken_by(play: Callable[[], None], world: World) -> str | None:
    """The rule that breaks, if one does."""
    broken = None
    with _without_collector():
        try:
            play()
        except RuleBroken as error:
            broken = str(error)
        except AssertionError as error:
            broken = f"ASSERT: {error}"
    if broken is not None:
        world.saw("E", "rules", broken)
    return broken


def _verdict(
    seed: int,
    liveness: bool,
    plan: Q,
    world: World,
    broken: str | None,
    *,
    generations: int = 0,
    transactions: int = 0,
) -> Verdict[Q]:
    return Verdict(
        seed=seed,
        liveness=liveness,
        plan=plan,
        events=world.trace.events,
        virtual_ms=world.ms,
        digest=world.trace.digest,
        broken=broken,
        trace=world.trace,
        generations=generations,
        transactions=transactions,
    )


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
