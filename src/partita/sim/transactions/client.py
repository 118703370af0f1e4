"""A client process of the simulation: connections to nodes, requests with time-outs, the cluster's metadata.

What it does is a script: a generator that yields what it waits for. `Slot` is one answer to come.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from partita.errors import KafkaError, error_for
from partita.net.errors import Disconnected, RequestTimedOut
from partita.protocol.api_table import APIS
from partita.protocol.error_codes import ErrorCode
from partita.protocol.framing import encode_request, read_response_header
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from partita.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from partita.protocol.metadata_view import MetadataView
from partita.protocol.primitives import Request
from partita.sim.rules.rule import must
from partita.sim.world.network import Link, Network, Way
from partita.sim.world.world import World

REQUEST_TIMEOUT_MS = 5_000
RETRY_MS = 100
CONNECT_FAILS_MS = 50
METADATA_VERSION, FIND_VERSION = 12, 3
Wait: TypeAlias = "Callable[[], bool]"
Script: TypeAlias = Generator[Wait, None, Any]


@dataclass(slots=True, eq=False)
class Slot:
    """An answer to come: a response or an error."""

    response: Any = None
    error: KafkaError | None = None

    def is_done(self) -> bool:
        """Whether there is one."""
        return self.response is not None or self.error is not None


@dataclass(slots=True, eq=False)
class _Asked:
    message: Request[Any]
    version: int
    due_ms: int
    on_end: Callable[[Slot], None]


@dataclass(slots=True)
class _Wire:
    link: Link
    open: dict[int, _Asked] = field(default_factory=dict)


class Client:
    """One life of one process. `run` begins its script; `is_over` once it has ended or was killed."""

    def __init__(self, world: World, network: Network, name: str, nodes: tuple[int, ...]) -> None:
        self.world = world
        self.name = name
        self.view = MetadataView()
        self.is_over = self.is_paused = False
        self.failure = ""
        self._network = network
        self._nodes = nodes
        self._wires: dict[Way, _Wire] = {}
        self._correlation = 0
        self._late: list[Callable[[], None]] = []
        self._script: Script | None = None
        self._wait: Wait = lambda: True
        self._coordinators: dict[tuple[str, int], int] = {}
        self.parts: list[Callable[[], None]] = []
        """Called whenever something happened, before the script goes on: the producer, the consumer."""
        self.on_end: Callable[[Client], None] = lambda _: None
        """Called when the script has ended."""

    # The script

    def run(self, script: Script) -> None:
        """Begin."""
        self._script = script
        self.world.after(0, self.turn)

    def turn(self) -> None:
        """Something happened: go on if what the script waits for is there."""
        if self.is_over or self.is_paused or self._script is None:
            return
        self._step()
        while not self.is_over and self._wait():
            try:
                self._wait = next(self._script)
            except StopIteration:
                self.kill()
                self.on_end(self)
                return
            self._step()

    def _step(self) -> None:
        for part in self.parts:
            part()

    def pause_for(self, ms: int) -> Wait:
        """Wait so many milliseconds."""
        due_ms = self.world.now.mono_ms + ms
        self.world.after(ms, self.turn)
        return lambda: self.world.now.mono_ms >= due_ms

    # What others do to it

    def kill(self, *, quietly: bool = False) -> None:
        """The process is gone."""
        self.is_over = True
        for wire in self._wires.values():
            self._network.close_by_client(wire.link, quietly=quietly)
        self._wires.clear()

    def pause(self) -> None:
        """The process stands still; what comes in waits."""
        self.is_paused = True

    def resume(self) -> None:
        """Continue, unaware of having been paused."""
        if self.is_paused:
            self.is_paused = False
            late, self._late = self._late, []
            for call in late:
                call()
            self._expire()
            self.turn()

    # Requests

    def ask(self, node_id: int, message: Request[Any], version: int) -> Slot:
        """Send a request to a node."""
        slot = Slot()

        def end(ended: Slot) -> None:
            slot.response, slot.error = ended.response, ended.error

        self.post(node_id, message, version, end)
        return slot

    def post(
        self,
        node_id: int,
        message: Request[Any],
        version: int,
        on_end: Callable[[Slot], None],
        *,
        lane: int = 0,
        timeout_ms: int = REQUEST_TIMEOUT_MS,
    ) -> None:
        """Send a request to a node; `on_end` hears of its end. Lanes do not wait for each other."""
        asked = _Asked(message, version, self.world.now.mono_ms + timeout_ms, on_end)
        way = Way(node_id, lane)
        wire = self._wires.get(way)
        if wire is None:
            link = self._network.connect(self, way)
            if link is None:
                self.world.after(CONNECT_FAILS_MS, self._fail, [asked], Disconnected("nobody listens"))
                return
            wire = self._wires[way] = _Wire(link)
        self._correlation += 1
        wire.open[self._correlation] = asked
        frame = b"".join(encode_request(message.API_KEY, version, self._correlation, self.name, message))
        self.world.saw(">", self.name, f"{type(message).__name__} v{version} to {node_id}")
        self._network.send(wire.link, frame[4:])
        self.world.at(asked.due_ms, self._expire)

    def any_node(self) -> int:
        """One of the cluster's nodes."""
        return self.world.dice.choice(self._nodes)

    def link_to(self, node_id: int) -> Link | None:
        """The connection to a node, if there is one."""
        wire = self._wires.get(Way(node_id, 0))
        return None if wire is None else wire.link

    def hang_up(self, node_id: int, lane: int) -> None:
        """Close a connection; what waits on it fails."""
        wire = self._wires.pop(Way(node_id, lane), None)
        if wire is not None:
            self._network.close_by_client(wire.link)
            self.world.after(0, self._fail, list(wire.open.values()), Disconnected("closed by the client"))

    def arrived(self, link: Link, frame: bytes) -> None:
        """A frame came in."""
        if self.is_paused:
            self._late.append(lambda: self.arrived(link, frame))
            return
        assert isinstance(link.key, Way), "clients connect to nodes"
        wire = self._wires.get(link.key)
        if self.is_over or wire is None or wire.link is not link:
            return
        asked = wire.open.pop(int.from_bytes(frame[:4], "big"))
        api = APIS[asked.message.API_KEY]
        _, reader = read_response_header(api.key, asked.version, frame)
        response = api.response.read(reader, asked.version)
        self.world.saw("<", self.name, type(response).__name__)
        code = getattr(response, "error_code", ErrorCode.NONE)
        must(code != ErrorCode.UNKNOWN_SERVER_ERROR, "E", f"the broker could not handle {type(asked.message).__name__}")
        asked.on_end(Slot(response))
        self.turn()

    def broken(self, link: Link) -> None:
        """The other end closed the connection."""
        if self.is_paused:
            self._late.append(lambda: self.broken(link))
            return
        assert isinstance(link.key, Way), "clients connect to nodes"
        wire = self._wires.get(link.key)
        if not self.is_over and wire is not None and wire.link is link:
            del self._wires[link.key]
            self._fail(list(wire.open.values()), Disconnected("the connection was closed"))

    def _expire(self) -> None:
        """A request without an answer for too long ends its connection."""
        if self.is_over or self.is_paused:
            return
        now_ms = self.world.now.mono_ms
        for way, wire in list(self._wires.items()):
            if any(asked.due_ms <= now_ms for asked in wire.open.values()):
                del self._wires[way]
                self._network.close_by_client(wire.link)
                self._fail(list(wire.open.values()), RequestTimedOut("no answer came in time"))

    def _fail(self, asked: list[_Asked], error: KafkaError) -> None:
        if self.is_paused:
            self._late.append(lambda: self._fail(asked, error))
            return
        if self.is_over:
            return
        for one in asked:
            self.world.saw("x", self.name, type(one.message).__name__)
            one.on_end(Slot(error=error))
        self.turn()

    # What is known of the cluster

    def refresh(self, topics: list[str], on_end: Callable[[], None] = lambda: None) -> None:
        """Ask any node about topics."""
        message = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in topics])

        def end(slot: Slot) -> None:
            if isinstance(slot.response, MetadataResponse):
                self.view.update(slot.response, METADATA_VERSION, keep=self.view.topics)
            on_end()

        self.post(self.any_node(), message, METADATA_VERSION, end)

    def with_coordinator(self, key: str, key_type: int, go_on: Callable[[int | KafkaError], None]) -> None:
        """Find the node that coordinates; `go_on` is given its id or why there is none."""
        known = self._coordinators.get((key, key_type))
        if known is not None:
            go_on(known)
            return

        def end(slot: Slot) -> None:
            answer = slot.response
            if isinstance(answer, FindCoordinatorResponse) and not answer.error_code:
                self._coordinators[key, key_type] = answer.node_id
                go_on(answer.node_id)
            elif answer is not None:
                go_on(error_for(answer.error_code, "looking for the coordinator"))
            else:
                assert slot.error is not None, "a request ends with an answer or an error"
                go_on(slot.error)

        message = FindCoordinatorRequest(key=key, key_type=key_type)
        self.post(self.any_node(), message, FIND_VERSION, end)

    def forget_coordinator(self, key: str, key_type: int) -> None:
        """Forget the coordinator, which has moved or is not reached."""
        self._coordinators.pop((key, key_type), None)

    # Pieces of scripts

    def leader_of(self, topic: str, partition: int) -> Generator[Wait, None, int]:
        """The node that leads a partition, once it is known."""
        while (leader := self.view.leader(topic, partition)) is None:
            done: list[bool] = []
            self.refresh([topic], lambda done=done: done.append(True))  # type: ignore[misc]  # mypy does not see the default
            yield lambda done=done: bool(done)  # type: ignore[misc]  # as above
            if self.view.leader(topic, partition) is None:
                yield self.pause_for(RETRY_MS)
        return leader.id
