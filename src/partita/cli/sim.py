"""`partita sim`: simulate groups under faults in virtual time and check every step; any seed can be replayed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from partita.cli.terminal import count, say

if TYPE_CHECKING:
    from partita.sim.run import Drawn, Verdict


@dataclass(frozen=True, slots=True)
class Totals:
    """The sums over a series of runs."""

    runs: int = 0
    events: int = 0
    virtual_ms: int = 0

    def plus(self, verdict: Verdict[Drawn]) -> Totals:
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
    help="safety: faults until the end; liveness: the faults stop, and everybody must make progress.",
)
@click.option(
    "--workload",
    type=click.Choice(["groups", "transactions"]),
    default="groups",
    show_default=True,
    help="groups: consumers that share partitions; transactions: producers, copiers and read_committed readers.",
)
@click.option("--trace", is_flag=True, help="Print every event.")
def sim(seed: int, runs: int, minutes: float, mode: str, workload: str, trace: bool) -> None:
    """Simulate a broker and its clients under faults and check every rule.

    Stops with exit code 1 at the first seed that breaks a rule and prints the command that replays it.
    """
    from partita.sim.run import simulate, simulate_transactions

    play = simulate if workload == "groups" else simulate_transactions
    totals = Totals()
    for number in range(seed, seed + runs):
        for liveness in {"safety": [False], "liveness": [True], "both": [False, True]}[mode]:
            verdict = play(number, liveness=liveness, minutes=minutes, keep_trace=trace)
            totals = totals.plus(verdict)
            _show(verdict, trace=trace, in_full=runs == 1)
            if verdict.broken is not None:
                _tell_how_to_replay(verdict, minutes, workload)
                raise SystemExit(1)
    hours = totals.virtual_ms / 3_600_000
    say(f"{count(totals.runs, 'run')}, {totals.events} events, {hours:.1f} virtual hours: every rule held")


def _show(verdict: Verdict[Drawn], *, trace: bool, in_full: bool) -> None:
    from partita.sim.world.trace import LEGEND

    if trace:
        say(LEGEND)
        for line in verdict.trace.lines():
            say(line)
    mode = "liveness" if verdict.liveness else "safety"
    outcome = verdict.broken or "ok"
    numbers = f"{verdict.events} events, {verdict.done}, digest {verdict.digest:08x}"
    say(f"seed {verdict.seed} {mode:8} {numbers}: {outcome}")
    if in_full or verdict.broken is not None:
        for line in verdict.plan.lines():
            say(f"  {line}")


def _tell_how_to_replay(verdict: Verdict[Drawn], minutes: float, workload: str) -> None:
    say("the last events:")
    for line in verdict.trace.lines():
        say(f"  {line}")
    mode = "liveness" if verdict.liveness else "safety"
    told = f"--workload {workload} --seed {verdict.seed} --mode {mode} --minutes {minutes:g}"
    say(f"to replay it: partita sim {told} --trace")
