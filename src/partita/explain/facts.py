"""Facts about a group at some moment, and their certainty: the input of `partita.explain`. Frozen values only.

Times are milliseconds of the reporter's wall clock. A Partita broker reports causes in its notes; with any other
Kafka the same facts come from `__consumer_offsets` and from descriptions, without causes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from partita.wording import What

Partition: TypeAlias = tuple[str, int]
"""Topic and number."""


class Sure(Enum):
    """Source of a statement, best first."""

    TOLD = "told"
    """The coordinator said so in its notes."""
    SEEN = "seen"
    """It follows from records or descriptions and has no other explanation."""
    INFERRED = "inferred"
    """A rule concluded it; the evidence is shown beside it."""
    UNKNOWN = "unknown"
    """The facts leave more than one explanation."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member as of one generation. Unknown values are None, an empty text or an empty tuple."""

    member_id: str
    client_id: str = ""
    instance_id: str | None = None
    host: str = ""
    session_timeout_ms: int | None = None
    rebalance_timeout_ms: int | None = None
    topics: tuple[str, ...] | None = None
    """Subscribed topics; None if they cannot be read."""
    partitions: tuple[Partition, ...] = ()
    joined_ms: int | None = None
    """When its join came in this rebalance."""
    synced_ms: int | None = None
    """When it asked for its assignment."""


@dataclass(frozen=True, slots=True)
class ToldCause:
    """A cause as a coordinator's note gives it."""

    what: What
    member_id: str = ""
    instance_id: str | None = None
    client_id: str = ""
    detail: str = ""
    """The reason that the client gave, if any."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """A generation is complete: its members have their assignment, or the group is empty.

    A record that repeats a generation with other member ids (a static member was replaced) is one of these too.
    """

    group: str
    at_ms: int
    """When the assignment was stored."""
    sure: Sure
    generation: int
    """Of a KIP-848 group: its epoch."""
    members: tuple[Member, ...] = ()
    protocol: str | None = None
    """The assignor."""
    leader_id: str | None = None
    joined_ms: int | None = None
    """When the join phase ended; None if it is not known."""
    began_ms: int | None = None
    """When the join phase began; None if it is not known."""
    causes: tuple[ToldCause, ...] = ()
    leader_epoch: int | None = None
    """Of the log's partition at that record: it rises when the coordinator moves."""
    is_abandoned: bool = False
    """Members received the generation, but it was never assigned."""
    is_incremental: bool = False
    """A KIP-848 group: members keep reading kept partitions, and no phase waits for all of them."""
    topics_hash: int | None = None
    """Of a KIP-848 group: a hash of the topics that it subscribes to and their partitions; None if it is not known."""
    place: str = ""
    """Source of the fact: a note's number, or a partition and an offset."""


def begins_a_group(generation: int, *, is_incremental: bool) -> bool:
    """Whether no generation with members came before it: a KIP-848 group is at epoch 1 before its first member."""
    return generation <= (2 if is_incremental else 1)


@dataclass(frozen=True, slots=True)
class Replaced:
    """A static member's process was replaced by another, and its member id with it."""

    group: str
    at_ms: int
    sure: Sure
    instance_id: str
    old_member_id: str
    new_member_id: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class Committed:
    """An offset of the group was committed: the owner of the partition was alive then."""

    group: str
    at_ms: int
    partition: Partition
    offset: int
    pace_ms: int | None = None
    """The longest time between two of the last commits up to this one, if those before it may have been dropped."""


@dataclass(frozen=True, slots=True)
class PartitionsCounted:
    """A topic was seen to have this many partitions; 0 if it did not exist, or was deleted."""

    at_ms: int
    topic: str
    count: int


@dataclass(frozen=True, slots=True)
class EndSeen:
    """A partition's log was seen to end here."""

    at_ms: int
    partition: Partition
    offset: int


@dataclass(frozen=True, slots=True)
class BeginSeen:
    """A partition's log was seen to begin here: older records are deleted."""

    at_ms: int
    partition: Partition
    offset: int


@dataclass(frozen=True, slots=True)
class CoordinatorLoaded:
    """The coordinator loaded its groups: it has moved, or its broker has restarted. `group` is empty for all groups."""

    group: str
    at_ms: int
    sure: Sure
    place: str = ""
    shard: tuple[int, int] = (0, 1)
    """The partition of the group log, and how many it has: only its groups were loaded."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The group was deleted, or has expired."""

    group: str
    at_ms: int
    sure: Sure


@dataclass(frozen=True, slots=True)
class Refused:
    """The coordinator refused a member: it cannot join, or another process has its instance id."""

    group: str
    at_ms: int
    error: str
    """Kafka's name of the error."""
    member_id: str = ""
    instance_id: str | None = None
    client_id: str = ""
    detail: str = ""


Fact: TypeAlias = (
    Assigned | Replaced | Committed | PartitionsCounted | EndSeen | BeginSeen | CoordinatorLoaded | Forgotten | Refused
)
