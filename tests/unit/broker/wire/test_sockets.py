"""The node's sockets: what leaves in one round, and in which order."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from partita.broker.wire import sockets
from partita.protocol.primitives import Buffer

LARGE = bytes(100_000)


class Speaker(asyncio.BufferedProtocol):
    """Answers with what it is told by one letter: s small, l large, c close."""

    def __init__(self) -> None:
        self.buffer = bytearray(100)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # the transports of these sockets only
        self.transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self.buffer)

    def buffer_updated(self, nbytes: int) -> None:
        for number, letter in enumerate(self.buffer[:nbytes].decode()):
            if letter == "c":
                self.transport.close()
            else:
                self.transport.write(b"<%d>" % number if letter == "s" else LARGE)


async def answers(*told: str) -> list[bytes]:
    """What peers receive that had all connected and sent before the first round, each until it is closed."""
    with socket.create_server(("127.0.0.1", 0), backlog=10) as bound:
        peers = [socket.create_connection(bound.getsockname()) for _ in told]
        for peer, text in zip(peers, told, strict=True):
            peer.sendall(text.encode())
        served = sockets.Sockets(asyncio.get_running_loop(), Speaker)
        served.listen(bound, 10)
        received = await asyncio.gather(*(asyncio.to_thread(_until_end, peer) for peer in peers))
        served.close()
        return received


def _until_end(peer: socket.socket) -> bytes:
    received = b""
    with peer:
        while piece := peer.recv(1 << 20):
            received += piece
    return received


def test_everybody_who_asked_in_one_round_is_answered() -> None:
    assert asyncio.run(answers("sc", "ssc", "c")) == [b"<0>", b"<0><1>", b""]


def test_small_and_large_answers_keep_their_order() -> None:
    assert asyncio.run(answers("slsc", "lsc", "sc")) == [b"<0>" + LARGE + b"<2>", LARGE + b"<1>", b"<0>"]


def test_a_large_answer_leaves_in_portions_between_those_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """F3 of an audit: the system took 6 MB of one answer at once, and others waited."""
    monkeypatch.setattr(sockets, "SENT_AT_ONCE_BYTES", 30_000)
    portions: list[int] = []
    make = sockets.SocketTransport.start

    def start(self: sockets.SocketTransport) -> None:
        send = self._send

        def counted(data: Buffer) -> int:
            portions.append(len(data))
            return send(data)

        self._send = counted
        make(self)

    monkeypatch.setattr(sockets.SocketTransport, "start", start)
    assert asyncio.run(answers("slsc", "lsc")) == [b"<0>" + LARGE + b"<2>", LARGE + b"<1>"]
    assert max(portions) == 30_000


def test_those_who_take_large_answers_hold_up_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """300 peers that asked for 50 MB and read nothing held each request of others up for seconds."""
    monkeypatch.setattr(sockets, "SENT_AT_ONCE_BYTES", 1_000)
    seen: list[str] = []

    def noted(name: str) -> None:
        work = getattr(sockets.SocketTransport, name)

        def note(self: sockets.SocketTransport) -> None:
            seen.append(name)
            work(self)

        monkeypatch.setattr(sockets.SocketTransport, name, note)

    async def scene() -> None:
        with socket.create_server(("127.0.0.1", 0), backlog=10) as bound, ExitStack() as peers:

            def ask(text: bytes) -> None:
                peers.enter_context(socket.create_connection(bound.getsockname())).sendall(text)

            served = sockets.Sockets(asyncio.get_running_loop(), Speaker)
            served.listen(bound, 10)
            for _ in range(9):
                ask(b"l")
            while seen.count("_receive") < 9:
                served._on_ready()
            ask(b"s")
            # From here on each portion takes all the time of a round.
            monkeypatch.setattr(sockets, "time", SimpleNamespace(perf_counter=lambda: seen.count("_send_rest")))
            seen.clear()
            while "_receive" not in seen:
                served._on_ready()
            served.close()
            for transport in tuple(served.transports.values()):
                transport.abort()

    noted("_receive")
    noted("_send_rest")
    asyncio.run(scene())
    assert 1 <= seen.count("_send_rest") <= 2


class Refusing(Speaker):
    """Turns everybody away."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # the transports of these sockets only
        transport.abort()


def test_whoever_is_refused_gives_the_descriptor_back_before_the_next_one_is_accepted() -> None:
    """B9, H13: refused connections must not pile up until the process has no descriptor left."""

    async def storm() -> None:
        with socket.create_server(("127.0.0.1", 0), backlog=50) as bound:
            peers = [socket.create_connection(bound.getsockname()) for _ in range(40)]
            served = sockets.Sockets(asyncio.get_running_loop(), Refusing)
            served.listen(bound, 50)
            held: list[int] = []
            served.transports = Counting(held)
            served._on_ready()
            assert max(held) == 1
            assert not served.transports
            for peer in peers:
                peer.settimeout(60)
                assert _until_end_or_reset(peer) == b""
            served.close()

    asyncio.run(storm())


class Counting(dict[int, sockets.SocketTransport]):
    """Notes how many there were after each one more."""

    def __init__(self, held: list[int]) -> None:
        super().__init__()
        self.held = held

    def __setitem__(self, key: int, value: sockets.SocketTransport) -> None:
        super().__setitem__(key, value)
        self.held.append(len(self))


def _until_end_or_reset(peer: socket.socket) -> bytes:
    try:
        return _until_end(peer)
    except ConnectionResetError:
        return b""


def test_a_round_ends_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """H34: however many have sent something large; those left over are first the next time."""
    monkeypatch.setattr(sockets, "ROUNDS_SECONDS", 0.0)
    served: list[int] = []
    on_ready, receive = sockets.Sockets._on_ready, sockets.SocketTransport._receive

    def noted_round(self: sockets.Sockets) -> None:
        served.append(0)
        on_ready(self)

    def noted(self: sockets.SocketTransport) -> None:
        served[-1] += 1
        receive(self)

    monkeypatch.setattr(sockets.Sockets, "_on_ready", noted_round)
    monkeypatch.setattr(sockets.SocketTransport, "_receive", noted)
    assert asyncio.run(answers("sc", "sc", "lc", "ssc", "c")) == [b"<0>", b"<0>", LARGE, b"<0><1>", b""]
    assert max(served) == 1
