"""Ctrl-C and frozen brokers: a program that is told to end does so, whatever call it is in (findings clients 3.5).

The broker is a process of its own that can be stopped by SIGSTOP: it accepts connections and never answers.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from partita import Broker, Consumer, Producer
from partita.consumer.request import Poll
from partita.consumer.shell import delivery as deliveries
from partita.consumer.shell import io_thread
from partita.consumer.shell.waiting import BlockingWaiter, run_blocking
from partita.consumer.subscription import Subscription
from partita.offsets.topic_partition import TopicPartition
from support.broker.process import BrokerProcess

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGSTOP")

AT_ONCE_SECONDS = 10.0
A_FEW_SECONDS = 20.0
"""Bounds for a busy machine; what they are there to find took half a minute or more."""
PROGRAM = """
import os, signal, sys, threading, time
from partita import Consumer, Producer
bootstrap = sys.argv[1]
producer = Producer(bootstrap_servers=bootstrap, buffer_memory=100_000)
consumer = Consumer(bootstrap_servers=bootstrap, group_id="g", auto_offset_reset="earliest", fetch_max_wait_ms=100)
consumer.subscribe(["t"])
while not consumer.poll(1.0):
    pass

def frozen(doing):
    print("ready", flush=True)
    sys.stdin.readline()
    interrupted = []

    def interrupt():
        interrupted.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Timer(0.3, interrupt).start()
    try:
        doing()
    except KeyboardInterrupt:
        print(time.monotonic() - interrupted[0], flush=True)
        os._exit(7)
"""
CALLS = {
    "poll": "frozen(lambda: [consumer.poll(60) for _ in range(9)])",
    "loop": "frozen(lambda: list(consumer))",
    "commit": "frozen(lambda: consumer.commit(timeout=60))",
    "committed": "frozen(lambda: consumer.committed([('t', 0)], timeout=60))",
    "send": "frozen(lambda: [producer.send('t', b'x' * 10_000) for _ in range(99)])",
    "result": "frozen(lambda: producer.send('t', b'x').result(60))",
    "flush": "frozen(lambda: (producer.send('t', b'x'), producer.flush()))",
    "close": "frozen(lambda: consumer.close())",
    "close of the producer": "frozen(lambda: (producer.send('t', b'x'), producer.close()))",
}


@pytest.fixture
def broker() -> Iterator[BrokerProcess]:
    with BrokerProcess() as process:
        with Producer(bootstrap_servers=process.bootstrap) as producer:
            producer.send("t", b"x").result(60)
        yield process


@pytest.mark.parametrize("call", list(CALLS))
def test_ctrl_c_ends_a_call_to_a_frozen_broker_at_once(broker: BrokerProcess, call: str) -> None:
    command = [sys.executable, "-c", PROGRAM + CALLS[call], broker.bootstrap]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        broker.freeze()
        try:
            took, _ = program.communicate("\n", timeout=120)
        finally:
            program.kill()
    assert program.returncode == 7, "the call returned before it was interrupted, or ended otherwise"
    assert float(took) < AT_ONCE_SECONDS


@pytest.mark.parametrize("auto_commit", [True, False])
def test_close_with_a_frozen_broker_takes_a_few_seconds_in_all(broker: BrokerProcess, auto_commit: bool) -> None:
    consumer = Consumer(
        bootstrap_servers=broker.bootstrap, group_id="g", auto_offset_reset="earliest", enable_auto_commit=auto_commit
    )
    consumer.subscribe(["t"])
    while not consumer.poll(1.0):
        pass
    consumer.commit_async()
    broker.freeze()
    began = time.monotonic()
    consumer.close()
    assert time.monotonic() - began < A_FEW_SECONDS


def test_a_program_with_a_with_block_ends_within_seconds_of_ctrl_c(broker: BrokerProcess) -> None:
    program = """
import sys
from partita import Consumer
with Consumer(bootstrap_servers=sys.argv[1], group_id="g", auto_offset_reset="earliest") as consumer:
    consumer.subscribe(["t"])
    for record in consumer:
        print("ready", flush=True)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program, broker.bootstrap], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        broker.freeze()
        began = time.monotonic()
        os.kill(running.pid, signal.SIGINT)
        _, errors = running.communicate(timeout=120)
    assert time.monotonic() - began < A_FEW_SECONDS
    assert "KeyboardInterrupt" in errors


@pytest.fixture
def one_of_twenty() -> Iterator[Consumer[str, str]]:
    """A member of a group that reads twenty records."""
    with Broker(num_partitions=1) as broker:
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            for number in range(20):
                producer.send("t", str(number))
        options: dict[str, Any] = {"group_id": "g", "auto_offset_reset": "earliest", "max_poll_records": 5}
        with Consumer(bootstrap_servers=broker.bootstrap, value_deserializer="str", **options) as consumer:
            consumer.subscribe(["t"])
            yield consumer


def read_on(consumer: Consumer[str, str], values: list[str]) -> None:
    """Poll to the end, as a notebook does whose cell was interrupted."""
    while len(values) < 20:
        with suppress(KeyboardInterrupt):
            values += [record.value for record in consumer.poll(1.0)]
    assert [int(value) for value in values] == list(range(20))


def interrupted_once(function: Callable[..., Any], *, at_first: bool = False) -> Callable[..., Any]:
    """Ctrl-C comes, once, in the application's thread when the function ends, or begins.

    In the `poll` of a part it comes when there is a request.
    """
    thread, left = threading.get_ident(), [KeyboardInterrupt()]

    def wrapped(*arguments: Any) -> Any:
        if at_first and left and threading.get_ident() == thread:
            raise left.pop()
        poll = next((one for one in arguments if isinstance(one, Poll)), None)
        before = 0 if poll is None else len(poll.requests)
        result = function(*arguments)
        if left and threading.get_ident() == thread and (poll is None or len(poll.requests) > before):
            raise left.pop()
        return result

    return wrapped


def test_records_that_a_poll_took_when_ctrl_c_came_are_given_by_the_next(one_of_twenty: Consumer[str, str]) -> None:
    """The position was behind them, so that a commit covered what the application had not got."""
    delivery: Any = one_of_twenty._delivery
    delivery._note_handed_out = interrupted_once(delivery._note_handed_out)
    values: list[str] = []
    while not values:
        with suppress(KeyboardInterrupt):
            values += [record.value for record in one_of_twenty.poll(1.0)]
    one_of_twenty._driver.interceptors.on_consume = interrupted_once(one_of_twenty._driver.interceptors.on_consume)  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        one_of_twenty.poll(5.0)
    assert one_of_twenty.position(("t", 0)) == 5
    delivery.in_hand.fill = interrupted_once(delivery.in_hand.fill, at_first=True)
    loop = iter(one_of_twenty)
    with pytest.raises(KeyboardInterrupt):
        next(loop)
    values += [next(one_of_twenty).value for _ in range(5)]
    delivery._core.buffer._take = interrupted_once(delivery._core.buffer._take)
    read_on(one_of_twenty, values)


class Interrupting(type):
    """The type of a class that Ctrl-C breaks off to ask about."""

    def __instancecheck__(cls, one: object) -> bool:
        raise KeyboardInterrupt


def test_rows_that_poll_arrow_took_when_ctrl_c_came_are_given_by_the_next(
    one_of_twenty: Consumer[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    values: list[str] = []
    while not one_of_twenty._core.buffer:
        one_of_twenty.poll(0.05, max_records=0)
    with monkeypatch.context() as patch:
        patch.setattr(deliveries, "ConsumerRecords", Interrupting("ConsumerRecords", (), {}))
        with pytest.raises(KeyboardInterrupt):
            one_of_twenty.poll_arrow(5.0)
    while len(values) < 20:
        batch = one_of_twenty.poll_arrow(1.0, value="str")
        values += [] if batch is None else batch.column("value").to_pylist()
    assert [int(value) for value in values] == list(range(20))


def test_a_consumer_whose_thread_ctrl_c_kept_from_starting_starts_it_later(
    one_of_twenty: Consumer[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first requests counted as sent, and no poll ever asked again."""
    monkeypatch.setattr(io_thread, "_new_loop", interrupted_once(io_thread._new_loop, at_first=True))
    with pytest.raises(KeyboardInterrupt):
        one_of_twenty.poll(1.0)
    read_on(one_of_twenty, [])


def test_ctrl_c_takes_no_partition_out_of_an_assignment() -> None:
    """A partition that had delivered was taken out and put in again behind the others; Ctrl-C came in between."""
    subscription = Subscription()
    subscription.assign_by_user([TopicPartition("t", 0), TopicPartition("t", 1)])

    def interrupt(frame: Any, event: str, _: Any) -> Any:
        if event == "line" and subscription.assignment.keys() != {("t", 0), ("t", 1)}:
            raise KeyboardInterrupt
        return interrupt

    sys.settrace(interrupt)
    try:
        subscription.move_to_end(TopicPartition("t", 0))
    finally:
        sys.settrace(None)
    assert list(subscription.assignment) == [("t", 1), ("t", 0)]


@pytest.mark.parametrize("part", range(10))
def test_what_a_part_of_the_core_decided_when_ctrl_c_came_is_decided_again(
    one_of_twenty: Consumer[str, str], part: int
) -> None:
    """Requests that nobody had sent counted as under way, and the consumer read nothing for ever."""
    core = one_of_twenty._core
    if part == len(core._polls):
        core.membership.poll = interrupted_once(core.membership.poll)  # type: ignore[method-assign]
    else:
        polls = list(core._polls)
        polls[part] = interrupted_once(polls[part])
        core._polls = tuple(polls)
    read_on(one_of_twenty, [])
    with suppress(KeyboardInterrupt):
        one_of_twenty.commit()
    one_of_twenty.commit()


@pytest.mark.parametrize("broken_off", ["is_own_thread", "core.add"])
def test_a_record_whose_send_ctrl_c_broke_off_holds_up_no_other(broken_off: str) -> None:
    """The loop counted as woken and was not: no record was delivered any more, and no flush ended."""
    with Broker(num_partitions=1) as broker, Producer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send("t", "0").result(60)
        driver: Any = producer._producer._driver
        if broken_off == "core.add":
            driver.core.add = interrupted_once(driver.core.add)
        else:
            driver.is_own_thread = interrupted_once(driver.is_own_thread, at_first=True)
        with pytest.raises(KeyboardInterrupt):
            producer.send("t", "1")
        producer.send("t", "2").result(60)
        with Consumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([("t", 0)])
            assert [next(consumer).value for _ in range(3)] == [b"0", b"1", b"2"]


def test_ctrl_c_in_the_wait_of_a_future_comes_out_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    """It came while the future's lock was given up, and was a RuntimeError about that lock."""

    def result(*_: object) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise RuntimeError("cannot release un-acquired lock")

    with Broker(num_partitions=1) as broker, Producer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send("t", "0").result(60)
        with monkeypatch.context() as patch:
            patch.setattr(Future, "result", result)
            with pytest.raises(KeyboardInterrupt):
                producer.flush()


class InterruptedCondition(threading.Condition):
    """Ctrl-C comes after the lock was given up for the wait, and before it is taken again."""

    def wait(self, timeout: float | None = None) -> bool:
        self.release()
        raise KeyboardInterrupt


@dataclass
class InterruptedIo:
    changed: threading.Condition
    activity: int = 0

    @property
    def lock(self) -> Any:
        return self.changed._lock  # type: ignore[attr-defined]


def test_a_ctrl_c_while_a_lock_is_taken_again_is_seen_as_such() -> None:
    io: Any = InterruptedIo(InterruptedCondition())
    with pytest.raises(KeyboardInterrupt):
        run_blocking(BlockingWaiter().wait(io, 0, 1.0))
