"""Answers that come later leave in the instant they come, and begin nothing in it."""

from __future__ import annotations

import asyncio
import struct

from partita.broker.embedded import Broker
from partita.broker.wire.connection import Connection
from partita.broker.wire.contract import Chunks, ConnectionHandle, Parked, Promised
from partita.broker.wire.memo import Memo
from partita.protocol.primitives import Buffer


class Peer(asyncio.Transport):
    """What the connection of a test has written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[Buffer] = []
        self.is_read = True

    def write(self, data: Buffer) -> None:
        self.written.append(data)

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """There is none."""


class Later:
    """Answers every frame later; each holds the next one back."""

    frame_bytes_min, frame_bytes_max = 1, 100

    def __init__(self, memo: Memo) -> None:
        self.memo = memo
        self.begun: list[tuple[bytes, Parked]] = []

    def dispatch(self, connection: ConnectionHandle, frame: Buffer) -> Chunks | Parked | None:
        self.begun.append((bytes(frame), Parked(holds_back=True)))
        return self.begun[-1][1]

    def complain(self, client_host: str, reason: str) -> None:
        raise AssertionError(reason)


def test_then_is_called_at_once_and_those_who_await_are_woken_too(broker: Broker) -> None:
    async def told() -> list[object]:
        promised = Promised(loop=asyncio.get_running_loop())
        seen: list[object] = []
        promised.then = seen.append
        promised.keep("answer")
        assert seen == ["answer"]
        return [*seen, await promised]

    assert broker.call(told()) == ["answer", "answer"]


def test_a_reply_leaves_at_once_and_the_frame_kept_behind_it_begins_a_turn_later(broker: Broker) -> None:
    """Else one answer could begin a request that releases another answer, and so on, all within one decision."""

    async def run() -> None:
        server = broker.running.servers[1][0]
        assert server is not None
        later, peer, connection = Later(server.answerer.memo), Peer(), Connection(server)
        connection.connection_made(peer)
        connection.answer_with(later)
        sent = b"".join(struct.pack(">i", 5) + name for name in (b"first", b"other"))
        connection.get_buffer(-1)[: len(sent)] = sent
        connection.buffer_updated(len(sent))
        assert [name for name, _ in later.begun] == [b"first"]
        later.begun[0][1].finish([b"answer"])
        assert (peer.written, len(later.begun), peer.is_read) == ([b"answer"], 1, False)
        await asyncio.sleep(0)
        assert [name for name, _ in later.begun] == [b"first", b"other"]
        later.begun[1][1].finish([b"second"])
        await asyncio.sleep(0)
        assert (peer.written, peer.is_read) == ([b"answer", b"second"], True)
        connection.connection_lost(None)

    broker.call(run())


def test_a_lone_frame_is_answered_whole_and_a_cut_one_is_kept(broker: Broker) -> None:
    async def run() -> None:
        server = broker.running.servers[1][0]
        assert server is not None
        later, connection = Later(server.answerer.memo), Connection(server)
        connection.connection_made(Peer())
        connection.answer_with(later)
        for piece in (b"\0\0\0\x05he", b"llo", b"\0\0\0\x02ok"):
            connection.get_buffer(-1)[: len(piece)] = piece
            connection.buffer_updated(len(piece))
            for _, parked in later.begun:
                if not parked.done:
                    parked.finish(None)
        assert [name for name, _ in later.begun] == [b"hello", b"ok"]
        connection.connection_lost(None)

    broker.call(run())
