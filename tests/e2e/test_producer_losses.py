"""A producer never loses a record in silence: failures are logged, counted and raised; nothing hangs without a broker.

Findings clients.md 2.5, 2.6, 3.2, 3.5, 3.6 and 7, as programs that a user might write.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from partita import Admin, Broker, Consumer, Producer
from partita.designs.zookeeper.ports import free_ports
from partita.errors import MessageTooLargeError
from partita.net.config import ClientConfig
from partita.net.errors import Disconnected
from partita.net.pool import ConnectionPool
from partita.producer.errors import (
    BufferExhaustedError,
    NoMetadataError,
    ProducerClosedError,
    PurgedError,
    UndeliveredError,
)
from partita.producer.shell.client import AsyncProducer


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def nobody() -> str:
    """An address where nobody listens."""
    return f"127.0.0.1:{free_ports(1)[0]}"


def test_close_without_a_broker_takes_seconds_and_raises_what_was_lost(caplog: pytest.LogCaptureFixture) -> None:
    started = time.monotonic()
    producer = Producer(bootstrap_servers=nobody())
    for _ in range(3):
        producer.send("t", b"v")
    with pytest.raises(UndeliveredError, match=r"3 records still waiting when close gave up; .*cannot connect") as lost:
        producer.close()
    assert lost.value.count == 3
    assert time.monotonic() - started < 25
    assert sum("no broker can be reached" in record.message for record in caplog.records) == 1
    assert "3 records for topic t not delivered" in caplog.text
    producer.close()


def test_a_purge_empties_the_queue_and_close_has_nothing_to_complain_about(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Exception | None] = []
    producer = Producer(bootstrap_servers=nobody())
    assert producer.purge() == 0
    futures = [producer.send("t", b"v") for _ in range(3)]
    futures[0].add_done_callback(lambda future: heard.append(future.exception(0)))
    assert producer.purge(in_queue=False) == 0
    assert producer.purge() == 3
    assert [type(future.exception(10)) for future in futures] == [PurgedError] * 3
    producer.close()
    assert [type(error) for error in heard] == [PurgedError]
    assert "not delivered" not in caplog.text


def test_a_block_that_raises_keeps_its_own_exception(caplog: pytest.LogCaptureFixture) -> None:
    def story() -> None:
        with Producer(bootstrap_servers=nobody()) as producer:
            producer.send("t", b"v")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        story()
    assert "1 record still waiting" in caplog.text


def test_refused_records_are_logged_counted_and_raised_unless_somebody_looked(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topic("small", 1, configs={"max.message.bytes": 200})
    producer = Producer(bootstrap_servers=broker.bootstrap, batch_size=1)
    refused = [producer.send("small", b"x" * 500) for _ in range(5)]
    producer.flush()
    assert isinstance(refused[0].exception(0), MessageTooLargeError)
    refused[1].add_done_callback(lambda _: None)
    numbers = producer.metrics()
    assert (numbers["record-error-total"], numbers['record-error-total{topic="small"}']) == (5, 5)
    with pytest.raises(UndeliveredError, match="3 records failed earlier, and nobody looked") as lost:
        producer.close()
    assert isinstance(lost.value.cause, MessageTooLargeError)
    assert "not delivered: MESSAGE_TOO_LARGE" in caplog.text


def test_a_callback_or_interceptor_that_raises_stops_nobody_else(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def on_send(self, record: Any) -> Any:
            raise ValueError("broken interceptor")

        def on_acknowledgement(self, metadata: Any, error: Any) -> None:
            raise ValueError("broken interceptor")

    async def story() -> None:
        options: dict[str, Any] = {"bootstrap_servers": broker.bootstrap, "interceptor_classes": [Broken()]}
        async with Producer(**options) as producer:
            first = producer.send("t", b"1")
            first.add_done_callback(lambda _: 1 // 0)
            second = producer.send("t", b"2")
            assert (await second).topic == "t"
            await producer.flush()
            first.add_done_callback(lambda _: 1 // 0)

    asyncio.run(asyncio.wait_for(story(), 60))
    assert "ZeroDivisionError" in caplog.text
    assert "broken interceptor" in caplog.text


def test_records_that_wait_for_metadata_count_and_send_waits() -> None:
    producer = Producer(bootstrap_servers=nobody(), buffer_memory=10_000, max_block_ms=200)
    started, most = time.monotonic(), 0.0
    for _ in range(25):
        with suppress(BufferExhaustedError):
            producer.send("t", b"x" * 1000)
        most = max(most, producer.metrics()["records-unfinished"])
    assert most == 10
    assert time.monotonic() - started >= 0.2
    with suppress(UndeliveredError):
        producer.close(without_broker=0.1)


def test_an_asyncio_producer_waits_for_room_and_is_bounded() -> None:
    async def story() -> None:
        producer = await Producer(bootstrap_servers=nobody(), buffer_memory=10_000, max_block_ms=50).__aenter__()
        for _ in range(19):
            producer.send("t", b"x" * 1000)
        with pytest.raises(BufferExhaustedError, match="twice buffer_memory"):
            producer.send("t", b"x" * 1000)
        with pytest.raises(UndeliveredError):
            await producer.close(without_broker=0.1)

    asyncio.run(asyncio.wait_for(story(), 60))


def test_waiting_for_room_ends_after_max_block_ms() -> None:
    async def story() -> None:
        with Broker() as broker:
            options: dict[str, Any] = {"max_block_ms": 100, "buffer_memory": 300, "batch_size": 100}
            async with Producer(bootstrap_servers=broker.bootstrap, **options) as producer:
                while not await knows_the_topic(producer):
                    pass
                held = broker.control.hold("Produce")
                waiting = [producer.send("t", b"x" * 100) for _ in range(2)]
                with pytest.raises(BufferExhaustedError, match="max_block_ms 100"):
                    await producer.room()
                held.clear()
                await asyncio.gather(*waiting)
                await producer.room()

    asyncio.run(asyncio.wait_for(story(), 60))


async def knows_the_topic(producer: AsyncProducer) -> bool:
    """A busy machine may need longer than `max_block_ms` for the first connection."""
    try:
        return (await producer.send("t", b"first")).topic == "t"
    except NoMetadataError:
        return False


def test_the_end_of_the_interpreter_delivers_what_an_unclosed_producer_holds(broker: Broker) -> None:
    code = (
        "import sys; from partita import Producer\n"
        "p = Producer(bootstrap_servers=sys.argv[1].replace('127.0.0.1', 'localhost'))\n"
        "for n in range(100): p.send('exit', b'%d' % n)"
    )
    done = subprocess.run([sys.executable, "-c", code, broker.bootstrap], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    with Consumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([("exit", 0)])
        assert consumer.end_offsets([("exit", 0)])["exit", 0] == 100  # type: ignore[index]  # equal to the plain tuple


def test_the_end_of_the_interpreter_tells_how_many_are_lost() -> None:
    code = "import sys; from partita import Producer; p = Producer(bootstrap_servers=sys.argv[1]); p.send('t', b'v')"
    done = subprocess.run([sys.executable, "-c", code, nobody()], capture_output=True, text=True, timeout=60)
    assert "the program ends with a producer that was not closed" in done.stderr
    assert "1 record still waiting" in done.stderr


def test_an_asyncio_producer_left_open_tells_how_many_are_lost() -> None:
    code = (
        "import asyncio, sys; from partita import Producer\n"
        "async def main():\n"
        "    global p\n"
        "    p = await Producer(bootstrap_servers=sys.argv[1]).__aenter__()\n"
        "    p.send('t', b'v')\n"
        "asyncio.run(main())"
    )
    done = subprocess.run([sys.executable, "-c", code, nobody()], capture_output=True, text=True, timeout=60)
    assert "lost: 1 record" in done.stderr


def test_a_producer_that_nobody_closes_warns(broker: Broker) -> None:
    producer = Producer(bootstrap_servers=broker.bootstrap)
    producer.send("t", b"v").result(60)
    gc.collect()  # What tests before this one left behind warns now.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del producer
        gc.collect()
    unclosed = [str(one.message) for one in caught if "not closed" in str(one.message)]
    assert unclosed == ["a producer was not closed; use `with`, or close()"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this platform")
def test_after_a_fork_the_child_says_why_nothing_is_sent_and_the_parent_goes_on(broker: Broker) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer, Admin(bootstrap_servers=broker.bootstrap) as admin:
        producer.send("t", b"v").result(60)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            told = []
            for attempt in (lambda: producer.send("t", b"v"), producer.flush, admin.list_topics, producer.close):
                try:
                    attempt()
                    told.append("nothing")
                except Exception as error:
                    told.append(f"{type(error).__name__}: {error}")
            os.write(write, "\n".join(told).encode())
            os._exit(0)
        os.close(write)
        try:
            with os.fdopen(read) as pipe:
                sent, flushed, listed, closed = pipe.read().splitlines()
        finally:
            os.waitpid(child, 0)
        assert sent.startswith("ProducerClosedError")
        for text in (sent, flushed, listed):
            assert "before the process forked" in text
            assert "make a new client in the child" in text
        assert closed == "nothing"
        assert producer.send("t", b"v").result(60).topic == "t"


def test_an_outage_is_logged_once_and_its_end_too(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "partita.producer")
    address = nobody()
    port = int(address.rpartition(":")[2])
    with Producer(bootstrap_servers=address, reconnect_backoff_max_ms=50, retry_backoff_max_ms=50) as producer:
        waiting = producer.send("t", b"v")
        with pytest.raises(TimeoutError):
            waiting.result(0.5)
        with Broker(port=port):
            assert waiting.result(60).topic == "t"
    told = [record.message for record in caplog.records]
    assert [line.partition(";")[0] for line in told] == ["no broker can be reached", "a broker answers again"]


def test_metrics_have_kafkas_names_and_types(broker: Broker) -> None:
    with Producer(bootstrap_servers=broker.bootstrap, client_id="m") as producer:
        for _ in range(10):
            producer.send("measured", b"x" * 100)
        producer.flush()
        numbers = producer.metrics()
        text = producer.metrics_text()
    assert numbers["record-send-total"] == numbers['record-send-total{topic="measured"}'] == 10
    assert numbers["record-error-total"] == 0
    for name in (
        "request-latency-avg",
        "batch-size-max",
        "outgoing-byte-total",
        "record-size-avg",
        "buffer-total-bytes",
    ):
        assert numbers[name] > 0, name
    assert "# TYPE kafka_producer_producer_metrics_record_send_total counter" in text
    assert 'kafka_producer_producer_topic_metrics_record_send_total{client_id="m",topic="measured"} 10' in text


def test_the_admin_client_has_metrics(broker: Broker) -> None:
    with Admin(bootstrap_servers=broker.bootstrap, client_id="a") as admin:
        admin.list_topics()
        assert admin.metrics()["request-total"] >= 2
        assert admin.metrics()["connection-count"] >= 1
        assert 'kafka_admin_client_admin_client_metrics_request_size_avg{client_id="a"}' in admin.metrics_text()


def test_a_dropped_opening_connection_tells_those_who_wait_for_it() -> None:
    """clients.md 3.2: they hung, or took the cancellation of the opening for their own."""

    async def story() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            pool = ConnectionPool(ClientConfig())
            host, port = silent.getsockname()
            waiting = asyncio.create_task(pool.connect(1, host, port))
            cancelled = asyncio.create_task(pool.connect(1, host, port))
            await asyncio.wait({cancelled}, timeout=0)
            cancelled.cancel()
            await asyncio.wait({cancelled})
            pool.drop(1)
            with pytest.raises(Disconnected, match="dropped while it was being opened"):
                await waiting
            pool.close()

    asyncio.run(asyncio.wait_for(story(), 60))


def test_closing_names_the_reason_in_each_future() -> None:
    producer = Producer(bootstrap_servers=nobody())
    future = producer.send("t", b"v")
    with pytest.raises(UndeliveredError):
        producer.close(without_broker=0.1)
    with pytest.raises(ProducerClosedError, match="cannot connect"):
        future.result(0)
