"""The same few chores done by each third-party client: create a topic, write to it, read a group's offsets.

For tests whose subject is the whole story, not one client's interface.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

PARTITIONS = 6


@dataclass(frozen=True)
class Chores:
    create_topic: Callable[[str, str], None]
    produce: Callable[[str, str, Iterable[str]], None]
    committed: Callable[[str, str, str], dict[int, int]]


# -- confluent-kafka ---------------------------------------------------------------------------------------------------


def confluent_create(bootstrap: str, topic: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(60)


def confluent_produce(bootstrap: str, topic: str, values: Iterable[str]) -> None:
    from confluent_kafka import Producer

    errors: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for number, value in enumerate(values):
        producer.produce(
            topic, value, partition=number % PARTITIONS, on_delivery=lambda e, _: errors.append(e) if e else None
        )
    assert producer.flush(20) == 0
    assert errors == []


def confluent_committed(bootstrap: str, group: str, topic: str) -> dict[int, int]:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    found = consumer.committed([TopicPartition(topic, p) for p in range(PARTITIONS)], 20)
    consumer.close()
    return {p.partition: p.offset for p in found if p.offset >= 0}


# -- kafka-python ------------------------------------------------------------------------------------------------------


def kafka_python_create(bootstrap: str, topic: str) -> None:
    from kafka.admin import KafkaAdminClient, NewTopic

    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])
    admin.close()


def kafka_python_produce(bootstrap: str, topic: str, values: Iterable[str]) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap)
    sent = [producer.send(topic, v.encode(), partition=number % PARTITIONS) for number, v in enumerate(values)]
    producer.flush(20)
    assert all(future.succeeded() for future in sent)
    producer.close()


def kafka_python_committed(bootstrap: str, group: str, topic: str) -> dict[int, int]:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=group)
    found = {p: consumer.committed(TopicPartition(topic, p)) for p in range(PARTITIONS)}
    consumer.close()
    return {p: offset for p, offset in found.items() if offset is not None}


# -- aiokafka ----------------------------------------------------------------------------------------------------------


def aiokafka_create(bootstrap: str, topic: str) -> None:
    from aiokafka.admin import AIOKafkaAdminClient, NewTopic

    async def create() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        answer = await admin.create_topics([NewTopic(topic, PARTITIONS, 1)])
        await admin.close()
        assert [error for _, error, *_ in answer.topic_errors] == [0]

    asyncio.run(create())


def aiokafka_produce(bootstrap: str, topic: str, values: Iterable[str]) -> None:
    from aiokafka import AIOKafkaProducer

    async def produce() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, linger_ms=5) as producer:
            sent = [
                await producer.send(topic, v.encode(), partition=number % PARTITIONS) for number, v in enumerate(values)
            ]
            await asyncio.gather(*sent)

    asyncio.run(produce())


def aiokafka_committed(bootstrap: str, group: str, topic: str) -> dict[int, int]:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def committed() -> dict[int, int]:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
        await consumer.start()
        consumer.assign([TopicPartition(topic, p) for p in range(PARTITIONS)])
        found = {p: await consumer.committed(TopicPartition(topic, p)) for p in range(PARTITIONS)}
        await consumer.stop()
        return {p: offset for p, offset in found.items() if offset is not None}

    return asyncio.run(committed())


CHORES = {
    "confluent-kafka": Chores(confluent_create, confluent_produce, confluent_committed),
    "aiokafka": Chores(aiokafka_create, aiokafka_produce, aiokafka_committed),
    "kafka-python": Chores(kafka_python_create, kafka_python_produce, kafka_python_committed),
}
