"""Cooperative sticky: the sticky sharing, where a partition changes hands in two rounds.

In the first round its new owner does not get it yet; the old one sees that it is gone, gives it up and rejoins; the
second round hands it over. Claims are the owned partitions of the subscriptions. (Kafka: CooperativeStickyAssignor,
KIP-429.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from partita.assignors.interface import (
    Assignment,
    Assignor,
    RebalanceProtocol,
    Subscription,
    TopicMetadata,
    TopicPartition,
)
from partita.assignors.sticky import share
from partita.assignors.sticky_sharing import Sharing


class CooperativeStickyAssignor(Assignor):
    """`partition.assignment.strategy=cooperative-sticky`."""

    name: ClassVar[str] = "cooperative-sticky"
    supported_protocols: ClassVar[tuple[RebalanceProtocol, ...]] = (
        RebalanceProtocol.COOPERATIVE,
        RebalanceProtocol.EAGER,
    )

    def __init__(self) -> None:
        self._generation_id = -1

    def assign(self, metadata: TopicMetadata, subscriptions: Mapping[str, Subscription]) -> Assignment:
        """Share the partitions; one that changes its owner stays unassigned until the old owner has revoked it."""
        if not subscriptions:
            return {}
        sharing = Sharing(metadata, subscriptions)
        in_order = [subscriptions[member] for member in sharing.members]
        sharing.settle([(sharing.numbers(s.owned_partitions), _generation(s)) for s in in_order])
        return sharing.assignment(sharing.without_transfers(share(sharing)))

    def subscription_user_data(self, topics: Iterable[str]) -> bytes | None:
        """The generation, for leaders that read subscriptions without one (below version 2)."""
        return self._generation_id.to_bytes(4, "big", signed=True)

    def on_assignment(self, partitions: Sequence[TopicPartition], generation_id: int) -> None:
        """Remember the generation; the next subscription contains it."""
        self._generation_id = generation_id


def _generation(subscription: Subscription) -> int:
    if subscription.generation_id >= 0:
        return subscription.generation_id
    data = subscription.user_data
    if data is None or len(data) < 4:
        return -1
    return int.from_bytes(data[:4], "big", signed=True)
