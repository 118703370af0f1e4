"""Records that are done, when work finishes out of order: only a prefix without gaps may be committed.

Every record handed out is noted; `done(record)` crosses it off. What may be committed for a partition is the first
offset not done yet.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from heapq import heappop, heappush

from partita.offsets.topic_partition import OffsetAndMetadata, TopicPartition


class _Partition:
    __slots__ = ("epoch", "next_offset", "open", "open_heap")

    def __init__(self) -> None:
        self.open: set[int] = set()
        self.open_heap: list[int] = []
        self.next_offset = -1
        self.epoch = -1

    def first_open(self) -> int | None:
        while self.open_heap and self.open_heap[0] not in self.open:
            heappop(self.open_heap)
        return self.open_heap[0] if self.open_heap else None


class DoneTracker:
    """`handed_out` notes records, `done` crosses one off, `committable` says how far each partition is."""

    def __init__(self) -> None:
        self._partitions: dict[TopicPartition, _Partition] = {}

    def handed_out(self, tp: TopicPartition, offsets: Iterable[int], next_offset: int, epoch: int) -> None:
        """Note offsets that went to the application; `next_offset` is the position after them."""
        partition = self._partitions.setdefault(tp, _Partition())
        for offset in offsets:
            if offset not in partition.open:
                partition.open.add(offset)
                heappush(partition.open_heap, offset)
        partition.next_offset, partition.epoch = next_offset, epoch

    def done(self, tp: TopicPartition, offset: int) -> bool:
        """Cross a record off; false if it was not open (done twice, or its partition is gone)."""
        partition = self._partitions.get(tp)
        if partition is None or offset not in partition.open:
            return False
        partition.open.remove(offset)
        return True

    def committable(self, assigned: Container[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """For each assigned partition, the first offset that is not done yet."""
        found = {}
        for tp, partition in self._partitions.items():
            if tp in assigned:
                first = partition.first_open()
                offset = partition.next_offset if first is None else first
                found[tp] = OffsetAndMetadata(offset, partition.epoch)
        return found

    def keep(self, assigned: Container[TopicPartition]) -> None:
        """Forget partitions that are gone: nothing noted in one ownership is committed in a later one."""
        self._partitions = {tp: p for tp, p in self._partitions.items() if tp in assigned}

    def forget(self, tp: TopicPartition) -> None:
        """The application went elsewhere in this partition: start over."""
        self._partitions.pop(tp, None)
