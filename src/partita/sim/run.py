"""One simulation from its seed: draw the plan, build the world, run it with faults, heal it, judge it.

Safety mode runs with faults to the end. Liveness mode stops them, heals what remains, and then demands progress within
the bounds of the protocol.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

from partita.group.config import GroupConfig
from partita.protocol.messages.join_group import JoinGroupRequest
from partita.sim.application import Habits
from partita.sim.broker import Broker
from partita.sim.consumers import SimConsumer
from partita.sim.fault_plan import Plan, draw
from partita.sim.mischief import Mischief
from partita.sim.network import Network
from partita.sim.progress import ProgressRules
from partita.sim.rules import RuleBroken
from partita.sim.topics import Topics
from partita.sim.trace import Trace
from partita.sim.watch import Watch
from partita.sim.world import World

GROUP = "g"
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


class Simulation:
    """Everything in one run. `restart` starts another life of a client's process."""

    def __init__(self, seed: int, plan: Plan, trace: Trace) -> None:
        self.plan = plan
        self.world = World(seed, trace)
        self.network = Network(self.world)
        weather = self.network.weather
        weather.delay_max_ms, weather.slow_up, weather.slow_down = plan.delay_ms, plan.slow_up, plan.slow_down
        self.topics = Topics(self.world, {f"t{i}": count for i, count in enumerate(plan.partitions)})
        self.watch = Watch(self.world, GROUP, eager=plan.eager)
        config = GroupConfig(group_initial_rebalance_delay_ms=plan.initial_delay_ms)
        self.broker = Broker(self.world, self.network, self.topics, config, self.watch)
        self.broker.log.sync_ms = (plan.sync_ms // 2, plan.sync_ms)
        self.broker.load_ms = (0, plan.load_ms)
        self.broker.cleans = plan.cleans
        self.clients: list[SimConsumer] = []
        self.is_producing = True
        self._lives = 0
        for number in range(plan.clients):
            self.world.after(self.world.between(0, 2_000), self._start, number)
        self._produce()

    def _start(self, number: int) -> None:
        self._lives += 1
        plan = self.plan
        options = {
            "bootstrap_servers": "sim:9092",
            "group_id": GROUP,
            "group_instance_id": f"i{number}" if plan.static else None,
            "partition_assignment_strategy": list(plan.assignors),
            "auto_offset_reset": "earliest",
            "enable_auto_commit": plan.commit in ("auto", "done"),
            "commit_done_only": plan.commit == "done",
            "auto_commit_interval_ms": 1_000,
            "session_timeout_ms": plan.session_ms,
            "heartbeat_interval_ms": plan.heartbeat_ms,
            "max_poll_interval_ms": plan.max_poll_ms,
            "max_poll_records": plan.max_poll_records,
            "request_timeout_ms": 5_000,
            "default_api_timeout_ms": 5_000,
            "metadata_max_age_ms": 10_000,
            "fetch_max_wait_ms": 3_000,
        }
        habits = Habits(
            options,
            tuple(self.topics.partitions),
            commit=plan.commit,
            work_ms=(0, plan.work_ms),
            callback_ms=(0, plan.callback_ms),
        )
        versions = {JoinGroupRequest.API_KEY: plan.join_version}
        name = f"c{number}.{self._lives}"
        client = SimConsumer(self.world, self.network, self.watch, name, habits, versions)
        client.on_end = self._ended
        self.clients.append(client)
        self.world.saw("c", name, "start")

    def restart(self, client: SimConsumer) -> None:
        self._start(int(client.name[1:].partition(".")[0]))

    def _ended(self, client: SimConsumer) -> None:
        """It stopped by itself; unless somebody fenced it, it comes back."""
        self.clients = [c for c in self.clients if not c.is_over]
        if client.failure is None:
            self.world.after(self.world.between(0, 3_000), self.restart, client)

    def _produce(self) -> None:
        if self.is_producing:
            for topic, partition in self.topics.all():
                if self.world.chance(0.5):
                    self.topics.produce(topic, partition, self.world.between(1, self.plan.records_per_second))
            self.world.after(1_000, self._produce)

    def heal(self) -> None:
        """From now on nothing goes wrong any more."""
        self.world.saw("!", "fault", "everything is healed")
        self.is_producing = False
        self.network.heal()
        log = self.broker.log
        log.failures_left, log.sync_ms = 0, (0, 0)
        for client in list(self.clients):
            client.resume()


def simulate(seed: int, *, liveness: bool = False, minutes: float = 2.0, keep_trace: bool = False) -> Verdict:
    """Run one seed. What breaks is in the verdict, not raised."""
    random = Random(f"partita {seed} {liveness}")
    plan = draw(random)
    trace = Trace(keep_all=keep_trace)
    return run_plan(seed, plan, trace, liveness=liveness, minutes=minutes)


def run_plan(seed: int, plan: Plan, trace: Trace, *, liveness: bool, minutes: float) -> Verdict:
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
        seed,
        liveness,
        plan,
        trace.events,
        world.ms,
        trace.digest,
        group.generation if group is not None else 0,
        broken,
        trace,
    )
