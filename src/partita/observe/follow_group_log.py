"""Reads `__consumer_offsets` of any Kafka with our own consumer, and keeps facts about groups.

Needs the right to read that topic. A partition that cannot be read is named in `problems`, and the others go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from partita.consumer.shell.client import AsyncConsumer
from partita.errors import KafkaError
from partita.group import partition_for
from partita.group.records.read_back import LogRecord
from partita.observe.kept import Kept
from partita.observe.log_facts import LogReader
from partita.offsets.topic_partition import TopicPartition

LOG_TOPIC = "__consumer_offsets"
RECORDS_MAX = 1_000_000
"""Of each partition, only this many of the last records are read."""
POLL_S = 0.5
LOOK_UP_S = 10.0


class GroupLog:
    """The log of all groups, or of some. `kept` is filled as records come; another source may fill it too."""

    def __init__(
        self,
        options: Mapping[str, Any],
        kept: Kept,
        *,
        groups: Sequence[str] | None = None,
        name_of: Callable[[bytes], str | None] = lambda topic_id: None,
        records_max: int = RECORDS_MAX,
    ) -> None:
        self._options = {**options, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        self._kept = kept
        self._groups = None if groups is None else frozenset(groups)
        self._name_of = name_of
        self._records_max = records_max
        self._readers: dict[int, LogReader] = {}
        self.problems: dict[str, str] = {}
        """Partitions that cannot be read or not as a whole, with the reason."""
        self.records = 0
        """Number of records read."""

    async def read(self) -> None:
        """Read up to the ends of now. Raises KafkaError if the topic cannot be read at all."""
        async with AsyncConsumer(self._options) as consumer:
            ends = await self._assign(consumer)
            while [p for p, end in ends.items() if await consumer.position(p) < end]:
                await self._take(consumer)

    async def follow(self) -> None:
        """Read on until the task is cancelled. Raises KafkaError if the topic cannot be read at all."""
        async with AsyncConsumer(self._options) as consumer:
            await self._assign(consumer)
            while True:
                await self._take(consumer)
                await asyncio.sleep(0)

    async def _assign(self, consumer: AsyncConsumer[Any, Any]) -> dict[TopicPartition, int]:
        """Take the partitions that can be read; their ends by partition."""
        numbers = await consumer.partitions_for(LOG_TOPIC, timeout=LOOK_UP_S)
        if self._groups is not None and numbers:
            numbers = sorted({partition_for(group, len(numbers)) for group in self._groups})
        begins: dict[TopicPartition, int] = {}
        ends: dict[TopicPartition, int] = {}
        for number in numbers:
            place = TopicPartition(LOG_TOPIC, number)
            try:
                end = (await consumer.end_offsets([place], timeout=LOOK_UP_S))[place]
                begins[place] = (await consumer.beginning_offsets([place], timeout=LOOK_UP_S))[place]
                ends[place] = end
            except (KafkaError, TimeoutError) as error:
                self.problems[f"{LOG_TOPIC}-{number}"] = str(error) or type(error).__name__
        consumer.assign(list(ends))
        for place, end in ends.items():
            start = max(begins[place], end - self._records_max)
            if start > begins[place]:
                skipped = f"only its last {self._records_max:,} records are read, of {end - begins[place]:,}"
                self.problems[f"{LOG_TOPIC}-{place[1]}"] = skipped
            consumer.seek(place, start)
        return ends

    async def _take(self, consumer: AsyncConsumer[Any, Any]) -> None:
        for record in await consumer.poll(POLL_S):
            reader = self._readers.get(record.partition)
            if reader is None:
                reader = self._readers[record.partition] = LogReader(self._name_of, self._wants)
            self.records += 1
            read = LogRecord(
                record.key, record.value, record.partition, record.offset, record.timestamp, record.leader_epoch
            )
            for fact in reader.read(read):
                self._kept.add(fact)

    def _wants(self, group: str) -> bool:
        return self._groups is None or group in self._groups

    @property
    def unreadable(self) -> int:
        """Records that could not be understood."""
        return sum(reader.unreadable for reader in self._readers.values())
