"""The topics of the cluster, as a shard sees them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol


class TopicFacts(NamedTuple):
    """Id, partition count and racks of one topic."""

    topic_id: bytes
    partitions: int
    racks: Sequence[Sequence[str | None]] = ()
    """Racks of each partition's replicas, where known."""


class TopicImage(Protocol):
    """The topics of the cluster. `version` grows with every topic that is created, extended or deleted."""

    @property
    def version(self) -> int: ...

    def get(self, name: str) -> TopicFacts | None:
        """The topic with this name."""

    def name_of(self, topic_id: bytes) -> str | None:
        """The name of the topic with this id; None if there is none."""

    def names(self) -> Iterable[str]:
        """Every topic's name."""


class Topics:
    """A mutable topic image for tests, the simulator, and shards without another image."""

    def __init__(self) -> None:
        self.version = 0
        self._topics: dict[str, TopicFacts] = {}
        self._names: dict[bytes, str] = {}

    def put(self, name: str, facts: TopicFacts | None) -> None:
        """Add or replace the topic; None removes it."""
        old = self._topics.pop(name, None)
        if old is not None:
            del self._names[old.topic_id]
        if facts is not None:
            self._topics[name] = facts
            self._names[facts.topic_id] = name
        self.version += 1

    def get(self, name: str) -> TopicFacts | None:
        """The topic with this name."""
        return self._topics.get(name)

    def name_of(self, topic_id: bytes) -> str | None:
        """The name of the topic with this id; None if there is none."""
        return self._names.get(topic_id)

    def names(self) -> Iterable[str]:
        """Every topic's name."""
        return self._topics
