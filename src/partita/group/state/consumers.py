"""What a shard knows of its KIP-848 groups besides their records: deadlines, and the topics there are.

Deadlines are soft state: a load starts them again. (Kafka: the timers of GroupMetadataManager; MetadataImage.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from partita.group.state.model import NO_DEADLINE


class TopicFacts(NamedTuple):
    """One topic as a group sees it."""

    topic_id: bytes
    partitions: int
    racks: Sequence[Sequence[str | None]] = ()
    """Of the replicas of each partition, where known."""


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
    """A topic image that is changed by hand; for tests and the simulator, and for a shard that was given none."""

    def __init__(self) -> None:
        self.version = 0
        self._topics: dict[str, TopicFacts] = {}
        self._names: dict[bytes, str] = {}

    def put(self, name: str, facts: TopicFacts | None) -> None:
        """There is a topic, or (with None) none with this name any more."""
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
    """A member has to give partitions up until then; if its epoch is still the same, it is fenced."""

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
        """Members of the classic protocol that were told to rejoin."""
        self.syncs: dict[str, int] = {}
        """Members of the classic protocol that have to fetch their assignment."""
        self.seen_version = -1
        """The version of the topics that the group's epoch was last compared with."""
        self.matching = False
        """Its regular expressions are being matched beside the event loop."""
        self.computing = False
        """A target is being computed beside the event loop."""
        self.computes_again_ms = 0
        """No target is computed beside the loop before that (monotonic): the last attempt failed."""
        self.wake_ms = NO_DEADLINE

    def forget(self, member_id: str) -> None:
        """The member is gone, and its deadlines with it."""
        for deadlines in (self.sessions, self.joins, self.syncs):
            deadlines.pop(member_id, None)
        self.revocations.pop(member_id, None)

    def earliest(self) -> int:
        """The next deadline."""
        revocations = (revocation.deadline_ms for revocation in self.revocations.values())
        return min((*self.sessions.values(), *self.joins.values(), *self.syncs.values(), *revocations, NO_DEADLINE))
