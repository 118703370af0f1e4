"""All parts of one run: the world, the broker's process, the clients and the answers they get."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from partita.broker.options import Value
from partita.records.builder import build_batch
from partita.sim.shell.markers import Markers
from partita.sim.shell.process import Process
from partita.sim.transactions import copiers, scripts
from partita.sim.transactions.bursts import MAX_MESSAGE_BYTES
from partita.sim.transactions.client import Client, Script
from partita.sim.transactions.ledger import Ledger
from partita.sim.transactions.plan import Plan
from partita.sim.transactions.scripts import Level
from partita.sim.transactions.stage import GROWING, INPUTS, PARTITIONS, STRICT, Stage
from partita.sim.transactions.watch import STATE_TOPIC, Watch
from partita.sim.world.network import NODES, Network
from partita.sim.world.world import Trace, World
from partita.transactions.log_records import record_of
from partita.transactions.model import Transaction

Life = Callable[[Client, Level], Script]


class Simulation:
    """One run. `heal` ends every fault."""

    def __init__(self, seed: int, plan: Plan, trace: Trace) -> None:
        self.plan = plan
        self.world = World(seed, trace)
        self.network = Network(self.world)
        weather = self.network.weather
        weather.delay_max_ms, weather.slow_up, weather.slow_down = plan.delay_ms, plan.slow_up, plan.slow_down
        self.node_ids = tuple(range(1, NODES + 1))
        self.ledger = Ledger()
        self.process = Process(self.world, self.network, self._settings(), _TOPICS)
        self.process.sync_ms = (plan.sync_ms // 2, plan.sync_ms)
        self.watch = Watch(self.process, self.ledger)
        self.process.on_turn = self.watch.turned
        self.markers = Markers(self.world, self.process, delay_ms=plan.marker_delay_ms, loss=plan.marker_loss)
        self.process.on_start = self._started
        self.clients: list[Client] = []
        self.stage = Stage(self.world, plan, self.ledger, self.watch)
        self.starting = 0
        """Clients that are about to begin another life."""
        self.has_forgotten = False
        """Whether the clock has jumped so far that partitions forgot producers: then batches may come twice."""
        self._lives: dict[str, int] = {}
        self.process.start(was_clean=True)
        if plan.first_epoch >= 0:
            self.process.enter(self._age_ids)
        for seat in self._seats():
            self.world.after(self.world.dice.between(0, 1_000), self.start, seat)

    def _started(self) -> None:
        self.markers.take_seam()
        self.watch.recovered()

    def _settings(self) -> dict[str, object]:
        return {
            "auto.create.topics.enable": False,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.num.partitions": 1,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
            "partita.transaction.version": self.plan.level,
            "log.cleaner.backoff.ms": 3_600_000,
            "log.retention.ms": -1,
            "offsets.retention.minutes": 10_000_000,
        }

    def _age_ids(self) -> None:
        """Let transactional ids have used most of their epochs already."""
        catalogue = self.process.cluster.catalogue
        partition = catalogue.by_name[STATE_TOPIC].partitions[0]
        now = self.process.clock.now()
        for number in range(self.plan.ids):
            aged = Transaction(
                f"id{number}", catalogue.allocate_producer_id(), 1_000, now.wall_ms, epoch=self.plan.first_epoch
            )
            record = record_of(aged, self.plan.level)
            partition.log.append(build_batch([(now.wall_ms, record.key, record.value, ())]), 0, now)
        self.process.cluster.elect(partition, 3 - partition.leader)

    def _seats(self) -> dict[str, Life]:
        plan = self.plan
        seats: dict[str, Life] = {f"w{n}": partial(self._writer, f"id{n % plan.ids}") for n in range(plan.writers)}
        seats |= {f"copy{n}": partial(self._copier, n) for n in range(plan.copiers)}
        seats |= {f"r{n}": lambda client, _: scripts.read(self.stage, client) for n in range(plan.readers)}
        seats["feed"] = lambda client, _: scripts.feed(self.stage, client)
        seats["burst"] = lambda client, _: scripts.burst(self.stage, client)
        return seats

    def _writer(self, transactional_id: str, client: Client, level: Level) -> Script:
        return scripts.write(self.stage, client, transactional_id, level)

    def _copier(self, number: int, client: Client, level: Level) -> Script:
        if self.plan.group_protocol == "none":
            return copiers.copy(self.stage, client, number, level)
        return copiers.copy_as_member(self.stage, client, f"copy{number}", level)

    def start(self, seat: str) -> None:
        """Begin another life of a client."""
        life = self._lives[seat] = self._lives.get(seat, 0) + 1
        name = f"{seat}.{life}"
        client = Client(self.world, self.network, name, self.node_ids)
        client.on_end = self.ended
        self.clients.append(client)
        self.world.saw("c", name, "start")
        client.run(self._seats()[seat](client, self._level_for(client)))

    def _level_for(self, client: Client) -> Level:
        """An old client knows no version 2; another one hears of a change of the level some time after it."""
        if self.world.dice.chance(self.plan.old_clients):
            return lambda: 0
        seen = self.stage.level

        def level() -> int:
            nonlocal seen
            if seen != self.stage.level and self.world.dice.chance(0.3):
                seen = self.stage.level
                self.world.saw("c", client.name, f"learns of level {seen}")
            return seen

        return level

    def ended(self, client: Client) -> None:
        """A client has stopped: another life of it begins a little later."""
        self.world.saw("c", client.name, f"end {client.failure}")
        self.clients = [one for one in self.clients if not one.is_over]
        if self.stage.is_producing or (client.failure and client.name.startswith("copy")):
            self.starting += 1
            seat = client.name.partition(".")[0]
            self.world.after(self.world.dice.between(0, 2_000), self._start_if_absent, seat)

    def _start_if_absent(self, seat: str) -> None:
        """Begin another life, unless there is one that does the work."""
        self.starting -= 1
        if not any(one.name.partition(".")[0] == seat and not one.is_over for one in self.clients):
            self.start(seat)

    def heal(self) -> None:
        """End the faults."""
        self.world.saw("!", "fault", "everything is healed")
        self.network.heal()
        self.markers.heal()
        self.process.sync_ms = (0, 0)
        self.process.loop.work_ms = (0, 0)
        for client in list(self.clients):
            client.resume()


_DAY_MS = 86_400_000
_TOPICS: dict[str, tuple[int, dict[str, Value]]] = {
    GROWING: (PARTITIONS, {}),
    "in": (INPUTS, {}),
    "out": (1, {}),
    "brief": (1, {}),
    STRICT[0][0]: (
        len(STRICT),
        {
            "cleanup.policy": ("compact",),
            "max.message.bytes": MAX_MESSAGE_BYTES,
            "message.timestamp.after.max.ms": 10 * _DAY_MS,  # clocks of brokers are set back
        },
    ),
    "kept": (
        1,
        {
            "cleanup.policy": ("compact",),
            "internal.segment.bytes": 1200,
            "min.cleanable.dirty.ratio": 0.0,
            "delete.retention.ms": 0,
        },
    ),
}
