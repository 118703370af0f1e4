"""A topic of numbered jobs on an embedded broker, a share group that begins at the first one, and its consumers."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from partita import Admin, AsyncShareConsumer, Broker, NewTopic, Producer, ShareConsumer, ShareRecord
from partita.net.cluster import Cluster
from partita.producer.batch import RecordMetadata
from partita.protocol.messages import describe_share_group_offsets as share_offsets
from support.clients.broker import fresh

WITHIN_S = 120.0
LOCK_MS = 30_000
"""Kafka's default, by the broker's clock; tests move that clock."""
_NUMBERS = itertools.count(1)


class Jobs:
    """`put` writes jobs; `consumer` makes a member of the group; every consumer is closed at the end."""

    def __init__(self, broker: Broker | str, partitions: int = 1, **settings: str | int) -> None:
        self.bootstrap = broker if isinstance(broker, str) else broker.bootstrap
        self._broker = broker
        number = next(_NUMBERS)
        self.topic, self.group = fresh(f"jobs-{number}"), fresh(f"workers-{number}")
        self.consumers: list[ShareConsumer[Any, Any]] = []
        self.written: list[RecordMetadata] = []
        self.admin = Admin(bootstrap_servers=self.bootstrap)
        self.admin.create_topics(NewTopic(self.topic, partitions))
        wanted = {"share.auto.offset.reset": "earliest", **{n.replace("_", "."): v for n, v in settings.items()}}
        self.admin.alter_configs("group", self.group, wanted)

    @property
    def broker(self) -> Broker:
        """The embedded broker, whose clock can be moved."""
        assert isinstance(self._broker, Broker), "Apache Kafka runs in a process of its own"
        return self._broker

    def put(self, *numbers: int, partition: int | None = None) -> None:
        """Write these jobs."""
        with Producer(bootstrap_servers=self.bootstrap) as producer:
            sent = [producer.send(self.topic, str(number), partition=partition) for number in numbers]
        self.written += [future.result() for future in sent]

    def options(self, **options: Any) -> dict[str, Any]:
        """What every consumer of the group is made with."""
        return {"bootstrap_servers": self.bootstrap, "group_id": self.group, **options}

    def consumer(self, mode: str = "explicit", **options: Any) -> ShareConsumer[Any, Any]:
        """A subscribed member."""
        made = ShareConsumer(**self.options(share_acknowledgement_mode=mode, **options))
        made.subscribe([self.topic])
        self.consumers.append(made)
        return made

    def async_consumer(self, mode: str = "explicit", **options: Any) -> AsyncShareConsumer[Any, Any]:
        """A subscribed member for asyncio; the test closes it."""
        made = AsyncShareConsumer(**self.options(share_acknowledgement_mode=mode, **options))
        made.subscribe([self.topic])
        return made

    def end_locks(self) -> None:
        """Let every lock end that is not renewed."""
        self.broker.control.advance_clock(LOCK_MS + 1)

    def lag(self) -> int:
        """Jobs that are neither done nor given up, by the stored state."""
        return sum(asyncio.run(self._lags()))

    async def _lags(self) -> list[int]:
        asked = share_offsets.DescribeShareOffsetsGroup(group_id=self.group, topics=None)
        async with Cluster(self.bootstrap) as cluster:
            connection = await cluster.coordinator_connection(self.group)
            answer = await connection.send(share_offsets.DescribeShareGroupOffsetsRequest(groups=[asked]))
        parts = [part for group in answer.groups for topic in group.topics for part in topic.partitions]
        ends = {(m.topic, m.partition): m.offset for m in self.written}
        begun = {part.partition_index: part.lag for part in parts if part.lag >= 0}
        untouched = [place for place in ends if place[1] not in begun]
        return [*begun.values(), *(ends[place] + 1 for place in untouched)]

    def close(self) -> None:
        """Close everything."""
        for one in self.consumers:
            one.close(10.0)
        self.admin.close()


@contextmanager
def jobs(broker: Broker | str, **settings: Any) -> Iterator[Jobs]:
    """Jobs that are closed at the end."""
    made = Jobs(broker, **settings)
    try:
        yield made
    finally:
        made.close()


def number(record: ShareRecord[Any, Any]) -> int:
    """The number of a job."""
    return int(record.value)


def take(consumer: ShareConsumer[Any, Any], count: int, *, then: str = "") -> list[ShareRecord[Any, Any]]:
    """Poll until so many records have come; acknowledge each, if `then` says how."""
    found: list[ShareRecord[Any, Any]] = []
    deadline = time.monotonic() + WITHIN_S
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} records came"
        for record in consumer.poll(5.0):
            found.append(record)
            if then:
                consumer.acknowledge(record, then)  # type: ignore[arg-type]  # one of the four words
    return found


def numbers(records: Iterable[ShareRecord[Any, Any]]) -> list[int]:
    """Their numbers, sorted."""
    return sorted(map(number, records))


def counted(records: Iterable[ShareRecord[Any, Any]]) -> Counter[int]:
    """How often each job came."""
    return Counter(map(number, records))


def eventually(is_so: Callable[[], bool]) -> None:
    """Wait, a minute and more, until something is the case."""
    deadline = time.monotonic() + WITHIN_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)
