"""A member of a group in a process of its own, on librdkafka or kafka-python.

    python foreign_member.py librdkafka|kafka-python OPTIONS_AS_JSON TOPIC...

Lines on standard input command it: `subscribe TOPIC...`, `work SECONDS` (without a poll), `pause`, `die` (as soon as it
has to assign). The end of standard input makes it leave. Each new assignment and each commit is a line of JSON on
standard output.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, Protocol


class Client(Protocol):
    """The calls that both clients have, by one name."""

    def __init__(self, options: dict[str, Any]) -> None: ...
    def subscribe(self, topics: list[str]) -> None: ...
    def poll(self) -> None: ...
    def held(self) -> list[str]: ...
    def pause(self) -> None: ...
    def die_assigning(self) -> None: ...
    def close(self) -> None: ...


def say(**fact: Any) -> None:
    """One fact for the test."""
    print(json.dumps(fact), flush=True)


class Librdkafka:
    """confluent_kafka.Consumer."""

    def __init__(self, options: dict[str, Any]) -> None:
        from confluent_kafka import Consumer

        self._consumer = Consumer({**options, "log_level": 0, "on_commit": lambda error, _: say(commit=str(error))})

    def subscribe(self, topics: list[str]) -> None:
        self._consumer.subscribe(topics)

    def poll(self) -> None:
        self._consumer.poll(0.1)

    def held(self) -> list[str]:
        return [f"{part.topic}-{part.partition}" for part in self._consumer.assignment()]

    def pause(self) -> None:
        self._consumer.pause(self._consumer.assignment())

    def die_assigning(self) -> None:
        raise NotImplementedError("librdkafka has no assignors of the application")

    def close(self) -> None:
        self._consumer.close()


class KafkaPython:
    """kafka.KafkaConsumer. Its options are spelled as librdkafka's."""

    def __init__(self, options: dict[str, Any]) -> None:
        from kafka import KafkaConsumer
        from kafka.coordinator.assignors.range import RangePartitionAssignor

        class Assignor(RangePartitionAssignor):  # type: ignore[misc]  # it has no types
            """Range, by a process that may die of it."""

            @classmethod
            def assign(cls, *args: Any, **named: Any) -> Any:
                if dying.is_set():
                    os.kill(os.getpid(), signal.SIGKILL)
                return super().assign(*args, **named)

        dying = self._dying = threading.Event()
        named = {name.replace(".", "_"): value for name, value in options.items()}
        self._consumer = KafkaConsumer(
            partition_assignment_strategy=[Assignor],
            default_offset_commit_callback=lambda offsets, error: say(commit=str(error)),
            **named,
        )

    def subscribe(self, topics: list[str]) -> None:
        self._consumer.subscribe(topics)

    def poll(self) -> None:
        # Longer than a join takes: 3.0 forgets a join that outlasts its poll, when new metadata is what began it.
        self._consumer.poll(5_000)

    def held(self) -> list[str]:
        return [f"{part.topic}-{part.partition}" for part in self._consumer.assignment()]

    def pause(self) -> None:
        self._consumer.pause(*self._consumer.assignment())

    def die_assigning(self) -> None:
        self._dying.set()

    def close(self) -> None:
        self._consumer.close()


def main(kind: str, options: str, topics: Sequence[str]) -> None:
    """Poll until standard input ends."""
    clients: dict[str, type[Client]] = {"librdkafka": Librdkafka, "kafka-python": KafkaPython}
    client = clients[kind](json.loads(options))
    commands = [["subscribe", *topics]]
    is_over = threading.Event()

    def listen() -> None:
        for line in sys.stdin:
            commands.append(line.split())
        is_over.set()

    threading.Thread(target=listen, daemon=True).start()
    before: list[str] = []
    while not is_over.is_set():
        while commands:
            match commands.pop(0):
                case ["subscribe", *names]:
                    client.subscribe(names)
                case ["work", seconds]:
                    time.sleep(float(seconds))
                case ["pause"]:
                    client.pause()
                case ["die"]:
                    client.die_assigning()
        client.poll()
        now = sorted(client.held())
        if now != before:
            before = now
            say(held=now)
    client.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
