"""The broker of a simulation, one life after another: the real one, with its nodes, handlers and shards.

Clients reach it by the simulated network, frame by frame. A crash ends the process at any instant; the next one starts
on what the disk still has.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from partita.broker.api.context import Answer
from partita.broker.api.services import Services
from partita.broker.config import BrokerConfig
from partita.broker.nodes import Cluster
from partita.broker.options import Value
from partita.broker.requests.dispatch import Dispatcher, Exchange, Interceptor
from partita.broker.topics.catalogue import OFFSETS_TOPIC, TRANSACTION_TOPIC
from partita.broker.wire.contract import Answerer, Chunks, Parked
from partita.broker.wire.listeners import PLAINTEXT, Endpoint
from partita.broker.wire.memo import Memo
from partita.security.principals import ANONYMOUS, KafkaPrincipal
from partita.sim.shell.disk import DISK_FULL, SimDisk, SimStore
from partita.sim.shell.loop import VirtualClock, VirtualLoop
from partita.sim.world.network import NODES, Link, Network, Way
from partita.sim.world.world import World

PORT = 9092


class _NoFaults:
    """Faults come from outside of the broker."""

    active = False

    def intercept(self, exchange: Exchange) -> Answer:
        """Let the handler answer."""
        return exchange.call()


class _Connection:
    """One client's connection: its requests begin and end in order."""

    def __init__(self, link: Link, answerer: Answerer, send: Callable[[Link, bytes], None]) -> None:
        self.client_host = "/127.0.0.1"
        self.client_port = 0
        self.software = ("", "")
        self.principal: KafkaPrincipal = ANONYMOUS
        self.is_lent = False
        self.recall = Memo(pause=_NoFaults()).recall(str(ANONYMOUS), self.client_host)
        self.closed = False
        self._link = link
        self._answerer = answerer
        self._send = send
        self._frames: deque[bytes] = deque()
        self._outcomes: deque[Chunks | Parked | None] = deque()
        self._callbacks: list[Callable[[], None]] = []

    def receive(self, frame: bytes) -> None:
        """Begin a request as soon as those before it allow."""
        self._frames.append(frame)
        self._go_on()

    def _go_on(self) -> None:
        while self._frames and not self._is_held_back() and not self.closed:
            outcome = self._answerer.dispatch(self, self._frames.popleft())
            self._outcomes.append(outcome)
            if isinstance(outcome, Parked) and not outcome.done:
                outcome.on_done = self._go_on
        while self._outcomes and not self.closed:
            first = self._outcomes[0]
            if isinstance(first, Parked) and not first.done:
                return
            chunks = first.chunks if isinstance(first, Parked) else first
            self._outcomes.popleft()
            if chunks is not None:
                self._send(self._link, b"".join(chunks)[4:])
            if self._frames:
                self._go_on()

    def _is_held_back(self) -> bool:
        return any(isinstance(one, Parked) and one.holds_back and not one.done for one in self._outcomes)

    def gone(self) -> None:
        """The connection is closed; what waits for it is dropped."""
        self.closed = True
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def identify(self, principal: KafkaPrincipal, *, is_lent: bool = False) -> None:
        """Do nothing: the simulation has no logins."""

    def close(self) -> None:
        """No handler closes connections here."""

    def abort(self) -> None:
        """No handler closes connections here."""

    def refuse(self, reason: str) -> None:
        """A client of the simulation sends nothing that is malformed."""
        raise AssertionError(f"a connection is refused: {reason}")

    def answer_with(self, answerer: Answerer) -> None:
        """Do nothing: the simulation has no logins."""

    def mute(self, seconds: float) -> None:
        """There are no quotas here."""

    def on_close(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the connection is gone."""
        self._callbacks.append(callback)

    def forget(self, callback: Callable[[], None]) -> None:
        """Take back an `on_close`."""
        if callback in self._callbacks:
            self._callbacks.remove(callback)


class Process:
    """The broker and its lives.

    `on_start` is called in each new life before anything is loaded, `on_turn` after each turn of its loop.
    """

    def __init__(
        self,
        world: World,
        network: Network,
        settings: dict[str, object],
        topics: dict[str, tuple[int, dict[str, Value]]],
    ) -> None:
        self._world = world
        self._network = network
        self._settings = settings
        self._topics = topics
        self._ids = count(1)
        self.disk = SimDisk()
        self.is_up = False
        self.lives = 0
        self.sync_ms = (0, 0)
        """Least and most virtual milliseconds of a sync; a life takes it at its start."""
        self.make_services: Callable[[Cluster], Services] = Services
        """Called in each new life."""
        self.new_interceptor: Callable[[Services], Interceptor] = lambda services: _NoFaults()
        """Called in each new life: what may see requests before their handlers do."""
        self.on_start: Callable[[], None] = lambda: None
        self.on_turn: Callable[[], None] = lambda: None
        self._connections: dict[Link, _Connection] = {}
        network.listener = self

    def start(self, *, was_clean: bool = False) -> None:
        """Begin a life on what the disk has."""
        self.lives += 1
        self.clock = VirtualClock(self._world)
        self.loop = VirtualLoop(self._world, lambda: self.on_turn())  # type: ignore[abstract]  # the broker uses no other methods
        self.loop.work_ms = self.sync_ms
        store = SimStore(self.disk, self.clock, was_clean=was_clean)
        self.loop.enter(self._begin, store)

    def _begin(self, store: SimStore) -> None:
        config = BrokerConfig(self._settings)
        self.cluster = Cluster(
            config, store, NODES, clock=self.clock, new_uuid=self._new_uuid, stopwatch=self.loop.time
        )
        self.services = self.make_services(self.cluster)
        if not self.cluster.catalogue.cluster_id:
            self.cluster.catalogue.name_cluster("simulated")
        self.services.follow_topics()
        self.services.upkeep.start()
        interceptor = self.new_interceptor(self.services)
        self._dispatchers: dict[int, Dispatcher] = {}
        for node in self.cluster.nodes.values():
            node.endpoints[PLAINTEXT] = Endpoint("sim", PORT + node.node_id)
            node.is_alive = True
            self._dispatchers[node.node_id] = Dispatcher(self.services, node, PLAINTEXT, interceptor)
        self.cluster.elect_for_orphans()
        self.cluster.is_running = self.is_up = True
        for name, (partitions, options) in self._topics.items():
            if self.cluster.catalogue.get(name) is None:
                self.cluster.create_topic(name, partitions, 1, dict(options))
        self.cluster.ensure_state_topic(OFFSETS_TOPIC)
        self.cluster.ensure_state_topic(TRANSACTION_TOPIC)
        self.on_start()
        self.services.load_groups()

    def _new_uuid(self) -> bytes:
        return next(self._ids).to_bytes(16, "big")

    def crash(self, down_ms: int) -> int:
        """End the process at once, and start the next one later; returns how many bytes the disk lost."""
        self.loop.stop()
        self.is_up = False
        for link in list(self._connections):
            self._network.close_by_broker(link)
        self._connections.clear()
        lost = self.disk.crash(self._world.dice)
        self._world.after(down_ms, self.start)
        return lost

    def enter(self, call: Callable[..., object], *args: object) -> None:
        """Do something in the process; nothing while it is down."""
        if self.is_up:
            self.loop.enter(call, *args)

    # The network's listener

    def receive(self, link: Link, frame: bytes) -> None:
        """A frame has come in."""
        if not self.is_up:
            return
        connection = self._connections.get(link)
        if connection is None:
            assert isinstance(link.key, Way), "clients connect to nodes"
            connection = _Connection(link, self._dispatchers[link.key.node_id], self._reply)
            self._connections[link] = connection
        self.loop.enter(connection.receive, frame)

    def _reply(self, link: Link, frame: bytes) -> None:
        if link.is_served:
            self._network.reply(link, frame)

    def closed(self, link: Link) -> None:
        """A connection is gone; what it asked is decided all the same."""
        connection = self._connections.pop(link, None)
        if connection is not None:
            self.enter(connection.gone)


class _Alarm(logging.Handler):
    """Keeps what the broker logs with a traceback, or as an error other than that of a full disk: a defect of ours."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it if it is an error."""
        said = record.getMessage()
        if record.exc_info or (record.levelno >= logging.ERROR and not said.endswith(DISK_FULL)):
            self.heard.append(said)


@contextmanager
def broker_alarm() -> Iterator[list[str]]:
    """Keep the broker's log to ourselves; what it logs with a traceback is in the list."""
    logger, alarm = logging.getLogger("partita.broker"), _Alarm()
    was = logger.propagate, logger.level
    logger.propagate = False
    logger.addHandler(alarm)
    try:
        yield alarm.heard
    finally:
        logger.removeHandler(alarm)
        logger.propagate, logger.level = was
