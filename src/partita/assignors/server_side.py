"""Assignors that run in the coordinator (KIP-848): those built in, and whatever a user names.

A server-side assignor is an `Assignor` like any other. `owned_partitions` of a subscription is the member's target
before; user data and generations are not given, and `subscription_user_data` and `on_assignment` are not called. One
instance serves every group of the broker, so it must keep nothing between calls.

(Kafka: ConsumerGroupPartitionAssignor.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar

from partita.assignors.interface import Assignment, Assignor, Subscription, TopicMetadata
from partita.lazy import later

if TYPE_CHECKING:
    from partita.assignors import range as range_assignor
    from partita.assignors import sticky
else:
    range_assignor = later("partita.assignors.range")
    sticky = later("partita.assignors.sticky")


class UniformAssignor(Assignor):
    """`group.consumer.assignors=uniform`, the first choice of the coordinator by default."""

    name: ClassVar[str] = "uniform"

    def assign(self, metadata: TopicMetadata, subscriptions: Mapping[str, Subscription]) -> Assignment:
        """Share as evenly as possible and let members keep their previous target."""
        return sticky.share_uniformly(metadata, subscriptions)


class RangeOnServer(Assignor):
    """`group.consumer.assignors=range`: the client's range without racks, which Kafka's coordinator ignores."""

    name: ClassVar[str] = "range"

    def assign(self, metadata: TopicMetadata, subscriptions: Mapping[str, Subscription]) -> Assignment:
        """Share each topic by itself: consecutive partitions, static members first."""
        return range_assignor.assign(TopicMetadata(metadata.partition_counts), subscriptions)


BUILT_IN: dict[str, type[Assignor]] = {cls.name: cls for cls in (UniformAssignor, RangeOnServer)}
_CLASSES = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": UniformAssignor,
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": RangeOnServer,
}


def create_server_assignors(names: Iterable[str], given: Iterable[Assignor] = ()) -> dict[str, Assignor]:
    """The assignors of a broker by name, those of `names` first, then those of users; the first is the default.

    `names` are those of `group.consumer.assignors`: built-in ones, Kafka's classes of them, or names of `given` ones,
    which decides their place. Raises ValueError for an unknown name, and for two assignors with the same name.
    """
    users: dict[str, Assignor] = {}
    for assignor in given:
        if assignor.name in users or assignor.name in BUILT_IN:
            raise ValueError(f"two server-side assignors have the name {assignor.name!r}; names must differ")
        users[assignor.name] = assignor
    found: dict[str, Assignor] = {}
    for name in names:
        cls = BUILT_IN.get(name) or _CLASSES.get(name)
        if cls is not None:
            found.setdefault(cls.name, cls())
        elif name in users:
            found[name] = users[name]
        else:
            known = ", ".join([*BUILT_IN, *users])
            raise ValueError(f"unknown server-side assignor {name!r}; known are {known}")
    return found | {name: assignor for name, assignor in users.items() if name not in found}
