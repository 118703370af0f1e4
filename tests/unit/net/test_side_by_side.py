"""Servers are tried side by side: the first that answers is taken, and each of the others is named. (findings D12)"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from partita.errors import KafkaError
from partita.net import pool as pools
from partita.net.config import ClientConfig
from partita.net.errors import Disconnected, NoAnswerYet
from partita.net.pool import ConnectionPool
from partita.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from partita.protocol.metadata_view import Node
from support.broker.wire_server import CLOSE, WireServer
from support.clients.dead_servers import listening, refusing, silent, web

HOST = "127.0.0.1"
AT_ONCE_S = 8.0
"""A bound for a busy machine; the time-outs that a dead server used up are of 10 and 30 s."""


def heartbeats(key: int, version: int, request: Any) -> Any:
    return HeartbeatResponse() if key == 12 else None


def played(story: Callable[[ConnectionPool], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        pool = ConnectionPool(ClientConfig(reconnect_backoff_ms=1, reconnect_backoff_max_ms=1))
        try:
            return await asyncio.wait_for(story(pool), 60)
        finally:
            pool.close()

    return asyncio.run(run())


@pytest.mark.parametrize("dead", [listening, silent, refusing, web])
def test_a_dead_server_costs_no_more_than_a_moment(dead: Callable[[], AbstractContextManager[int]]) -> None:
    async def story(pool: ConnectionPool) -> None:
        async with WireServer(heartbeats) as alive:
            began = time.monotonic()
            found = await pool.connect_any([], [(HOST, port), (HOST, alive.port)])
            assert found.port == alive.port
            assert time.monotonic() - began < AT_ONCE_S
            await found.send(HeartbeatRequest())

    with dead() as port:
        played(story)


def test_the_first_server_is_taken_when_it_answers_in_its_time() -> None:
    async def story(pool: ConnectionPool) -> None:
        async with WireServer(heartbeats) as first, WireServer(heartbeats) as second:
            found = await pool.connect_any([], [(HOST, first.port), (HOST, second.port)])
            assert (found.port, second.connections) == (first.port, 0)

    played(story)


def test_those_that_were_slower_are_closed() -> None:
    async def story(pool: ConnectionPool) -> None:
        async with WireServer(heartbeats) as alive:
            hanging = asyncio.Event()
            closed = asyncio.Event()

            async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                hanging.set()
                while await reader.read(1024):
                    pass
                closed.set()
                writer.close()

            server = await asyncio.start_server(hang, HOST, 0)
            port = server.sockets[0].getsockname()[1]
            await pool.connect_any([], [(HOST, port), (HOST, alive.port)])
            assert hanging.is_set()
            await closed.wait()
            assert pool.open_count == 1
            server.close()

    played(story)


def test_a_connection_that_others_wait_for_is_not_closed_for_being_slower() -> None:
    async def story(pool: ConnectionPool) -> None:
        async with WireServer(heartbeats) as alive:
            with listening() as port:
                needed = asyncio.create_task(pool.connect(1, HOST, port))
                found = await pool.connect_any([Node(1, HOST, port)], [(HOST, alive.port)])
                assert found.port == alive.port
                await asyncio.sleep(0)
                assert not needed.done()
                needed.cancel()

    played(story)


def test_every_server_is_named_with_what_became_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "SILENT_AFTER_S", 0.2)

    async def story(pool: ConnectionPool, ports: list[int]) -> str:
        with pytest.raises(Disconnected) as raised:
            await pool.connect_any([], [(HOST, port) for port in ports])
        return str(raised.value)

    with listening() as quiet, silent() as full, refusing() as nobody, web() as page:
        said = played(lambda pool: story(pool, [quiet, full, nobody, page]))
    assert f"{HOST}:{quiet} accepts connections, and answers nothing: it hangs, or is no Kafka broker" in said
    assert f"{HOST}:{full} does not accept the connection" in said
    assert f"cannot connect to {HOST}:{nobody}: Connection refused" in said
    assert f"{HOST}:{page} is no Kafka broker: what it answers begins with 'HTTP/1.1'" in said


def test_a_server_that_answers_late_is_found_by_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker under load needs longer than a user should be kept in the dark: its connection stays in the making."""
    monkeypatch.setattr(pools, "SILENT_AFTER_S", 0.05)
    may_answer = asyncio.Event()

    async def story(pool: ConnectionPool) -> None:
        arrived = asyncio.Event()

        async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            arrived.set()
            await may_answer.wait()
            await alive._serve(reader, writer)

        alive = WireServer(heartbeats)
        server = await asyncio.start_server(late, HOST, 0)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(Disconnected, match="answers nothing"):
            await pool.connect_any([], [(HOST, port)])
        await arrived.wait()
        may_answer.set()
        found = await pool.connect_any([], [(HOST, port)])
        assert (await found.send(HeartbeatRequest())).error_code == 0
        assert alive.connections == 1
        server.close()
        alive.drop_all()

    played(story)


def test_a_refusal_is_raised_before_what_time_may_heal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "SILENT_AFTER_S", 0.05)
    old = iter(itertools.repeat(CLOSE))

    async def story(pool: ConnectionPool) -> KafkaError:
        async with WireServer(lambda key, version, request: next(old)) as wrong:
            for _ in range(10):
                with pytest.raises(KafkaError) as raised:
                    await pool.connect_any([], [(HOST, wrong.port), (HOST, port)])
                if not raised.value.retriable:
                    return raised.value
        raise AssertionError("a server that closes every connection was never told as one that refuses us")

    with listening() as port:
        assert "closed the connection" in str(played(story))


def test_what_is_silent_is_told_apart_from_what_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A producer that is closed gives up soon when brokers fail, and waits for one that is only slow."""
    monkeypatch.setattr(pools, "SILENT_AFTER_S", 0.05)

    async def story(pool: ConnectionPool, port: int) -> type[Exception]:
        with pytest.raises(Disconnected) as raised:
            await pool.connect_any([], [(HOST, port)])
        return raised.type

    with listening() as quiet, refusing() as nobody:
        assert played(lambda pool: story(pool, quiet)) is NoAnswerYet
        assert played(lambda pool: story(pool, nobody)) is Disconnected
