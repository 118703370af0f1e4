"""How long close() takes after records were read, and how long the whole of a small group takes, beside the peers.

One record is read in a group, and the consumer is closed while its next fetch is waiting at the broker. The whole is
what a test does: make a consumer, subscribe, read the record, close. All clients run on Partita's broker.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from itertools import count

from harness import Medians, left_out, partita, row, turns, wanted
from table import AIOKAFKA, CONFLUENT, KAFKA_PYTHON, OURS

EACH = 5
"""Groups of each client in a round."""
IDLE_S = 0.02
Took = tuple[float, float]
"""Seconds of the whole, and of close() alone."""
_groups = count()


def ours(bootstrap: str, group: str, idle_s: float) -> Took:
    from partita import Consumer

    began = time.perf_counter()
    consumer = Consumer(bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest")
    consumer.subscribe(["one"])
    while not consumer.poll(1.0):
        pass
    if idle_s:
        consumer.poll(idle_s)  # the next fetch is at the broker
    closing = time.perf_counter()
    consumer.close()
    return time.perf_counter() - began, time.perf_counter() - closing


def confluent(bootstrap: str, group: str, idle_s: float) -> Took:
    from confluent_kafka import Consumer

    began = time.perf_counter()
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe(["one"])
    while consumer.poll(1.0) is None:
        pass
    if idle_s:
        consumer.poll(idle_s)
    closing = time.perf_counter()
    consumer.close()
    return time.perf_counter() - began, time.perf_counter() - closing


def aiokafka(bootstrap: str, group: str, idle_s: float) -> Took:
    from aiokafka import AIOKafkaConsumer

    async def run() -> Took:
        began = time.perf_counter()
        consumer = AIOKafkaConsumer("one", bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest")
        await consumer.start()
        await consumer.getone()
        if idle_s:
            await consumer.getmany(timeout_ms=int(idle_s * 1000))
        closing = time.perf_counter()
        await consumer.stop()
        return time.perf_counter() - began, time.perf_counter() - closing

    return asyncio.run(run())


def kafka_python(bootstrap: str, group: str, idle_s: float) -> Took:
    from kafka import KafkaConsumer

    began = time.perf_counter()
    consumer = KafkaConsumer("one", bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest")
    while not consumer.poll(timeout_ms=1000):
        pass
    if idle_s:
        consumer.poll(timeout_ms=int(idle_s * 1000))
    closing = time.perf_counter()
    consumer.close()
    return time.perf_counter() - began, time.perf_counter() - closing


CLIENTS: dict[str, Callable[[str, str, float], Took]] = {
    OURS: ours,
    CONFLUENT: confluent,
    AIOKAFKA: aiokafka,
    KAFKA_PYTHON: kafka_python,
}


def measured(bootstrap: str) -> tuple[Medians, Medians]:
    """Median milliseconds of close() after a fetch, and of the whole; the clients in turns."""
    from partita import Admin, Producer

    with Admin(bootstrap_servers=bootstrap) as admin, Producer(bootstrap_servers=bootstrap) as producer:
        admin.create_topic("one", 1)
        producer.send("one", b"record")
        producer.flush()
    clients = {name: client for name, client in CLIENTS.items() if name == OURS or wanted(name)}
    closes: dict[str, list[float]] = {name: [] for name in clients}
    wholes: dict[str, list[float]] = {name: [] for name in clients}
    for _ in turns(EACH):
        for name, client in list(clients.items()):
            try:
                closes[name].append(client(bootstrap, f"close-{next(_groups)}", IDLE_S)[1] * 1000)
                wholes[name].append(client(bootstrap, f"whole-{next(_groups)}", 0)[0] * 1000)
            except ImportError as reason:
                left_out("close", name, str(reason))
                del clients[name], closes[name], wholes[name]
    return Medians(closes, EACH), Medians(wholes, EACH)


def main() -> None:
    with partita() as broker:
        closes, wholes = measured(broker.bootstrap)
        row("close after a fetch", closes)
        row("a group in a test", wholes)


if __name__ == "__main__":
    main()
