"""The simple assignor of share groups: partitions may have several members, and few of them move.

Every partition has as many members as the others, and every member as many partitions, as far as both are possible;
no partition is left out. Runs in the coordinator only. (Kafka: SimpleAssignor.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import ClassVar

from partita.assignors.interface import Assignment, Assignor, Subscription, TopicMetadata, TopicPartition


class SimpleAssignor(Assignor):
    """`group.share.assignors=simple`. `owned_partitions` of a subscription is the member's target before."""

    name: ClassVar[str] = "simple"

    def assign(self, metadata: TopicMetadata, subscriptions: Mapping[str, Subscription]) -> Assignment:
        """Share all partitions at once among members that subscribe alike, else each topic by itself."""
        partitions = {
            topic: [(topic, number) for number in range(count)] for topic, count in metadata.partition_counts.items()
        }
        return share(partitions, subscriptions)


def share(partitions: Mapping[str, Sequence[TopicPartition]], subscriptions: Mapping[str, Subscription]) -> Assignment:
    """Assign these partitions, by topic, to the members that subscribe to the topic."""
    alike = len({frozenset(subscription.topics) for subscription in subscriptions.values()}) <= 1
    found: Assignment = {member: [] for member in subscriptions}
    if alike:
        topics = dict.fromkeys(next(iter(subscriptions.values())).topics) if subscriptions else {}
        together = [partition for topic in topics for partition in partitions.get(topic, ())]
        _share_alike(together, list(subscriptions), subscriptions, found)
        return found
    for topic, of_topic in partitions.items():
        members = [member for member, subscription in subscriptions.items() if topic in subscription.topics]
        members.sort(key=lambda member: len(found[member]))  # who has least so far gets the larger part
        _share_alike(of_topic, members, subscriptions, found)
    return found


def _share_alike(
    partitions: Sequence[TopicPartition],
    members: Sequence[str],
    subscriptions: Mapping[str, Subscription],
    found: Assignment,
) -> None:
    """Add each member's part of the partitions to `found`."""
    if not partitions or not members:
        return
    sharing = -(-len(members) // len(partitions))
    slots = sharing * len(partitions)
    sharers: dict[TopicPartition, int] = dict.fromkeys(partitions, 0)
    kept: list[list[TopicPartition]] = []
    wanted: list[int] = []
    for place, member in enumerate(members):
        count = -(-slots * (place + 1) // len(members)) + (-slots * place // len(members))
        mine: list[TopicPartition] = []
        for partition in subscriptions[member].owned_partitions:
            if len(mine) < count and sharers.get(partition, sharing) < sharing:
                sharers[partition] += 1
                mine.append(partition)
        kept.append(mine)
        wanted.append(count)
    free = [(taken, place, partition) for place, (partition, taken) in enumerate(sharers.items()) if taken < sharing]
    heapify(free)
    for member, mine, count in zip(members, kept, wanted, strict=True):
        _fill(mine, count, free, sharing)
        found[member] += mine


def _fill(mine: list[TopicPartition], count: int, free: list[tuple[int, int, TopicPartition]], sharing: int) -> None:
    """Take partitions with the fewest sharers until the member has `count`; it has none of them twice."""
    passed = []
    while len(mine) < count and free:
        taken, place, partition = heappop(free)
        if partition in mine:
            passed.append((taken, place, partition))
            continue
        mine.append(partition)
        if taken + 1 < sharing:
            heappush(free, (taken + 1, place, partition))
    for entry in passed:
        heappush(free, entry)
