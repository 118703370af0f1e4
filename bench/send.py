"""100-byte records sent one by one by each producer, in a process of its own, until all are acknowledged.

All have the same settings. `python bench/send.py CLIENT BOOTSTRAP TOPIC COUNT` is one such process.
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

RECORDS = int(os.environ.get("BENCH_RECORDS", "300000"))
LINGER_MS, BATCH_BYTES = 5, 131_072
VALUE = os.urandom(50).hex().encode()


def partita_blocking(bootstrap: str, topic: str, count: int) -> None:
    from partita import Producer

    with Producer(bootstrap_servers=bootstrap, linger_ms=LINGER_MS, batch_size=BATCH_BYTES) as producer:
        for _ in range(count):
            producer.send(topic, VALUE)
        producer.flush()


def partita_asyncio(bootstrap: str, topic: str, count: int) -> None:
    from partita import Producer

    async def run() -> None:
        async with Producer(bootstrap_servers=bootstrap, linger_ms=LINGER_MS, batch_size=BATCH_BYTES) as producer:
            for i in range(count):
                producer.send(topic, VALUE)
                if i % 100 == 0:
                    await producer.room()
                    await asyncio.sleep(0)
            await producer.flush()

    asyncio.run(run())


def confluent(bootstrap: str, topic: str, count: int) -> None:
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": LINGER_MS,
            "batch.size": BATCH_BYTES,
        }
    )
    failed = []
    for _ in range(count):
        while True:
            try:
                producer.produce(topic, VALUE, on_delivery=lambda error, _: failed.append(error) if error else None)
                break
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
    assert producer.flush() == 0
    assert not failed, failed[0]


def aiokafka(bootstrap: str, topic: str, count: int) -> None:
    from aiokafka import AIOKafkaProducer

    async def run() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap, enable_idempotence=True, linger_ms=LINGER_MS, max_batch_size=BATCH_BYTES
        )
        await producer.start()
        for _ in range(count):
            await producer.send(topic, VALUE)
        await producer.stop()

    asyncio.run(run())


def kafka_python(bootstrap: str, topic: str, count: int) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        enable_idempotence=True,
        linger_ms=LINGER_MS,
        batch_size=BATCH_BYTES,
    )
    for _ in range(count):
        producer.send(topic, VALUE)
    producer.flush()
    producer.close()


CLIENTS: dict[str, Callable[[str, str, int], None]] = {
    "partita": partita_blocking,
    "partita asyncio": partita_asyncio,
    "confluent-kafka": confluent,
    "aiokafka": aiokafka,
    "kafka-python": kafka_python,
}
SHARE = {"aiokafka": 3, "kafka-python": 6}
"""Slow clients send a part only, so that the whole run stays short."""


def one_client(name: str, bootstrap: str, topic: str, count: int) -> None:
    CLIENTS[name](bootstrap, topic, 1000)
    started, cpu_s = time.perf_counter(), time.process_time()
    CLIENTS[name](bootstrap, topic, count)
    took_s, cpu_s = time.perf_counter() - started, time.process_time() - cpu_s
    print(json.dumps({"records_per_s": count / took_s, "per_cpu_s": count / cpu_s}))


def measured(name: str, bootstrap: str) -> dict[str, float]:
    """The client's rates, the better of two runs; empty (reported) when it fails."""
    rates: dict[str, float] = {}
    for _ in range(2):
        topic = f"send-{name.replace(' ', '-')}"
        command = [sys.executable, __file__, name, bootstrap, topic, str(RECORDS // SHARE.get(name, 1))]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            left_out("send", name, (done.stderr.strip().splitlines() or ["failed"])[-1])
            return {}
        latest = json.loads(done.stdout.splitlines()[-1])
        rates = max(rates, latest, key=lambda r: r.get("records_per_s", 0.0))
    return rates


def main() -> None:
    with partita() as server:
        found = {name: measured(name, server.bootstrap) for name in CLIENTS}
    figures = {f"{name} records/s": r["records_per_s"] for name, r in found.items() if r}
    report("send", **figures, **{f"{n} records per CPU-second": r["per_cpu_s"] for n, r in found.items() if r})


if __name__ == "__main__":
    if len(sys.argv) == 5:
        one_client(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        main()
