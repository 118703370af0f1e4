"""One simulation from its seed: draw the plan, build the world, run it with faults, heal it, judge it.

Safety mode runs with faults to the end. Liveness mode stops them, heals what remains, and then demands progress within
the bounds of the protocol.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, Protocol, TypeVar

from partita.sim.fault_plan import CLASSIC, Plan, draw, with_protocol
from partita.sim.mischief import Mischief
from partita.sim.progress import ProgressRules
from partita.sim.rules.rule import RuleBroken
from partita.sim.sharing import plan as sharing_plan
from partita.sim.sharing import simulation as sharing_simulation
from partita.sim.shell.process import broker_alarm
from partita.sim.simulation import Simulation
from partita.sim.streams import plan as streams_plan
from partita.sim.streams import simulation as streams_simulation
from partita.sim.transactions import mischief as transaction_mischief
from partita.sim.transactions import plan as transaction_plan
from partita.sim.transactions import progress as transaction_progress
from partita.sim.transactions import simulation as transaction_simulation
from partita.sim.world.faults import Caused, with_stops
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
    records: int = 0
    """Of a simulation of share groups: how many were given to members."""
    targets: int = 0
    """Of a simulation of streams groups: how many the group had."""
    caused: tuple[Caused, ...] = ()
    """Of a simulation of groups: its faults."""
    storm_ms: int = 0
    """Of a simulation of groups: how long faults had their time."""

    @property
    def done(self) -> str:
        """The work done, in words."""
        for number, what in ((self.records, "records"), (self.targets, "targets")):
            if number:
                return f"{number} {what}"
        return f"{self.transactions} transactions" if self.transactions else f"{self.generations} generations"


def simulate(
    seed: int, *, protocol: str = CLASSIC, liveness: bool = False, minutes: float = 2.0, keep_trace: bool = False
) -> Verdict[Plan]:
    """Run one seed with members of this protocol (`PROTOCOLS`). What breaks is in the verdict, not raised."""
    plan = plan_of(seed, protocol, liveness=liveness)
    return run_plan(seed, plan, Trace(keep_all=keep_trace), liveness=liveness, minutes=minutes)


def plan_of(seed: int, protocol: str, *, liveness: bool) -> Plan:
    """The plan of a seed."""
    dice = Dice(f"partita {seed} {liveness}")
    return with_stops(with_protocol(draw(dice), protocol, dice), dice)


def run_plan(seed: int, plan: Plan, trace: Trace, *, liveness: bool, minutes: float) -> Verdict[Plan]:
    """Run a given plan with the chances of the seed."""
    with broker_alarm() as alarms:
        simulation = Simulation(seed, plan, trace)
        mischief = Mischief(simulation)
        storm_ms: int | None = None

        def play() -> None:
            nonlocal storm_ms
            _storm(simulation.world, minutes, EVENTS_MAX)
            storm_ms = simulation.world.ms
            if liveness:
                recover(simulation, mischief)
            if alarms:
                raise RuleBroken("E", f"the broker logged: {alarms[0]}")

        broken = _broken_by(play, simulation.world)
    verdict = _verdict(seed, liveness, plan, simulation.world, broken)
    return replace(
        verdict,
        generations=simulation.watch.generation,
        caused=tuple(mischief.caused),
        storm_ms=verdict.virtual_ms if storm_ms is None else storm_ms,
    )


def recover(simulation: Simulation, mischief: Mischief) -> None:
    """Stop the faults, heal what remains, and demand progress."""
    mischief.stop()
    simulation.heal()
    ProgressRules(simulation).judge()


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
        judge = transaction_progress.ProgressRules(simulation).judge if liveness else None
        broken = _played(simulation, partial(transaction_mischief.Mischief, simulation), judge, alarms, minutes)
    verdict = _verdict(seed, liveness, plan, simulation.world, broken)
    return replace(verdict, transactions=len(simulation.ledger.transactions))


def simulate_sharing(
    seed: int, *, liveness: bool = False, minutes: float = 1.0, keep_trace: bool = False
) -> Verdict[sharing_plan.Plan]:
    """Run one seed with a share group. What breaks is in the verdict."""
    dice = Dice(f"partita sharing {seed} {liveness}")
    plan = with_stops(sharing_plan.draw(dice), dice)
    with broker_alarm() as alarms:
        simulation = sharing_simulation.Simulation(seed, plan, Trace(keep_all=keep_trace))
        judge = simulation.judge if liveness else None
        broken = _played(simulation, partial(sharing_simulation.Mischief, simulation), judge, alarms, minutes)
    return replace(_verdict(seed, liveness, plan, simulation.world, broken), records=len(simulation.ledger.fates))


def simulate_streams(
    seed: int, *, liveness: bool = False, minutes: float = 1.0, keep_trace: bool = False
) -> Verdict[streams_plan.Plan]:
    """Run one seed with a streams group. What breaks is in the verdict."""
    dice = Dice(f"partita streams {seed} {liveness}")
    plan = with_stops(streams_plan.draw(dice), dice)
    with broker_alarm() as alarms:
        simulation = streams_simulation.Simulation(seed, plan, Trace(keep_all=keep_trace))
        judge = simulation.judge if liveness else None
        broken = _played(simulation, partial(streams_simulation.Mischief, simulation), judge, alarms, minutes)
    return replace(_verdict(seed, liveness, plan, simulation.world, broken), targets=simulation.watch.targets)


class _Healed(Protocol):
    world: World

    def heal(self) -> None: ...


class _Stoppable(Protocol):
    def stop(self) -> None: ...


def _played(
    simulation: _Healed,
    make_mischief: Callable[[], _Stoppable],
    judge: Callable[[], None] | None,
    alarms: list[str],
    minutes: float,
) -> str | None:
    """Run with faults; with `judge`, end them and demand progress. Return the rule that breaks, if one does."""

    def play() -> None:
        mischief = make_mischief()
        _storm(simulation.world, minutes, TRANSACTION_EVENTS_MAX)
        if judge is not None:
            mischief.stop()
            simulation.heal()
            judge()
        if alarms:
            raise RuleBroken("E", f"the broker logged: {alarms[0]}")

    return _broken_by(play, simulation.world)


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


def _verdict(seed: int, liveness: bool, plan: Q, world: World, broken: str | None) -> Verdict[Q]:
    events, digest = world.trace.events, world.trace.digest
    return Verdict(seed, liveness, plan, events, world.ms, digest, broken, world.trace)


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
