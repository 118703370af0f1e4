"""A cluster in memory that answers the look-ups of the Spark source; what the engine simulator reads from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from partita.errors import GroupAuthorizationFailedError
from partita.spark.planning.lookups import CommitRefused, Committed
from partita.spark.planning.planner import RangeTask
from partita.spark.planning.starts import ClusterView, PartitionFacts
from partita.spark.settings.options import TopicSelection
from partita.spark.settings.positions import TopicPartition


@dataclass(slots=True)
class Part:
    """One partition: offsets earliest to latest hold a record each, but for holes; records[i] has timestamp 10*i."""

    earliest: int = 0
    latest: int = 0
    leader_epoch: int = 0
    epoch_end: int | None = None


@dataclass(slots=True)
class MemoryCluster:
    """Topics by name: an id and a list of partitions. `on_commit` sees every accepted commit.

    `hidden_looks` says for how many looks a topic is missing from the view; `on_pause` is told the pause of each look.
    """

    topics: dict[str, tuple[bytes, list[Part]]] = field(default_factory=dict)
    groups: dict[str, dict[TopicPartition, Committed]] = field(default_factory=dict)
    refuse_commits: bool = False
    rights: frozenset[str] = frozenset({"DESCRIBE", "READ"})
    """What the query may do with groups."""
    on_commit: Callable[[Mapping[TopicPartition, Committed]], None] = lambda offsets: None
    blank_looks: int = 0
    hidden_looks: dict[str, int] = field(default_factory=dict)
    on_pause: Callable[[int], None] = lambda pause_ms: None
    looks: int = 0
    news: list[dict[TopicPartition, int]] = field(default_factory=list)
    ids: int = 0

    def create(self, topic: str, *ends: int) -> None:
        self.ids += 1
        self.topics[topic] = (self.ids.to_bytes(16, "big"), [Part(latest=end) for end in ends])

    def part(self, topic: str, partition: int) -> Part:
        return self.topics[topic][1][partition]

    def produce(self, topic: str, partition: int, count: int) -> None:
        self.part(topic, partition).latest += count

    def records(self) -> list[object]:
        """Every record there is."""
        return [
            (t, p, o)
            for t, (_, parts) in self.topics.items()
            for p, x in enumerate(parts)
            for o in range(x.earliest, x.latest)
        ]

    def read(self, task: RangeTask) -> Iterator[object]:
        part = self.part(task.topic, task.partition)
        return iter(
            [(task.topic, task.partition, o) for o in range(max(task.begin, part.earliest), min(task.end, part.latest))]
        )

    def view(
        self, selection: TopicSelection, *, pause_ms: int = 0, news: Mapping[TopicPartition, int] | None = None
    ) -> ClusterView:
        self.news.append(dict(news or {}))
        self.on_pause(pause_ms)
        self.looks += 1
        if self.blank_looks > 0:
            self.blank_looks -= 1
            return ClusterView({})
        hidden = {topic for topic, looks in self.hidden_looks.items() if looks > 0}
        self.hidden_looks = {topic: looks - 1 for topic, looks in self.hidden_looks.items()}
        chosen = {t: found for t, found in self.topics.items() if selection.wants(t) and t not in hidden}
        partitions = {
            (topic, p): PartitionFacts(part.earliest, part.latest, part.leader_epoch)
            for topic, (_, parts) in chosen.items()
            for p, part in enumerate(parts)
            if not selection.assigned or (topic, p) in selection.assigned
        }
        return ClusterView(partitions, {topic: topic_id for topic, (topic_id, _) in chosen.items()})

    def topic_ids(self, topics: Collection[str]) -> dict[str, bytes]:
        return {topic: self.topics[topic][0] for topic in topics if topic in self.topics}

    def topic_names(self) -> dict[bytes, str]:
        return {topic_id: name for name, (topic_id, _) in self.topics.items()}

    def deleted(self, topics: Collection[str]) -> set[str]:
        return set(topics) - self.topics.keys()

    def at_times(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        found: dict[TopicPartition, int | None] = {}
        for (topic, partition), timestamp in wanted.items():
            part = self.part(topic, partition)
            offset = max(part.earliest, -(-timestamp // 10))
            found[topic, partition] = offset if offset < part.latest else None
        return found

    def epoch_ends(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        ends = {key: self.part(*key).epoch_end for key in wanted}
        return {key: end for key, end in ends.items() if end is not None}

    def record_bytes(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, float]:
        return {key: 100.0 * (key[1] + 1) for key in wanted}

    def record_times(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return {key: 10 * offset for key, offset in wanted.items()}

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Committed]:
        if "DESCRIBE" not in self.rights:
            raise GroupAuthorizationFailedError(group, operation="READ")
        return {key: c for key, c in self.groups.get(group, {}).items() if key in partitions}

    def commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> None:
        if "READ" not in self.rights:
            raise CommitRefused(str(GroupAuthorizationFailedError(group, operation="READ")), lacks_right=True)
        if self.refuse_commits:
            raise CommitRefused(f"group {group} has live members")
        self.on_commit(offsets)
        self.groups.setdefault(group, {}).update(offsets)
