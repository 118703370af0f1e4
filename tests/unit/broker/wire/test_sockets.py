"""The node's sockets: what leaves in one round, and in which order."""

from __future__ import annotations

import asyncio
import socket

from partita.broker.wire import sockets

LARGE = bytes(100_000)


class Speaker(asyncio.BufferedProtocol):
    """Answers with what it is told by one letter: s small, l large, c close."""

    def __init__(self) -> None:
        self.buffer = bytearray(100)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
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
