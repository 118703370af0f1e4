"""What a poll returns: records by partition, and what to commit once all of them are done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from partita.consumer.topic_partition import OffsetAndMetadata, TopicPartition
from partita.records.batch import Record

ConsumerRecord = Record


class ConsumerRecords:
    """A collection of records, partition after partition, each in offset order."""

    __slots__ = ("_by_partition", "_count", "next_offsets")

    def __init__(
        self,
        by_partition: Mapping[TopicPartition, Sequence[Record]] | None = None,
        next_offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
    ) -> None:
        self._by_partition = by_partition or {}
        self._count = sum(map(len, self._by_partition.values()))
        self.next_offsets = dict(next_offsets or {})

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Record]:
        for records in self._by_partition.values():
            yield from records

    @property
    def partitions(self) -> list[TopicPartition]:
        """The partitions that have records here."""
        return list(self._by_partition)

    def of(self, topic: str, partition: int | None = None) -> list[Record]:
        """The records of a partition, or of all partitions of a topic."""
        if partition is not None:
            return list(self._by_partition.get(TopicPartition(topic, partition), ()))
        return [r for tp, records in self._by_partition.items() if tp.topic == topic for r in records]

    def counts(self) -> dict[str, int]:
        """How many records of each topic."""
        found: dict[str, int] = {}
        for tp, records in self._by_partition.items():
            found[tp.topic] = found.get(tp.topic, 0) + len(records)
        return found

    def items(self) -> Iterator[tuple[TopicPartition, Sequence[Record]]]:
        """Each partition that has records here, with its records."""
        yield from self._by_partition.items()

    def __repr__(self) -> str:
        parts = ", ".join(f"{tp}: {len(records)}" for tp, records in self._by_partition.items())
        return f"ConsumerRecords({parts})"
