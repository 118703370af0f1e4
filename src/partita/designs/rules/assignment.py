"""The assignment that each consumer of design 1 computes for itself. (Kafka 0.8.2: PartitionAssignor)"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from partita.designs.rules.nodes import Registration, java_hash

Partition = tuple[str, int]
STRATEGIES = ("range", "roundrobin")


class CannotAssign(ValueError):
    """The strategy does not work for these subscriptions."""


@dataclass(frozen=True, slots=True)
class View:
    """The state one reader saw: every member's registration and the number of partitions of each topic."""

    members: Mapping[str, Registration]
    partitions: Mapping[str, int]

    def threads(self, topic: str) -> list[str]:
        """The streams that read `topic`, sorted as text: stream 10 stands before stream 2."""
        return sorted(thread for name, its in self.members.items() for thread in its.threads(name, topic))


def assign(view: View, strategy: str = "range") -> dict[Partition, str]:
    """Partition -> thread, for all members. Raises CannotAssign, also for a strategy that is not built in."""
    if strategy not in STRATEGIES:
        raise CannotAssign(f"there is no strategy {strategy}, only {' and '.join(STRATEGIES)}")
    return assign_range(view) if strategy == "range" else assign_roundrobin(view)


def assign_range(view: View) -> dict[Partition, str]:
    """Consecutive partitions of each topic; the first threads get one more where it does not divide."""
    found: dict[Partition, str] = {}
    for topic, count in sorted(view.partitions.items()):
        threads = view.threads(topic)
        for index, thread in enumerate(threads):
            each, extra = divmod(count, len(threads))
            first = each * index + min(index, extra)
            found |= {(topic, number): thread for number in range(first, first + each + (index < extra))}
    return found


def assign_roundrobin(view: View) -> dict[Partition, str]:
    """All partitions, ordered by Java's hash of their names, dealt in turn. All topics need the same threads."""
    topics = sorted(view.partitions)
    threads = view.threads(topics[0]) if topics else []
    if any(view.threads(topic) != threads for topic in topics):
        raise CannotAssign("round robin needs the same streams for every topic")
    if not threads:
        return {}
    every = [(topic, number) for topic in topics for number in range(view.partitions[topic])]
    every.sort(key=lambda partition: java_hash(f"[{partition[0]},{partition[1]}]"))
    return {partition: threads[index % len(threads)] for index, partition in enumerate(every)}
