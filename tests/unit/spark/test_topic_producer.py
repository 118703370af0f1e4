"""Sending from a task: order, retries, refusals, settings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from partita.errors import KafkaError, MessageTooLargeError, TopicAuthorizationFailedError
from partita.options import ConfigError
from partita.protocol.error_codes import ErrorCode
from partita.records.batch import iter_records
from partita.records.header import read_header
from partita.spark.settings.produce import ProduceSettings, produce_settings
from partita.spark.writing.packed_records import PackedRecords, pack, rows_of
from partita.spark.writing.topic_producer import TopicProducer
from support.spark.scripted_broker import scripted_broker

PLAIN = ProduceSettings(idempotent=False, delivery_timeout_ms=5000, max_block_ms=300)


def packed(*values: bytes) -> list[PackedRecords]:
    """One batch for each value."""
    column = pa.array(values, pa.binary())
    return pack(rows_of(pa.nulls(len(values), pa.binary()), column, None, 0), batch_bytes=1, codec=0)


def sent(errors: list[int], settings: ProduceSettings = PLAIN) -> list[tuple[int, list[Any]]]:
    with scripted_broker() as (broker, link):
        broker.produce_errors = errors
        link.call(TopicProducer(link.cluster, settings).send({("t", 0): packed(b"a", b"b"), ("t", 1): packed(b"c")}))
        return [(p, [r.value for r in iter_records(memoryview(data))]) for p, data in broker.produced]


def test_batches_of_a_partition_keep_their_order() -> None:
    assert sorted(sent([])) == [(0, [b"a"]), (0, [b"b"]), (1, [b"c"])]
    assert [values for p, values in sent([]) if p == 0] == [[b"a"], [b"b"]]


def test_what_is_refused_for_the_moment_is_sent_again_before_the_next() -> None:
    found = sent([int(ErrorCode.NOT_LEADER_OR_FOLLOWER)])
    assert [values for p, values in found if p == 0] == [[b"a"], [b"a"], [b"b"]]


def test_a_duplicate_counts_as_stored() -> None:
    assert len(sent([int(ErrorCode.DUPLICATE_SEQUENCE_NUMBER)])) == 3


def test_a_refusal_is_raised() -> None:
    with pytest.raises(TopicAuthorizationFailedError):
        sent([int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)])


TOO_LARGE = int(ErrorCode.MESSAGE_TOO_LARGE)


def one_batch(count: int) -> list[PackedRecords]:
    """All values in one batch."""
    column = pa.array([str(i).encode() * 20 for i in range(count)], pa.binary())
    return pack(rows_of(pa.nulls(count, pa.binary()), column, None, 0), batch_bytes=1 << 20, codec=0)


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_batch_too_large_for_the_topic_is_split_as_often_as_needed(idempotent: bool) -> None:
    """findings/spark.md 3: batches of 900,000 bytes failed on a topic with a small max.message.bytes."""
    settings = replace(PLAIN, idempotent=idempotent)
    with scripted_broker() as (broker, link):
        broker.message_bytes_max = 200
        producer = TopicProducer(link.cluster, settings)
        for _ in range(2):
            link.call(producer.send({("t", 0): one_batch(40)}))
        found = [read_header(data) for _, data in broker.stored]
        records = [r.value for _, data in broker.stored for r in iter_records(memoryview(data))]
        assert records == [str(i).encode() * 20 for i in range(40)] * 2
        refused = len(broker.produced) - len(broker.stored)
        assert 0 < refused <= 5, "later batches are cut before they are sent"
        if idempotent:
            starts = [header.base_sequence for header in found]
            assert starts == [sum(h.records_count for h in found[:i]) for i in range(len(found))]


def test_a_single_record_that_is_too_large_is_named() -> None:
    with pytest.raises(MessageTooLargeError, match=r"t-[01]: one record of \d+ bytes; the topic's max.message.bytes"):
        sent([TOO_LARGE])


def test_retries_can_be_bounded() -> None:
    with pytest.raises(KafkaError, match="not acknowledged"):
        sent([int(ErrorCode.NOT_LEADER_OR_FOLLOWER)] * 2, replace(PLAIN, retries=1))
    assert len(sent([int(ErrorCode.NOT_LEADER_OR_FOLLOWER)], replace(PLAIN, retries=1))) == 5


def test_small_requests_when_told_so() -> None:
    small = ProduceSettings(idempotent=False, request_bytes=1)
    assert len(sent([], small)) == 3


def test_a_partition_that_does_not_exist_is_waited_for_then_named() -> None:
    with scripted_broker() as (_, link):
        producer = TopicProducer(link.cluster, PLAIN)
        assert link.call(producer.partition_count("t")) == 2
        with pytest.raises(KafkaError, match="t has 2 partitions, a row asks for partition 7"):
            link.call(producer.partition_count("t", 8))


def test_settings_come_from_the_client_options() -> None:
    assert produce_settings({}) == ProduceSettings()
    found = produce_settings({"acks": "1", "compression.type": "ZSTD", "batch.size": "10"})
    assert (found.acks, found.idempotent, found.codec, found.batch_bytes) == (1, False, 4, 10)
    tuned = {"compression.type": "gzip", "compression.gzip.level": "9", "compression.zstd.level": "3", "retries": "0"}
    assert (produce_settings(tuned).level, produce_settings(tuned).retries) == (9, 0)
    assert produce_settings(
        {"partitioner.class": "org.apache.kafka.clients.producer.RoundRobinPartitioner"}
    ).ignore_keys
    assert produce_settings({"partitioner.ignore.keys": "true"}).ignore_keys


@pytest.mark.parametrize(
    ("client", "said"),
    [
        ({"acks": "2"}, "kafka.acks must be one of all, -1, 1, 0"),
        ({"acks": "1", "enable.idempotence": "true"}, "needs kafka.acks=all"),
        ({"partitioner.class": "com.example.Mine"}, "com.example.Mine cannot run here"),
        ({"compression.type": "zstd", "compression.zstd.level": "99"}, "zstd.level must be between -131072 and 22"),
        ({"compression.type": "lz4", "compression.gzip.level": "99"}, "gzip.level must be between 1 and 9, or -1"),
        ({"compression.type": "brotli"}, "kafka.compression.type must be one of none, gzip"),
        ({"batch.size": "big"}, "kafka.batch.size must be a whole number"),
    ],
)
def test_a_wrong_setting_of_the_producer_is_refused(client: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        produce_settings(client)
