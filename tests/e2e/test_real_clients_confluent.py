"""confluent-kafka (librdkafka) against the broker: producing, reading, positions, groups of its kinds."""

from __future__ import annotations

import pytest
from confluent_kafka import OFFSET_END, TIMESTAMP_CREATE_TIME, KafkaError, KafkaException, Producer, TopicPartition

from partita import Broker
from partita.protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from support.broker.raw import Raw
from support.clients.broker import broker, fresh, until
from support.clients.confluent import WITHIN_S, consumer, create, from_start, numbered, produce, read

__all__ = ["broker"]
pytestmark = pytest.mark.client


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
    producer.produce(small, large, on_delivery=lambda error, _: errors.append(error) if error else None)
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


def transactional(broker: Broker, name: str, **options: object) -> Producer:
    """A producer that has taken its transactional id."""
    given = {"bootstrap.servers": broker.bootstrap, "transactional.id": name, "log_level": 0, **options}
    producer = Producer(given)
    producer.init_transactions(WITHIN_S)
    return producer


@pytest.mark.case("TX-F01", "TX-J04", "TX-J14")
def test_committed_transactions_are_seen_and_aborted_ones_are_not(broker: Broker) -> None:
    topic = create(broker, fresh("tx"), 2)
    producer = transactional(broker, fresh("id"))
    for turn in range(4):
        producer.begin_transaction()
        for number in range(5):
            producer.produce(topic, b"%d-%d" % (turn, number), partition=number % 2)
        producer.flush(WITHIN_S)
        (producer.abort_transaction if turn % 2 else producer.commit_transaction)(WITHIN_S)
    with consumer(broker, isolation_level="read_committed", auto_offset_reset="earliest") as source:
        source.subscribe([topic])
        values = sorted(m.value() or b"" for m in read(source, 10))
    assert values == sorted(b"%d-%d" % (turn, number) for turn in (0, 2) for number in range(5))


@pytest.mark.case("TX-E01", "TX-J08", "TX-P21")
def test_offsets_are_committed_with_what_was_made_of_the_records(broker: Broker) -> None:
    source_topic, target = create(broker, fresh("in"), 1), create(broker, fresh("out"), 1)
    produce(broker, numbered(source_topic, 6))
    producer, group = transactional(broker, fresh("id")), fresh("g")
    with consumer(broker, group) as source:
        source.subscribe([source_topic])
        for turn in range(3):
            producer.begin_transaction()
            for message in read(source, 2):
                producer.produce(target, message.value())
            positions = source.position(source.assignment())
            producer.send_offsets_to_transaction(positions, source.consumer_group_metadata(), WITHIN_S)
            (producer.abort_transaction if turn == 1 else producer.commit_transaction)(WITHIN_S)
        (committed,) = source.committed([TopicPartition(source_topic, 0)], WITHIN_S)
    assert committed.offset == 6
    with consumer(broker, isolation_level="read_committed", auto_offset_reset="earliest") as source:
        source.subscribe([target])
        assert [m.value() for m in read(source, 4)] == [b"0", b"1", b"4", b"5"]


@pytest.mark.case("TX-C06", "TX-C07")
def test_a_second_producer_fences_the_first(broker: Broker) -> None:
    topic, name = create(broker, fresh("tx"), 1), fresh("id")
    first = transactional(broker, name)
    first.begin_transaction()
    first.produce(topic, b"first")
    first.flush(WITHIN_S)
    second = transactional(broker, name)
    with pytest.raises(KafkaException) as refused:
        first.commit_transaction(WITHIN_S)
    assert (refused.value.args[0].fatal(), refused.value.args[0].code()) == (True, KafkaError._FENCED)
    second.begin_transaction()
    second.produce(topic, b"second")
    second.commit_transaction(WITHIN_S)
    with consumer(broker, isolation_level="read_committed", auto_offset_reset="earliest") as source:
        source.subscribe([topic])
        assert [m.value() for m in read(source, 1)] == [b"second"]


def test_metrics_that_a_client_pushes_are_on_the_metrics_page(broker: Broker) -> None:
    settings = [AlterableConfig(name="metrics", value="*"), AlterableConfig(name="interval.ms", value="100")]
    resource = AlterConfigsResource(resource_type=16, resource_name="all", configs=settings)
    with Raw(broker.port) as raw:
        assert raw.ask(AlterConfigsRequest(resources=[resource]), 2).responses[0].error_code == 0
    producer = Producer({"bootstrap.servers": broker.bootstrap, "client.id": "pushing", "log_level": 0})
    producer.produce(fresh("pushed"), b"x")
    assert producer.flush(60) == 0

    def is_shown() -> bool:
        return any('client_id="pushing"' in name for name in broker.metrics())

    until(is_shown, "the producer's metrics are on the page")
