"""A cluster in memory that numbers every record it ever held, so that each can be accounted for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from partita.spark.planning.lookups import Committed
from partita.spark.planning.planner import RangeTask
from partita.spark.planning.starts import ClusterView, DataLossError
from partita.spark.settings.options import TopicSelection
from partita.spark.settings.positions import TopicPartition
from support.spark.cluster import MemoryCluster, Part


@dataclass(slots=True)
class Numbered:
    """The numbers of the records of one partition by offset, and where each of its leader epochs began."""

    numbers: list[int] = field(default_factory=list)
    epochs: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])


@dataclass(slots=True)
class CountedCluster(MemoryCluster):
    """`gone` are the numbers of records that were removed, truncated or deleted, read or not.

    `on_call` is told each question before it is answered, and "committed to" after a commit was taken; it may raise.
    """

    kept: dict[TopicPartition, Numbered] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    count: int = 0
    on_call: Callable[[str], None] = lambda name: None
    loss_fails: bool = True

    def create(self, topic: str, *ends: int) -> None:
        """A new topic, or one deleted and created again."""
        self._forget(topic)
        MemoryCluster.create(self, topic, *(0 for _ in ends))
        for partition, end in enumerate(ends):
            self.kept[topic, partition] = Numbered()
            self.produce(topic, partition, end)

    def add_partition(self, topic: str, end: int) -> None:
        parts = self.topics[topic][1]
        parts.append(Part())
        self.kept[topic, len(parts) - 1] = Numbered()
        self.produce(topic, len(parts) - 1, end)

    def produce(self, topic: str, partition: int, count: int) -> None:
        MemoryCluster.produce(self, topic, partition, count)
        self.kept[topic, partition].numbers += range(self.count, self.count + count)
        self.count += count

    def remove_before(self, topic: str, partition: int, offset: int) -> None:
        part = self.part(topic, partition)
        part.earliest = max(part.earliest, min(offset, part.latest))
        self.gone |= set(self.kept[topic, partition].numbers[: part.earliest])

    def elect(self, topic: str, partition: int, lost: int = 0) -> None:
        """A new leader, which lacks the last `lost` records."""
        part, kept = self.part(topic, partition), self.kept[topic, partition]
        part.latest = max(part.earliest, part.latest - lost)
        self.gone |= set(kept.numbers[part.latest :])
        del kept.numbers[part.latest :]
        part.leader_epoch += 1
        kept.epochs = [(epoch, min(begin, part.latest)) for epoch, begin in kept.epochs]
        kept.epochs.append((part.leader_epoch, part.latest))

    def living(self) -> dict[tuple[str, int, int], int]:
        """The number of each record that is there, by topic, partition and offset."""
        return {
            (topic, p, offset): self.kept[topic, p].numbers[offset]
            for topic, (_, parts) in self.topics.items()
            for p, part in enumerate(parts)
            for offset in range(part.earliest, part.latest)
        }

    def numbers_in(self, task: RangeTask) -> Iterator[object]:
        """What a task reads: nothing of a topic that was recreated meanwhile, only what is left of the rest."""
        topic_id, parts = self.topics[task.topic]
        is_short = topic_id != task.topic_id
        if not is_short:
            part = parts[task.partition]
            is_short = task.begin < part.earliest or task.end > part.latest
        if is_short and self.loss_fails:
            raise DataLossError("a task found less than was planned")
        if topic_id != task.topic_id:
            return iter(())
        begin, end = max(task.begin, part.earliest), min(task.end, part.latest)
        return iter(list(self.kept[task.topic, task.partition].numbers[begin:end]))

    def view(
        self, selection: TopicSelection, *, pause_ms: int = 0, news: Mapping[TopicPartition, int] | None = None
    ) -> ClusterView:
        self.on_call("view")
        return MemoryCluster.view(self, selection, pause_ms=pause_ms, news=news)

    def topic_ids(self, topics: Collection[str]) -> dict[str, bytes]:
        self.on_call("topic_ids")
        return MemoryCluster.topic_ids(self, topics)

    def epoch_ends(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        self.on_call("epoch_ends")
        ends = {}
        for key, epoch in wanted.items():
            later = [begin for number, begin in self.kept[key].epochs if number > epoch]
            ends[key] = min(later) if later else self.part(*key).latest
        return ends

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Committed]:
        self.on_call("committed")
        return MemoryCluster.committed(self, group, partitions)

    def commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> None:
        self.on_call("commit")
        MemoryCluster.commit(self, group, offsets)
        self.on_call("committed to")

    def _forget(self, topic: str) -> None:
        for key in [key for key in self.kept if key[0] == topic]:
            self.gone |= set(self.kept.pop(key).numbers)
            for offsets in self.groups.values():  # as Kafka's coordinator does
                offsets.pop(key, None)
