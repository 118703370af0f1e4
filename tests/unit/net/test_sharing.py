"""Connections to one address: the first one is taken over, and those after it ask for versions without waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from partita.net.config import ClientConfig
from partita.net.connection import Connection
from partita.net.errors import Disconnected
from partita.net.pool import ConnectionPool
from partita.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from partita.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from support.broker.wire_server import WireServer, all_versions

API_VERSIONS, HEARTBEAT = 18, 12


class Broker:
    """Answers heartbeats at once and, once `holds` is set, ApiVersions not at all; `versions` is what it tells."""

    def __init__(self) -> None:
        self.holds = False
        self.versions: ApiVersionsResponse = all_versions()

    def __call__(self, key: int, version: int, request: Any) -> Any:
        if key == API_VERSIONS:
            return b"" if self.holds else self.versions
        return HeartbeatResponse()


def played(
    story: Callable[[ConnectionPool, WireServer, Broker], Awaitable[None]], *, reconnect_backoff_ms: int = 1
) -> None:
    async def run() -> None:
        broker = Broker()
        async with WireServer(broker) as server:
            pool = ConnectionPool(ClientConfig(request_timeout_ms=5_000, reconnect_backoff_ms=reconnect_backoff_ms))
            await story(pool, server, broker)
            pool.close()

    asyncio.run(run())


async def first(pool: ConnectionPool, server: WireServer) -> Connection:
    """The connection that finds the cluster, over which the broker has answered."""
    connection = await pool.connect_any([], [("127.0.0.1", server.port)])
    await connection.send(HeartbeatRequest())
    return connection


def test_the_first_connection_serves_the_first_node_that_has_its_address() -> None:
    async def story(pool: ConnectionPool, server: WireServer, broker: Broker) -> None:
        bootstrap = await first(pool, server)
        assert await pool.connect(("coordinator", 1), "127.0.0.1", server.port) is bootstrap
        other = await pool.connect(1, "127.0.0.1", server.port)
        assert other is not bootstrap
        assert (server.connections, pool.open_count) == (2, 2)

    played(story)


def test_a_node_with_another_address_gets_a_connection_of_its_own() -> None:
    async def story(pool: ConnectionPool, server: WireServer, broker: Broker) -> None:
        bootstrap = await first(pool, server)
        assert await pool.connect(1, "localhost", server.port) is not bootstrap
        assert pool.open_connection(("bootstrap", "127.0.0.1", server.port)) is bootstrap

    played(story)


def test_a_connection_that_was_taken_over_and_is_lost_makes_its_node_wait() -> None:
    async def story(pool: ConnectionPool, server: WireServer, broker: Broker) -> None:
        bootstrap = await first(pool, server)
        await pool.connect(1, "127.0.0.1", server.port)
        server.drop_all()
        await bootstrap.closed
        await asyncio.sleep(0)
        assert pool.open_connection(1) is None
        assert pool.wait_ms(1) > 0
        assert pool.open_count == 0

    played(story, reconnect_backoff_ms=30_000)


def test_requests_follow_the_question_for_versions_where_they_are_known() -> None:
    async def story(pool: ConnectionPool, server: WireServer, broker: Broker) -> None:
        await first(pool, server)
        await pool.connect(1, "127.0.0.1", server.port)
        broker.holds = True
        second = await pool.connect(2, "127.0.0.1", server.port)
        assert (await second.send(HeartbeatRequest())).error_code == 0
        assert [key for key, _, _ in server.requests[-2:]] == [API_VERSIONS, HEARTBEAT]

    played(story)


def test_nothing_is_assumed_of_a_broker_that_has_not_answered_yet() -> None:
    async def story(pool: ConnectionPool, server: WireServer, broker: Broker) -> None:
        silent = await pool.connect(1, "127.0.0.1", server.port)
        assert not silent.was_answered
        broker.versions = ApiVersionsResponse(api_keys=[ApiVersion(api_key=HEARTBEAT, min_version=0, max_version=1)])
        second = await pool.connect(2, "127.0.0.1", server.port)
        assert second.versions == {HEARTBEAT: (0, 1)}

    played(story)


def test_a_broker_that_speaks_other_versions_by_now_is_asked_again() -> None:
    async def story(pool: ConnectionPool, server: WireServer, broker: Broker) -> None:
        await first(pool, server)
        await pool.connect(1, "127.0.0.1", server.port)
        broker.versions = ApiVersionsResponse(api_keys=[ApiVersion(api_key=HEARTBEAT, min_version=0, max_version=1)])
        second = await pool.connect(2, "127.0.0.1", server.port)
        await second.closed
        with pytest.raises(Disconnected, match="closed"):
            await second.send(HeartbeatRequest())
        third = await pool.connect(2, "127.0.0.1", server.port)
        await third.send(HeartbeatRequest())
        assert server.requests[-1][:2] == (HEARTBEAT, 1)

    played(story)


def test_a_connection_that_will_be_wanted_is_opened_once() -> None:
    async def story(pool: ConnectionPool, server: WireServer, broker: Broker) -> None:
        pool.prepare(1, "127.0.0.1", server.port)
        pool.prepare(1, "127.0.0.1", server.port)
        await pool.connect(1, "127.0.0.1", server.port)
        pool.prepare(1, "127.0.0.1", server.port)
        assert server.connections == 1

    played(story)
