"""All parts of one run: the world, the broker's process, the members, and the faults that happen to them."""

from __future__ import annotations

from partita.broker.api.services import Services
from partita.broker.groups import settings
from partita.broker.nodes import Cluster
from partita.broker.topics.catalogue import OFFSETS_TOPIC, SHARE_STATE_TOPIC
from partita.sim.rules.rule import must
from partita.sim.sharing.ledger import Ledger
from partita.sim.sharing.member import GROUP, PARTITIONS, TOPIC, Member, Stage, feed
from partita.sim.sharing.plan import Plan
from partita.sim.sharing.watch import Watch
from partita.sim.shell.process import Process
from partita.sim.transactions.client import Client
from partita.sim.world.faults import Faults, Storms
from partita.sim.world.network import NODES, Network
from partita.sim.world.world import Trace, World

_STALL_MS = 8_000
_CLIENTS_MAX = 12
_STEP_MS, _PATIENCE_MS = 500, 120_000


class Simulation:
    """One run. `heal` ends every fault, `judge` demands that every record is done with."""

    def __init__(self, seed: int, plan: Plan, trace: Trace) -> None:
        self.world = World(seed, trace)
        self.network = Network(self.world)
        weather = self.network.weather
        weather.delay_max_ms = plan.delay_ms
        self.plan = plan
        self.ledger = Ledger(self.world, plan.limit, plan.lock_ms)
        self.watch = Watch(self.ledger, plan.limit)
        self.stage = Stage(self.world, plan, self.ledger)
        self.clients: list[Client] = []
        self.process = Process(self.world, self.network, _settings(plan), {TOPIC: (PARTITIONS, {})})
        self.process.sync_ms = (plan.sync_ms // 2, plan.sync_ms)
        self.process.make_services = self._services
        self.process.on_turn = self._turned
        self._lives = 0
        self.process.start(was_clean=True)
        self.process.enter(self._configure)
        self.start("feed")
        for number in range(plan.members):
            self.world.after(self.world.dice.between(0, 1_000), self.start, f"m{number}")

    def _services(self, cluster: Cluster) -> Services:
        services = Services(cluster)
        self.watch.ask = services.share_states().answer
        services.persister = self.watch.answer
        return services

    def _configure(self) -> None:
        settings.change(self.process.cluster.catalogue, GROUP, {settings.RESET: "earliest"})

    def _turned(self) -> None:
        if self.watch.broken is not None:
            raise self.watch.broken
        must(not self.process.loop.failures, "E", f"raised and lost: {self.process.loop.failures[:1]}")

    def start(self, seat: str) -> None:
        """Begin another life of a client."""
        self._lives += 1
        client = Client(self.world, self.network, f"{seat}.{self._lives}", tuple(range(1, NODES + 1)))
        self.clients = [*(one for one in self.clients if not one.is_over), client]
        self.world.saw("c", client.name, "start")
        client.run(feed(self.stage, client) if seat == "feed" else Member(self.stage, client).work())

    def heal(self) -> None:
        """End the faults; from now on members accept all they get."""
        self.world.saw("!", "fault", "everything is healed")
        self.network.heal()
        self.ledger.shaken()
        self.process.sync_ms = self.process.loop.work_ms = (0, 0)
        self.stage.is_producing, self.stage.is_healed = False, True
        for client in list(self.clients):
            client.resume()
        if not any(client.name.startswith("m") and not client.is_over for client in self.clients):
            self.start("m")

    def judge(self) -> None:
        """Run on until the start of each share partition has reached the end of its log."""
        due_ms = self.world.ms + _PATIENCE_MS
        while left := self._left():
            must(self.world.ms < due_ms, "SL1", f"not done with {_PATIENCE_MS} ms after the faults: {left}")
            self.world.run(self.world.ms + _STEP_MS)

    def _left(self) -> list[str]:
        if not self.process.is_up:
            return ["the broker is down"]
        partitions = self.process.cluster.catalogue.by_name[TOPIC].partitions
        found = []
        for partition in partitions:
            led = [
                one for node in self.process.services.share_nodes.values() for one in node.led.get(GROUP, {}).values()
            ]
            lags = [one.lag for one in led if one.partition is partition and one.shared is not None]
            if partition.log.log_end_offset and (not lags or min(lags)):
                found.append(f"{TOPIC}-{partition.index}: {lags}")
        return found


class Mischief(Faults[Client]):
    """Runs until `stop`."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(simulation, _STALL_MS)
        self._simulation = simulation
        self._process = simulation.process
        self._storms = Storms(simulation.world, simulation.plan.faults, self._cause, self._next_deadline_ms)

    def stop(self) -> None:
        """Cause nothing more."""
        self._storms.is_over = True

    def _next_deadline_ms(self) -> int | None:
        """When the next lock ends."""
        nodes = self._process.services.share_nodes.values() if self._process.is_up else ()
        shared = [led.shared for node in nodes for led in node.led.get(GROUP, {}).values()]
        return min((s.next_deadline_ms for s in shared if s is not None and s.next_deadline_ms), default=None)

    def kill_client(self) -> None:
        """A process dies, and another one takes its place."""
        if client := self._client():
            self._saw(f"kill {client.name}")
            client.kill(quietly=self._world.dice.chance(0.5))
            self._simulation.ledger.session_ended(client.name)
            ms = self._world.dice.between(0, 2_000)
            self._world.after(ms, self._simulation.start, client.name.partition(".")[0])

    def pause_client(self) -> None:
        """A process stands still, often beyond its locks."""
        self._pause(3 * self._simulation.plan.lock_ms)

    def twin_client(self) -> None:
        """A second process does the same work."""
        client = self._client()
        if client is not None and len(self._simulation.clients) < _CLIENTS_MAX:
            self._saw(f"a second process like {client.name}")
            self._simulation.start(client.name.partition(".")[0])

    def close_connection(self) -> None:
        """The broker closes a connection: the session that it opened ends."""
        self._simulation.ledger.shaken()
        super().close_connection()

    def crash_broker(self) -> None:
        """The broker dies, and starts again on its disk later."""
        if self._process.is_up:
            ms = self._world.dice.between(0, 4_000)
            self._simulation.ledger.shaken()
            self._saw(f"crash the broker for {ms} ms, {self._process.crash(ms)} bytes are lost")

    def move_states(self) -> None:
        """Let another node coordinate the state of share partitions."""
        self._move(SHARE_STATE_TOPIC, 0)

    def move_offsets(self) -> None:
        """Let another node coordinate the group."""
        self._move(OFFSETS_TOPIC, 0)

    def move_data(self) -> None:
        """Let another node lead a partition."""
        self._move(TOPIC, self._world.dice.between(0, PARTITIONS - 1))

    def _move(self, topic: str, index: int) -> None:
        def move() -> None:
            found = self._process.cluster.catalogue.get(topic)
            if found is not None:
                to = self._world.dice.between(1, NODES)
                self._saw(f"{topic}-{index} moves to {to}")
                self._simulation.ledger.shaken()
                self._process.cluster.elect(found.partitions[index], to)

        self._process.enter(move)


def _settings(plan: Plan) -> dict[str, object]:
    return {
        "auto.create.topics.enable": False,
        "offsets.topic.num.partitions": 1,
        "share.coordinator.state.topic.num.partitions": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.snapshot.update.records.per.snapshot": plan.snapshot_every,
        "group.share.assignment.interval.ms": 0,
        "group.share.delivery.count.limit": plan.limit,
        "group.share.min.record.lock.duration.ms": 1_000,
        "group.share.record.lock.duration.ms": plan.lock_ms,
        "group.share.partition.max.record.locks": plan.locks,
        "log.retention.ms": -1,
    }
