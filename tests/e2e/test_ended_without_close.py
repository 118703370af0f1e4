"""Clients that nothing closes: collected ones give everything back, and the end of the interpreter leaves the group.

Clients, D10: ten dropped producers kept ten threads and forty descriptors, and a consumer that ended with its program
stayed a member for the whole session. Counted in threads, descriptors, records and members.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from partita import Admin, Broker, Consumer, Producer
from partita.producer.shell.driver import DRIVERS

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        with Admin(bootstrap_servers=running.bootstrap) as admin:
            admin.create_topic("t", 1)
        yield running


def until(is_so: Callable[[], bool]) -> None:
    ends = time.monotonic() + 60
    while not is_so():
        gc.collect()
        assert time.monotonic() < ends, "it did not happen within 60 s"
        threading.Event().wait(0.01)


def stored(broker: Broker, isolation: str = "read_uncommitted") -> int:
    with Consumer(bootstrap_servers=broker.bootstrap, isolation_level=isolation) as consumer:
        return next(iter(consumer.end_offsets([("t", 0)]).values()))


def held() -> tuple[int, int]:
    """Threads of clients, and descriptors of this process, in which the broker runs as well."""
    return sum(thread.name in ("partita-producer", "partita-admin") for thread in threading.enumerate()), len(
        os.listdir("/proc/self/fd")
    )


# Collected


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="descriptors are counted in /proc")
def test_dropped_producers_deliver_and_give_back_threads_and_descriptors(broker: Broker) -> None:
    def drop(n: int) -> Any:
        return Producer(bootstrap_servers=broker.bootstrap, linger_ms=10_000).send("t", b"%d" % n)

    others, drivers = held()[0], set(DRIVERS)
    drop(0).result(60)
    until(lambda: held()[0] <= others)
    before = held()
    futures = [drop(n) for n in range(1, 11)]
    assert sorted(future.result(60).offset for future in futures) == list(range(1, 11))
    del futures
    until(lambda: held()[0] <= before[0] and held()[1] <= before[1])
    until(lambda: set(DRIVERS) <= drivers)
    assert stored(broker) == 11


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="descriptors are counted in /proc")
def test_dropped_admins_give_back_threads_and_descriptors(broker: Broker) -> None:
    before = held()
    for _ in range(5):
        Admin(bootstrap_servers=broker.bootstrap).list_topics()
    until(lambda: held()[0] <= before[0] and held()[1] <= before[1])


def test_a_dropped_producer_that_cannot_deliver_says_how_many_are_lost(caplog: pytest.LogCaptureFixture) -> None:
    with Broker() as gone:
        address = gone.bootstrap
    Producer(bootstrap_servers=address).send("t", b"v")
    until(lambda: "a producer was not closed; use `with`, or close(): not everything was delivered" in caplog.text)
    assert "1 record still waiting" in caplog.text


def test_a_dropped_producer_aborts_its_transaction(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    def drop() -> None:
        producer = Producer(bootstrap_servers=broker.bootstrap, transactional_id="x")
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"v").result(60)

    drop()
    until(lambda: "a transaction was open when the producer was closed; it is aborted" in caplog.text)
    with Producer(bootstrap_servers=broker.bootstrap) as after:
        after.send("t", b"after").result(60)
    options: dict[str, Any] = {"bootstrap_servers": broker.bootstrap, "auto_offset_reset": "earliest"}
    with Consumer(**options, isolation_level="read_committed") as consumer:
        consumer.assign([("t", 0)])
        assert [record.value for record in consumer.until_end()] == [b"after"]


def test_clients_that_are_dropped_on_a_running_loop_deliver_and_disconnect(broker: Broker) -> None:
    async def main() -> None:
        async def drop() -> None:
            producer = await Producer(bootstrap_servers=broker.bootstrap).__aenter__()
            producer.send("t", b"v")
            admin = await Admin(bootstrap_servers=broker.bootstrap).__aenter__()
            await admin.list_topics()

        before = broker_connections(broker)
        await drop()
        while DRIVERS or broker_connections(broker) > before:
            gc.collect()
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(main(), 60))
    assert stored(broker) == 1


def broker_connections(broker: Broker) -> int:
    """Client connections of this process to the broker."""
    with open("/proc/self/net/tcp") as table:
        port = f":{int(broker.bootstrap.rpartition(':')[2]):04X}"
        return sum(row.split()[2].endswith(port) and row.split()[3] == "01" for row in table.readlines()[1:])


# The end of the interpreter

START = """
import asyncio, os, signal, sys, threading
from partita import Consumer, Producer
options = dict(bootstrap_servers=sys.argv[1], group_id="g", auto_offset_reset="earliest", max_poll_records=5)
def joined():
    consumer = Consumer(**options)
    consumer.subscribe(["t"])
    while not consumer.poll(1.0): pass
    return consumer
"""

ENDS: dict[str, tuple[str, int, int | None]] = {
    # the end of the program, its status, and what it commits: as close() would, or nothing that may be unprocessed
    "the end of the script": ("c = joined()", 0, 5),
    "sys.exit": ("c = joined(); sys.exit(3)", 3, 5),
    "an exception": ("c = joined(); 1 / 0", 1, 0),
    "an exception in a second poll": ("c = joined(); c.poll(1.0); 1 / 0", 1, 5),
    "Ctrl-C": ("c = joined(); os.kill(os.getpid(), signal.SIGINT); c.poll(60)", -signal.SIGINT, 0),
    "a listener that raises": (
        "c = joined(); c.unsubscribe(); c.subscribe(['t'], on_revoked=lambda _: sys.exit(7))\n"
        "while not c.assignment(): c.poll(1.0)\n",
        0,
        5,
    ),
    "a consumer of a function": ("def main(): joined()\nmain()", 0, None),
    "a daemon at work": (
        "def work():\n"
        "    c = joined(); ready.set()\n"
        "    threading.Event().wait()\n"
        "ready = threading.Event(); threading.Thread(target=work, daemon=True).start(); ready.wait()",
        0,
        0,
    ),
    "a daemon in a poll": (
        "options['enable_auto_commit'] = False\n"
        "def work():\n"
        "    c = joined(); ready.set()\n"
        "    while True: c.poll(60)\n"
        "ready = threading.Event(); threading.Thread(target=work, daemon=True).start(); ready.wait()",
        0,
        None,
    ),
    "asyncio": (
        "async def main():\n"
        "    global c\n"
        "    c = await Consumer(**options).__aenter__()\n"
        "    async def gone(partitions): print('never called')\n"
        "    c.subscribe(['t'], on_revoked=gone)\n"
        "    while not await c.poll(1.0): pass\n"
        "asyncio.run(main())",
        0,
        5,
    ),
    "a static member": ("options['group_instance_id'] = 'i'; c = joined()", 0, 5),
    "KIP-848": ("options['group_protocol'] = 'consumer'; c = joined()", 0, 5),
    "no automatic commit": ("options['enable_auto_commit'] = False; c = joined()", 0, None),
}


@pytest.mark.parametrize("way", ENDS)
def test_a_consumer_that_ends_with_its_program_commits_and_leaves_its_group(broker: Broker, way: str) -> None:
    program, status, committed = ENDS[way]
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for n in range(10):
            producer.send("t", b"%d" % n)
    started = time.monotonic()
    code = [sys.executable, "-c", START + program, broker.bootstrap]
    done = subprocess.run(code, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (status, ""), done.stderr
    assert time.monotonic() - started < 30
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        members = admin.describe_group("g").members
        offsets = admin.group_offsets("g")
    assert len(members) == (1 if way == "a static member" else 0), done.stderr
    assert [one.offset for one in offsets] == ([] if committed is None else [committed]), done.stderr
    if status == 0 and way != "a listener that raises" and way != "a daemon in a poll":
        assert done.stderr == ""


def test_the_end_of_a_program_is_bounded_when_no_broker_answers(broker: Broker) -> None:
    """Records and commit cannot get out: the program says so and ends."""
    program = START + (
        "c = joined(); p = Producer(bootstrap_servers=sys.argv[1]); p.send('t', b'v').result(60)\n"
        "print('ready', flush=True); sys.stdin.readline(); p.send('t', b'lost')"
    )
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send("t", b"v")
    run = subprocess.Popen(
        [sys.executable, "-c", program, broker.bootstrap],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert run.stdout is not None
    assert run.stdout.readline() == "ready\n"
    broker.stop()
    ended = time.monotonic()
    _, told = run.communicate("go\n", timeout=60)
    assert time.monotonic() - ended < 40
    assert run.returncode == 0
    assert "1 record" in told


def test_one_exit_hook_flushes_producers_after_the_consumers_have_called_back(broker: Broker) -> None:
    program = START + (
        "c = Consumer(**options); p = Producer(bootstrap_servers=sys.argv[1], linger_ms=10_000)\n"
        "c.subscribe(['t'], on_revoked=lambda partitions: p.send('t', b'revoked') and None)\n"
        "while not c.poll(1.0): pass"
    )
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send("t", b"v")
    done = subprocess.run([sys.executable, "-c", program, broker.bootstrap], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert stored(broker) == 2


def test_nothing_is_logged_of_clients_that_were_closed(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            producer.send("t", b"v")
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.list_topics()
        del producer, admin
        gc.collect()
    assert caplog.text == ""
