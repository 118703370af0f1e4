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
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from partita import Consumer, Producer
from partita.consumer.shell.waiting import BlockingWaiter, run_blocking
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


class InterruptedCondition(threading.Condition):
    """Ctrl-C comes after the lock was given up for the wait, and before it is taken again."""

    def wait(self, timeout: float | None = None) -> bool:
        self.release()
        raise KeyboardInterrupt


@dataclass
class InterruptedIo:
    changed: threading.Condition
    activity: int = 0


def test_a_ctrl_c_while_a_lock_is_taken_again_is_seen_as_such() -> None:
    io: Any = InterruptedIo(InterruptedCondition())
    with pytest.raises(KeyboardInterrupt):
        run_blocking(BlockingWaiter().wait(io, 0, 1.0))
