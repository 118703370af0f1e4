"""kafka-python against the broker: producing, reading, positions, groups."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import MessageSizeTooLargeError, ProducerFencedError
from kafka.structs import OffsetAndMetadata

from partita import Broker
from support.clients.broker import broker, fresh, until

__all__ = ["broker"]
pytestmark = pytest.mark.client
WITHIN_S = 60.0
POLL_MS = 370
"""kafka-python 3.0.12 loses an assignment that arrives just as a poll ends (on Apache Kafka too). It rejoins when it
has fresh metadata, about 100 ms after it joined: polls must not end then."""
CODECS = [None, "gzip", "lz4", "snappy", "zstd"]


def create(broker: Broker, topic: str, partitions: int = 1, **config: str) -> str:
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    settings = {name.replace("_", "."): value for name, value in config.items()}
    admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=settings)])
    admin.close()
    return topic


@contextmanager
def producer(broker: Broker, **config: Any) -> Iterator[KafkaProducer]:
    made = KafkaProducer(bootstrap_servers=broker.bootstrap, **config)
    try:
        yield made
    finally:
        made.close(WITHIN_S)


def fill(broker: Broker, topic: str, values: list[bytes], partition: int = 0, **config: Any) -> list[int]:
    with producer(broker, **config) as sender:
        sent = [sender.send(topic, value, partition=partition) for value in values]
        return [future.get(WITHIN_S).offset for future in sent]


@contextmanager
def consumer(broker: Broker, *topics: str, group: str | None = None, **config: Any) -> Iterator[KafkaConsumer]:
    settings = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "heartbeat_interval_ms": 100, **config}
    made = KafkaConsumer(*topics, bootstrap_servers=broker.bootstrap, group_id=group, **settings)
    try:
        yield made
    finally:
        made.close()


def read(source: KafkaConsumer, count: int) -> list[Any]:
    got: list[Any] = []

    def enough() -> bool:
        for records in source.poll(timeout_ms=POLL_MS, max_records=count - len(got)).values():
            got.extend(records)
        return len(got) >= count

    until(enough, f"{count} records came")
    return got


def owned(*members: KafkaConsumer) -> list[list[int]]:
    for member in members:
        member.poll(timeout_ms=POLL_MS)
    return [sorted(p.partition for p in member.assignment()) for member in members]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_codecs_and_acks(broker: Broker, codec: str | None, acks: Any) -> None:
    topic = create(broker, fresh("codecs"))
    values = [b"the same words again and again %d" % n for n in range(100)]
    settings = {"compression_type": codec, "acks": acks, "enable_idempotence": False, "linger_ms": 5}
    # Without acks the client may close a connection before all is sent, so it stays until the records are there.
    with producer(broker, **settings) as sender, consumer(broker, topic) as source:
        for value in values:
            sender.send(topic, value, partition=0)
        sender.flush(WITHIN_S)
        assert [r.value for r in read(source, 100)] == values


def test_headers_nulls_and_timestamps_come_back(broker: Broker) -> None:
    topic = create(broker, fresh("fields"))
    headers = [("a", b"1"), ("a", b"2"), ("empty", b"")]
    with producer(broker) as sender:
        sender.send(topic, b"v", key=b"k", headers=headers, timestamp_ms=1_700_000_000_123).get(WITHIN_S)
        sender.send(topic, None, key=b"k").get(WITHIN_S)
        sender.send(topic, b"", key=None).get(WITHIN_S)
    with consumer(broker, topic) as source:
        first, *others = read(source, 3)
    assert (list(first.headers), first.timestamp, first.timestamp_type) == (headers, 1_700_000_000_123, 0)
    assert [(r.key, r.value) for r in others] == [(b"k", None), (None, b"")]


def test_an_idempotent_producer_writes_each_record_once_though_answers_are_lost(broker: Broker) -> None:
    topic = create(broker, fresh("idempotent"))
    broker.control.fail("Produce", "NOT_ENOUGH_REPLICAS_AFTER_APPEND", 2, executed=True)
    values = [b"%d" % n for n in range(300)]
    fill(broker, topic, values, enable_idempotence=True, batch_size=400)
    with consumer(broker, topic) as source:
        assert [r.value for r in read(source, 300)] == values
        assert source.end_offsets([TopicPartition(topic, 0)]) == {TopicPartition(topic, 0): 300}


def test_large_records_need_the_topics_consent(broker: Broker) -> None:
    topic, small = create(broker, fresh("large"), max_message_bytes="3000000"), create(broker, fresh("small"))
    large = bytes(range(256)) * 10_000
    fill(broker, topic, [large, large], max_request_size=5_000_000)
    with consumer(broker, topic) as source:
        assert [r.value for r in read(source, 2)] == [large, large]
    with pytest.raises(MessageSizeTooLargeError):
        fill(broker, small, [large], max_request_size=5_000_000)


def test_positions_times_seek_and_pause(broker: Broker) -> None:
    topic = create(broker, fresh("times"), 2)
    zero, one = TopicPartition(topic, 0), TopicPartition(topic, 1)
    stamps = [1_700_000_000_000 + 1000 * n for n in range(10)]
    with producer(broker) as sender:
        for stamp in stamps:
            sender.send(topic, b"x", partition=0, timestamp_ms=stamp)
            sender.send(topic, b"x", partition=1)
    with consumer(broker) as source:
        source.assign([zero, one])
        found = [source.offsets_for_times({zero: t})[zero] for t in (0, stamps[4] - 999, stamps[9] + 1)]
        assert [None if f is None else (f.offset, f.timestamp) for f in found] == [(0, stamps[0]), (4, stamps[4]), None]
        assert source.beginning_offsets([zero]) == {zero: 0}
        source.pause(one)
        assert [(r.partition, r.offset) for r in read(source, 10)] == [(0, n) for n in range(10)]
        source.resume(one)
        assert [(r.partition, r.offset) for r in read(source, 10)] == [(1, n) for n in range(10)]
        source.seek(zero, 7)
        assert [(r.partition, r.offset) for r in read(source, 3)] == [(0, 7), (0, 8), (0, 9)]
        source.seek_to_beginning(zero)
        assert read(source, 1)[0].offset == 0


def test_commits_are_there_for_the_next_consumer(broker: Broker) -> None:
    topic, group = create(broker, fresh("commits")), fresh("group")
    spot = TopicPartition(topic, 0)
    fill(broker, topic, [b"%d" % n for n in range(10)])
    with consumer(broker, topic, group=group) as source:
        read(source, 4)
        source.commit()
        assert source.committed(spot) == 4
        source.commit({spot: OffsetAndMetadata(6, "by hand", -1)})
        assert source.committed(spot, metadata=True).metadata == "by hand"
    with consumer(broker, topic, group=group) as source:
        assert [r.offset for r in read(source, 4)] == [6, 7, 8, 9]


def test_auto_commit_on_leaving(broker: Broker) -> None:
    topic, group = create(broker, fresh("auto")), fresh("group")
    fill(broker, topic, [b"%d" % n for n in range(10)])
    with consumer(broker, topic, group=group, enable_auto_commit=True) as source:
        read(source, 10)
    fill(broker, topic, [b"10"])
    with consumer(broker, topic, group=group) as source:
        assert [r.offset for r in read(source, 1)] == [10]
    assert broker.control.members(group) == {}


def test_regex_subscription_finds_topics_made_later(broker: Broker) -> None:
    prefix = fresh("regex")
    fill(broker, create(broker, f"{prefix}-a"), [b"x"])
    with consumer(broker, group=fresh("group"), metadata_max_age_ms=100) as source:
        source.subscribe(pattern=f"^{prefix}-.*")
        assert [r.topic for r in read(source, 1)] == [f"{prefix}-a"]
        source.commit()
        fill(broker, create(broker, f"{prefix}-b"), [b"x"])
        assert [r.topic for r in read(source, 1)] == [f"{prefix}-b"]


@pytest.mark.parametrize("assignor", [RoundRobinPartitionAssignor, StickyPartitionAssignor, CooperativeStickyAssignor])
def test_each_assignor_shares_the_partitions(broker: Broker, assignor: Any) -> None:
    topic, group = create(broker, fresh("assign"), 4), fresh("group")
    settings: dict[str, Any] = {"group": group, "partition_assignment_strategy": (assignor,)}
    with consumer(broker, topic, **settings) as first:
        with consumer(broker, topic, **settings) as second:
            until(lambda: [len(mine) for mine in owned(first, second)] == [2, 2], "two share the partitions")
            assert sorted(p for mine in owned(first, second) for p in mine) == [0, 1, 2, 3]
        until(lambda: owned(first) == [[0, 1, 2, 3]], "one owns all")


def test_an_evicted_member_joins_again(broker: Broker) -> None:
    topic, group = create(broker, fresh("evicted")), fresh("group")
    with consumer(broker, topic, group=group) as source:
        until(lambda: owned(source) == [[0]], "it owns all")
        (before,) = broker.control.members(group)
        broker.control.evict_member(group, before)
        fill(broker, topic, [b"x"])
        until(
            lambda: owned(source) == [[0]] and list(broker.control.members(group)) not in ([], [before]), "it is back"
        )


def owns_first(source: KafkaConsumer) -> bool:
    return owned(source) == [[0]]


def test_a_static_member_comes_back_without_a_rebalance(broker: Broker) -> None:
    topic, group = create(broker, fresh("static")), fresh("group")
    rebalances = []
    for _ in range(2):
        with consumer(broker, topic, group=group, group_instance_id="one") as source:
            until(partial(owns_first, source), "it owns all")
            assert list(broker.control.members(group).values()) == ["one"]
        notes = [note["note"] for note in broker.notes() if note.get("group_id") == group]
        rebalances.append(notes.count("Rebalanced"))
    assert rebalances[0] == rebalances[1]


@pytest.mark.case("TX-F01", "TX-J14", "TX-C07")
def test_transactions_commit_abort_and_fence(broker: Broker) -> None:
    topic, name = fresh("tx"), fresh("id")
    sender = KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=name, max_block_ms=20_000)
    sender.init_transactions()
    for turn in range(4):
        sender.begin_transaction()
        sender.send(topic, b"%d" % turn).get(20)
        (sender.abort_transaction if turn % 2 else sender.commit_transaction)()
    sender.begin_transaction()
    sender.send(topic, b"zombie").get(20)
    successor = KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=name, max_block_ms=20_000)
    successor.init_transactions()
    successor.begin_transaction()
    successor.send(topic, b"last").get(20)
    successor.commit_transaction()
    with pytest.raises(ProducerFencedError):
        sender.commit_transaction()
    reader = KafkaConsumer(
        topic,
        bootstrap_servers=broker.bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        consumer_timeout_ms=20_000,
    )
    assert sorted(next(reader).value for _ in range(3)) == [b"0", b"2", b"last"]
    reader.close()
    successor.close(0)
    sender.close(0)
