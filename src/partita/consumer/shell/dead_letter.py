"""Records that cannot be read, sent on to a topic of their own with the reason, before the consumer goes on."""

from __future__ import annotations

from typing import Any

from partita.consumer.errors import CorruptRecordError, RecordDeserializationError
from partita.consumer.shell.driver import ConsumerShell


class DeadLetters:
    """Opens a producer with the first record; each is acknowledged before its offset counts as passed."""

    def __init__(self, topic: str, shell: ConsumerShell) -> None:
        self._topic = topic
        self._shell = shell
        self._producer: Any = None

    async def send(self, error: RecordDeserializationError) -> None:
        tp = error.topic_partition
        reason = f"{error.origin.lower()}: {error.__cause__}"
        headers = [*error.headers, *_where(tp.topic, tp.partition, error.offset, reason)]
        self._send(error.raw_key, error.raw_value, headers)

    async def send_corrupt(self, error: CorruptRecordError, end: int) -> None:
        tp = error.topic_partition
        reason = f"{error}; offsets up to {end - 1} skipped"
        self._send(None, None, _where(tp.topic, tp.partition, error.offset, reason))

    def _send(self, key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]) -> None:
        if self._producer is None:
            from partita.producer.shell.client import Producer

            self._producer = Producer(bootstrap_servers=self._shell.config.values["bootstrap_servers"], acks="all")
        self._producer.send(self._topic, key=key, value=value, headers=headers)
        self._producer.flush()

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close()


def _where(topic: str, partition: int, offset: int, reason: str) -> list[tuple[str, bytes | None]]:
    return [
        ("dead-letter-topic", topic.encode()),
        ("dead-letter-partition", str(partition).encode()),
        ("dead-letter-offset", str(offset).encode()),
        ("dead-letter-reason", reason.encode()),
    ]
