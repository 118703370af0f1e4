"""confluent-kafka (librdkafka) against the broker: producing, reading, positions, groups of its kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    TIMESTAMP_CREATE_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from partita import Broker
from support.clients_broker import broker, fresh, until

__all__ = ["broker"]
pytestmark = pytest.mark.client
WITHIN_S = 20.0


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
        "session.timeout.ms": 6000,
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
                "session.timeout.ms": 6000,
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


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("acks", [0, 1, -1])
def test_codecs_and_acks(broker: Broker, codec: str, acks: int) -> None:
    topic = create(broker, fresh("codecs"), 1)
    values = [b"the same words again and again %d" % n for n in range(200)]
    produce(broker, [{"topic": topic, "value": v} for v in values], compression_type=codec, acks=acks)
    assert [m.value() for m in from_start(broker, topic, 200)] == values


def test_headers_nulls_and_timestamps_come_back(broker: Broker) -> None:
    topic = create(broker, fresh("fields"), 1)
    headers = [("a", b"1"), ("a", b"2"), ("empty", b""), ("none", None)]
    produce(
        broker,
        [
            {"topic": topic, "key": b"k", "value": b"v", "headers": headers, "timestamp": 1_700_000_000_123},
            {"topic": topic, "key": b"k", "value": None},
            {"topic": topic, "key": None, "value": b""},
            {"topic": topic, "key": "kä", "value": "wö"},
        ],
    )
    first, *others = from_start(broker, topic, 4)
    assert first.headers() == headers
    assert first.timestamp() == (TIMESTAMP_CREATE_TIME, 1_700_000_000_123)
    assert [(m.key(), m.value(), m.offset()) for m in others] == [
        (b"k", None, 1),
        (None, b"", 2),
        ("kä".encode(), "wö".encode(), 3),
    ]


def test_an_idempotent_producer_writes_each_record_once_though_answers_are_lost(broker: Broker) -> None:
    topic = create(broker, fresh("idempotent"), 1)
    broker.control.fail("Produce", "NOT_ENOUGH_REPLICAS_AFTER_APPEND", 2, executed=True)
    sent = produce(broker, numbered(topic, 500), enable_idempotence=True, batch_num_messages=50, retry_backoff_ms=20)
    assert [m.value() for m in from_start(broker, topic, 500)] == [b"%d" % n for n in range(500)]
    with consumer(broker) as source:
        assert source.get_watermark_offsets(TopicPartition(topic, 0), WITHIN_S) == (0, 500)
    assert len(sent) == 500


def test_large_records_need_the_topics_consent(broker: Broker) -> None:
    topic = create(broker, fresh("large"), 1, max_message_bytes="3000000")
    large = bytes(range(256)) * 10_000
    produce(broker, [{"topic": topic, "value": large}] * 2, message_max_bytes=5_000_000)
    assert [m.value() for m in from_start(broker, topic, 2)] == [large, large]
    small = create(broker, fresh("small"), 1)
    errors: list[KafkaError] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, "message.max.bytes": 5_000_000, "log_level": 0})
    producer.produce(small, large, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(WITHIN_S) == 0
    assert [error.code() for error in errors] == [KafkaError.MSG_SIZE_TOO_LARGE]


def test_offsets_for_times_and_watermarks(broker: Broker) -> None:
    topic = create(broker, fresh("times"), 1)
    stamps = [1_700_000_000_000 + 1000 * n for n in range(10)]
    produce(broker, [{"topic": topic, "value": b"x", "timestamp": t} for t in stamps])
    with consumer(broker) as source:
        asked = [stamps[0] - 5, stamps[4] - 999, stamps[9], stamps[9] + 1]
        found = [source.offsets_for_times([TopicPartition(topic, 0, t)], WITHIN_S)[0].offset for t in asked]
        assert found == [0, 4, 9, OFFSET_END]
        assert source.get_watermark_offsets(TopicPartition(topic, 0), WITHIN_S) == (0, 10)


def test_seek_and_pause(broker: Broker) -> None:
    topic = create(broker, fresh("seek"), 2)
    produce(broker, numbered(topic, 10, 0) + numbered(topic, 10, 1))
    with consumer(broker) as source:
        source.assign([TopicPartition(topic, 0, 0), TopicPartition(topic, 1, 0)])
        read(source, 20)
        source.pause([TopicPartition(topic, 1)])
        source.seek(TopicPartition(topic, 0, 7))
        assert [(m.partition(), m.offset()) for m in read(source, 3)] == [(0, 7), (0, 8), (0, 9)]
        produce(broker, numbered(topic, 1, 1))
        source.resume([TopicPartition(topic, 1)])
        assert [(m.partition(), m.offset()) for m in read(source, 1)] == [(1, 10)]
        assert [p.offset for p in source.position([TopicPartition(topic, 0), TopicPartition(topic, 1)])] == [10, 11]


def test_commits_of_many_kinds(broker: Broker) -> None:
    topic, group = create(broker, fresh("commits"), 2), fresh("group")
    produce(broker, numbered(topic, 10, 0) + numbered(topic, 10, 1))
    spots = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    with consumer(broker, group) as source:
        source.assign([TopicPartition(topic, p, 0) for p in (0, 1)])
        read(source, 20)
        spot = TopicPartition(topic, 0, 3, metadata="by hand")
        source.commit(offsets=[spot], asynchronous=False)
        (back, none) = source.committed(spots, WITHIN_S)
        assert (back.offset, back.metadata, none.offset) == (3, "by hand", -1001)
        source.commit(asynchronous=False)
        assert [p.offset for p in source.committed(spots, WITHIN_S)] == [10, 10]
        with pytest.raises(KafkaException) as refused:
            source.commit(offsets=[TopicPartition(topic, 0, 3, metadata="x" * 5000)], asynchronous=False)
        assert refused.value.args[0].code() == KafkaError.OFFSET_METADATA_TOO_LARGE
    with consumer(broker, group) as source:
        source.subscribe([topic])
        produce(broker, numbered(topic, 1, 0))
        assert [(m.partition(), m.offset()) for m in read(source, 1)] == [(0, 10)]


def test_regex_subscription_finds_topics_made_later(broker: Broker) -> None:
    prefix = fresh("regex")
    produce(broker, numbered(create(broker, f"{prefix}-a", 1), 1))
    with consumer(broker) as source:
        source.subscribe([f"^{prefix}-.*"])
        assert [m.topic() for m in read(source, 1)] == [f"{prefix}-a"]
        source.commit(asynchronous=False)
        produce(broker, numbered(create(broker, f"{prefix}-b", 1), 1))
        assert [m.topic() for m in read(source, 1)] == [f"{prefix}-b"]


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "cooperative-sticky"])
def test_each_assignor_shares_the_partitions(broker: Broker, assignor: str) -> None:
    topic = create(broker, fresh("assign"))
    with members(broker, topic, 3, lambda _: {"partition.assignment.strategy": assignor}) as (first, second, third):
        kept = {p.partition for p in first.assignment()} | {p.partition for p in second.assignment()}
        third.close()
        until(lambda: shared([first, second]), "two share the partitions")
        if assignor == "cooperative-sticky":
            assert kept <= {p.partition for member in (first, second) for p in member.assignment()}


def test_a_cooperative_member_keeps_reading_while_another_joins(broker: Broker) -> None:
    topic, group = create(broker, fresh("cooperative")), fresh("group")
    revoked: list[int] = []
    settings = {"partition_assignment_strategy": "cooperative-sticky"}
    with consumer(broker, group, **settings) as first, consumer(broker, group, **settings) as second:
        first.subscribe([topic], on_revoke=lambda c, parts: revoked.extend(p.partition for p in parts))
        until(lambda: shared([first]), "one owns all")
        second.subscribe([topic])
        until(lambda: shared([first, second]), "two share the partitions")
        assert len(revoked) == 1, "only what moves is revoked"


def test_a_static_member_comes_back_without_a_rebalance(broker: Broker) -> None:
    topic, group = create(broker, fresh("static")), fresh("group")
    with consumer(broker, group, group_instance_id="one") as staying:
        leaving = Consumer(
            {"bootstrap.servers": broker.bootstrap, "group.id": group, "group.instance.id": "two", "log_level": 0}
        )
        for member in (staying, leaving):
            member.subscribe([topic])
        until(lambda: shared([staying, leaving]), "two share the partitions")
        held, before = leaving.assignment(), broker.control.members(group)
        leaving.close()
        assert broker.control.members(group) == before, "a static member that closes stays in the group"
        rebalances = count_rebalances(broker, group)
        with consumer(broker, group, group_instance_id="two") as returned:
            returned.subscribe([topic])
            until(lambda: shared([staying, returned]), "it is back")
            assert returned.assignment() == held
        assert count_rebalances(broker, group) == rebalances


def test_a_fenced_static_member_is_told(broker: Broker) -> None:
    topic, group = create(broker, fresh("fenced")), fresh("group")
    with consumer(broker, group, group_instance_id="one") as first:
        first.subscribe([topic])
        until(lambda: shared([first]), "one owns all")
        broker.control.fence_instance(group, "one")
        (told,) = first.consume(1, WITHIN_S)
        assert told.error().code() == KafkaError._FATAL
        assert "Static consumer fenced" in told.error().str()


def test_an_evicted_member_joins_again(broker: Broker) -> None:
    topic, group = create(broker, fresh("evicted")), fresh("group")
    lost: list[int] = []
    with consumer(broker, group) as member:
        member.subscribe([topic], on_lost=lambda c, parts: lost.extend(p.partition for p in parts))
        until(lambda: shared([member]), "one owns all")
        (before,) = broker.control.members(group)
        broker.control.evict_member(group, before)
        until(lambda: member.poll(0.05) is None and len(lost) == 3, "its partitions are lost")
        until(lambda: shared([member]), "it owns all again")
        assert before not in broker.control.members(group)


def test_transactions_fail_clearly(broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": fresh("tx"), "log_level": 0})
    with pytest.raises(KafkaException) as refused:
        producer.init_transactions(WITHIN_S)
    error = refused.value.args[0]
    assert (error.fatal(), error.code()) == (True, KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
