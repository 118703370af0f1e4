"""A tap on a connection: it counts frames from outside, cuts a member off, and stops a frame before it goes on.

There is one listener for each member and server, so a frame says whose it is. Both protocols have frames with their
length in front; the name of a frame comes from `ZOOKEEPER` or `kafka_name`.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from struct import Struct
from types import TracebackType
from typing import TypeVar

from partita.protocol.api_table import APIS
from partita.protocol.framing import read_request_header, read_response_header
from partita.protocol.messages.heartbeat import HeartbeatResponse
from partita.protocol.primitives import MalformedRequest

T = TypeVar("T")
ZOOKEEPER, KAFKA = "zookeeper", "kafka"
_INT = Struct(">i")
_TWO_INTS = Struct(">ii")
EVENT_XID = -1
ZOOKEEPER_NAMES = {
    1: "create", 2: "delete", 3: "exists", 4: "getData", 5: "setData", 8: "getChildren", 11: "ping", 12: "getChildren",
    13: "check", 14: "multi", 15: "create", -11: "close",
}  # fmt: skip
HEARTBEAT, CONSUMER_GROUP_HEARTBEAT = 12, 68
GROUP_APIS = {10: "find", 11: "join", HEARTBEAT: "heartbeat", 13: "leave", 14: "sync", CONSUMER_GROUP_HEARTBEAT: "beat"}
"""The APIs of membership; offsets and data are counted apart."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame: when it passed, whose it is, its name, and the node or error it names."""

    at_s: float
    member: str
    name: str
    about: str = ""


@dataclass(slots=True)
class Breakpoint:
    """Holds the first request that fits until `go` is called."""

    fits: Callable[[str, str], bool]
    reached: threading.Event = field(default_factory=threading.Event)
    may_go: asyncio.Event = field(default_factory=asyncio.Event)


class Tap:
    """A listener in front of one server for one member. Made by `Taps`."""

    def __init__(self, taps: Taps, member: str, speaks: str, target: tuple[str, int]) -> None:
        self.member = member
        self.speaks = speaks
        self.target = target
        self.port = 0
        self.server: asyncio.Server | None = None
        self._taps = taps
        self._open = asyncio.Event()
        self._open.set()
        self._breakpoint: Breakpoint | None = None
        self._connections: set[asyncio.StreamWriter] = set()

    @property
    def address(self) -> str:
        """The address that the member connects to."""
        return f"127.0.0.1:{self.port}"

    def cut(self) -> None:
        """Pass nothing from now on, and close nothing."""
        self._taps.call(self._open.clear)

    def heal(self, *, reset: bool = False) -> None:
        """Let everything pass again; with `reset` earlier connections are closed."""
        if reset:
            self.drop()
        self._taps.call(self._open.set)

    def drop(self) -> None:
        """Close every connection; new ones are taken."""
        self._taps.call(self._drop)

    def _drop(self) -> None:
        for writer in list(self._connections):
            writer.transport.abort()

    def stop_before(self, fits: Callable[[str, str], bool]) -> Breakpoint:
        """Hold the next request whose name and path fit."""
        self._breakpoint = Breakpoint(fits)
        return self._breakpoint

    def go(self, held: Breakpoint) -> None:
        """Let a held request go on."""
        self._taps.call(held.may_go.set)

    def end(self) -> None:
        """On the loop: stop listening and drop every connection."""
        if self.server is not None:
            self.server.close()
        self._open.set()
        self._drop()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass one connection on until either side ends it."""
        pumps: list[asyncio.Task[None]] = []
        self._connections.add(writer)
        try:
            await self._open.wait()
            far_reader, far_writer = await asyncio.open_connection(*self.target)
            self._connections.add(far_writer)
            watch = ZooKeeperWatch(self) if self.speaks == ZOOKEEPER else KafkaWatch(self)
            pumps = [
                asyncio.create_task(self._pump(reader, far_writer, watch.request)),
                asyncio.create_task(self._pump(far_reader, writer, watch.response)),
            ]
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            self._connections.discard(far_writer)
            far_writer.close()
        except OSError:
            pass
        finally:
            self._connections.discard(writer)
            for pump in pumps:
                pump.cancel()
            writer.close()

    async def _pump(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, see: Callable[[bytes], tuple[str, str]]
    ) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = await source.readexactly(4)
                body = await source.readexactly(_INT.unpack(head)[0])
                await self._open.wait()
                name, about = see(body)
                held = self._breakpoint
                if held is not None and name and held.fits(name, about):
                    self._breakpoint = None
                    held.reached.set()
                    await held.may_go.wait()
                target.write(head + body)
                await target.drain()

    def note(self, name: str, about: str = "") -> None:
        """Record a frame."""
        self._taps.frames.append(Frame(time.monotonic(), self.member, name, about))


class ZooKeeperWatch:
    """Names the frames of one connection to ZooKeeper."""

    def __init__(self, tap: Tap) -> None:
        self._tap = tap
        self._is_greeted = False
        self._is_answered = False

    def request(self, body: bytes) -> tuple[str, str]:
        """The name and path of a request."""
        if not self._is_greeted:
            self._is_greeted = True
            return "connect", ""
        name = ZOOKEEPER_NAMES.get(_TWO_INTS.unpack_from(body)[1], "other")
        path = ""
        if name not in ("ping", "multi", "close", "other"):
            size = _INT.unpack_from(body, 8)[0]
            path = body[12 : 12 + size].decode(errors="replace")
        if name == "exists" and path.count("/") == 1:
            name = "chroot"  # the client library asks once for the root of its own paths; no design does
        self._tap.note(name, path)
        return name, path

    def response(self, body: bytes) -> tuple[str, str]:
        """Only watch events have a name."""
        if not self._is_answered:
            self._is_answered = True
        elif _INT.unpack_from(body)[0] == EVENT_XID:
            self._tap.note("event")
        return "", ""


class KafkaWatch:
    """Names the frames of one connection to a broker or coordinator."""

    def __init__(self, tap: Tap) -> None:
        self._tap = tap
        self._asked: dict[int, tuple[int, int]] = {}

    def request(self, body: bytes) -> tuple[str, str]:
        """The API of a request."""
        try:
            key, version, correlation, _, _ = read_request_header(body)
        except MalformedRequest:
            return "", ""
        self._asked[correlation] = (key, version)
        name = kafka_name(key)
        self._tap.note(name)
        return name, ""

    def response(self, body: bytes) -> tuple[str, str]:
        """Name a heartbeat response with an error other than NONE: it is a notification."""
        key, version = self._asked.pop(_INT.unpack_from(body)[0], (-1, 0))
        if key == HEARTBEAT:
            _, reader = read_response_header(key, version, body)
            if error := HeartbeatResponse.read(reader, version).error_code:
                self._tap.note("told", str(error))
        return "", ""


def kafka_name(key: int) -> str:
    """Return the journal's name of an API: short names for those of membership, else Kafka's own."""
    return GROUP_APIS.get(key) or (APIS[key].name if key in APIS else f"api {key}")


class Taps:
    """All taps of an experiment, on one loop in a thread. `frames` are in the order of time."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self._loop = asyncio.new_event_loop()
        self._servers: list[asyncio.Server] = []
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="taps")

    def __enter__(self) -> Taps:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close_all()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def call(self, act: Callable[[], T]) -> T:
        """Run `act` on the loop of the taps."""

        async def on_loop() -> T:
            return act()

        return asyncio.run_coroutine_threadsafe(on_loop(), self._loop).result()

    def open(self, member: str, speaks: str, target: str, *, port: int = 0) -> Tap:
        """A new tap in front of `target` (HOST:PORT), on a free port or on a socket that is bound already."""
        host, _, far = target.rpartition(":")
        listening = self._listen(member, speaks, (host, int(far)), port)
        return asyncio.run_coroutine_threadsafe(listening, self._loop).result()

    async def _listen(self, member: str, speaks: str, target: tuple[str, int], port: int) -> Tap:
        tap = Tap(self, member, speaks, target)
        server = await asyncio.start_server(tap.serve, "127.0.0.1", port)
        tap.port = server.sockets[0].getsockname()[1]
        tap.server = server
        self._servers.append(server)
        return tap

    def close(self, tap: Tap) -> None:
        """End a tap: new connections are refused, and existing ones closed."""
        self.call(tap.end)

    def close_all(self) -> None:
        """End every tap and connection; what was seen is kept."""

        async def close() -> None:
            for server in self._servers:
                server.close()
            self._servers.clear()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(close(), self._loop).result()

    def count(
        self, since_s: float = 0.0, until_s: float = float("inf"), members: Iterable[str] | None = None
    ) -> Counter[str]:
        """How many frames of each name passed between two moments."""
        kept = None if members is None else frozenset(members)
        return Counter(
            frame.name
            for frame in self.frames
            if since_s <= frame.at_s <= until_s and (kept is None or frame.member in kept)
        )
