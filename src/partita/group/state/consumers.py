"""Soft state of a shard's KIP-848 groups: deadlines, and the image of existing topics.

A load restarts the deadlines. (Kafka: the timers of GroupMetadataManager; MetadataImage.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from partita.group.state.model import NO_DEADLINE


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


class Revocation(NamedTuple):
    """Deadline to revoke partitions; the member is fenced if its epoch is then still the same."""

    epoch: int
    deadline_ms: int


class ConsumerTimers:
    """The deadlines of one KIP-848 group, in monotonic milliseconds, by member id."""

    __slots__ = (
        "computes_again_ms",
        "computing",
        "group_id",
        "joins",
        "matching",
        "revocations",
        "seen_version",
        "sessions",
        "syncs",
        "wake_ms",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.sessions: dict[str, int] = {}
        self.revocations: dict[str, Revocation] = {}
        self.joins: dict[str, int] = {}
        """Classic members that were asked to rejoin."""
        self.syncs: dict[str, int] = {}
        """Classic members that have to fetch their assignment."""
        self.seen_version = -1
        """Version of the topic image that the group's epoch was last compared with."""
        self.matching = False
        """Whether its regular expressions are being matched outside the event loop."""
        self.computing = False
        """Whether a target is being computed outside the event loop."""
        self.computes_again_ms = 0
        """Earliest time (monotonic) of the next computation outside the event loop, after a failed attempt."""
        self.wake_ms = NO_DEADLINE

    def forget(self, member_id: str) -> None:
        """Drop the deadlines of a removed member."""
        for deadlines in (self.sessions, self.joins, self.syncs):
            deadlines.pop(member_id, None)
        self.revocations.pop(member_id, None)

    def earliest(self) -> int:
        """Return the next deadline."""
        revocations = (revocation.deadline_ms for revocation in self.revocations.values())
        return min((*self.sessions.values(), *self.joins.values(), *self.syncs.values(), *revocations, NO_DEADLINE))
