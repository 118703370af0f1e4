"""One member of a consumer group, made with ours or a third-party client, in a process of its own.

`python group_member.py CLIENT BOOTSTRAP GROUP TOPIC CLIENT_ID` consumes until SIGTERM, commits what it has handed over,
and prints one JSON object a line: what was assigned, which records came, what was committed, that it closed.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import threading
from collections.abc import Iterable
from typing import Any

SESSION_MS, HEARTBEAT_MS, POLL_S = 6_000, 100, 0.25
SOON_MS = 1_500
"""The session of our own members, who are killed many times a test."""


def say(event: str, **details: object) -> None:
    print(json.dumps({"event": event, **details}), flush=True)


def text(value: object) -> str:
    assert isinstance(value, bytes)
    return value.decode()


def say_assigned(partitions: Iterable[int]) -> None:
    say("assigned", partitions=sorted(partitions))


def settings(bootstrap: str, group: str, client_id: str) -> dict[str, Any]:
    """What the members with options in Python's spelling have in common."""
    return {
        "bootstrap_servers": bootstrap,
        "group_id": group,
        "client_id": client_id,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "session_timeout_ms": SESSION_MS,
        "heartbeat_interval_ms": HEARTBEAT_MS,
    }


def confluent(bootstrap: str, group: str, topic: str, client_id: str) -> None:
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": client_id,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "reconnect.backoff.max.ms": 200,
            "topic.metadata.refresh.interval.ms": 1000,
            "log_level": 0,
        }
    )
    owned: set[int] = set()

    def assigned(_: Consumer, partitions: list[TopicPartition]) -> None:
        owned.update(p.partition for p in partitions)
        say_assigned(owned)

    def revoked(_: Consumer, partitions: list[TopicPartition]) -> None:
        owned.difference_update(p.partition for p in partitions)
        say_assigned(owned)

    stopped = stop_on_sigterm()
    consumer.subscribe([topic], on_assign=assigned, on_revoke=revoked, on_lost=revoked)
    while not stopped.is_set():
        messages = [m for m in consumer.consume(500, POLL_S) if m.error() is None]
        if messages:
            say("records", records=[(m.partition(), m.offset(), (m.value() or b"").decode()) for m in messages])
            try:
                committed = consumer.commit(asynchronous=False)
            except KafkaException as error:
                say("refused", error=str(error))
            else:
                say("committed", offsets={p.partition: p.offset for p in committed if p.offset >= 0})
    consumer.close()


def kafka_python(bootstrap: str, group: str, topic: str, client_id: str) -> None:
    from kafka import ConsumerRebalanceListener, KafkaConsumer
    from kafka.errors import KafkaError

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # the library has no types
        def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
            say_assigned(p.partition for p in assigned)

        def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
            say_assigned(())

    consumer = KafkaConsumer(
        **settings(bootstrap, group, client_id), reconnect_backoff_max_ms=200, metadata_max_age_ms=1000
    )
    stopped = stop_on_sigterm()
    consumer.subscribe([topic], listener=Listener())
    while not stopped.is_set():
        records = [r for batch in consumer.poll(timeout_ms=POLL_S * 1000).values() for r in batch]
        if records:
            say("records", records=[(r.partition, r.offset, r.value.decode()) for r in records])
            offsets = {p: consumer.position(p) for p in consumer.assignment()}
            try:
                consumer.commit()
            except KafkaError as error:
                say("refused", error=repr(error))
            else:
                say("committed", offsets={p.partition: offset for p, offset in offsets.items()})
    consumer.close()


def aiokafka(bootstrap: str, group: str, topic: str, client_id: str) -> None:
    asyncio.run(_aiokafka(bootstrap, group, topic, client_id))


async def _aiokafka(bootstrap: str, group: str, topic: str, client_id: str) -> None:
    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
    from aiokafka.errors import KafkaError

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # the library has no types
        async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
            say_assigned(p.partition for p in assigned)

        async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
            say_assigned(())

    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    consumer = AIOKafkaConsumer(**settings(bootstrap, group, client_id), metadata_max_age_ms=1000)
    consumer.subscribe([topic], listener=Listener())
    await consumer.start()
    while not stopped.is_set():
        records = [r for batch in (await consumer.getmany(timeout_ms=POLL_S * 1000)).values() for r in batch]
        if records:
            say("records", records=[(r.partition, r.offset, r.value.decode()) for r in records])
            offsets = {r.partition: r.offset + 1 for r in records}
            try:
                await consumer.commit()
            except KafkaError as error:
                say("refused", error=repr(error))
            else:
                say("committed", offsets=offsets)
    await consumer.stop()


def partita(bootstrap: str, group: str, topic: str, client_id: str) -> None:
    from partita import Consumer
    from partita.errors import KafkaError

    stopped = stop_on_sigterm()
    with Consumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        client_id=client_id,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=SOON_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
        reconnect_backoff_max_ms=200,
    ) as consumer:
        consumer.subscribe([topic], on_assigned=lambda _: say_assigned(p for _, p in consumer.assignment()))
        while not stopped.is_set():
            records = consumer.poll(POLL_S)
            if not records:
                continue
            say("records", records=[(r.partition, r.offset, text(r.value)) for r in records])
            try:
                consumer.commit({(tp.topic, tp.partition): at for tp, at in records.next_offsets.items()})
            except KafkaError as error:
                say("refused", error=repr(error))
            else:
                say("committed", offsets={tp.partition: at.offset for tp, at in records.next_offsets.items()})


def stop_on_sigterm() -> threading.Event:
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    return stopped


CLIENTS = {"partita": partita, "confluent-kafka": confluent, "aiokafka": aiokafka, "kafka-python": kafka_python}

if __name__ == "__main__":
    say("started")
    CLIENTS[sys.argv[1]](*sys.argv[2:])
    say("closed")
