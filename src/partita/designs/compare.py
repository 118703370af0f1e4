"""Run scenarios on designs, one after the other on one machine, and keep the results of each."""

from __future__ import annotations

import contextlib
import os
import platform
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from partita import ConfigError, __version__
from partita.broker.api.apis import SERVED
from partita.consumer.config import ConsumerConfig
from partita.designs.ground import Ground
from partita.designs.journal import Journal
from partita.designs.lab import OLD, Lab, NotSettled
from partita.designs.measure import Measures, measure
from partita.designs.members.settings import Timings
from partita.designs.scenarios import BY_NAME, SCENARIOS, Scenario
from partita.designs.tap import CONSUMER_GROUP_HEARTBEAT

TITLES = {
    "1": "1: every consumer watches ZooKeeper",
    "2": "2: a coordinator watches ZooKeeper",
    "3": "3: the coordinator is in the broker",
    "3c": "3c: the same, cooperative",
    "848": "848: the broker assigns (KIP-848)",
}
DEFAULT_DESIGNS = ("1", "2", "3", "848")
FASTER = 4
EXTRA_MEMBERS = 2
"""No scenario starts more than two members in addition to the group's own."""
BUSY_SHARE = 0.25
"""A thread that is woken later than this share of the session timeout shows that members were kept waiting too."""
TROUBLE_RATE, HERD_RATE = 50.0, 10.0
"""Records per second and partition."""


class Progress(Protocol):
    """Receives the progress of a comparison."""

    def say(self, text: str) -> None:
        """Show one line."""
        ...

    def at(self, bar: str, done: int, total: int) -> None:
        """Move a named bar."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """The runs to compare. The scenario `join` runs with every size; the others with the first."""

    sizes: tuple[int, ...] = (5, 20, 50)
    partitions: int = 12
    designs: tuple[str, ...] = DEFAULT_DESIGNS
    scenarios: tuple[str, ...] = tuple(BY_NAME)
    kafka_timings: bool = False

    @property
    def timings(self) -> Timings:
        """Kafka 0.8's times, or a quarter of them."""
        return Timings() if self.kafka_timings else Timings().faster(FASTER)

    @property
    def herd_partitions(self) -> int:
        """Enough partitions to give every member two at the largest size."""
        return 2 * max(self.sizes)

    def runs(self) -> list[tuple[Scenario, str, int, int]]:
        """Return (scenario, design, members, partitions) of each run, the designs of one scenario beside each other."""
        built = [design for design in self.designs if is_built(design)]
        found = []
        for scenario in SCENARIOS:
            if scenario.name in self.scenarios:
                sizes = self.sizes if scenario.name == "join" else self.sizes[:1]
                found += [
                    (scenario, design, size, self.herd_partitions if scenario.name == "join" else self.partitions)
                    for size in sizes
                    for design in built
                    if design in scenario.designs
                ]
        return found


@dataclass(slots=True)
class Run:
    """One scenario on one design. Without measures the group never formed; `remark` gives the reason."""

    scenario: str
    design: str
    members: int
    journal: Journal
    measures: Measures | None
    remark: str = ""
    took_s: float = 0.0

    @property
    def is_busy(self) -> bool:
        """Whether the machine stood still for so long that it, and not the design, may have ended sessions."""
        return self.journal.late_s * 1000 > self.journal.session_ms * BUSY_SHARE

    def as_json(self) -> dict[str, Any]:
        """Return everything but the journal as plain values."""
        return {
            "scenario": self.scenario,
            "design": self.design,
            "members": self.members,
            "partitions": self.journal.partitions,
            "measures": None if self.measures is None else self.measures.as_json(),
            "remark": self.remark,
            "late_ms": round(self.journal.late_s * 1000),
            "took_s": round(self.took_s, 1),
        }


@dataclass(slots=True)
class Comparison:
    """All runs of a plan."""

    plan: Plan
    runs: list[Run] = field(default_factory=list)
    took_s: float = 0.0
    machine: str = ""
    version: str = __version__
    started: str = ""

    @property
    def missing(self) -> int:
        """How many runs of the plan were not made, because the user ended the comparison."""
        return len(self.plan.runs()) - len(self.runs)

    def of(self, scenario: str) -> list[Run]:
        """The runs of a scenario."""
        return [run for run in self.runs if run.scenario == scenario]

    def broken(self) -> list[str]:
        """Return the promises that today's designs broke; the old ones make none."""
        return [
            f"{run.scenario}, design {run.design}: {what}"
            for run in self.runs
            if run.design not in OLD
            for what in broken_promises(run)
        ]

    def as_json(self) -> dict[str, Any]:
        """The results as plain values."""
        return {
            "version": self.version,
            "started": self.started,
            "machine": self.machine,
            "took_s": round(self.took_s, 1),
            "session_timeout_ms": self.plan.timings.session_ms,
            "runs_missing": self.missing,
            "runs": [run.as_json() for run in self.runs],
        }


def broken_promises(run: Run) -> list[str]:
    """Return the broken promises of a coordinator in the broker: the group settles, no orphans, no offset goes back.

    A machine that was too busy breaks the first two by itself.
    """
    found = run.measures
    if found is None:
        return [] if run.is_busy else [run.remark]
    promises = (
        (found.settled_ms is not None or run.is_busy, "the group did not settle"),
        (not found.orphans or run.is_busy, f"{found.orphans} partitions without an owner"),
        (not found.back, f"a committed offset went back by {found.back}"),
    )
    return [what for holds, what in promises if not holds]


def is_built(design: str) -> bool:
    """Whether a design can run: KIP-848 needs a broker that serves it and a consumer that speaks it."""
    if design != "848":
        return True
    try:
        ConsumerConfig.of(bootstrap_servers="localhost:1", group_id="g", group_protocol="consumer")
    except ConfigError:
        return False
    return CONSUMER_GROUP_HEARTBEAT in SERVED


def compare(plan: Plan, progress: Progress, folder: Path | None = None) -> Comparison:
    """Run everything; raise NoZooKeeper if there is none to start. Leaves no process behind.

    Ctrl-C ends it with the runs that were made.
    """
    began_s = time.monotonic()
    machine = f"{os.cpu_count()} cores, {platform.platform(terse=True)}, Python {platform.python_version()}"
    result = Comparison(plan, machine=machine, started=time.strftime("%d %B %Y, %H:%M UTC", time.gmtime()))
    runs = plan.runs()
    with (
        contextlib.suppress(KeyboardInterrupt),
        Ground(max(plan.sizes) + EXTRA_MEMBERS, plan.timings, folder) as ground,
    ):
        for number, (scenario, design, members, partitions) in enumerate(runs):
            progress.at("runs", number, len(runs))
            started_s = time.monotonic()
            run = run_one(ground, scenario, design, members, partitions, number)
            run.took_s = time.monotonic() - started_s
            result.runs.append(run)
            progress.say(told(run))
        progress.at("runs", len(runs), len(runs))
    result.took_s = time.monotonic() - began_s
    return result


def run_one(ground: Ground, scenario: Scenario, design: str, members: int, partitions: int, number: int) -> Run:
    """One run on a ground that is prepared."""
    lab = Lab(
        ground, design, scenario.name, number=number, partitions=partitions,
        rate=HERD_RATE if scenario.name == "join" else TROUBLE_RATE,
        ensemble=scenario.needs_ensemble and design in OLD, session_factor=scenario.session_factor,
    )  # fmt: skip
    try:
        with lab:
            scenario.run(lab, members)
    except NotSettled as reason:
        return Run(scenario.name, design, members, lab.journal, None, str(reason))
    found = measure(lab.journal)
    return Run(scenario.name, design, members, lab.journal, found, "; ".join(lab.journal.remarks))


def told(run: Run) -> str:
    """Return one line about a run."""
    head = f"{run.scenario}, {run.members} members, design {run.design}: "
    found = run.measures
    if found is None:
        return head + "; ".join(filter(None, [run.remark, busy(run)]))
    settled = "never settled" if found.settled_ms is None else f"settled after {found.settled_ms / 1000:.1f} s"
    troubles = [
        f"{found.orphans} partitions without an owner" if found.orphans else "",
        f"two readers on {found.two_readers_partitions} partitions" if found.two_readers_partitions else "",
        f"an offset went back by {found.back}" if found.back else "",
        f"{found.gave_up} gave up" if found.gave_up else "",
        run.remark,
        busy(run),
    ]
    return head + ", ".join([settled, *filter(None, troubles)])


def busy(run: Run) -> str:
    """Return the remark on a machine that was too busy for the run; empty if it was not."""
    if not run.is_busy:
        return ""
    session_s = run.journal.session_ms / 1000
    return f"the machine was too busy: it stood still for {run.journal.late_s:.1f} s of a session of {session_s:g} s"
