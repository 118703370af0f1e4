"""Consumers of a simulation: the real pure core, driven as the asyncio shell drives it, under an application."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from partita.broker.api.apis import SERVED
from partita.consumer.config import ConsumerConfig
from partita.consumer.core import ConsumerCore
from partita.consumer.request import Request
from partita.protocol.api_table import APIS
from partita.protocol.framing import encode_request, read_response_header
from partita.sim.clients.application import Application, Habits, Wait
from partita.sim.rules.watch import Watch
from partita.sim.world.network import NODES, Link, Network, Way
from partita.sim.world.world import World

CONNECT_FAILS_MS = 50
FOREVER = 1 << 60
_GROUP_LANE, _FETCH_LANE = 1, 2
"""Connections: a parked join holds up nothing else, and neither does a fetch that waits."""


@dataclass(slots=True)
class Wire:
    """One connection as the client has it: what was asked on it, and when patience ends."""

    link: Link
    open: dict[int, tuple[Request, int]] = field(default_factory=dict)


class SimConsumer:
    """One life of one consumer process. `on_end` hears when it stops by itself."""

    application_class: type[Application] = Application

    def __init__(
        self, world: World, network: Network, watch: Watch, name: str, habits: Habits, max_versions: dict[int, int]
    ) -> None:
        self.name = name
        self._world = world
        self._network = network
        self._watch = watch
        self._max_versions = max_versions
        config = ConsumerConfig.of(None, client_id=name, **habits.options)
        self.core = ConsumerCore(config, world.dice.uniform, f"{name}@{world.now.mono_ms}")
        self.is_over = False
        self.is_paused = False
        self.on_end: Callable[[SimConsumer], None] = lambda _: None
        self._late: list[Callable[[], None]] = []
        self._wires: dict[object, Wire] = {}
        self._correlation = 0
        self._due_ms = FOREVER
        self._armed_ms = FOREVER
        self._wait = Wait(0)
        self.application = self.application_class(
            world, watch, name=name, habits=habits, core=self.core, step=self._step, send=self._send
        )
        self._app = self.application.run()
        self.core.subscription.subscribe_topics(habits.topics)
        world.after(0, self.turn)

    @property
    def instance_id(self) -> str | None:
        """Its group instance id, if it is a static member."""
        return self.core.config.group_instance_id

    @property
    def failure(self) -> BaseException | None:
        """Why its application ended, if it was fenced."""
        return self.application.failure

    # Turns

    def turn(self) -> None:
        """The core decides, then the application goes on if it waits for that."""
        if not self.is_over and not self.is_paused:
            self._advance()

    def _advance(self) -> None:
        """An application that waits in a call of the consumer has the core decide as it goes on."""
        if self._wait.soundly and self._wait.until_ms > self._world.now.mono_ms:
            self._step()
        self._resume()

    def _resume(self) -> None:
        if self._wait.soundly and self._wait.until_ms > self._world.now.mono_ms:
            self._arm(self._wait.until_ms)
            return
        try:
            self._wait = next(self._app)
        except StopIteration:
            self.kill(quietly=False)
            self.on_end(self)
            return
        self._arm(self._wait.until_ms)

    def _step(self) -> None:
        now = self._world.now
        poll = self.core.poll(now)
        for node in self.core.take_drops():
            self._drop(Way(node.id, _GROUP_LANE))
        for request in poll.requests:
            self._send(request)
        self._due_ms = now.mono_ms + poll.wait_ms
        self._arm(self._due_ms)

    def _arm(self, due_ms: int) -> None:
        if due_ms < self._armed_ms and due_ms < FOREVER:
            self._armed_ms = due_ms
            self._world.at(due_ms, self._wake, due_ms)

    def _wake(self, armed_ms: int) -> None:
        if armed_ms != self._armed_ms or self.is_over or self.is_paused:
            return
        self._armed_ms = FOREVER
        now_ms = self._world.now.mono_ms
        self._expire(now_ms)
        if self._due_ms <= now_ms or self._wait.until_ms <= now_ms:
            self._advance()
        self._arm(min(self._due_ms, self._wait.until_ms, self._next_expiry()))

    # What others do to it

    def close(self) -> None:
        """The application stops after the poll it is in."""
        self.application.is_closing = True
        self.turn()

    def kill(self, *, quietly: bool) -> None:
        """The process is gone; its connections close, or fall silent."""
        if self.is_over:
            return
        self.is_over = True
        self._watch.clients.killed(self.name)
        for wire in self._wires.values():
            self._network.close_by_client(wire.link, quietly=quietly)
        self._wires.clear()

    def pause(self) -> None:
        """The process stands still; what comes in waits."""
        self.is_paused = True

    def resume(self) -> None:
        """Continue the process where it was suspended."""
        if not self.is_paused:
            return
        self.is_paused = False
        late, self._late = self._late, []
        self._armed_ms = FOREVER
        for call in late:
            call()
        self._expire(self._world.now.mono_ms)
        self.turn()

    # Requests

    def _send(self, request: Request) -> None:
        node_id = self._world.dice.between(1, NODES) if request.node is None else request.node.id
        key = Way(node_id, _GROUP_LANE if request.to_coordinator else _FETCH_LANE)
        wire = self._wires.get(key)
        if wire is None:
            link = self._network.connect(self, key)
            if link is None:
                self._world.after(CONNECT_FAILS_MS, self._lost, request)
                return
            wire = self._wires[key] = Wire(link)
        message = request.message
        served = min(SERVED[message.API_KEY].max_version, message.MAX_VERSION)
        highest = min(served, self._max_versions.get(message.API_KEY, served))
        request.sent_at_ms = self._world.now.mono_ms
        request.version = highest if request.max_version is None else min(highest, request.max_version)
        self._correlation += 1
        timeout = request.timeout_ms or self.core.config.request_timeout_ms
        wire.open[self._correlation] = (request, self._world.now.mono_ms + timeout)
        frame = b"".join(encode_request(message.API_KEY, request.version, self._correlation, self.name, message))
        self._watch.sent(self.name, message, request.version)
        self._network.send(wire.link, frame[4:])
        self._arm(self._next_expiry())

    def arrived(self, link: Link, frame: bytes) -> None:
        """A frame came in."""
        if self.is_paused:
            self._late.append(lambda: self.arrived(link, frame))
            return
        wire = self._wires.get(link.key)
        if self.is_over or wire is None or wire.link is not link:
            return
        correlation_id = int.from_bytes(frame[:4], "big")
        request, _ = wire.open.pop(correlation_id)
        api = APIS[request.message.API_KEY]
        _, reader = read_response_header(api.key, request.version, frame)
        response = api.response.read(reader, request.version)
        self._watch.arrived(self.name, response)
        self.core.on_response(request, response, self._world.now)
        self.turn()

    def broken(self, link: Link) -> None:
        """The other end closed the connection."""
        if self.is_paused:
            self._late.append(lambda: self.broken(link))
        elif not self.is_over and (wire := self._wires.get(link.key)) is not None and wire.link is link:
            del self._wires[link.key]
            self._fail(wire)
            self.turn()

    def _drop(self, key: object) -> None:
        """The core wants this connection closed; what waits on it fails."""
        wire = self._wires.pop(key, None)
        if wire is not None:
            self._network.close_by_client(wire.link)
            for request, _ in wire.open.values():
                self._world.after(0, self._lost, request)

    def _lost(self, request: Request) -> None:
        if self.is_paused:
            self._late.append(lambda: self._lost(request))
        elif not self.is_over:
            self._world.saw("x", self.name, type(request.message).__name__)
            self.core.on_disconnect(request, self._world.now)
            self.turn()

    def _fail(self, wire: Wire) -> None:
        for request, _ in wire.open.values():
            self._world.saw("x", self.name, type(request.message).__name__)
            self.core.on_disconnect(request, self._world.now)

    def _next_expiry(self) -> int:
        return min((end for wire in self._wires.values() for _, end in wire.open.values()), default=FOREVER)

    def _expire(self, now_ms: int) -> None:
        """A request without an answer for too long ends its connection."""
        for key, wire in list(self._wires.items()):
            if any(end <= now_ms for _, end in wire.open.values()):
                del self._wires[key]
                self._network.close_by_client(wire.link)
                self._fail(wire)
                self._due_ms = now_ms
