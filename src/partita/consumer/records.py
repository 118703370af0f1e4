"""The result of a poll: records by partition, and the offsets to commit once all of them are done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, cast

from partita.offsets.topic_partition import OffsetAndMetadata, TopicPartition
from partita.records.batch import Record

MaybeNull: TypeAlias = Any
"""In a union with the type of values: a tombstone's value is None, but only compacted topics have tombstones.

A checker accepts "record.value.upper()" and still refuses a method that the type lacks, as for `re.Match.group`.
"""

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    K = TypeVar("K", default=bytes)
    V = TypeVar("V", default=bytes)

    class ConsumerRecord(Record, Generic[K, V]):
        """A record whose key and value have the types that the consumer's deserializers give them."""

        key: K | None
        value: V | MaybeNull

else:
    from typing import TypeVar

    K, V = TypeVar("K"), TypeVar("V")
    ConsumerRecord = Record


class ConsumerRecords(Generic[K, V]):
    """A collection of records, partition after partition, each in offset order.

    `ends` names the partitions whose end this poll reached, with the end offset (only with enable_partition_eof).
    """

    __slots__ = ("_by_partition", "_count", "ends", "next_offsets")

    def __init__(
        self,
        by_partition: Mapping[TopicPartition, Sequence[Record]] | None = None,
        next_offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        ends: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        found = cast("Mapping[TopicPartition, Sequence[ConsumerRecord[K, V]]]", by_partition or {})
        self._by_partition = found
        self._count = sum(map(len, self._by_partition.values()))
        self.next_offsets = dict(next_offsets or {})
        self.ends = dict(ends or {})

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        return chain.from_iterable(self._by_partition.values())

    @property
    def partitions(self) -> list[TopicPartition]:
        """The partitions that have records here."""
        return list(self._by_partition)

    def of(self, topic: str, partition: int | None = None) -> list[ConsumerRecord[K, V]]:
        """The records of a partition, or of all partitions of a topic."""
        if partition is not None:
            return list(self._by_partition.get(TopicPartition(topic, partition), ()))
        return [r for tp, records in self._by_partition.items() if tp.topic == topic for r in records]

    def counts(self) -> dict[str, int]:
        """Number of records of each topic."""
        found: dict[str, int] = {}
        for tp, records in self._by_partition.items():
            found[tp.topic] = found.get(tp.topic, 0) + len(records)
        return found

    def items(self) -> Iterator[tuple[TopicPartition, Sequence[ConsumerRecord[K, V]]]]:
        """Each partition that has records here, with its records."""
        yield from self._by_partition.items()

    def __repr__(self) -> str:
        parts = ", ".join(f"{tp}: {len(records)}" for tp, records in self._by_partition.items())
        return f"ConsumerRecords({parts})"
