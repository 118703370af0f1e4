"""aiokafka against the broker: producing, reading, positions, groups, its admin client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial, wraps
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import (
    MessageSizeTooLargeError,
    ProducerFenced,
    UnknownTopicOrPartitionError,
)

from partita import Broker
from support.clients import broker as clients_broker
from support.clients.broker import broker, fresh

__all__ = ["broker"]
pytestmark = pytest.mark.client
WITHIN_S = 60.0

Story = Callable[..., Coroutine[Any, Any, None]]


def story(test: Story) -> Callable[..., None]:
    """Run an async test to its end, within a deadline."""

    @wraps(test)
    def run(**fixtures: Any) -> None:
        asyncio.run(asyncio.wait_for(test(**fixtures), 60))

    return run


@asynccontextmanager
async def admin(broker: Broker) -> AsyncIterator[AIOKafkaAdminClient]:
    client = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
    await client.start()
    try:
        yield client
    finally:
        await client.close()


async def create(broker: Broker, topic: str, partitions: int = 1, **config: str) -> str:
    async with admin(broker) as client:
        settings = {name.replace("_", "."): value for name, value in config.items()}
        answer = await client.create_topics([NewTopic(topic, partitions, 1, topic_configs=settings)])
        assert [error for _, error, *_ in answer.topic_errors] == [0]
    return topic


async def fill(broker: Broker, topic: str, values: list[bytes], partition: int = 0, **config: Any) -> list[int]:
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=5, **config) as producer:
        sent = [await producer.send(topic, value, partition=partition) for value in values]
        return [record.offset for record in await asyncio.gather(*sent)]


@asynccontextmanager
async def consumer(broker: Broker, *topics: str, group: str | None = None, **config: Any) -> AsyncIterator[Any]:
    settings = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "heartbeat_interval_ms": 100, **config}
    made = AIOKafkaConsumer(*topics, bootstrap_servers=broker.bootstrap, group_id=group, **settings)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


async def read(source: AIOKafkaConsumer, count: int) -> list[Any]:
    return [await asyncio.wait_for(source.getone(), WITHIN_S) for _ in range(count)]


async def until(fact: Callable[[], bool]) -> None:
    await asyncio.to_thread(clients_broker.until, fact, "it holds", WITHIN_S)


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("acks", [0, 1, "all"])
@story
async def test_codecs_and_acks(broker: Broker, codec: str | None, acks: Any) -> None:
    topic = await create(broker, fresh("codecs"))
    values = [b"the same words again and again %d" % n for n in range(200)]
    async with AIOKafkaProducer(
        bootstrap_servers=broker.bootstrap, compression_type=codec, acks=acks, linger_ms=5
    ) as producer:
        for value in values:
            await producer.send(topic, value)
    async with consumer(broker, topic) as source:
        assert [r.value for r in await read(source, 200)] == values


@story
async def test_headers_nulls_and_timestamps_come_back(broker: Broker) -> None:
    topic = await create(broker, fresh("fields"))
    headers = [("a", b"1"), ("a", b"2"), ("empty", b"")]
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        await producer.send_and_wait(topic, b"v", key=b"k", headers=headers, timestamp_ms=1_700_000_000_123)
        await producer.send_and_wait(topic, None, key=b"k")
        await producer.send_and_wait(topic, b"", key=None)
    async with consumer(broker, topic) as source:
        first, *others = await read(source, 3)
    assert (list(first.headers), first.timestamp, first.timestamp_type) == (headers, 1_700_000_000_123, 0)
    assert [(r.key, r.value) for r in others] == [(b"k", None), (None, b"")]


@story
async def test_log_append_time_is_the_brokers(broker: Broker) -> None:
    topic = await create(broker, fresh("stamped"), message_timestamp_type="LogAppendTime")
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        sent = await producer.send_and_wait(topic, b"v", timestamp_ms=5)
    async with consumer(broker, topic) as source:
        (record,) = await read(source, 1)
    assert (record.timestamp_type, record.timestamp == sent.timestamp > 5) == (1, True)


@story
async def test_an_idempotent_producer_writes_each_record_once_though_answers_are_lost(broker: Broker) -> None:
    topic = await create(broker, fresh("idempotent"))
    broker.control.fail("Produce", "NOT_ENOUGH_REPLICAS_AFTER_APPEND", 2, executed=True)
    values = [b"%d" % n for n in range(300)]
    await fill(broker, topic, values, enable_idempotence=True, max_batch_size=400)
    async with consumer(broker, topic) as source:
        assert [r.value for r in await read(source, 300)] == values
        assert await source.end_offsets([TopicPartition(topic, 0)]) == {TopicPartition(topic, 0): 300}


@story
async def test_large_records_need_the_topics_consent(broker: Broker) -> None:
    topic, small = await create(broker, fresh("large"), max_message_bytes="3000000"), await create(broker, fresh("s"))
    large = bytes(range(256)) * 10_000
    await fill(broker, topic, [large, large], max_request_size=5_000_000)
    async with consumer(broker, topic) as source:
        assert [r.value for r in await read(source, 2)] == [large, large]
    with pytest.raises(MessageSizeTooLargeError):
        await fill(broker, small, [large], max_request_size=5_000_000)


@story
async def test_positions_times_seek_and_pause(broker: Broker) -> None:
    topic = await create(broker, fresh("times"), 2)
    zero, one = TopicPartition(topic, 0), TopicPartition(topic, 1)
    stamps = [1_700_000_000_000 + 1000 * n for n in range(10)]
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        for stamp in stamps:
            await producer.send_and_wait(topic, b"x", partition=0, timestamp_ms=stamp)
            await producer.send_and_wait(topic, b"x", partition=1)
    async with consumer(broker) as source:
        source.assign([zero, one])
        found = [(await source.offsets_for_times({zero: t}))[zero] for t in (0, stamps[4] - 999, stamps[9] + 1)]
        assert [None if f is None else (f.offset, f.timestamp) for f in found] == [(0, stamps[0]), (4, stamps[4]), None]
        assert await source.beginning_offsets([zero]) == {zero: 0}
        await read(source, 20)
        source.pause(one)
        source.seek(zero, 7)
        assert [(r.partition, r.offset) for r in await read(source, 3)] == [(0, 7), (0, 8), (0, 9)]
        await fill(broker, topic, [b"new"], 1)
        source.resume(one)
        assert [(r.partition, r.offset) for r in await read(source, 1)] == [(1, 10)]
        await source.seek_to_beginning(zero)
        assert (await read(source, 1))[0].offset == 0


@story
async def test_commits_are_there_for_the_next_consumer(broker: Broker) -> None:
    topic, group = await create(broker, fresh("commits")), fresh("group")
    spot = TopicPartition(topic, 0)
    await fill(broker, topic, [b"%d" % n for n in range(10)])
    async with consumer(broker, topic, group=group) as source:
        await read(source, 4)
        await source.commit()
        assert await source.committed(spot) == 4
        await source.commit({spot: (6, "by hand")})
    async with consumer(broker, topic, group=group) as source:
        assert [r.offset for r in await read(source, 4)] == [6, 7, 8, 9]


@story
async def test_auto_commit_on_leaving(broker: Broker) -> None:
    topic, group = await create(broker, fresh("auto")), fresh("group")
    await fill(broker, topic, [b"%d" % n for n in range(10)])
    async with consumer(broker, topic, group=group, enable_auto_commit=True) as source:
        await read(source, 10)
    await fill(broker, topic, [b"10"])
    async with consumer(broker, topic, group=group) as source:
        assert [r.offset for r in await read(source, 1)] == [10]


@story
async def test_regex_subscription_finds_topics_made_later(broker: Broker) -> None:
    prefix = fresh("regex")
    await fill(broker, await create(broker, f"{prefix}-a"), [b"x"])
    async with consumer(broker, group=fresh("group"), metadata_max_age_ms=100) as source:
        source.subscribe(pattern=f"^{prefix}-.*")
        assert [r.topic for r in await read(source, 1)] == [f"{prefix}-a"]
        await source.commit()
        await fill(broker, await create(broker, f"{prefix}-b"), [b"x"])
        assert [r.topic for r in await read(source, 1)] == [f"{prefix}-b"]


@pytest.mark.parametrize("assignor", [RoundRobinPartitionAssignor, StickyPartitionAssignor])
@story
async def test_each_assignor_shares_the_partitions(broker: Broker, assignor: Any) -> None:
    topic, group = await create(broker, fresh("assign"), 4), fresh("group")
    settings: dict[str, Any] = {"group": group, "partition_assignment_strategy": [assignor]}
    async with consumer(broker, topic, **settings) as first:
        async with consumer(broker, topic, **settings) as second:
            await until(lambda: [len(first.assignment()), len(second.assignment())] == [2, 2])
            assert first.assignment() | second.assignment() == {TopicPartition(topic, n) for n in range(4)}
        await until(lambda: len(first.assignment()) == 4)


@story
async def test_an_evicted_member_joins_again(broker: Broker) -> None:
    topic, group = await create(broker, fresh("evicted")), fresh("group")
    async with consumer(broker, topic, group=group) as source:
        await until(lambda: len(source.assignment()) == 1)
        (before,) = broker.control.members(group)
        broker.control.evict_member(group, before)
        await until(lambda: list(broker.control.members(group)) not in ([], [before]))
        await fill(broker, topic, [b"x"])
        assert len(await read(source, 1)) == 1


@story
async def test_a_static_member_comes_back_without_a_rebalance(broker: Broker) -> None:
    topic, group = await create(broker, fresh("static")), fresh("group")
    for _ in range(2):
        async with consumer(broker, topic, group=group, group_instance_id="one") as source:
            await until(partial(_owns_one, source))
            assert list(broker.control.members(group).values()) == ["one"]
    notes = [note["note"] for note in broker.notes() if note.get("group_id") == group]
    assert notes.count("Rebalanced") == 1


@pytest.mark.case("TX-F01", "TX-J14", "TX-C07")
@story
async def test_transactions_commit_abort_and_fence(broker: Broker) -> None:
    topic, name = await create(broker, fresh("tx"), 1), fresh("id")
    producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=name)
    await producer.start()
    for turn in range(4):
        await producer.begin_transaction()
        await producer.send_and_wait(topic, b"%d" % turn)
        await (producer.abort_transaction() if turn % 2 else producer.commit_transaction())
    await producer.begin_transaction()
    await producer.send_and_wait(topic, b"zombie")
    successor = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=name)
    await successor.start()
    async with successor.transaction():
        await successor.send_and_wait(topic, b"last")
    with pytest.raises(ProducerFenced):
        await producer.commit_transaction()
    source = AIOKafkaConsumer(
        topic, bootstrap_servers=broker.bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
    )
    await source.start()
    assert [(await source.getone()).value for _ in range(3)] == [b"0", b"2", b"last"]
    await source.stop()
    await successor.stop()
    await producer.stop()


@story
async def test_the_admin_client_and_topics(broker: Broker) -> None:
    topic = await create(broker, fresh("admin"), 2)
    async with admin(broker) as client:
        assert topic in await client.list_topics()
        await client.create_partitions({topic: NewPartitions(3)})
        (described,) = await client.describe_topics([topic])
        assert (described["topic"], len(described["partitions"])) == (topic, 3)
        assert [node["port"] for node in (await client.describe_cluster())["brokers"]] == [broker.port]
        (answer,) = await client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
        ((_, _, _, name, rows),) = answer.resources
        assert (name, {row[0]: row[1] for row in rows}["retention.ms"]) == (topic, "604800000")
        await fill(broker, topic, [b"%d" % n for n in range(10)])
        spot = TopicPartition(topic, 0)
        assert await client.delete_records({spot: RecordsToDelete(before_offset=4)}) == {spot: 4}
        for code in (0, UnknownTopicOrPartitionError.errno):
            assert (await client.delete_topics([topic])).topic_error_codes == [(topic, code)]


@story
async def test_the_admin_client_and_groups(broker: Broker) -> None:
    topic, group = await create(broker, fresh("admin")), fresh("group")
    await fill(broker, topic, [b"x"])
    async with admin(broker) as client, consumer(broker, topic, group=group) as source:
        await read(source, 1)
        await source.commit()
        assert (group, "consumer") in await client.list_consumer_groups()
        (answer,) = await client.describe_consumer_groups([group])
        ((error, name, state, kind, assignor, members, *_),) = answer.groups
        assert (error, name, state, kind, assignor, len(members)) == (0, group, "Stable", "consumer", "roundrobin", 1)
        offsets = await client.list_consumer_group_offsets(group)
        assert {spot: found.offset for spot, found in offsets.items()} == {TopicPartition(topic, 0): 1}
        assert await client.find_coordinator(group) == 1


def _owns_one(source: AIOKafkaConsumer) -> bool:
    return len(source.assignment()) == 1
