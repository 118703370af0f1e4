"""Cancelling, dropping, forking and closing consumers over real sockets: clients 3.2, 3.3, 3.5, newcomer T1."""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import socket
import threading
import time
from typing import Any

import pytest

from partita import Broker, Consumer, Producer
from partita.consumer.config import ConsumerConfig
from partita.consumer.errors import IllegalStateError
from partita.consumer.request import Poll, Request
from partita.consumer.shell.driver import ConsumerDriver
from partita.consumer.shell.waiting import BlockingWaiter
from partita.designs.zookeeper.ports import free_ports
from partita.net.connection import Connection
from partita.now import Now
from partita.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from partita.protocol.messages.metadata import MetadataRequest
from partita.protocol.metadata_view import Node


@pytest.fixture
def broker() -> Any:
    with Broker(num_partitions=2) as running:
        yield running


def fill(broker: Broker, count: int) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(count):
            producer.send("t", b"%d" % number, partition=number % 2)


def until(fact: Any, within: float = 60.0) -> None:
    limit = time.monotonic() + within
    while not fact():
        assert time.monotonic() < limit, "waited in vain"


def test_a_cancelled_poll_does_not_cut_off_an_async_callback(broker: Broker) -> None:
    """Clients 3.3: the callback was cut off half way, and its CancelledError ended a later poll."""
    fill(broker, 10)
    steps: list[str] = []

    async def run() -> int:
        go_on = asyncio.Event()

        async def on_assigned(partitions: Any) -> None:
            steps.append("begun")
            await go_on.wait()
            steps.append("ended")

        options: dict[str, Any] = {"bootstrap_servers": broker.bootstrap, "auto_offset_reset": "earliest"}
        async with Consumer(**options, group_id="g") as consumer:
            consumer.subscribe(["t"], on_assigned=on_assigned)
            while not steps:
                try:
                    await asyncio.wait_for(consumer.poll(5.0), 0.3)
                except TimeoutError:
                    continue
            go_on.set()
            found = 0
            while found < 10:
                found += len(await consumer.poll(5.0))
            return found

    assert asyncio.run(run()) == 10
    assert steps == ["begun", "ended"]


def test_cancelling_a_commit_is_honoured_at_once(broker: Broker) -> None:
    """Clients 3.3: with an unanswered asynchronous commit before it, it took up to a minute."""
    fill(broker, 2)

    async def run() -> float:
        options: dict[str, Any] = {"bootstrap_servers": broker.bootstrap, "auto_offset_reset": "earliest"}
        async with Consumer(**options, group_id="g", enable_auto_commit=False) as consumer:
            consumer.subscribe(["t"])
            while not len(await consumer.poll(1.0)):
                pass
            held = broker.control.hold("OffsetCommit")
            consumer.commit_async()
            began = time.monotonic()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(consumer.commit(), 0.3)
            took = time.monotonic() - began
            held.clear()
            return took

    assert asyncio.run(run()) < 20


def test_subscribe_to_nothing_says_that_an_async_callback_needs_unsubscribe(broker: Broker) -> None:
    """Clients 3.3: "cannot be made without await here", with the consumer half unsubscribed."""

    async def run() -> None:
        async def on_revoked(partitions: Any) -> None:
            await asyncio.sleep(0)

        async with Consumer(bootstrap_servers=broker.bootstrap, group_id="g") as consumer:
            consumer.subscribe(["t"], on_revoked=on_revoked)
            with pytest.raises(IllegalStateError, match="use await unsubscribe"):
                consumer.subscribe([])
            assert consumer.subscription() == {"t"}
            await consumer.unsubscribe()

    asyncio.run(run())


def test_a_consumer_that_is_collected_leaves_its_group_and_warns(broker: Broker) -> None:
    """Clients 3.5: its heartbeats went on, and the next member got nothing for five minutes."""
    fill(broker, 2)
    options: dict[str, Any] = {"bootstrap_servers": broker.bootstrap, "group_id": "g"}

    def forget_one() -> None:
        first = Consumer(**options)
        first.subscribe(["t"])
        while not first.assignment():
            first.poll(0.1)
        del first
        gc.collect()

    with pytest.warns(ResourceWarning, match="was never closed"):
        forget_one()
    with Consumer(**options) as second:
        second.subscribe(["t"])
        until(lambda: second.poll(0.1) is not None and len(second.assignment()) == 2)


def test_after_a_fork_the_child_says_why_it_cannot_use_the_consumer(broker: Broker) -> None:
    """Clients 3.5: it handed out what the parent had fetched, then nothing, silently."""
    fill(broker, 100)
    options: dict[str, Any] = {"bootstrap_servers": broker.bootstrap, "auto_offset_reset": "earliest"}
    with Consumer(**options, group_id="g", max_poll_records=10) as consumer:
        consumer.subscribe(["t"])
        loop = iter(consumer)
        next(loop)
        child = os.fork()
        if child == 0:
            told = 0
            for use in (lambda: consumer.poll(0.1), lambda: next(loop)):
                try:
                    use()
                except IllegalStateError as error:
                    told += "made before fork()" in str(error)
            consumer.close()
            os._exit(0 if told == 2 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert next(loop) is not None


def test_close_with_the_broker_gone_takes_a_few_seconds_at_most() -> None:
    """Clients 3.5: 30 s with auto-commit on."""
    with Broker(num_partitions=1) as broker:
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            producer.send("t", b"1")
        consumer = Consumer(bootstrap_servers=broker.bootstrap, group_id="g", auto_offset_reset="earliest")
        consumer.subscribe(["t"])
        while not len(consumer.poll(1.0)):
            pass
    began = time.monotonic()
    consumer.close()
    assert time.monotonic() - began < 20


def test_close_does_not_wait_for_a_fetch_that_waits_for_data(broker: Broker) -> None:
    """Newcomer T1: 200 ms, whenever a fetch was in flight. On a busy machine the quickest of many tells."""
    fill(broker, 2)
    took = [float("inf")]
    for number in range(30):
        if min(took) < 0.1:
            break
        options: dict[str, Any] = {"bootstrap_servers": broker.bootstrap, "auto_offset_reset": "earliest"}
        consumer = Consumer(**options, group_id=f"g{number}", fetch_max_wait_ms=20_000)
        consumer.subscribe(["t"])
        found = 0
        while found < 2:
            found += len(consumer.poll(1.0))
        consumer.poll(0.05)
        began = time.monotonic()
        consumer.close()
        took.append(time.monotonic() - began)
    assert min(took) < 0.1, took


class Asking:
    """A part of a consumer that only hears that its request was lost."""

    def __init__(self) -> None:
        self.lost = threading.Event()

    def poll(self, now: Now, poll: Poll) -> None:
        """It has nothing to send."""

    def on_response(self, request: Request, response: Any, now: Now) -> None:
        raise AssertionError("a silent server answered")

    def on_disconnect(self, request: Request, now: Now) -> None:
        self.lost.set()


def test_a_connection_dropped_while_it_is_opened_reports_its_requests() -> None:
    """Clients 3.2: the request was neither sent nor reported, and its partition was never fetched again."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        config = ConsumerConfig.of(None, bootstrap_servers=f"127.0.0.1:{port}")
        driver = ConsumerDriver(config, BlockingWaiter(), strict=True)
        part, node = Asking(), Node(1, "127.0.0.1", port)
        with driver.io.lock:
            driver.io.submit([Request(part, MetadataRequest(topics=[]), node)])
        connection, _ = silent.accept()
        loop = driver.io._loop
        assert loop is not None
        loop.call_soon_threadsafe(lambda: driver.io._connections().drop(1))
        assert part.lost.wait(60)
        connection.close()
        thread = driver.stop()
        assert thread is not None
        thread.join(60)


def test_a_coordinator_that_refuses_connections_is_tried_with_back_off(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients 1: 44 connections in 5 s, 0.1 s apart; Java's are 0.5 to 0.9 s apart."""
    (dead,) = free_ports(1)
    attempts: list[float] = []
    opening = Connection.open

    async def counted(host: str, port: int, *arguments: Any, **options: Any) -> Connection:
        if port == dead:
            attempts.append(time.monotonic())
        return await opening(host, port, *arguments, **options)

    def at_the_dead_port(asked: Any) -> FindCoordinatorResponse:
        keys = asked.request.coordinator_keys
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(key=key, node_id=1, host="127.0.0.1", port=dead, error_message="") for key in keys
            ]
        )

    monkeypatch.setattr(Connection, "open", counted)
    fill(broker, 2)
    options: dict[str, Any] = {"bootstrap_servers": broker.bootstrap, "heartbeat_interval_ms": 50}
    with Consumer(**options, group_id="g", auto_offset_reset="earliest", enable_auto_commit=False) as consumer:
        consumer.subscribe(["t"])
        until(lambda: consumer.poll(0.1))
        broker.control.intercept("FindCoordinator", at_the_dead_port)
        broker.control.drop("Heartbeat", None)
        until(lambda: consumer.poll(0.1) is not None and len(attempts) >= 6)
        broker.control.clear_faults()
    gaps = [after - before for before, after in itertools.pairwise(attempts[2:6])]
    assert min(gaps) > 0.4, "growing from 50 ms, as reconnect.backoff.ms says"
    assert min(gaps) < 2.0, "and bounded by reconnect.backoff.max.ms"
