"""Round robin: all partitions in order, dealt to the members in a circle.

Members not subscribed to a partition's topic are passed over. Even when all subscribe to the same topics, and
possibly very uneven when they do not. Not sticky. (Kafka: RoundRobinAssignor.)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import ClassVar

from partita.assignors.interface import (
    Assignment,
    Assignor,
    Subscription,
    TopicMetadata,
    members_in_order,
    sorted_strings,
)


def assign(metadata: TopicMetadata, subscriptions: Mapping[str, Subscription]) -> Assignment:
    """Deal the partitions; same answer as Kafka's, partition for partition."""
    members = members_in_order(subscriptions)
    seats: dict[str, list[int]] = {}
    for seat, member in enumerate(members):
        for topic in set(subscriptions[member].topics):
            seats.setdefault(topic, []).append(seat)
    assignment: Assignment = {member: [] for member in subscriptions}
    next_seat = 0
    for topic in sorted_strings(seats):
        circle = seats[topic]
        start = bisect_left(circle, next_seat)
        for partition in range(metadata.partition_counts.get(topic, 0)):
            seat = circle[(start + partition) % len(circle)]
            assignment[members[seat]].append((topic, partition))
            next_seat = seat + 1
    return assignment


class RoundRobinAssignor(Assignor):
    """`partition.assignment.strategy=roundrobin`."""

    name: ClassVar[str] = "roundrobin"

    def assign(self, metadata: TopicMetadata, subscriptions: Mapping[str, Subscription]) -> Assignment:
        """Deal all partitions in turn to the members that subscribe to their topics."""
        return assign(metadata, subscriptions)
