"""A group in twenty seconds: a broker, two consumers, a `kill -9` and a take-over. No Spark, no data set.

Run as `python -m partita.demo.taste BOOTSTRAP NAME` it is one of the two consumers.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from partita import AsyncAdmin, AsyncProducer, Broker, Consumer
from partita.consumer.listener import RebalanceListener
from partita.demo.children import Child, ChildFailed
from partita.demo.worker import SESSION_TIMEOUT_MS, finish_event, say
from partita.offsets.topic_partition import TopicPartition

ORDERS, GROUP = "orders", "billing"
PARTITIONS = 6
FIRST, SECOND = "ana", "ben"
BATCH, EVERY_S = 20, 0.05
CALM_S = 2.0
DEADLINE_S = 60.0


@dataclass
class Taste:
    """Results of one run: how many orders were sent, and how often each was processed, by consumer."""

    sent: int = 0
    processed: dict[str, Counter[int]] = field(default_factory=lambda: {FIRST: Counter(), SECOND: Counter()})
    owned: dict[str, int] = field(default_factory=dict)
    why: str = ""

    @property
    def lost(self) -> int:
        """Orders that neither consumer has processed."""
        return self.sent - len(self.processed[FIRST].keys() | self.processed[SECOND].keys())

    @property
    def repeated(self) -> int:
        """How many times an order was processed again."""
        return sum(sum(orders.values()) for orders in self.processed.values()) - (self.sent - self.lost)

    def on_event(self, name: str, event: dict[str, Any]) -> None:
        """Take one JSON line of a consumer."""
        self.processed[name].update(event.get("orders", ()))
        self.owned[name] = event.get("owned", self.owned.get(name, 0))


async def run(folder: Path, show: Callable[[str], None]) -> Taste:
    """Play the whole story; `show` shows a line of progress. Raises ChildFailed, and TimeoutError after a minute."""
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    taste = Taste()
    async with AsyncExitStack() as stack, asyncio.timeout(DEADLINE_S):
        broker = await stack.enter_async_context(Broker())
        admin = await stack.enter_async_context(AsyncAdmin(bootstrap_servers=broker.bootstrap))
        producer = await stack.enter_async_context(AsyncProducer(bootstrap_servers=broker.bootstrap))
        await admin.create_topic(ORDERS, partitions=PARTITIONS)
        show(f"broker on {broker.bootstrap}; orders go to {PARTITIONS} partitions of the topic {ORDERS!r}")
        children = {}
        for name in (FIRST, SECOND):
            child = await Child.start(name, __spec__.name, [broker.bootstrap, name], taste.on_event, folder)
            stack.push_async_callback(child.stop)
            children[name] = child
        is_over = asyncio.Event()
        sending = asyncio.create_task(_send(producer, taste, is_over))

        async def send_no_more() -> None:
            is_over.set()
            await sending

        stack.push_async_callback(send_no_more)  # before the producer is closed, also after a Ctrl-C

        async def until(holds: Callable[[], object]) -> None:
            while not holds():
                for child in children.values():
                    child.check()
                await asyncio.sleep(0.05)

        await until(lambda: all(taste.owned.get(name, 0) == PARTITIONS // 2 for name in children))
        show(f"{FIRST} and {SECOND} share the group {GROUP!r}: three partitions each")
        await asyncio.sleep(CALM_S)
        children[FIRST].kill()
        killed_at = time.monotonic()
        show(f"{FIRST} is killed with SIGKILL; the coordinator waits {SESSION_TIMEOUT_MS // 1000} s for its heartbeats")
        await until(lambda: taste.owned[SECOND] == PARTITIONS)
        show(f"{SECOND} owns all six, {time.monotonic() - killed_at:.1f} s after the kill")
        await asyncio.sleep(CALM_S)
        await send_no_more()
        await until(lambda: not taste.lost)
        taste.why = await _why(broker.bootstrap)
        await children[SECOND].finish()
    return taste


async def _send(producer: AsyncProducer, taste: Taste, is_over: asyncio.Event) -> None:
    """Number orders and send them until the story is over."""
    for number in count():
        if number % BATCH == 0:
            await asyncio.sleep(EVERY_S)
            if is_over.is_set():
                break
        await producer.send(ORDERS, b"%d" % number, key=b"customer-%d" % (number % 97))
        taste.sent = number + 1
    await producer.flush()


async def _why(bootstrap: str) -> str:
    """Return the answer of `partita groups why`."""
    command = [sys.executable, "-m", "partita.cli.main", "groups", "why", GROUP, "-b", bootstrap]
    asked = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said, _ = await asked.communicate()
    if asked.returncode:
        raise ChildFailed(f"{' '.join(command[1:])} ended with {asked.returncode}:\n{said.decode()}")
    return said.decode().strip()


class _Ownership(RebalanceListener):
    """Reports how many partitions the consumer has."""

    def __init__(self) -> None:
        self.owned: set[TopicPartition] = set()

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        self.owned |= set(partitions)
        say("assigned", owned=len(self.owned))

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self.owned -= set(partitions)
        say("revoked", owned=len(self.owned))


def consume(bootstrap: str, name: str) -> None:
    """Be one of the two consumers, until the parent says finish."""
    finish = finish_event()
    with Consumer(
        bootstrap_servers=bootstrap, group_id=GROUP, client_id=name, auto_offset_reset="earliest",
        enable_auto_commit=False, session_timeout_ms=SESSION_TIMEOUT_MS, heartbeat_interval_ms=1000,
    ) as consumer:  # fmt: skip
        consumer.subscribe([ORDERS], listener=_Ownership())
        while not finish.is_set():
            records = consumer.poll(timeout=0.2)
            if records:
                say("processed", orders=[int(record.value or b"0") for record in records])
                consumer.commit(records)


if __name__ == "__main__":
    consume(*sys.argv[1:])
