"""Records that cannot be read are never passed over in silence: findings clients 2.3 and 2.4."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from partita import Admin, Broker, Consumer, Producer
from partita.admin import NewTopic
from partita.consumer.errors import DeadLetterError, RecordDeserializationError

NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(num_partitions=1, auto_create_topics_enable=False) as running:
        yield running


def topic_of(broker: Broker, values: list[bytes], **configs: Any) -> str:
    name = f"events-{next(NUMBERS)}"
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics(NewTopic(name, 1, configs=configs))
    with Producer(bootstrap_servers=broker.bootstrap, max_request_size=1 << 26) as producer:
        for value in values:
            producer.send(name, value, partition=0)
    return name


def reading(broker: Broker, topic: str, **options: Any) -> Consumer[Any, Any]:
    consumer = Consumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest", **options)
    consumer.assign([(topic, 0)])
    return consumer


@pytest.mark.parametrize(("kind", "bad"), [("str", b"\xff\xfe"), ("json", b"{no json"), ("json", b'{"n": "one"}')])
def test_poll_arrow_that_cannot_decode_leaves_the_position(broker: Broker, kind: Any, bad: bytes) -> None:
    """Clients 2.3: everything that was fetched was skipped, up to 50 MB."""
    pytest.importorskip("pyarrow")
    good = b'{"n": 1}'
    topic = topic_of(broker, [good] * 5 + [bad] + [good] * 5)
    with reading(broker, topic) as consumer:
        for _ in range(2):
            with pytest.raises(RecordDeserializationError, match=r"at offset 5 .* poll_arrow") as caught:
                consumer.poll_arrow(20.0, value=kind)
            assert (caught.value.topic_partition, caught.value.offset) == ((topic, 0), 5)
            assert caught.value.raw_value == bad
            assert consumer.position((topic, 0)) == 0
        rows = 0
        while rows < 11:
            batch = consumer.poll_arrow(1.0, value="bytes")
            rows += 0 if batch is None else batch.num_rows
    assert rows == 11


@pytest.mark.parametrize("make_room", [True, False])
def test_a_dead_letter_that_is_not_taken_keeps_the_consumer_at_the_record(broker: Broker, make_room: bool) -> None:
    """Clients 2.4 a: the record was passed over, nothing raised, nothing logged."""
    topic = topic_of(broker, [b"1", b"x" * 5_000, b"2"])
    dead = topic_of(broker, [], **{"max.message.bytes": "1000"})
    options: dict[str, Any] = {"value_deserializer": "json", "poison_policy": "dead_letter", "dead_letter_topic": dead}
    with reading(broker, topic, **options) as consumer:
        values: list[Any] = []
        while not values:
            values += [record.value for record in consumer.poll(1.0)]
        assert values == [1]
        for _ in range(2):
            with pytest.raises(DeadLetterError, match="does not take it"):
                consumer.poll(5.0)
            assert consumer.position((topic, 0)) == 1
        if make_room:
            with Admin(bootstrap_servers=broker.bootstrap) as admin:
                admin.alter_configs("topic", dead, {"max.message.bytes": "100000"})
        else:
            consumer.seek((topic, 0), 2)
        while len(values) < 2:
            values += [record.value for record in consumer.poll(5.0)]
    assert values == [1, 2]


def test_a_dead_letter_may_be_larger_than_a_producer_usually_sends(broker: Broker) -> None:
    """Clients 2.4 b: RecordTooLargeError came out of the middle of the poll, with eight records lost."""
    large = b"x" * (3 << 20)
    room = {"max.message.bytes": str(1 << 23)}
    topic, dead = topic_of(broker, [b"1", large, b"2"], **room), topic_of(broker, [], **room)
    options: dict[str, Any] = {"value_deserializer": "json", "poison_policy": "dead_letter", "dead_letter_topic": dead}
    values: list[Any] = []
    with reading(broker, topic, **options) as consumer:
        while len(values) < 2:
            values += [record.value for record in consumer.poll(5.0)]
    assert values == [1, 2]
    with reading(broker, dead) as consumer:
        assert next(consumer).value == large


def test_an_async_consumer_writes_dead_letters_without_blocking_its_loop(broker: Broker) -> None:
    """Clients 2.4 c: the send blocked the event loop, up to max_block_ms."""
    topic, dead = topic_of(broker, [b"1", b"no json", b"2"]), topic_of(broker, [])

    async def run() -> tuple[list[Any], int]:
        ticks = 0
        values: list[Any] = []

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += held.hits  # counted while the letter is on its way
                if ticks >= 10:
                    held.clear()

        options: dict[str, Any] = {
            "value_deserializer": "json",
            "poison_policy": "dead_letter",
            "dead_letter_topic": dead,
        }
        consumer = Consumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest", **options)
        async with consumer as reader:
            reader.assign([(topic, 0)])
            held = broker.control.hold("Produce", 1)
            ticking = asyncio.create_task(tick())
            while len(values) < 2:
                values += [record.value for record in await reader.poll(5.0)]
        ticking.cancel()
        return values, ticks

    values, ticks = asyncio.run(run())
    assert values == [1, 2]
    assert ticks >= 10
