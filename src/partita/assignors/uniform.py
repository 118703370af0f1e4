"""Uniform: the coordinator's own default (KIP-848). As even as possible, and then as little moved as possible.

It shares like the sticky assignor. What a member had is not what the member says, but the target that the coordinator
computed before (`owned_partitions` of its subscription). Racks are not looked at, as in Kafka. (Kafka:
group.assignor.UniformAssignor; same goals, own search.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from partita.assignors.interface import Assignment, Assignor, Subscription, TopicMetadata, topic_sets
from partita.assignors.sticky import share
from partita.assignors.sticky_sharing import Sharing


class UniformAssignor(Assignor):
    """`group.consumer.assignors=uniform`, the first choice of the coordinator by default."""

    name: ClassVar[str] = "uniform"

    def assign(self, metadata: TopicMetadata, subscriptions: Mapping[str, Subscription]) -> Assignment:
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
