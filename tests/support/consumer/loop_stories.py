"""Stories of loops over our consumer that have to end alike on Partita's broker and on Apache Kafka.

Must not know which broker they play on.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from partita import AsyncConsumer, Consumer, KafkaError
from support.consumer.stories import WITHIN_S, Stage, all_of, create, fill, member, numbered, options_of


def _given_once(values: Counter[bytes], expected: Counter[bytes]) -> None:
    assert values == expected, f"twice {values - expected}, never {expected - values}"


def next_then_poll(stage: Stage) -> None:
    """Finding D7: `poll` gave the record again that `next` had given before it."""
    create(stage, "next-poll", 4)
    records = numbered("n", range(4), 15)
    fill(stage, "next-poll", records)
    found: Counter[bytes] = Counter()
    with member(stage, "next-poll") as consumer:
        consumer.subscribe(["next-poll"])
        while len(found) < 60:
            found[next(consumer).value] += 1
            found.update(record.value for record in consumer.poll(0, max_records=3))
    _given_once(found, all_of(records))


def a_second_loop_after_break(stage: Stage) -> None:
    """Finding D7: six loops of ten records gave five of them twice. A new process begins with the body left last."""
    create(stage, "loops", 1)
    records = numbered("n", [0], 70)
    fill(stage, "loops", records)
    found: list[bytes] = []
    loops: list[Callable[[Consumer], Any]] = [iter, iter, lambda consumer: consumer.until_end()]
    with member(stage, "loops") as consumer:
        consumer.subscribe(["loops"])
        for number in range(6):
            for count, record in enumerate(loops[number % 3](consumer), start=1):
                found.append(record.value)
                if count == 10:
                    break
    assert found == records[0][:60]
    with member(stage, "loops") as after:
        after.subscribe(["loops"])
        assert next(after).value == records[0][59]


def asyncio_loops_after_break(stage: Stage) -> None:
    """Finding D7 with asyncio."""
    create(stage, "async-loops", 1)
    records = numbered("n", [0], 60)
    fill(stage, "async-loops", records)

    async def read() -> list[bytes]:
        found: list[bytes] = []
        async with AsyncConsumer(**options_of(stage, "async-loops")) as consumer:
            consumer.subscribe(["async-loops"])
            while len(found) < 60:
                found.append((await anext(consumer)).value)
                found += [record.value for record in await consumer.poll(0, max_records=2)]
                async for record in consumer:
                    found.append(record.value)
                    if len(found) % 5 == 0:
                        break
        return found

    assert asyncio.run(read()) == records[0]


# While members come and go

ROUNDS = 4


class Churn:
    """A second member of the group, in a thread of its own, that joins and leaves until the story is over.

    Before it joins it sends records, so that there is always something to read.
    """

    def __init__(self, stage: Stage, group: str, **options: Any) -> None:
        self._join = partial(member, stage, group, **options)
        self._write = partial(fill, stage, group, numbered("n", range(4), 100))
        self._topic = group
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._come_and_go)
        self.rounds = 0

    def _come_and_go(self) -> None:
        while not self._is_over.is_set():
            self._write()
            with self._join() as consumer:
                consumer.subscribe([self._topic])
                while not (consumer.assignment() or self._is_over.is_set()):
                    consumer.poll(0.05)
                consumer.poll(0.05)
            self.rounds += 1

    def __enter__(self) -> Churn:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()


class Counted:
    """A member in the churn: how many of its commits succeeded, and what the others raised."""

    def __init__(self, stage: Stage, name: str, assignor: str, enough: int = 300) -> None:
        self.topic = f"{name}-{assignor}-{stage.protocol}"
        self.options: dict[str, Any] = {"partition_assignment_strategy": [assignor]}
        self.good, self.enough, self.raised = 0, enough, list[BaseException]()
        create(stage, self.topic, 4)
        self.own = options_of(stage, self.topic, enable_auto_commit=False, max_poll_records=20, **self.options)
        self.churn = Churn(stage, self.topic, **self.options)

    @property
    def is_over(self) -> bool:
        return bool(self.raised) or (self.good >= self.enough and self.churn.rounds >= ROUNDS)

    def commit(self, consumer: Consumer, *what: Any) -> None:
        try:
            consumer.commit(*what)
        except KafkaError as error:
            self.raised.append(error)
        else:
            self.good += 1

    def end(self) -> None:
        assert not self.raised, f"{self.good} commits were good, then: {self.raised!r}"


def hold_in_churn(stage: Stage, assignor: str) -> None:
    """Finding D13: the printed program; 528 of 1,000 commits of a cooperative member raised RebalanceRunningError."""
    counted = Counted(stage, "hold-churn", assignor)
    with counted.churn, Consumer(**counted.own) as consumer:  # it leaves first: who joins does not wait for it
        consumer.subscribe([counted.topic])
        while not counted.is_over:
            with consumer.hold(consumer.poll(1.0)) as held:
                for record in held:
                    counted.commit(consumer, record)
                    if held.others_wait:
                        break
    counted.end()


def asyncio_hold_in_churn(stage: Stage, assignor: str) -> None:
    """Finding D13 with asyncio."""
    counted = Counted(stage, "async-hold-churn", assignor)

    async def read() -> None:
        async with AsyncConsumer(**counted.own) as consumer:
            consumer.subscribe([counted.topic])
            while not counted.is_over:
                async with consumer.hold(await consumer.poll(1.0)) as held:
                    async for record in held:
                        await consumer.commit(record)
                        counted.good += 1
                        if held.others_wait:
                            break

    with counted.churn:
        asyncio.run(read())


def loop_in_churn(stage: Stage, assignor: str) -> None:
    """Findings D13 and D14: each record committed by itself in a plain loop."""
    counted = Counted(stage, "loop-churn", assignor)
    with counted.churn, Consumer(**counted.own) as consumer:  # it leaves first: who joins does not wait for it
        consumer.subscribe([counted.topic])
        for record in consumer:
            counted.commit(consumer, record)
            if counted.is_over:
                break
    counted.end()


def pause_in_churn(stage: Stage, assignor: str) -> None:
    """Finding D14: everything paused, polls during the work, then a commit of all positions."""
    counted = Counted(stage, "pause-churn", assignor, 40)
    with counted.churn, Consumer(**counted.own) as consumer:  # it leaves first: who joins does not wait for it
        consumer.subscribe([counted.topic])
        while not counted.is_over:
            consumer.poll(1.0)
            consumer.pause()
            for _ in range(3):
                assert not consumer.poll(0.001)
            consumer.resume()
            counted.commit(consumer)
    counted.end()


class Committing:
    """A member in a thread of its own that commits each record by itself, and what became of every commit."""

    def __init__(self, stage: Stage, topic: str, has_committed: threading.Condition) -> None:
        self._has_committed = has_committed
        options = {"enable_auto_commit": False, "partition_assignment_strategy": ["cooperative-sticky"]}
        self._consumer = member(stage, topic, max_poll_records=10, **options)
        self._consumer.subscribe([topic])
        self._is_over = threading.Event()
        self.good: list[bytes] = []
        self.refused: list[tuple[bytes, KafkaError]] = []
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        with self._consumer as consumer:
            while not self._is_over.is_set():
                for record in consumer.poll(0.1):
                    try:
                        consumer.commit(record)
                    except KafkaError as error:
                        self.refused.append((record.value, error))
                    else:
                        with self._has_committed:
                            self.good.append(record.value)
                            self._has_committed.notify()

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()


def each_record_has_a_commit_of_its_own_in_a_rolling_upgrade(stage: Stage) -> None:
    """Finding D14: of 1,000 records 982 to 984 had a successful commit while three members changed their protocol."""
    create(stage, "own-commits", 6)
    records = [numbered(f"v{number}", range(6), 125) for number in range(4)]
    expected = sum(map(all_of, records), Counter[bytes]())
    classic = replace(stage, protocol="classic")
    changed = threading.Condition()
    members = [Committing(classic, "own-commits", changed) for _ in range(3)]
    started = list(members)

    def good() -> Counter[bytes]:
        return Counter(value for one in started for value in one.good)

    try:
        for number, values in enumerate(records):
            fill(stage, "own-commits", values)
            if number < 3:
                members.pop(0).stop()
                started.append(Committing(stage, "own-commits", changed))
                members.append(started[-1])
        with changed:
            changed.wait_for(lambda: len(good()) >= expected.total(), WITHIN_S)
    finally:
        for one in members:
            one.stop()
    refused = [each for one in started for each in one.refused]
    assert not refused, f"{len(good())} records have a commit of their own; refused: {refused}"
    _given_once(good(), expected)


IN_CHURN = (hold_in_churn, asyncio_hold_in_churn, loop_in_churn, pause_in_churn)
"""Stories that are told with eager and with cooperative members, and with the consumer protocol."""
UPGRADES = (each_record_has_a_commit_of_its_own_in_a_rolling_upgrade,)
"""Stories of members that change from the classic protocol to the consumer protocol."""
LOOP_STORIES = (next_then_poll, a_second_loop_after_break, asyncio_loops_after_break)
