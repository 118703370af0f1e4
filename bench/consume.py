"""100-byte records from one partition, end to end, each client in a process of its own; fields are read.

`python bench/consume.py CLIENT BOOTSTRAP TOPIC COUNT` is one such process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable

from harness import left_out, partita, report

RECORDS = int(os.environ.get("BENCH_RECORDS", "2000000"))
CODECS = ("none", "lz4", "zstd")


def fill(bootstrap: str, topic: str, codec: str, count: int) -> None:
    """Write `count` records of 100 bytes in batches as a busy producer makes them."""
    from partita import Admin, Producer

    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, partitions=1)
    options = {"linger_ms": 50, "batch_size": 65536, "compression_type": codec}
    with Producer(bootstrap_servers=bootstrap, **options) as producer:
        for number in range(count):
            producer.send(topic, b"%090d" % number, key=b"%010d" % number, partition=0)
        producer.flush()


def partita_arrow(bootstrap: str, topic: str, count: int) -> int:
    from partita import Consumer

    got = total = 0
    with Consumer(bootstrap_servers=bootstrap) as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()
        while got < count:
            batch = consumer.poll_arrow(timeout=1.0)
            if batch is not None and batch.num_rows:
                got += batch.num_rows
                total += batch.column("value").nbytes
    return total


def partita_records(bootstrap: str, topic: str, count: int) -> int:
    from partita import Consumer

    got = total = 0
    with Consumer(bootstrap_servers=bootstrap, max_poll_records=10_000) as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()
        while got < count:
            for record in consumer.poll(timeout=1.0):
                total += len(record.value) + len(record.key)
                got += 1
    return total


def confluent(bootstrap: str, topic: str, count: int) -> int:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    got = total = 0
    while got < count:
        for message in consumer.consume(10_000, 1.0):
            total += len(message.value()) + len(message.key())
            got += 1
    consumer.close()
    return total


def aiokafka(bootstrap: str, topic: str, count: int) -> int:
    import asyncio

    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def run() -> int:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
        await consumer.start()
        consumer.assign([TopicPartition(topic, 0)])
        got = total = 0
        while got < count:
            for records in (await consumer.getmany(timeout_ms=1000, max_records=10_000)).values():
                for record in records:
                    total += len(record.value) + len(record.key)
                got += len(records)
        await consumer.stop()
        return total

    return asyncio.run(run())


def kafka_python(bootstrap: str, topic: str, count: int) -> int:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, 0)])
    got = total = 0
    while got < count:
        for records in consumer.poll(timeout_ms=1000, max_records=10_000).values():
            for record in records:
                total += len(record.value) + len(record.key)
            got += len(records)
    consumer.close()
    return total


CLIENTS: dict[str, Callable[[str, str, int], int]] = {
    "partita arrow": partita_arrow,
    "partita records": partita_records,
    "confluent-kafka": confluent,
    "aiokafka": aiokafka,
    "kafka-python": kafka_python,
}
SHARE = {"aiokafka": 4, "kafka-python": 10, "confluent-kafka": 2}
"""Slow clients read a part only, so that the whole run stays short."""


def one_client(name: str, bootstrap: str, topic: str, count: int) -> None:
    CLIENTS[name](bootstrap, topic, min(count, 20_000))
    started = time.perf_counter()
    CLIENTS[name](bootstrap, topic, count)
    print(json.dumps({"records_per_s": count / (time.perf_counter() - started)}))


def main() -> None:
    with partita() as server:
        for codec in CODECS:
            topic = f"bench-{codec}"
            fill(server.bootstrap, topic, codec, RECORDS)
            rates: dict[str, float] = {}
            for name in CLIENTS:
                count = RECORDS // SHARE.get(name, 1)
                command = [sys.executable, __file__, name, server.bootstrap, topic, str(count)]
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode:
                    left_out("consume", name, (done.stderr.strip().splitlines() or ["failed"])[-1])
                    continue
                rates[name] = json.loads(done.stdout.splitlines()[-1])["records_per_s"]
            ratios = {
                f"arrow / {n}": rates["partita arrow"] / r for n, r in rates.items() if not n.startswith("partita")
            }
            ratios |= {"records / confluent-kafka": rates["partita records"] / rates["confluent-kafka"]}
            report("consume", codec=codec, **{f"{n} records/s": r for n, r in rates.items()}, **ratios)


if __name__ == "__main__":
    if len(sys.argv) == 5:
        one_client(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        main()
