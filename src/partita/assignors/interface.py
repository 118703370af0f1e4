"""The interface of assignors, which share the partitions of the subscribed topics among the members of a group.

The group leader runs one assignor for the whole group; each member also asks its own instance for the user data of its
subscription and passes it the outcome. State belongs to the instance, never to the class: two consumers of one
process must not see each other's partitions. Write your own by subclassing `Assignor`. (Kafka:
ConsumerPartitionAssignor.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar, TypeAlias

TopicPartition: TypeAlias = tuple[str, int]
Assignment: TypeAlias = dict[str, list[TopicPartition]]


class RebalanceProtocol(Enum):
    """How partitions change hands: all given up first, or only those that really move."""

    EAGER = 0
    COOPERATIVE = 1


@dataclass(frozen=True, slots=True)
class Subscription:
    """Subscription of one member and the partitions it reports to own. Generation -1: not reported."""

    topics: Sequence[str]
    user_data: bytes | None = None
    owned_partitions: Sequence[TopicPartition] = ()
    generation_id: int = -1
    rack_id: str | None = None
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """The topics as known to the leader: partition counts and, where known, the racks of the replicas.

    `racks[topic][partition]` lists the racks of that partition's replicas; None is a broker without a rack.
    Subscribed topics missing here are skipped.
    """

    partition_counts: Mapping[str, int]
    racks: Mapping[str, Sequence[Sequence[str | None]]] = field(default_factory=dict)


def topic_sets(subscriptions: Mapping[str, Subscription]) -> dict[str, frozenset[str]]:
    """The topics of each member as a set; members whose subscriptions share one list share one set."""
    sets: dict[int, frozenset[str]] = {}
    found: dict[str, frozenset[str]] = {}
    for member, subscription in subscriptions.items():
        topics = subscription.topics
        if (known := sets.get(id(topics))) is None:
            known = sets[id(topics)] = frozenset(topics)
        found[member] = known
    return found


class Assignor(ABC):
    """Base of all assignors. `name` is the protocol name that members agree on."""

    name: ClassVar[str]
    supported_protocols: ClassVar[tuple[RebalanceProtocol, ...]] = (RebalanceProtocol.EAGER,)

    @abstractmethod
    def assign(self, metadata: TopicMetadata, subscriptions: Mapping[str, Subscription]) -> Assignment:
        """Share the partitions; the result has an entry for every member id, perhaps an empty one."""

    def subscription_user_data(self, topics: Iterable[str]) -> bytes | None:
        """Bytes to send along with this member's subscription to `topics`."""
        return None

    def on_assignment(self, partitions: Sequence[TopicPartition], generation_id: int) -> None:  # noqa: B027
        """Called on every member after a rebalance with its assignment and the new generation."""


def utf16_key(text: str) -> bytes:
    """Sort key that orders strings as Kafka does: by UTF-16 code units, not by code points."""
    return text.encode("utf-16-be", "surrogatepass")


def sorted_strings(strings: Iterable[str]) -> list[str]:
    """The strings in Kafka's order."""
    items = list(strings)
    return sorted(items) if all(map(str.isascii, items)) else sorted(items, key=utf16_key)


def members_in_order(subscriptions: Mapping[str, Subscription]) -> list[str]:
    """Member ids as range and round robin walk them: static ones by instance id, then dynamic ones by member id."""
    instances = {m: s.group_instance_id for m, s in subscriptions.items() if s.group_instance_id is not None}
    static = sorted(instances, key=lambda member: utf16_key(instances[member]))
    return static + sorted_strings(m for m in subscriptions if m not in instances)
