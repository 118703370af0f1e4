"""The loop in a thread of its own, when it breaks."""

from __future__ import annotations

import asyncio
import inspect
import socket
import threading
from collections.abc import Iterator

import pytest

from partita.net.errors import ThreadEndedError
from partita.net.loop_thread import LoopThread
from support.clients.broker import until


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    running = LoopThread("partita-test")
    yield running
    running.stop()


def lose_selector(thread: LoopThread) -> None:
    thread.loop._selector.close()  # type: ignore[attr-defined]  # as a daemon does that closes every descriptor


def test_a_loop_that_breaks_closes_its_connections(thread: LoopThread) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept = thread.run(thread.loop.create_connection(asyncio.Protocol, *server.getsockname()))
        peer, _ = server.accept()
        with peer:
            peer.settimeout(60)
            thread.call(lambda: lose_selector(thread))
            assert peer.recv(1) == b"", "the other side hears of the end at once"
    assert kept, "and not when a collector frees it"


def test_a_connection_that_was_closed_before_does_not_keep_others_open(thread: LoopThread) -> None:
    """It was closed a second time, and the error left the loop and the other connections open."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        async def closed() -> asyncio.Transport:
            gone = asyncio.get_running_loop().create_future()

            class Closed(asyncio.Protocol):
                def connection_lost(self, exc: Exception | None) -> None:
                    asyncio.get_running_loop().call_soon(gone.set_result, None)

            transport, _ = await asyncio.get_running_loop().create_connection(Closed, *server.getsockname())
            kept = await asyncio.get_running_loop().create_connection(asyncio.Protocol, *server.getsockname())
            transport.close()
            await gone
            held.extend((transport, kept))
            return transport

        held: list[object] = []
        thread.run(closed())
        server.accept()[0].close()
        peer, _ = server.accept()
        with peer:
            peer.settimeout(60)
            thread.call(lambda: lose_selector(thread))
            assert peer.recv(1) == b""


def test_a_call_that_had_not_begun_when_the_loop_broke_leaves_nothing_never_awaited(thread: LoopThread) -> None:
    gate = threading.Event()

    def break_later() -> None:
        gate.wait(60)
        lose_selector(thread)

    async def never_begun() -> None:
        """Waits in the loop that breaks."""

    coroutine = never_begun()

    def call() -> None:
        with pytest.raises(ThreadEndedError):
            thread.run(coroutine)

    thread.call(break_later)
    caller = threading.Thread(target=call)
    caller.start()
    until(lambda: bool(thread._awaited), "the call waits")
    gate.set()
    caller.join(60)
    assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED
