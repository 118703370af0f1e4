"""100-byte records from one partition, end to end, each client in a process of its own; fields are read.

`python bench/consume.py CLIENT BOOTSTRAP TOPIC COUNT` is one such process.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable

from harness import left_out, partita, report

from partita.net.cluster import Cluster
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.records.batch import build_batch

RECORDS = int(os.environ.get("BENCH_RECORDS", "2000000"))
CODECS = {"none": 0, "lz4": 3, "zstd": 4}
BATCHES, BATCH_RECORDS = 16, 580


async def fill(bootstrap: str, topic: str, codec: str, count: int) -> None:
    """Write `count` records of 100 bytes in batches as a busy producer makes them, half of each hard to compress."""
    now_ms = int(time.time() * 1000)
    batches = []
    for _ in range(BATCHES):
        records = [(now_ms, b"%010d" % i, os.urandom(45).hex().encode(), ()) for i in range(BATCH_RECORDS)]
        batches.append(build_batch(records, codec=CODECS[codec]))
    async with Cluster(bootstrap) as cluster:
        await cluster.retry(lambda: cluster.leader_for(topic, 0, create=True))
        for i in range(-(-count // BATCH_RECORDS)):
            data = TopicProduceData(
                name=topic, partition_data=[PartitionProduceData(index=0, records=batches[i % BATCHES])]
            )
            request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data])
            answer = await cluster.request(None, request, max_version=12)
            assert not answer.responses[0].partition_responses[0].error_code, answer


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
                assert isinstance(record.value, bytes)
                assert isinstance(record.key, bytes)
                total += len(record.value) + len(record.key)
                got += 1
    return total


def confluent(bootstrap: str, topic: str, count: int) -> int:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    # As it is by itself it waits a second whenever 100,000 records are queued: a fifth of what it can do.
    ahead = {"queued.min.messages": 1_000_000, "fetch.queue.backoff.ms": 5}
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False, **ahead})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    got = total = 0
    while got < count:
        for message in consumer.consume(10_000, 1.0):
            total += len(message.value() or b"") + len(message.key() or b"")
            got += 1
    consumer.close()
    return total


def aiokafka(bootstrap: str, topic: str, count: int) -> int:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def run() -> int:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
        await consumer.start()
        consumer.assign([TopicPartition(topic, 0)])
        got = total = 0
        while got < count:
            for records in (await consumer.getmany(timeout_ms=1000, max_records=10_000)).values():
                for record in records:
                    assert isinstance(record.value, bytes)
                assert isinstance(record.key, bytes)
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
                assert isinstance(record.value, bytes)
                assert isinstance(record.key, bytes)
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
SHARE = {"aiokafka": 8, "kafka-python": 40, "confluent-kafka": 4}
"""Slow clients read a part only, so that the whole run stays short."""
COMPRESSED = ("partita arrow", "partita records", "confluent-kafka")
"""Who reads the compressed topics: there are no targets against the others."""


def one_client(name: str, bootstrap: str, topic: str, count: int) -> None:
    CLIENTS[name](bootstrap, topic, min(count, 20_000))
    started, cpu_s = time.perf_counter(), time.process_time()
    CLIENTS[name](bootstrap, topic, count)
    took_s, cpu_s = time.perf_counter() - started, time.process_time() - cpu_s
    print(json.dumps({"records_per_s": count / took_s, "per_cpu_s": count / cpu_s}))


def measured(name: str, bootstrap: str, topic: str) -> dict[str, float]:
    """The client's rates, the better of two runs; empty (reported) when it fails."""
    command = [sys.executable, __file__, name, bootstrap, topic, str(RECORDS // SHARE.get(name, 1))]
    rates: dict[str, float] = {}
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            left_out("consume", name, (done.stderr.strip().splitlines() or ["failed"])[-1])
            return {}
        latest = json.loads(done.stdout.splitlines()[-1])
        rates = max(rates, latest, key=lambda r: r.get("records_per_s", 0.0))
    return rates


def main() -> None:
    with partita() as server:
        for codec in CODECS:
            topic = f"bench-{codec}"
            asyncio.run(fill(server.bootstrap, topic, codec, RECORDS))
            names = CLIENTS if codec == "none" else COMPRESSED
            found = {name: measured(name, server.bootstrap, topic) for name in names}
            rates = {name: r["records_per_s"] for name, r in found.items() if r}
            per_cpu_s = {f"{name} records per CPU-second": r["per_cpu_s"] for name, r in found.items() if r}
            ratios = {
                f"arrow / {n}": rates["partita arrow"] / r for n, r in rates.items() if not n.startswith("partita")
            }
            if "confluent-kafka" in rates:
                ratios["records / confluent-kafka"] = rates["partita records"] / rates["confluent-kafka"]
            figures = {f"{n} records/s": r for n, r in rates.items()} | per_cpu_s | ratios
            report("consume", codec=codec, **figures)


if __name__ == "__main__":
    if len(sys.argv) == 5:
        one_client(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        main()
