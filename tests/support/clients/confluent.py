"""What tests of confluent-kafka share: records sent and acknowledged, consumers that are closed, groups at rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition

from partita import Broker
from support.clients.broker import fresh, until

WITHIN_S = 60.0


def produce(broker: Broker, records: list[dict[str, Any]], **config: Any) -> list[Message]:
    """Send records in order; every one must arrive. Returns what the broker acknowledged."""
    delivered: list[Message] = []
    failed: list[KafkaError] = []
    settings = {name.replace("_", "."): value for name, value in config.items()}
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5, "log_level": 0, **settings})
    for record in records:
        producer.produce(
            **record, on_delivery=lambda error, message: failed.append(error) if error else delivered.append(message)
        )
    assert producer.flush(WITHIN_S) == 0
    assert failed == []
    return delivered


def numbered(topic: str, count: int, partition: int = 0) -> list[dict[str, Any]]:
    return [{"topic": topic, "value": b"%d" % n, "partition": partition} for n in range(count)]


@contextmanager
def consumer(broker: Broker, group: str = "", **config: Any) -> Iterator[Consumer]:
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": group or fresh("group"),
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": 20_000,
        "heartbeat.interval.ms": 100,
        "topic.metadata.refresh.interval.ms": 100,
        "log_level": 0,
        **{name.replace("_", "."): value for name, value in config.items()},
    }
    made = Consumer(settings)
    try:
        yield made
    finally:
        made.close()


def read(source: Consumer, count: int) -> list[Message]:
    got: list[Message] = []

    def enough() -> bool:
        got.extend(source.consume(count - len(got), 0.1))
        return len(got) >= count

    until(enough, f"{count} records came")
    assert [m.error() for m in got] == [None] * count
    return got


def from_start(broker: Broker, topic: str, count: int, partition: int = 0) -> list[Message]:
    with consumer(broker) as source:
        source.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
        return read(source, count)


@contextmanager
def members(broker: Broker, topic: str, count: int, each: Callable[[int], dict[str, Any]]) -> Iterator[list[Consumer]]:
    """Consumers of one group, all polled until the topic's three partitions are shared as evenly as they can be."""
    group = fresh("group")
    made = [
        Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": group,
                "session.timeout.ms": 20_000,
                "heartbeat.interval.ms": 100,
                "auto.offset.reset": "earliest",
                "log_level": 0,
                **each(number),
            }
        )
        for number in range(count)
    ]
    for member in made:
        member.subscribe([topic])
    try:
        until(lambda: shared(made), "all partitions are shared")
        yield made
    finally:
        for member in made:
            member.close()


def shared(members: list[Consumer], partitions: int = 3) -> bool:
    for member in members:
        member.poll(0.02)
    owned = [p.partition for member in members for p in member.assignment()]
    return sorted(owned) == list(range(partitions)) and all(member.assignment() for member in members)


def count_rebalances(broker: Broker, group: str) -> int:
    return sum(note["note"] == "Rebalanced" and note["group_id"] == group for note in broker.notes())


def create(broker: Broker, topic: str, partitions: int = 3, **config: str) -> str:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    settings = {name.replace("_", "."): value for name, value in config.items()}
    admin.create_topics([NewTopic(topic, partitions, 1, config=settings)])[topic].result(WITHIN_S)
    return topic
