"""Dead letters exactly once: each story runs on our broker and on Apache Kafka, and counts letters for read_committed.

Issue 25: 4 of 81 letters were written twice when consumers that write them at least once were stopped six times.
"""

from __future__ import annotations

import asyncio
import itertools
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

from partita import Admin, Consumer, Producer
from partita.consumer.shell import dead_letters
from partita.offsets.topic_partition import TopicPartition
from partita.producer.shell import transacting, transaction_blocks
from partita.producer.transactions import core as transactions
from support.producer.transaction_stories import await_markers

Story = Callable[[str], None]
_NUMBERS = itertools.count()
TESTS = Path(__file__).parents[2]
RECORDS, PARTITIONS, KILLS = 40, 2, 6
WATCHED = tuple(str(module.__file__) for module in (dead_letters, transacting, transaction_blocks, transactions))
"""Where a transaction of a letter can be broken off."""


def is_bad(number: int) -> bool:
    return number % 4 == 1


class Setting:
    """A topic whose records are partly no JSON, a topic for letters, and a group."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.topic = f"letters-{next(_NUMBERS)}"
        self.dead = f"{self.topic}-dead"
        with Admin(bootstrap_servers=bootstrap) as admin:
            admin.create_topic(self.topic, PARTITIONS)
            admin.create_topic(self.dead, 1)
        with Producer(bootstrap_servers=bootstrap) as producer:
            for number in range(RECORDS):
                value = f"no json {number}" if is_bad(number) else str(number)
                producer.send(self.topic, value, partition=number // 8 % PARTITIONS)

    def options(self, **more: Any) -> dict[str, Any]:
        return {
            "bootstrap_servers": self.bootstrap,
            "group_id": self.topic,
            "auto_offset_reset": "earliest",
            "value_deserializer": "json",
            "poison_policy": "dead_letter",
            "dead_letter_topic": self.dead,
            "dead_letter_exactly_once": True,
            **more,
        }

    def end_hanging_transactions(self) -> None:
        """As their timeout would, but at once."""
        with Admin(bootstrap_servers=self.bootstrap) as admin:
            hanging = [t.transactional_id for t in admin.list_transactions(states=("Ongoing",))]
            if hanging:
                admin.fence_producers(hanging)
        await_markers(self.bootstrap)

    def is_finished(self, consumer: Consumer[Any, Any]) -> bool:
        """Is the group's offset behind every record?"""
        parts = [TopicPartition(self.topic, p) for p in range(PARTITIONS)]
        ends, committed = consumer.end_offsets(parts), consumer.committed(parts)
        return all((at := committed[tp]) is not None and at.offset >= ends[tp] for tp in consumer.assignment() or parts)

    def letters(self, isolation: str = "read_committed") -> Counter[str]:
        """How often each record lies in the topic for letters."""
        with Consumer(
            bootstrap_servers=self.bootstrap, isolation_level=isolation, auto_offset_reset="earliest"
        ) as reader:
            reader.assign([(self.dead, 0)])
            return Counter(record.value.decode() for record in reader.until_end())

    def check(self, processed: set[Any]) -> None:
        self.end_hanging_transactions()
        assert self.letters() == {f"no json {n}": 1 for n in range(RECORDS) if is_bad(n)}
        assert processed == {n for n in range(RECORDS) if not is_bad(n)}


def read_to_the_end(setting: Setting, consumer: Consumer[Any, Any], processed: set[Any]) -> None:
    """Poll and commit until the group has passed every record."""
    while not setting.is_finished(consumer):
        for record in consumer.poll(0.5, max_records=5):
            processed.add(record.value)
        consumer.commit()


def killed_at_any_line(bootstrap: str) -> None:
    """The process is killed with SIGKILL at a random line of what writes letters, again and again."""
    setting, random, processed = Setting(bootstrap), Random(25), set[Any]()
    for lines in [*(random.randrange(1, 2_500) for _ in range(KILLS)), 0]:
        command = [sys.executable, "-m", "support.consumer.letter_reader", bootstrap, setting.topic, str(lines)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=TESTS)
        assert done.returncode == (-signal.SIGKILL if lines and done.returncode else 0), done.stderr
        processed |= {int(line) for line in done.stdout.splitlines()}
        setting.end_hanging_transactions()
    setting.check(processed)


class Interruption(BaseException):
    """Stands for Ctrl-C, which can come at any line."""


def interrupted_at_any_line(bootstrap: str) -> None:
    """The poll is broken off at a random line; the same consumer polls on."""
    setting, random, processed = Setting(bootstrap), Random(7), set[Any]()
    left = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if frame.f_code.co_filename not in WATCHED[:1]:
            return None
        if event == "line" and left:
            left -= 1
            if not left:
                raise Interruption
        return trace

    with Consumer(setting.options(enable_auto_commit=False)) as consumer:
        consumer.subscribe([setting.topic])
        while not setting.is_finished(consumer):
            left = random.randrange(1, 200)
            sys.settrace(trace)
            try:
                found = list(consumer.poll(0.5, max_records=5))
            except Interruption:
                found = []
            finally:
                sys.settrace(None)
            processed |= {record.value for record in found}
            left = 0
            consumer.commit()
    setting.check(processed)


def cancelled_in_asyncio(bootstrap: str) -> None:
    """The task of the poll is cancelled after a few turns of the loop; the same consumer polls on."""
    setting, random, processed = Setting(bootstrap), Random(3), set[Any]()

    async def run() -> None:
        async with Consumer(setting.options(enable_auto_commit=False)) as consumer:
            consumer.subscribe([setting.topic])
            parts = [(setting.topic, p) for p in range(PARTITIONS)]
            ends = await consumer.end_offsets(parts)
            while any(at is None or at.offset < ends[tp] for tp, at in (await consumer.committed(parts)).items()):
                poll = asyncio.ensure_future(consumer.poll(0.5, max_records=5))
                await asyncio.wait({poll}, timeout=random.choice((0.001, 0.01, 0.03, 1)))
                poll.cancel()
                with suppress(asyncio.CancelledError):
                    processed.update(record.value for record in await poll)
                await consumer.commit()

    asyncio.run(run())
    setting.check(processed)


def the_group_moves_on(bootstrap: str) -> None:
    """A member that was replaced, and does not know it yet, comes to a bad record: its letter is aborted."""
    setting, processed = Setting(bootstrap), set[Any]()
    options = setting.options(
        group_instance_id="one", heartbeat_interval_ms=15_000, session_timeout_ms=30_000, enable_auto_commit=False
    )
    with Consumer(options) as first:
        first.subscribe([setting.topic])
        while not (found := first.poll(0.5, max_records=1)):
            pass
        assert [record.value for record in found] == [0]
        with Consumer(options) as second:
            second.subscribe([setting.topic])
            while not second.assignment():
                second.poll(0.1, max_records=0)
            assert not first.poll(1.0)
            aborted = setting.letters("read_uncommitted")
            assert sum(aborted.values()) == 1
            assert not setting.letters()
            read_to_the_end(setting, second, processed)
    setting.check(processed)
    assert setting.letters("read_uncommitted") == setting.letters() + aborted


def members_come_and_go(bootstrap: str) -> None:
    """A second member joins and leaves after every few records, in the middle of the bad ones."""
    classic = {"heartbeat_interval_ms": 200}
    cooperative = {**classic, "partition_assignment_strategy": ["cooperative-sticky"]}
    for more in (classic, cooperative, {"group_protocol": "consumer"}):
        setting, processed = Setting(bootstrap), set[Any]()
        with Consumer(setting.options(**more)) as stays:
            stays.subscribe([setting.topic])
            for _ in range(2):
                with Consumer(setting.options(**more)) as goes:
                    goes.subscribe([setting.topic])
                    while not goes.assignment() or not stays.assignment():
                        for member in (stays, goes):
                            processed |= {record.value for record in member.poll(0.1, max_records=2)}
                    for member in (stays, goes, goes, stays):
                        processed |= {record.value for record in member.poll(0.1, max_records=2)}
            while not setting.is_finished(stays) or len(stays.assignment()) < PARTITIONS:
                processed |= {record.value for record in stays.poll(0.2)}
                with suppress(Exception):
                    stays.commit()
        setting.check(processed)


STORIES: tuple[Story, ...] = (
    killed_at_any_line,
    interrupted_at_any_line,
    cancelled_in_asyncio,
    the_group_moves_on,
    members_come_and_go,
)
