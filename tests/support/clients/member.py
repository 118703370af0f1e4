"""One member of a consumer group, made with ours or a third-party client, in a process of its own.

`python member.py CLIENT BOOTSTRAP GROUP TOPIC CLIENT_ID ASSIGNOR SESSION_MS` consumes until SIGTERM, commits what
it has handed over, and prints one JSON object per line: what was assigned, which records came, what was committed, that
it closed. Without assignor ("") and session (0), each client takes its default here. CLIENT/consumer speaks the
consumer protocol, which knows neither; CLIENT/static is a static member, its instance id that of the client. All read
committed records only, as librdkafka does by default.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any

SESSION_MS, HEARTBEAT_MS, POLL_S = 6_000, 100, 0.25
SOON_MS = 1_500
"""The session of our own members, who are killed many times a test."""
COPIES = "-copies"
"""Behind the name of a topic: what the copier makes of it."""
ABORTED_SHARE = 0.125
"""Of the copier's transactions, so many are given up and made again."""


@dataclass(frozen=True)
class Task:
    """What the member is to do. `assignor` is Kafka's name of one, or "" for the client's default."""

    bootstrap: str
    group: str
    topic: str
    client_id: str
    assignor: str
    session_ms: int
    """0: what suits the client in the tests."""
    by_epochs: bool = False
    """With the consumer protocol."""
    is_static: bool = False


def say(event: str, **details: object) -> None:
    print(json.dumps({"event": event, **details}), flush=True)


def text(value: object) -> str:
    assert isinstance(value, bytes)
    return value.decode()


def say_assigned(partitions: Iterable[int]) -> None:
    say("assigned", partitions=sorted(partitions))


def settings(task: Task) -> dict[str, Any]:
    """What the members with options in Python's spelling have in common."""
    return {
        "bootstrap_servers": task.bootstrap,
        "group_id": task.group,
        "client_id": task.client_id,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "isolation_level": "read_committed",
        "session_timeout_ms": task.session_ms or SESSION_MS,
        "heartbeat_interval_ms": HEARTBEAT_MS,
        **({"group_instance_id": task.client_id} if task.is_static else {}),
    }


def confluent(task: Task) -> None:
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    by_protocol: dict[str, Any] = {"group.protocol": "consumer"}
    if not task.by_epochs:
        by_protocol = {
            "session.timeout.ms": task.session_ms or SESSION_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            **({"partition.assignment.strategy": task.assignor} if task.assignor else {}),
        }
    consumer = Consumer(
        {
            "bootstrap.servers": task.bootstrap,
            "group.id": task.group,
            "client.id": task.client_id,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "reconnect.backoff.max.ms": 200,
            "topic.metadata.refresh.interval.ms": 1000,
            "log_level": 0,
            **({"group.instance.id": task.client_id} if task.is_static else {}),
            **by_protocol,
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
    consumer.subscribe([task.topic], on_assign=assigned, on_revoke=revoked, on_lost=revoked)
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


def kafka_python(task: Task) -> None:
    from kafka import ConsumerRebalanceListener, KafkaConsumer
    from kafka.errors import KafkaConnectionError, KafkaError

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # the library has no types
        def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
            say_assigned(p.partition for p in assigned)

        def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
            say_assigned(())

    consumer = KafkaConsumer(**settings(task), reconnect_backoff_max_ms=200, metadata_max_age_ms=1000)
    stopped = stop_on_sigterm()
    consumer.subscribe([task.topic], listener=Listener())
    while not stopped.is_set():
        try:
            records = [r for batch in consumer.poll(timeout_ms=POLL_S * 1000).values() for r in batch]
        except KafkaConnectionError:  # its release 3.0.12 lets it out while the broker is down
            continue
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


def aiokafka(task: Task) -> None:
    asyncio.run(_aiokafka(task))


async def _aiokafka(task: Task) -> None:
    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from aiokafka.errors import KafkaError

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # the library has no types
        async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
            say_assigned(p.partition for p in assigned)

        async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
            say_assigned(())

    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    assignors = {"range": (RangePartitionAssignor,), "roundrobin": (RoundRobinPartitionAssignor,)}
    chosen = {"partition_assignment_strategy": assignors[task.assignor]} if task.assignor else {}
    consumer = AIOKafkaConsumer(**settings(task), **chosen, metadata_max_age_ms=1000)
    consumer.subscribe([task.topic], listener=Listener())
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


def partita(task: Task) -> None:
    from partita import Consumer
    from partita.errors import KafkaError

    stopped = stop_on_sigterm()
    with Consumer(options_of_ours(task)) as consumer:

        def say_held(_: object) -> None:
            say_assigned(p for _, p in consumer.assignment())

        consumer.subscribe([task.topic], on_assigned=say_held, on_lost=lambda _: say_assigned(()))
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


def options_of_ours(task: Task) -> dict[str, Any]:
    options = {**settings(task), "session_timeout_ms": task.session_ms or SOON_MS, "reconnect_backoff_max_ms": 200}
    if task.by_epochs:
        options = {name: value for name, value in options.items() if not name.endswith(("timeout_ms", "interval_ms"))}
        options["group_protocol"] = "consumer"
    elif task.assignor:
        options["partition_assignment_strategy"] = task.assignor
    return options


def copier(task: Task) -> None:
    """Copy the topic to TOPIC-copies, the records of each poll in one transaction; some are aborted and made again.

    A copy is its record's value, "@" and the name of the attempt. Attempts that were aborted on purpose are printed.
    """
    from partita import KafkaError

    stopped, dice = stop_on_sigterm(), Random(task.client_id)
    attempts = (f"{task.client_id}.{os.getpid()}.{number}" for number in count())
    while not stopped.is_set():
        try:
            copy(task, stopped, attempts, dice)
        except KafkaError as error:  # fenced, or the group has moved on: another producer, another member
            say("failed", error=repr(error))


def copy(task: Task, stopped: threading.Event, attempts: Iterator[str], dice: Random) -> None:
    """One life of the copier's clients."""
    from partita import Consumer, Producer

    with (
        Consumer(options_of_ours(task)) as consumer,
        Producer(
            bootstrap_servers=task.bootstrap, transactional_id=task.client_id, transaction_timeout_ms=5_000
        ) as producer,
    ):
        producer.init_transactions()
        consumer.subscribe([task.topic])
        while not stopped.is_set():
            records = consumer.poll(POLL_S)
            if not records:
                continue
            attempt = next(attempts)
            producer.begin_transaction()
            for record in records:
                producer.send(task.topic + COPIES, f"{text(record.value)}@{attempt}", key=record.key)
            if dice.random() < ABORTED_SHARE:
                producer.flush()
                producer.abort_transaction()
                say("aborted", attempt=attempt)
                return  # the next life reads from what the group has committed
            producer.send_offsets_to_transaction(records, consumer.group_metadata())
            producer.commit_transaction()
            say("copied", attempt=attempt, count=len(records))


def stop_on_sigterm() -> threading.Event:
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    return stopped


CLIENTS = {
    "partita": partita, "confluent-kafka": confluent, "aiokafka": aiokafka, "kafka-python": kafka_python,
    "copier": copier,
}  # fmt: skip

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # asked to go before there is a client that could leave
    say("started")
    client, bootstrap, group, topic, client_id, assignor, session_ms = sys.argv[1:]
    made_with, *ways = client.split("/")
    task = Task(bootstrap, group, topic, client_id, assignor, int(session_ms), "consumer" in ways, "static" in ways)
    CLIENTS[made_with](task)
    say("closed")
