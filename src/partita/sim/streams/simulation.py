"""All parts of one run: the world, the broker's process, the members, and the faults that happen to them."""

from __future__ import annotations

from partita.broker.topics.catalogue import Topic
from partita.group.config import GroupConfig
from partita.sim.rules.rule import must
from partita.sim.shell.group_broker import GroupBroker, GroupFaults
from partita.sim.shell.group_shards import Recorder
from partita.sim.shell.process import Process
from partita.sim.streams.member import GROUP, INTERNAL, SOURCES, Member, topology
from partita.sim.streams.plan import Plan
from partita.sim.streams.watch import Watch
from partita.sim.transactions.client import Client
from partita.sim.world.faults import Storms
from partita.sim.world.network import NODES, Network
from partita.sim.world.world import Trace, World

_CLIENTS_MAX = 10
_STRAY = "m9"
"""The seat of members with another topology."""
_GROWN_MAX = 3
_STEP_MS, _PATIENCE_MS = 500, 90_000
_SETTINGS: dict[str, object] = {
    "auto.create.topics.enable": False,
    "offsets.topic.num.partitions": 1,
    "offsets.topic.segment.bytes": 16_384,
    "transaction.state.log.num.partitions": 1,
    "log.cleaner.backoff.ms": 3_600_000,
    "log.retention.ms": -1,
}


class Simulation(GroupBroker[Client]):
    """One run. `heal` ends every fault, `judge` demands that the group settles."""

    def __init__(self, seed: int, plan: Plan, trace: Trace) -> None:
        self.world = World(seed, trace)
        self.network = Network(self.world)
        self.network.weather.delay_max_ms = plan.delay_ms
        self.plan = plan
        self.watch = Watch(self.world, plan)
        config = GroupConfig(
            group_streams_session_timeout_ms=plan.session_ms,
            group_streams_min_session_timeout_ms=plan.session_ms,
            group_streams_heartbeat_interval_ms=plan.heartbeat_ms,
            group_streams_min_heartbeat_interval_ms=plan.heartbeat_ms,
            group_streams_assignment_interval_ms=plan.interval_ms,
            group_streams_initial_rebalance_delay_ms=plan.initial_delay_ms,
            group_streams_num_standby_replicas=plan.standbys,
        )
        self.recorder = Recorder(self.world, self.watch, config, {}, solve_ms=plan.solve_ms)
        counts = zip(SOURCES, (plan.partitions, plan.partitions + plan.is_uneven), strict=True)
        self.process = Process(self.world, self.network, _SETTINGS, {name: (count, {}) for name, count in counts})
        self.process.sync_ms = (plan.sync_ms // 2, plan.sync_ms)
        self.watch_process()
        self.load_ms = plan.load_ms
        self.clients: list[Client] = []
        self.is_healed = False
        self._lives = 0
        self.process.start(was_clean=True)
        if plan.cleans:
            self.keep_cleaning()
        for number in range(plan.members):
            self.world.after(self.world.dice.between(0, 1_000), self.start, f"m{number}")

    def start(self, seat: str, *, is_stray: bool = False) -> None:
        """Begin another life of a member; a stray one has another topology."""
        self._lives += 1
        client = Client(self.world, self.network, f"{seat}.{self._lives}", tuple(range(1, NODES + 1)))
        self.clients = [*(one for one in self.clients if not one.is_over), client]
        wanted = topology(self.world.dice.choice((0, 2)), is_other=True) if is_stray else topology()
        member = Member(client, self.plan, self.world.dice, wanted)
        member.is_healed = self.is_healed
        self.watch.members[client.name] = member
        self.world.saw("c", client.name, "start with another topology" if is_stray else "start")
        client.on_end = self._ended
        client.run(member.work())

    def _ended(self, client: Client) -> None:
        """A member has left, and comes back later."""
        self.world.after(self.world.dice.between(0, 2_000), self.start, client.name.partition(".")[0])

    def topic(self, name: str) -> Topic | None:
        """The topic with this name."""
        return self.process.cluster.catalogue.get(name)

    def grow(self, name: str, partitions: int) -> None:
        """Give a topic so many partitions; one that is not there is created with them."""

        def grow() -> None:
            cluster, topic = self.process.cluster, self.topic(name)
            if topic is None:
                cluster.create_topic(name, partitions, 1, {})
            elif len(topic.partitions) < partitions:
                cluster.catalogue.add_partitions(topic, cluster.place(partitions - len(topic.partitions), 1))

        self.process.enter(grow)

    def delete(self, name: str) -> None:
        """Delete a topic if it is there."""

        def delete() -> None:
            topic = self.topic(name)
            if topic is not None:
                self.process.cluster.catalogue.delete([topic])

        self.process.enter(delete)

    def heal(self) -> None:
        """End the faults, and the members with another topology."""
        super().heal()
        self.is_healed = True
        for member in self.watch.members.values():
            member.is_healed = True
        for client in self.clients:
            if client.name.startswith(_STRAY):
                client.kill()
        if not any(not client.is_over for client in self.clients):
            self.start("m0")

    def even(self) -> None:
        """Make the sources even, and drop internal topics that do not fit them any more."""
        if not self.process.is_up:
            return
        counts = {name: len(found.partitions) for name in SOURCES + INTERNAL if (found := self.topic(name)) is not None}
        most = max((counts.get(name, 0) for name in SOURCES), default=0) or self.plan.partitions
        for name in SOURCES:
            if counts.get(name) != most:
                self.grow(name, most)
        for name in INTERNAL:
            if counts.get(name, most) != most:
                self.delete(name)

    def judge(self) -> None:
        """Run on until every task runs in one member."""
        due_ms = self.world.ms + _PATIENCE_MS
        while left := self._left():
            must(self.world.ms < due_ms, "SL1", f"not settled {_PATIENCE_MS} ms after the faults: {left[:4]}")
            self.even()
            self.world.run(self.world.ms + _STEP_MS)

    def _left(self) -> list[str]:
        coordinator = self.coordinator
        if coordinator is None:
            return ["there is no coordinator"]
        live = [self.watch.members[client.name] for client in self.clients if not client.is_over]
        return self.watch.left(coordinator.hard_state.streams_groups.get(GROUP), live)


class Mischief(GroupFaults[Client]):
    """Runs until `stop`."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(simulation, simulation.plan.session_ms)
        self._simulation = simulation
        self._grown = 0
        self._storms = Storms(simulation.world, simulation.plan.faults, self._cause, self.next_deadline_ms)

    def stop(self) -> None:
        """Cause nothing more."""
        self._storms.is_over = True

    def _has_room(self) -> bool:
        return sum(not client.is_over for client in self._simulation.clients) < _CLIENTS_MAX

    def kill_client(self) -> None:
        """A process dies, and comes back later."""
        if client := self._client():
            self._saw(f"kill {client.name}")
            client.kill(quietly=self._world.dice.chance(0.5))
            seat = client.name.partition(".")[0]
            self._world.after(self._world.dice.between(0, 3_000), self._simulation.start, seat)

    def close_client(self) -> None:
        """An application is closed, and starts again later."""
        if client := self._client():
            self._saw(f"close {client.name}")
            self._simulation.watch.members[client.name].is_closing = True

    def pause_client(self) -> None:
        """A process stands still, often beyond its session."""
        self._pause(3 * self._session_ms)

    def twin_client(self) -> None:
        """A second process like another one; of a static member, with its instance id."""
        client = self._client()
        if client is not None and self._has_room():
            self._saw(f"a second process like {client.name}")
            self._simulation.start(client.name.partition(".")[0])

    def stray_client(self) -> None:
        """An application with another topology and the same group id, for a while."""
        # The first topology is that of the group; the real one must be it.
        if self._has_room() and self._simulation.watch.told:
            self._saw("an application with another topology")
            self._simulation.start(_STRAY, is_stray=True)

    def grow_topic(self) -> None:
        """A source gets one more partition; the other one gets it later, or never before the faults stop."""
        if self._grown < _GROWN_MAX and self._simulation.process.is_up:
            self._grown += 1
            name = self._world.dice.choice(SOURCES)
            topic = self._simulation.topic(name)
            if topic is not None:
                self._saw(f"add a partition to {name}")
                self._simulation.grow(name, len(topic.partitions) + 1)
                self._world.after(self._world.dice.between(0, 5_000), self._simulation.even)

    def delete_topic(self) -> None:
        """A topic is deleted, and is there again later."""
        if self._simulation.process.is_up:
            name = self._world.dice.choice(SOURCES + INTERNAL)
            self._saw(f"delete {name}")
            self._simulation.delete(name)
            self._world.after(self._world.dice.between(0, 5_000), self._simulation.even)
