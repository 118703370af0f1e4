"""Sending from a task: order, retries, refusals, settings."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from partita.errors import KafkaError, MessageTooLargeError, TopicAuthorizationFailedError
from partita.options import ConfigError
from partita.protocol.error_codes import ErrorCode
from partita.records.batch import iter_records
from partita.records.header import read_header
from partita.spark.settings.options import SinkOptions
from partita.spark.settings.produce import ProduceSettings, produce_settings
from partita.spark.writing.packed_records import PackedRecords, pack, rows_of
from partita.spark.writing.rows_out import packer_of, send_rows
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
        producer = TopicProducer(link.cluster, settings)
        link.call(producer.send({("t", 0): packed(b"a", b"b"), ("t", 1): packed(b"c")}))
        link.call(producer.flush())
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
    with pytest.raises(TopicAuthorizationFailedError, match="this client may not WRITE topic 't'"):
        sent([int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)])


IDEMPOTENT = replace(PLAIN, idempotent=True)


def sequences(errors: list[int], settings: ProduceSettings = IDEMPOTENT) -> list[int]:
    """The sequences of one partition as they came; eight batches of one record have to be stored in order, once."""
    with scripted_broker() as (broker, link):
        broker.produce_errors = errors
        producer = TopicProducer(link.cluster, settings)
        link.call(producer.send({("t", 0): packed(*(b"%d" % i for i in range(8)))}))
        link.call(producer.flush())
        stored = [r.value for _, data in broker.stored for r in iter_records(memoryview(data))]
        assert stored == [b"%d" % i for i in range(8)]
        return [read_header(data).base_sequence for _, data in broker.produced]


def test_requests_do_not_wait_for_each_other_and_order_holds() -> None:
    """The first goes alone: a broker that does not know the producer would store any sequence."""
    refused = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert sequences([]) == [*range(8)]
    assert sequences([refused])[:3] == [0, 0, 1]
    came = sequences([0, 0, refused])
    assert (came[:6], came.count(2)) == ([*range(6)], 2), "five were under way, and those behind are sent again"
    assert sequences([0, 0, refused], replace(IDEMPOTENT, request_bytes=1))[:5] == [0, 1, 2, 2, 3]


def test_parts_of_a_batch_that_is_too_large_are_stored_before_those_behind_it() -> None:
    with scripted_broker() as (broker, link):
        producer = TopicProducer(link.cluster, IDEMPOTENT)
        link.call(producer.send({("t", 0): packed(b"first")}))
        link.call(producer.flush())
        broker.message_bytes_max = 200
        link.call(producer.send({("t", 0): [*packed(b"second"), *one_batch(9), *packed(b"last")]}))
        link.call(producer.flush())
        found = [r.value for _, data in broker.stored for r in iter_records(memoryview(data))]
        assert found == [b"first", b"second", *(str(i).encode() * 20 for i in range(9)), b"last"]


def test_an_error_ends_all_that_is_under_way() -> None:
    with scripted_broker() as (broker, link):
        broker.produce_errors = [0, 0, *[int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)] * 20]
        producer = TopicProducer(link.cluster, IDEMPOTENT)
        with pytest.raises(TopicAuthorizationFailedError):
            link.call(producer.send({("t", 0): packed(*(b"%d" % i for i in range(20)))}))
        came = len(broker.produced)
        with pytest.raises(TopicAuthorizationFailedError):
            link.call(producer.flush())
        assert len(broker.produced) == came
        assert len(broker.stored) == 2


def test_a_batch_behind_one_of_an_earlier_round_waits_for_it() -> None:
    """The round between is stored at once, as it is for another partition; that says nothing of the one before it."""
    with scripted_broker() as (broker, link):
        producer = TopicProducer(link.cluster, IDEMPOTENT)
        link.call(producer.send({("t", 0): packed(b"0"), ("t", 1): packed(b"0")}))
        link.call(producer.flush())
        refused = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        broker.produce_errors = [refused, 0, 0, 0, refused]

        async def send() -> None:
            for partition, value in ((0, b"1"), (1, b"1"), (0, b"2"), (0, b"3")):
                await producer.send({("t", partition): packed(value)})
            await producer.flush()

        link.call(send())
        stored = [(p, r.value) for p, data in broker.stored for r in iter_records(memoryview(data))]
        assert [value for p, value in stored if p == 0] == [b"0", b"1", b"2", b"3"]
        assert [value for p, value in stored if p == 1] == [b"0", b"1"]


def test_nothing_is_under_way_when_reading_the_rows_failed() -> None:
    """The caller aborts the transaction then, and what comes later could belong to the next one."""

    def rows() -> Iterator[pa.RecordBatch]:
        for i in range(2):
            yield pa.RecordBatch.from_pylist([{"value": b"%d" % i, "topic": "t", "partition": i}])
        raise OSError("the rows end here")

    async def add(_: object) -> None: ...

    async def rounds() -> int:
        return sum("_round" in repr(task.get_coro()) for task in asyncio.all_tasks())

    within = SimpleNamespace(transactional_id="x", producer=(1, 0), produce_version_max=12, add=add)
    with scripted_broker() as (broker, link):
        broker.produce_errors = [int(ErrorCode.NOT_LEADER_OR_FOLLOWER)] * 1000
        producer = TopicProducer(link.cluster, IDEMPOTENT, within)
        with pytest.raises(OSError, match="the rows end here"):
            send_rows(link, producer, packer_of(SinkOptions({}, IDEMPOTENT, None)), rows())
        assert link.call(rounds()) == 0


def test_the_answers_of_all_leaders_are_awaited_when_one_refuses() -> None:
    """Else a request would be on its way while the same batches are sent again, or after an abort."""
    answered = []

    async def leader_for(topic: str, partition: int) -> Any:
        return SimpleNamespace(id=partition)

    async def to_leader(node_id: int, *rest: object) -> None:
        if node_id == 0:
            raise KafkaError("refused")
        for _ in range(9):
            await asyncio.sleep(0)
        answered.append(node_id)

    async def attempt() -> None:
        producer = TopicProducer(SimpleNamespace(leader_for=leader_for, expire_metadata=int), PLAIN)  # type: ignore[arg-type]
        producer._to_leader = to_leader  # type: ignore[method-assign, assignment]
        with pytest.raises(KafkaError, match="refused"):
            await producer._attempt({("t", 0): b"", ("t", 1): b""}, set())
        assert answered == [1]

    asyncio.run(attempt())


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
            link.call(producer.flush())
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
    with pytest.raises(KafkaError, match="NOT_ENOUGH_REPLICAS: writing to t-0"):
        sent([int(ErrorCode.NOT_ENOUGH_REPLICAS)] * 2, replace(PLAIN, retries=1))
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
