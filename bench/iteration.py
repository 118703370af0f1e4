"""Records one by one: `for record in consumer` and `async for` beside polls, and beside the peers' loops.

Key and value of every record are looked at. The figures that count are CPU-seconds per client process and the ratios;
each client runs in a process of its own, `python bench/iteration.py NAME BOOTSTRAP`.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from consume import fill
from harness import left_out, partita, report

RECORDS = int(os.environ.get("BENCH_RECORDS", "500000"))
RUNS = 3
TOPIC = "one-by-one"


def look(record: Any) -> int:
    """What every client does with a record."""
    return len(record.value) + len(record.key)


def polls(bootstrap: str, count: int) -> None:
    from partita import Consumer

    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([(TOPIC, 0)])
        while count > 0:
            for record in consumer.poll(1.0):
                look(record)
                count -= 1


def loop(bootstrap: str, count: int) -> None:
    from partita import Consumer

    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([(TOPIC, 0)])
        for record in consumer:
            look(record)
            count -= 1
            if count <= 0:
                break


def async_loop(bootstrap: str, count: int) -> None:
    from partita import Consumer

    async def run(count: int) -> None:
        async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([(TOPIC, 0)])
            async for record in consumer:
                look(record)
                count -= 1
                if count <= 0:
                    break

    asyncio.run(run(count))


def aiokafka(bootstrap: str, count: int) -> None:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def run(count: int) -> None:
        async with AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(TOPIC, 0)])
            async for record in consumer:
                look(record)
                count -= 1
                if count <= 0:
                    break

    asyncio.run(run(count))


def kafka_python(bootstrap: str, count: int) -> None:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(TOPIC, 0)])
    for record in consumer:
        look(record)
        count -= 1
        if count <= 0:
            break
    consumer.close()


def confluent(bootstrap: str, count: int) -> None:
    """Its record-by-record call is poll(); it has no iterator."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
    while count > 0:
        message = consumer.poll(1.0)
        if message is not None:
            assert len(message.value() or b"") + len(message.key() or b"")
            count -= 1
    consumer.close()


CLIENTS: dict[str, Callable[[str, int], None]] = {
    "polls": polls,
    "loop": loop,
    "async loop": async_loop,
    "confluent-kafka": confluent,
    "aiokafka": aiokafka,
    "kafka-python": kafka_python,
}
SHARE = {"aiokafka": 4, "kafka-python": 10, "confluent-kafka": 2}
"""Slow clients read a part only."""


def run_one(name: str, bootstrap: str) -> None:
    """Print microseconds per record, elapsed and of the CPU, the best of some runs."""
    count = RECORDS // SHARE.get(name, 1)
    CLIENTS[name](bootstrap, min(count, 10_000))
    runs = []
    for _ in range(RUNS):
        began, cpu_s = time.perf_counter(), time.process_time()
        CLIENTS[name](bootstrap, count)
        runs.append((time.perf_counter() - began, time.process_time() - cpu_s))
    took_s, cpu_s = (min(run[place] for run in runs) for place in (0, 1))
    print(json.dumps({"us": took_s / count * 1e6, "cpu_us": cpu_s / count * 1e6}))


def main() -> None:
    """Fill a topic and have every client read it."""
    figures: dict[str, float] = {}
    with partita() as broker:
        asyncio.run(fill(broker.bootstrap, TOPIC, "none", RECORDS))
        for name in CLIENTS:
            command = [sys.executable, __file__, name, broker.bootstrap]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                left_out("iteration", name, (done.stderr.strip().splitlines() or ["failed"])[-1])
                continue
            measured = json.loads(done.stdout.splitlines()[-1])
            figures[f"{name} us per record"] = measured["us"]
            figures[f"{name} CPU us per record"] = measured["cpu_us"]
    ours = figures["loop CPU us per record"]
    ratios = {
        f"loop / {n}": ours / figures[f"{n} CPU us per record"] for n in CLIENTS if f"{n} us per record" in figures
    }
    report("iteration", **figures, **ratios)


if __name__ == "__main__":
    run_one(*sys.argv[1:3]) if len(sys.argv) > 1 else main()
