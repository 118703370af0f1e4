"""Everything in one run of the simulator: the world, the broker, the clients and what they are made to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from partita.group.config import GroupConfig
from partita.protocol.messages.join_group import JoinGroupRequest
from partita.sim.broker.node import Broker
from partita.sim.broker.topics import Topics
from partita.sim.clients.application import Habits
from partita.sim.clients.consumer import SimConsumer
from partita.sim.fault_plan import CLASSIC, CONSUMER, Plan
from partita.sim.rules.watch import Court, Watch
from partita.sim.world.network import Network
from partita.sim.world.trace import Trace
from partita.sim.world.world import World

GROUP = "g"
EXPIRY_CHECK_MS = 1_000


@dataclass(frozen=True, slots=True)
class ShortLived(GroupConfig):
    """Settings with a retention of offsets in milliseconds: the shortest of Kafka's, a minute, is a whole history."""

    retention_ms: int = 604_800_000

    @property
    def offsets_retention_ms(self) -> int:
        """How long offsets are kept after their group became empty."""
        return self.retention_ms


class Simulation:
    """Everything in one run. `restart` starts another life of a client's process."""

    def __init__(self, seed: int, plan: Plan, trace: Trace) -> None:
        self.plan = plan
        self.world = World(seed, trace)
        self.network = Network(self.world)
        weather = self.network.weather
        weather.delay_max_ms, weather.slow_up, weather.slow_down = plan.delay_ms, plan.slow_up, plan.slow_down
        self.topics = Topics(self.world, {f"t{i}": count for i, count in enumerate(plan.partitions)})
        config = ShortLived(
            group_initial_rebalance_delay_ms=plan.initial_delay_ms,
            offsets_retention_check_interval_ms=EXPIRY_CHECK_MS,
            retention_ms=plan.retention_ms,
            group_consumer_session_timeout_ms=plan.session_ms,
            group_consumer_heartbeat_interval_ms=plan.heartbeat_ms,
            group_consumer_assignment_interval_ms=plan.interval_ms,
            group_consumer_assignors=(plan.server_assignor,),
        )
        court = Court(
            eager=plan.eager,
            is_classic=plan.protocol == CLASSIC,
            image=self.topics.image,
            is_uniform=plan.server_assignor == "uniform",
        )
        self.watch = Watch(self.world, GROUP, config, court)
        self.broker = Broker(self.world, self.network, self.topics, config, self.watch, solve_ms=plan.solve_ms)
        self.broker.log.sync_ms = (plan.sync_ms // 2, plan.sync_ms)
        self.broker.load_ms = (0, plan.load_ms)
        self.broker.cleans = plan.cleans
        self.clients: list[SimConsumer] = []
        self.is_producing = True
        self.replaces_closed = True
        """Does a process that has closed come back by itself?"""
        self._lives = 0
        for number in range(plan.clients):
            self.world.after(self.world.dice.between(0, 2_000), self.start, number)
        self._produce()

    def start(self, number: int) -> None:
        """Start a process of the client with this number."""
        self._lives += 1
        plan = self.plan
        protocol = plan.speaks(self.world.ms, self.world.dice)
        options: dict[str, Any] = {
            "bootstrap_servers": "sim:9092",
            "group_id": GROUP,
            "group_instance_id": f"i{number}" if plan.static else None,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": plan.commit in ("auto", "done"),
            "commit_done_only": plan.commit == "done",
            "auto_commit_interval_ms": 1_000,
            "max_poll_interval_ms": plan.max_poll_ms,
            "max_poll_records": plan.max_poll_records,
            "request_timeout_ms": 5_000,
            "default_api_timeout_ms": 5_000,
            "metadata_max_age_ms": 10_000,
            "fetch_max_wait_ms": 3_000,
        }
        if protocol == CONSUMER:
            options["group_protocol"] = CONSUMER
        else:
            options["partition_assignment_strategy"] = list(plan.assignors)
            options["session_timeout_ms"], options["heartbeat_interval_ms"] = plan.session_ms, plan.heartbeat_ms
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
        self.world.saw("c", name, "start" if plan.protocol == CLASSIC else f"start as {protocol}")

    def speaks(self, client: SimConsumer) -> str:
        """The protocol of this process."""
        return client.core.config.group_protocol

    def restart(self, client: SimConsumer) -> None:
        """Start another life of the client's process."""
        self.start(int(client.name[1:].partition(".")[0]))

    def _ended(self, client: SimConsumer) -> None:
        """It stopped by itself; unless somebody fenced it, it comes back."""
        self.clients = [c for c in self.clients if not c.is_over]
        if client.failure is None and self.replaces_closed:
            self.world.after(self.world.dice.between(0, 3_000), self.restart, client)

    def _produce(self) -> None:
        if self.is_producing:
            for topic, partition in self.topics.all():
                if self.world.dice.chance(0.5):
                    self.topics.produce(topic, partition, self.world.dice.between(1, self.plan.records_per_second))
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
