"""Sticky: as even as possible, and as little moved as possible; on the client, and as "uniform" on the server.

On the client all partitions are given up first (EAGER). Each member sends what it was last given, with the generation,
as user data; claims in `owned_partitions` are not looked at. The server knows what each member had. (Kafka:
StickyAssignor, UniformAssignor.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from partita.assignors.interface import Assignment, Assignor, Subscription, TopicMetadata, TopicPartition, topic_sets
from partita.assignors.sticky_general import share_generally
from partita.assignors.sticky_quota import share_by_quota
from partita.assignors.sticky_sharing import Shares, Sharing
from partita.assignors.user_data import encode_user_data, read_claim


class StickyAssignor(Assignor):
    """`partition.assignment.strategy=sticky`."""

    name: ClassVar[str] = "sticky"

    def __init__(self) -> None:
        self._last: Sequence[TopicPartition] | None = None
        self._generation_id = -1

    def assign(self, metadata: TopicMetadata, subscriptions: Mapping[str, Subscription]) -> Assignment:
        """Share as evenly as possible and let members keep their partitions."""
        if not subscriptions:
            return {}
        sharing = Sharing(metadata, subscriptions)
        places = {t.encode("utf-8", "replace"): (sharing.first[t], count) for t, count in sharing.counts.items()}
        sent = [subscriptions[member].user_data for member in sharing.members]
        sharing.settle([read_claim(data, places) if data else ([], -1) for data in sent])
        return sharing.assignment(share(sharing))

    def subscription_user_data(self, topics: Iterable[str]) -> bytes | None:
        """Partitions that this member owned last, and their generation."""
        if self._last is None:
            return None
        return encode_user_data(self._last, self._generation_id)

    def on_assignment(self, partitions: Sequence[TopicPartition], generation_id: int) -> None:
        """Remember the owned partitions for the next subscription."""
        self._last = list(partitions)
        self._generation_id = generation_id


def share_uniformly(metadata: TopicMetadata, subscriptions: Mapping[str, Subscription]) -> Assignment:
    """Share as evenly as possible and let members keep their previous target."""
    if not subscriptions:
        return {}
    sharing = Sharing(TopicMetadata(metadata.partition_counts), subscriptions)
    sets = topic_sets(subscriptions)
    topics = [sets[member] for member in sharing.members]
    sharing.settle(
        [
            (sharing.numbers([p for p in subscriptions[member].owned_partitions if p[0] in wanted]), 0)
            for member, wanted in zip(sharing.members, topics, strict=True)
        ]
    )
    return sharing.assignment(share(sharing))


def share(sharing: Sharing) -> Shares:
    """Share what has been settled: by quota if all subscriptions are equal, else generally."""
    return share_by_quota(sharing) if sharing.all_alike else share_generally(sharing)
