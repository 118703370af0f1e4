"""Sending from a task: order, retries, refusals, settings."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from partita.errors import KafkaError, TopicAuthorizationFailedError
from partita.options import ConfigError
from partita.protocol.error_codes import ErrorCode
from partita.records.batch import iter_records
from partita.spark.writing.packed_records import PackedRecords, pack
from partita.spark.writing.topic_producer import ProduceSettings, TopicProducer, produce_settings
from support.scripted_broker import scripted_broker

PLAIN = ProduceSettings(idempotent=False, delivery_timeout_ms=5000, max_block_ms=300)


def packed(*values: bytes) -> list[PackedRecords]:
    """One batch for each value."""
    column = pa.array(values, pa.binary())
    return pack(pa.nulls(len(values), pa.binary()), column, None, batch_bytes=1, codec=0, timestamp_ms=0)


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


@pytest.mark.parametrize(
    ("client", "said"),
    [
        ({"acks": "2"}, "kafka.acks must be one of all, -1, 1, 0"),
        ({"acks": "1", "enable.idempotence": "true"}, "needs kafka.acks=all"),
        ({"compression.type": "brotli"}, "kafka.compression.type must be one of none, gzip"),
        ({"batch.size": "big"}, "kafka.batch.size must be a whole number"),
    ],
)
def test_wrong_settings(client: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        produce_settings(client)
