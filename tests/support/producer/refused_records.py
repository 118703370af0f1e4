"""Programs with records that a broker refuses, and with batches that are too large: what the futures say is in the log.

They run on any broker. The log is read by confluent-kafka, never by the client under test.
"""

from __future__ import annotations

import time
from itertools import count
from random import Random
from typing import Any

import confluent_kafka
import pytest

from partita import Admin, Producer
from partita.errors import (
    AbortableTransactionError,
    InvalidRecordError,
    InvalidTimestampError,
    KafkaError,
    MessageTooLargeError,
)
from partita.producer.shell.client import DeliveryFuture

PRODUCERS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "linger_ms=0": {"linger_ms": 0},
    "max_in_flight=1": {"max_in_flight_requests_per_connection": 1},
    "large batches": {"batch_size": 60_000, "linger_ms": 20},
    "large batches, retries=1": {"batch_size": 60_000, "linger_ms": 20, "retries": 1},
    "not idempotent": {"enable_idempotence": False, "batch_size": 60_000, "linger_ms": 20},
    "not idempotent, max_in_flight=1": {"enable_idempotence": False, "max_in_flight_requests_per_connection": 1},
    "gzip": {"compression_type": "gzip", "batch_size": 60_000, "linger_ms": 20},
    "snappy": {"compression_type": "snappy", "batch_size": 60_000, "linger_ms": 20},
    "lz4": {"compression_type": "lz4", "batch_size": 60_000, "linger_ms": 20},
    "zstd": {"compression_type": "zstd", "batch_size": 60_000, "linger_ms": 20},
}
"""The options under which each program runs, by what is said of them."""
KINDS: dict[str, type[KafkaError]] = {
    "too large": MessageTooLargeError,
    "without key": InvalidRecordError,
    "bad time": InvalidTimestampError,
}
"""Why a broker refuses a record, and the error that says so."""
TABLE = [
    *((name, "too large") for name in PRODUCERS),
    *((name, kind) for name in ("defaults", "large batches", "not idempotent, max_in_flight=1", "zstd")
      for kind in ("without key", "bad time")),
]  # fmt: skip
"""Options and kinds to play."""
_LIMIT = 50_000
_NUMBERS = count()


def one_refused_record_among_good_ones(bootstrap: str, options: dict[str, Any], kind: str) -> None:
    """Of 400 records number 200 is refused."""
    _some_are_refused(bootstrap, options, kind, {200})


def big_records_between_small_ones(bootstrap: str, options: dict[str, Any], kind: str) -> None:
    """Of 400 records every 23rd is refused, two neighbours among them, and the first and the last one."""
    _some_are_refused(bootstrap, options, kind, {0, 24, 399, *range(23, 399, 23)})


def _some_are_refused(bootstrap: str, options: dict[str, Any], kind: str, bad: set[int]) -> None:
    topic = _topic(bootstrap, kind)
    values = _values(400, {n: _LIMIT + 2_000 for n in bad} if kind == "too large" else {})
    with Producer(bootstrap_servers=bootstrap, **options) as producer:
        futures = [_send(producer, topic, value, kind if n in bad else "") for n, value in enumerate(values)]
        producer.flush(60)
        failed = {n: type(future.exception(0)) for n, future in enumerate(futures) if future.exception(0) is not None}
    assert failed == dict.fromkeys(sorted(bad), KINDS[kind])
    _is_in_the_log(bootstrap, topic, values, futures, options)


def batches_larger_than_the_topic_takes(bootstrap: str, options: dict[str, Any]) -> None:
    """Batches of a megabyte for a topic that takes 50 kB: every record fits."""
    topic = _topic(bootstrap, "too large")
    values = _values(400, {77: 40_000, 300: 40_000})
    large = {"batch_size": 1_000_000, "linger_ms": 50}
    with Producer(bootstrap_servers=bootstrap, **(options | large)) as producer:
        futures = [_send(producer, topic, value, "") for value in values]
        producer.flush(60)
        assert [future.exception(0) for future in futures] == [None] * len(futures)
        assert producer.metrics()["batch-split-total"] >= 3
    _is_in_the_log(bootstrap, topic, values, futures, options)


def a_transaction_with_a_refused_record(bootstrap: str, kind: str, options: dict[str, Any]) -> None:
    """It cannot be committed, and nothing of it is seen; the next one without that record is whole."""
    topic = _topic(bootstrap, kind)
    values = _values(400, {200: _LIMIT + 2_000} if kind == "too large" else {})
    with Producer(bootstrap_servers=bootstrap, transactional_id=topic, **options) as producer:
        producer.init_transactions()

        def transaction(bad: int) -> list[DeliveryFuture]:
            with producer.transaction():
                return [_send(producer, topic, value, kind if n == bad else "") for n, value in enumerate(values)]

        with pytest.raises(AbortableTransactionError) as refused:
            transaction(200)
        assert isinstance(refused.value.__cause__, KINDS[kind]), repr(refused.value.__cause__)
        del values[200]
        futures = transaction(-1)
    assert [future.exception(0) for future in futures] == [None] * 399
    _is_in_the_log(bootstrap, topic, values, futures, {})


def a_transaction_in_batches_larger_than_the_topic_takes(bootstrap: str, codec: str) -> None:
    """It is committed, whole and in order."""
    topic = _topic(bootstrap, "too large")
    values = _values(400, {})
    options: dict[str, Any] = {"batch_size": 1_000_000, "linger_ms": 50, "compression_type": codec}
    with Producer(bootstrap_servers=bootstrap, transactional_id=topic, **options) as producer:
        producer.init_transactions()
        with producer.transaction():
            futures = [_send(producer, topic, value, "") for value in values]
    _is_in_the_log(bootstrap, topic, values, futures, {})


def _topic(bootstrap: str, kind: str) -> str:
    """A new topic of one partition that refuses records of this kind."""
    name = f"refused-{next(_NUMBERS)}"
    configs: dict[str, Any] = {"max.message.bytes": _LIMIT}
    if kind == "without key":
        configs |= {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0.99}
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(name, 1, configs=configs)
    return name


def _values(how_many: int, sizes: dict[int, int]) -> list[bytes]:
    """Values of 1 kB, or of their own size, that no codec makes smaller; each begins with its number."""
    dice = Random(7)
    return [b"%05d" % n + dice.randbytes(sizes.get(n, 1_000) - 5) for n in range(how_many)]


def _send(producer: Producer, topic: str, value: bytes, kind: str) -> DeliveryFuture:
    now_ms = int(time.time() * 1000)
    key = None if kind == "without key" else value[:5]
    return producer.send(topic, value, key=key, timestamp=now_ms + 7_200_000 if kind == "bad time" else now_ms)


def _is_in_the_log(
    bootstrap: str, topic: str, values: list[bytes], futures: list[DeliveryFuture], options: dict[str, Any]
) -> None:
    """Each record that was delivered is there once, at the offset that its future says, in the order of the sends."""
    found = _log(bootstrap, topic)
    told = {f.metadata().offset: value for f, value in zip(futures, values, strict=True) if f.exception(0) is None}
    assert len(told) == sum(future.exception(0) is None for future in futures), "two records have the same offset"
    assert {offset: value[:5] for offset, value in found} == {offset: value[:5] for offset, value in told.items()}
    assert dict(found) == told
    if options.get("enable_idempotence", True) or options.get("max_in_flight_requests_per_connection") == 1:
        assert [value[:5] for _, value in found] == sorted(value[:5] for value in told.values())


def _log(bootstrap: str, topic: str) -> list[tuple[int, bytes]]:
    """Offsets and values of every record that is committed."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "counter", "enable.auto.commit": False}
    eof = {"enable.partition.eof": True, "fetch.wait.max.ms": 10, "check.crcs": True}
    consumer = confluent_kafka.Consumer({**settings, **eof})
    found: list[tuple[int, bytes]] = []
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING)])
        deadline = time.monotonic() + 60
        while (message := consumer.poll(1.0)) is None or message.error() is None:
            assert time.monotonic() < deadline, "the end of the log did not come"
            if message is not None:
                found.append((message.offset() or 0, message.value() or b""))
        end = message.error()
        assert end is not None
        assert end.code() == confluent_kafka.KafkaError._PARTITION_EOF, end
    finally:
        consumer.close()
    return found
