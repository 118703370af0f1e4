"""How long close() takes after records were read, and how long the whole of a small test takes, beside the peers.

One record is sent and read in a group, and the consumer is closed while its next fetch is waiting at the broker. All
clients run on Partita's broker, and on Apache Kafka where it can be had.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from itertools import count

from harness import apache_kafka, partita, report

ROUNDS = 15
_groups = count()


def ours(bootstrap: str, group: str) -> float:
    """Seconds that close() takes."""
    from partita import Consumer

    consumer = Consumer(bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest")
    consumer.subscribe(["one"])
    while not consumer.poll(1.0):
        pass
    consumer.poll(0.02)  # the next fetch is at the broker
    began = time.perf_counter()
    consumer.close()
    return time.perf_counter() - began


def without_group(bootstrap: str, group: str) -> float:
    """The same with an assigned partition."""
    from partita import Consumer

    consumer = Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    consumer.assign([("one", 0)])
    while not consumer.poll(1.0):
        pass
    consumer.poll(0.02)
    began = time.perf_counter()
    consumer.close()
    return time.perf_counter() - began


def confluent(bootstrap: str, group: str) -> float:
    from confluent_kafka import Consumer

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe(["one"])
    while consumer.poll(1.0) is None:
        pass
    consumer.poll(0.02)
    began = time.perf_counter()
    consumer.close()
    return time.perf_counter() - began


def aiokafka(bootstrap: str, group: str) -> float:
    from aiokafka import AIOKafkaConsumer

    async def run() -> float:
        consumer = AIOKafkaConsumer("one", bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest")
        await consumer.start()
        await consumer.getone()
        await consumer.getmany(timeout_ms=20)
        began = time.perf_counter()
        await consumer.stop()
        return time.perf_counter() - began

    return asyncio.run(run())


def kafka_python(bootstrap: str, group: str) -> float:
    from kafka import KafkaConsumer

    consumer = KafkaConsumer("one", bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest")
    while not consumer.poll(timeout_ms=1000):
        pass
    consumer.poll(timeout_ms=20)
    began = time.perf_counter()
    consumer.close()
    return time.perf_counter() - began


CLIENTS: dict[str, Callable[[str, str], float]] = {
    "partita": ours,
    "partita, no group": without_group,
    "confluent-kafka": confluent,
    "aiokafka": aiokafka,
    "kafka-python": kafka_python,
}


def measured(bootstrap: str) -> dict[str, float]:
    """Median and worst milliseconds of each client."""
    from partita import Admin, Producer

    with Admin(bootstrap_servers=bootstrap) as admin, Producer(bootstrap_servers=bootstrap) as producer:
        admin.create_topic("one", 1)
        producer.send("one", b"record")
        producer.flush()
    figures: dict[str, float] = {}
    for name, client in CLIENTS.items():
        took = [client(bootstrap, f"close-{next(_groups)}") * 1000 for _ in range(ROUNDS)]
        figures[f"{name} median ms"] = statistics.median(took)
        figures[f"{name} max ms"] = max(took)
    for name in list(CLIENTS)[2:]:
        figures[f"partita / {name}"] = figures["partita median ms"] / figures[f"{name} median ms"]
    return figures


def main() -> None:
    """Measure on both brokers."""
    with partita() as broker:
        report("close", broker="partita", **measured(broker.bootstrap))
    with apache_kafka("close") as node:
        if node is not None:
            report("close", broker="Apache Kafka", **measured(node.bootstrap))


if __name__ == "__main__":
    main()
