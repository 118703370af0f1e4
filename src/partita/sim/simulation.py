"""Everything in one run of groups: the world, the broker's process, the clients and what they are made to do."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from partita.assignors.interface import Assignor
from partita.assignors.server_side import RangeOnServer, UniformAssignor
from partita.broker.options import Value
from partita.broker.topics.catalogue import Partition
from partita.group.config import GroupConfig
from partita.log.storage import StorageError
from partita.protocol.messages.join_group import JoinGroupRequest
from partita.records.builder import build_batch
from partita.sim.clients import keeper
from partita.sim.clients.application import Habits
from partita.sim.clients.consumer import SimConsumer
from partita.sim.fault_plan import CLASSIC, CONSUMER, Plan
from partita.sim.rules.watch import Court, Watch
from partita.sim.shell.group_broker import GroupBroker
from partita.sim.shell.group_shards import Recorder
from partita.sim.shell.process import Process
from partita.sim.world.network import Network
from partita.sim.world.world import Trace, World

GROUP = "g"
EXPIRY_CHECK_MS = 1_000
_SETTINGS: dict[str, object] = {
    "auto.create.topics.enable": False,
    "offsets.topic.num.partitions": 1,
    "offsets.topic.segment.bytes": 4_096,
    "transaction.state.log.num.partitions": 1,
    "log.cleaner.backoff.ms": 3_600_000,
    "log.retention.ms": -1,
}


@dataclass(frozen=True, slots=True)
class ShortLived(GroupConfig):
    """Settings with a retention of offsets in milliseconds: the shortest of Kafka's, a minute, is a whole history."""

    retention_ms: int = 604_800_000

    @property
    def offsets_retention_ms(self) -> int:
        """How long offsets are kept after their group became empty."""
        return self.retention_ms


class Simulation(GroupBroker[SimConsumer]):
    """Everything in one run. `restart` starts another life of a client's process."""

    def __init__(self, seed: int, plan: Plan, trace: Trace) -> None:
        self.plan = plan
        self.world = World(seed, trace)
        self.network = Network(self.world)
        weather = self.network.weather
        weather.delay_max_ms, weather.slow_up, weather.slow_down = plan.delay_ms, plan.slow_up, plan.slow_down
        self.topics = tuple(f"t{i}" for i in range(len(plan.partitions)))
        """Topics that the consumers read."""
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
            is_uniform=plan.server_assignor == "uniform",
        )
        self.watch = Watch(self.world, GROUP, config, court)
        assignors = _assignors(plan)
        self.recorder = Recorder(self.world, self.watch, config, assignors, solve_ms=plan.solve_ms)
        topics: dict[str, tuple[int, dict[str, Value]]] = {
            name: (count, {}) for name, count in zip(self.topics, plan.partitions, strict=True)
        }
        topics |= dict.fromkeys(keeper.TOPICS, (keeper.PARTITIONS, {}))
        self.process = Process(self.world, self.network, _SETTINGS, topics)
        self.process.sync_ms = (plan.sync_ms // 2, plan.sync_ms)
        self.watch_process()
        self.load_ms = plan.load_ms
        self.clients: list[SimConsumer] = []
        self.is_producing = True
        self.replaces_closed = True
        """Does a process that has closed come back by itself?"""
        self._lives = 0
        self.process.start(was_clean=True)
        for number in range(plan.clients):
            self.world.after(self.world.dice.between(0, 2_000), self.start, number)
        self._produce()
        if plan.cleans:
            self.keep_cleaning()

    def partitions(self) -> list[tuple[str, int]]:
        """Every partition that the consumers read."""
        return [(name, partition.index) for name in self.topics for partition in self._topic(name)]

    def end_of(self, at: tuple[str, int]) -> int:
        """Return the end offset of a partition."""
        return self._topic(at[0])[at[1]].log.log_end_offset

    def _topic(self, name: str) -> list[Partition]:
        return self.process.cluster.catalogue.by_name[name].partitions

    def add_partition(self, name: str) -> None:
        """Give a topic one more partition."""
        cluster = self.process.cluster
        self.process.enter(cluster.catalogue.add_partitions, cluster.catalogue.by_name[name], cluster.place(1, 1))

    def elect(self, at: tuple[str, int]) -> None:
        """Let another node lead a partition, or the same one once more."""
        self.process.enter(self.process.cluster.elect, self._topic(at[0])[at[1]], self.world.dice.between(1, 2))

    # The clients

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
            self.topics,
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
        """The client stopped by itself; it is restarted unless it was fenced."""
        self.clients = [c for c in self.clients if not c.is_over]
        if client.failure is None and self.replaces_closed:
            self.world.after(self.world.dice.between(0, 3_000), self.restart, client)

    def _produce(self) -> None:
        if self.is_producing:
            self.process.enter(self._append)
            self.world.after(1_000, self._produce)

    def _append(self) -> None:
        """Append to half of the partitions; the value of a record is its own offset."""
        now = self.process.clock.now()
        for name in self.topics:
            for partition in self._topic(name):
                if self.world.dice.chance(0.5):
                    end = partition.log.log_end_offset
                    count = self.world.dice.between(1, self.plan.records_per_second)
                    batch = build_batch([(now.wall_ms, None, b"%d" % (end + i), ()) for i in range(count)])
                    with suppress(StorageError):
                        partition.log.append(batch, partition.leader_epoch, now)

    def heal(self) -> None:
        """End the faults, and write no more records."""
        self.is_producing = False
        super().heal()


def _assignors(plan: Plan) -> dict[str, Assignor]:
    """The assignor of KIP-848 groups: Kafka's own, or one that runs beside the event loop as a user's does."""
    known = (UniformBeside(), RangeBeside()) if plan.solve_ms else (UniformAssignor(), RangeOnServer())
    return {assignor.name: assignor for assignor in known if assignor.name == plan.server_assignor}


class UniformBeside(UniformAssignor):
    """As if a user had written it: an assignor that is not ours is not run on the event loop."""


class RangeBeside(RangeOnServer):
    """The other one of Kafka's, in the same way."""
