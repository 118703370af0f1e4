"""The how-tos on long processing, run while a second member joins, with automatic commits: no record is lost.

Finding clients 2.2: as printed before, 244 of 400 and 464 of 2,000 records were never processed.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from partita import Broker, Consumer, Producer
from partita.consumer.errors import ProcessingError, WakeupError

COUNT = 300
Process = Callable[[Any], None]


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(num_partitions=4) as running:
        with Producer(bootstrap_servers=running.bootstrap) as producer:
            for number in range(COUNT):
                producer.send("jobs", b"%d" % number, partition=number % 4)
        yield running


def by_loop(consumer: Any, process: Process, is_over: threading.Event) -> None:
    with contextlib.suppress(WakeupError):
        for record in consumer:
            process(record)


def by_hold(consumer: Any, process: Process, is_over: threading.Event) -> None:
    while not is_over.is_set():
        with consumer.hold(consumer.poll(0.2)) as held:
            for record in held:
                process(record)
                if held.others_wait:
                    break


def by_pause(consumer: Any, process: Process, is_over: threading.Event) -> None:
    with ThreadPoolExecutor(4) as pool:
        while not is_over.is_set():
            work = [pool.submit(process, record) for record in consumer.poll(0.2)]
            consumer.pause()
            while not all(each.done() for each in work):
                consumer.poll(0.01)
            consumer.resume()


def by_done(consumer: Any, process: Process, is_over: threading.Event) -> None:
    with ThreadPoolExecutor(4) as pool:
        while not is_over.is_set():
            for record in consumer.poll(0.2):
                consumer.done(record, after=pool.submit(process, record))


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
@pytest.mark.parametrize("program", [by_loop, by_hold, by_pause, by_done])
def test_a_member_that_joins_meanwhile_costs_no_record(broker: Broker, program: Any, assignor: str) -> None:
    processed: list[tuple[int, int]] = []
    consumers: list[Consumer[Any, Any]] = []
    is_over, has_begun = threading.Event(), threading.Event()
    options: dict[str, Any] = {
        "bootstrap_servers": broker.bootstrap,
        "group_id": "g",
        "auto_offset_reset": "earliest",
        "auto_commit_interval_ms": 50,
        "heartbeat_interval_ms": 50,
        "max_poll_records": 40,
        "partition_assignment_strategy": [assignor],
        "commit_done_only": program is by_done,
    }

    def process(record: Any) -> None:
        is_over.wait(0.002)
        processed.append((record.partition, record.offset))
        if len(processed) > COUNT // 5:
            has_begun.set()

    def member() -> None:
        with Consumer(**options) as consumer:
            consumers.append(consumer)
            consumer.subscribe(["jobs"])
            program(consumer, process, is_over)

    with ThreadPoolExecutor(2) as pool:
        members = [pool.submit(member)]
        assert has_begun.wait(120)
        members.append(pool.submit(member))
        limit = time.monotonic() + 120
        while len(set(processed)) < COUNT and time.monotonic() < limit:
            is_over.wait(0.05)
        is_over.set()
        for consumer in consumers if program is by_loop else ():
            consumer.wakeup()
        for each in members:
            each.result(120)
    assert len(set(processed)) == COUNT


def test_work_that_failed_is_raised_by_the_next_poll_and_not_committed(broker: Broker) -> None:
    """Clients 2.2: records whose processing raised were marked as done."""

    def work(record: Any) -> float:
        return 1 / int(record.offset - 7)

    options: dict[str, Any] = {"group_id": "g", "auto_offset_reset": "earliest", "commit_done_only": True}
    with Consumer(bootstrap_servers=broker.bootstrap, **options) as consumer, ThreadPoolExecutor(1) as pool:
        consumer.assign([("jobs", 0)])
        records: list[Any] = []
        while len(records) < 10:
            records += consumer.poll(1.0)
        for record in records:
            consumer.done(record, after=pool.submit(work, record))
        with pytest.raises(ProcessingError, match="jobs-0 at offset 7 failed: ZeroDivisionError"):
            consumer.poll(10.0)
        pool.shutdown()
        consumer.commit()
        (committed,) = consumer.committed([("jobs", 0)]).values()
        assert committed is not None
        assert committed.offset == 7
