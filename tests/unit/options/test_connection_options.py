"""Options of connections: each client hands them on, and each has its effect. (issue 10, decision 0191)"""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import Any

import pytest

from partita.admin.client import AsyncAdmin
from partita.admin.config import admin_config
from partita.consumer.config import ConsumerConfig
from partita.consumer.shell import client_driver as consumer_driver
from partita.consumer.shell.metrics import ConsumerMetrics
from partita.metrics.registry import How, Metrics, Row
from partita.net.cluster import Cluster
from partita.net.config import ClientConfig
from partita.net.errors import Disconnected
from partita.net.pool import ConnectionPool
from partita.producer.config import ProducerConfig
from partita.producer.shell import driver as producer_driver
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.system_clock import SystemClock
from support.broker.wire_server import WireServer

SERVER = {"bootstrap_servers": "b:1"}
HANDED_ON = {
    "connections_max_idle_ms": 7_000,
    "metadata_max_age_ms": 7_001,
    "receive_buffer_bytes": 7_002,
    "reconnect_backoff_max_ms": 7_003,
    "reconnect_backoff_ms": 703,
    "request_timeout_ms": 7_004,
    "retry_backoff_max_ms": 7_005,
    "retry_backoff_ms": 705,
    "send_buffer_bytes": 7_006,
    "socket_connection_setup_timeout_max_ms": 7_007,
    "socket_connection_setup_timeout_ms": 707,
}
CLIENTS: dict[str, Callable[[dict[str, Any]], ClientConfig]] = {
    "admin": lambda given: admin_config({**SERVER, **given}, {})[1],
    "consumer": lambda given: consumer_driver.client_config(ConsumerConfig.of({**SERVER, **given})),
    "producer": lambda given: producer_driver.ProducerDriver(ProducerConfig.of(**SERVER, **given)).cluster.config,
}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", HANDED_ON)
def test_each_client_hands_it_to_its_connections(client: str, name: str) -> None:
    assert getattr(CLIENTS[client]({name: HANDED_ON[name]}), name) == HANDED_ON[name]


@pytest.mark.parametrize("client", CLIENTS)
def test_security_is_handed_on_whole(client: str) -> None:
    given = {"security_protocol": "SSL", "enable_ssl_certificate_verification": False}
    security = CLIENTS[client](given).security
    assert security.tls is not None
    assert (security.protocol, security.tls.verifies) == ("SSL", False)


async def with_pool(config: ClientConfig, story: Callable[[ConnectionPool, int], Awaitable[Any]]) -> Any:
    async with WireServer(lambda *_: None) as server:
        pool = ConnectionPool(config)
        try:
            return await asyncio.wait_for(story(pool, server.port), 20)
        finally:
            pool.close()


@pytest.mark.parametrize(
    ("name", "option"), [("send_buffer_bytes", "SO_SNDBUF"), ("receive_buffer_bytes", "SO_RCVBUF")]
)
def test_a_socket_gets_the_buffer_that_was_asked_for(name: str, option: str) -> None:
    async def size(pool: ConnectionPool, port: int) -> int:
        connection = await pool.connect(1, "127.0.0.1", port)
        assert connection._transport is not None
        own: socket.socket = connection._transport.get_extra_info("socket")
        return own.getsockopt(socket.SOL_SOCKET, getattr(socket, option))

    def with_buffer(size: int) -> ClientConfig:
        given: dict[str, Any] = {name: size}
        return ClientConfig(**given)

    small, large = (asyncio.run(with_pool(with_buffer(asked), size)) for asked in (8_192, 65_536))
    assert small < large


def test_an_idle_connection_is_closed_and_made_again_when_it_is_wanted() -> None:
    """The producer and the admin client kept theirs until the broker closed them."""

    async def story(pool: ConnectionPool, port: int) -> None:
        first = await pool.connect(1, "127.0.0.1", port)
        await first.closed
        assert (pool.open_count, pool.wait_ms(1)) == (0, 0)
        assert await pool.connect(1, "127.0.0.1", port) is not first

    asyncio.run(with_pool(ClientConfig(connections_max_idle_ms=30), story))


@pytest.mark.parametrize("idle_ms", [-1, 60_000])
def test_a_connection_that_is_not_idle_for_so_long_stays(idle_ms: int) -> None:
    """With -1 no connection is idle for too long, as in Kafka; each look closed all of them."""

    async def story(pool: ConnectionPool, port: int) -> bool:
        first = await pool.connect(1, "127.0.0.1", port)
        await asyncio.wait([first.closed], timeout=0.05)
        return first.is_open

    assert asyncio.run(with_pool(ClientConfig(connections_max_idle_ms=idle_ms), story))


def test_a_connection_that_waits_for_an_answer_is_not_idle() -> None:
    async def story(pool: ConnectionPool, port: int) -> bool:
        first = await pool.connect(1, "127.0.0.1", port)
        waiting = first.post(HeartbeatRequest())
        await asyncio.wait([waiting], timeout=0.1)
        return first.is_open

    assert asyncio.run(with_pool(ClientConfig(connections_max_idle_ms=20), story))


def test_the_time_to_connect_doubles_with_each_failure_up_to_its_limit() -> None:
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        port = listener.getsockname()[1]
        for _ in range(8):
            queued = stack.enter_context(socket.socket())
            queued.setblocking(False)
            queued.connect_ex(("127.0.0.1", port))

        async def told(pool: ConnectionPool, _: int) -> list[str]:
            found = []
            for _attempt in range(3):
                with pytest.raises(Disconnected) as failed:
                    await pool.connect(1, "127.0.0.1", port)
                found.append(str(failed.value).rpartition(" within ")[2].partition(" (")[0])
            return found

        config = ClientConfig(
            socket_connection_setup_timeout_ms=20, socket_connection_setup_timeout_max_ms=50, reconnect_backoff_ms=1
        )
        assert asyncio.run(with_pool(config, told)) == ["0.02 s", "0.04 s", "0.05 s"]


def test_a_request_is_repeated_after_a_wait_that_doubles_up_to_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def no_wait(seconds: float) -> None:
        waits.append(seconds * 1000)

    async def story() -> None:
        config = ClientConfig(retry_backoff_ms=100, retry_backoff_max_ms=300)
        cluster = Cluster("127.0.0.1:1", config)
        attempts = iter(range(4))

        async def once() -> None:
            if next(attempts) < 3:
                raise Disconnected("not yet")

        await cluster.retry(once)
        cluster.close()

    monkeypatch.setattr(asyncio, "sleep", no_wait)
    monkeypatch.setattr(random, "uniform", lambda low, high: (low + high) / 2)
    asyncio.run(story())
    assert waits == [100, 200, 300]


def metrics_of(client: str, given: dict[str, Any]) -> Metrics:
    if client == "admin":
        return AsyncAdmin({**SERVER, **given})._metrics
    if client == "producer":
        return producer_driver.ProducerDriver(ProducerConfig.of(**SERVER, **given)).measured._metrics
    no_core: Any = None
    metrics = ConsumerMetrics(ConsumerConfig.of({**SERVER, **given}), SystemClock(), no_core)._metrics
    metrics._gauges.clear()  # they would ask the core
    return metrics


@pytest.mark.parametrize("client", CLIENTS)
def test_the_windows_of_metrics_are_as_many_and_as_long_as_they_were_set(client: str) -> None:
    """The admin client's were always two of 30 seconds."""

    def average_of_two(**given: int) -> float:
        """Of 1 and 3, with 2 seconds in between, a moment later."""
        metrics = metrics_of(client, given)
        sensor = metrics.sensor("probe", "probe", [Row("average", How.AVG, "for this test")])
        sensor.record(1, 0)
        sensor.record(3, 2_000)
        return next(value for name, value in metrics.read(2_400).items() if name.name == "average")

    assert average_of_two() == 2
    assert average_of_two(metrics_sample_window_ms=500) == 3
    assert average_of_two(metrics_sample_window_ms=500, metrics_num_samples=20) == 2
