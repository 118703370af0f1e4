"""`partita sim`: simulate groups under faults in virtual time and check every step; any seed can be replayed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import click

from partita.cli.terminal import say
from partita.lazy import later
from partita.wording import count

if TYPE_CHECKING:
    from partita.play import seeds as play_seeds
    from partita.sim import fault_plan
    from partita.sim import moves as sim_moves
    from partita.sim import run as sim_run
    from partita.sim.world import world as sim_trace
else:
    fault_plan = later("partita.sim.fault_plan")
    play_seeds = later("partita.play.seeds")
    sim_moves = later("partita.sim.moves")
    sim_run = later("partita.sim.run")
    sim_trace = later("partita.sim.world.world")


@dataclass(frozen=True, slots=True)
class Totals:
    """The sums over a series of runs."""

    runs: int = 0
    events: int = 0
    virtual_ms: int = 0

    def plus(self, verdict: sim_run.Verdict[sim_run.Drawn]) -> Totals:
        """These totals with one more run."""
        return Totals(self.runs + 1, self.events + verdict.events, self.virtual_ms + verdict.virtual_ms)


@click.command()
@click.option(
    "--seed", type=int, default=1, show_default=True, help="The first seed. The same seed always gives the same run."
)
@click.option(
    "--runs", type=click.IntRange(min=1), default=1, show_default=True, help="How many consecutive seeds to run."
)
@click.option(
    "--minutes", type=float, default=2.0, show_default=True, help="Length of the phase with faults, in virtual minutes."
)
@click.option(
    "--mode",
    type=click.Choice(["safety", "liveness", "both"]),
    default="both",
    show_default=True,
    help="safety: faults until the end; liveness: the faults stop, and every client must make progress.",
)
@click.option(
    "--workload",
    type=click.Choice(["groups", "transactions", "sharing", "streams"]),
    default="groups",
    show_default=True,
    help="groups: consumers that share partitions; transactions: producers, copiers and read_committed readers; "
    "sharing: members of a share group; streams: members of a Kafka Streams application.",
)
@click.option(
    "--protocol",
    type=click.Choice(["classic", "consumer", "mixed", "all"]),
    default="all",
    show_default=True,
    help="Protocol of group members: the classic protocol, the consumer protocol (KIP-848), or both in one group, "
    "as in a rolling conversion.",
)
@click.option("--moves", is_flag=True, help="Only compare what both protocols move, on one workload without faults.")
@click.option("--trace", is_flag=True, help="Print every event.")
@click.option("--story", is_flag=True, help="Print each run as a story for partita play, and nothing else.")
def sim(
    seed: int, runs: int, minutes: float, mode: str, workload: str, protocol: str, moves: bool, trace: bool, story: bool
) -> None:
    """Simulate a broker and its clients under faults and check every rule.

    Stops with exit code 1 at the first seed that breaks a rule and prints the command that replays it.
    """
    if moves:
        _show_moves()
        return
    modes = {"safety": [False], "liveness": [True], "both": [False, True]}[mode]
    if story:
        _write_stories(range(seed, seed + runs), protocol, modes, minutes)
        return
    totals = Totals()
    for number in range(seed, seed + runs):
        for (which, play), liveness in product(_plays(workload, protocol), modes):
            verdict = play(number, liveness=liveness, minutes=minutes, keep_trace=trace)
            totals = totals.plus(verdict)
            _show(verdict, which, trace=trace, in_full=runs == 1)
            if verdict.broken is not None:
                _tell_how_to_replay(verdict, minutes, which)
                raise SystemExit(1)
    hours = totals.virtual_ms / 3_600_000
    say(f"{count(totals.runs, 'run')}, {totals.events} events, {hours:.1f} virtual hours: every rule held")


def _plays(workload: str, protocol: str) -> list[tuple[str, Callable[..., sim_run.Verdict[sim_run.Drawn]]]]:
    """Return the simulations to run for each seed, with the options that choose them."""
    if workload != "groups":
        return [(f"--workload {workload}", getattr(sim_run, f"simulate_{workload}"))]
    spoken = fault_plan.PROTOCOLS if protocol == "all" else (protocol,)
    return [(f"--workload groups --protocol {name}", partial(sim_run.simulate, protocol=name)) for name in spoken]


def _write_stories(seeds: range, protocol: str, modes: list[bool], minutes: float) -> None:
    """Print a story for each run."""
    spoken = fault_plan.PROTOCOLS if protocol == "all" else (protocol,)
    for number, name, liveness in product(seeds, spoken, modes):
        verdict = sim_run.simulate(number, protocol=name, liveness=liveness, minutes=minutes)
        say("\n".join([*play_seeds.story(verdict, name), ""]))


def _show_moves() -> None:
    for line in sim_moves.table():
        say(line)


def _show(verdict: sim_run.Verdict[sim_run.Drawn], which: str, *, trace: bool, in_full: bool) -> None:
    if trace:
        say(sim_trace.LEGEND)
        for line in verdict.trace.lines():
            say(line)
    mode = "liveness" if verdict.liveness else "safety"
    outcome = verdict.broken or "ok"
    numbers = f"{verdict.events} events, {verdict.done}, digest {verdict.digest:08x}"
    kind = which.rpartition(" ")[2]
    say(f"seed {verdict.seed} {kind:8} {mode:8} {numbers}: {outcome}")
    if in_full or verdict.broken is not None:
        for line in verdict.plan.lines():
            say(f"  {line}")


def _tell_how_to_replay(verdict: sim_run.Verdict[sim_run.Drawn], minutes: float, which: str) -> None:
    say("the last events:")
    for line in verdict.trace.lines():
        say(f"  {line}")
    mode = "liveness" if verdict.liveness else "safety"
    options = f"{which} --seed {verdict.seed} --mode {mode} --minutes {minutes:g}"
    say(f"to replay it: partita sim {options} --trace")
