"""The share session at one leader: its epoch, its partitions, and the request that is under way.

A session takes one request at a time, each with the next epoch; so acknowledgements wait behind a fetch. It lives as
long as its connection, and its end releases all that was held through it. (Kafka: ShareSessionHandler.)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from partita.consumer.request import Request
from partita.consumer.sharing.holding import Parcel, batches, by_partition
from partita.protocol.messages.share_acknowledge import (
    AcknowledgementBatch,
    ShareAcknowledgePartition,
    ShareAcknowledgeRequest,
    ShareAcknowledgeTopic,
)
from partita.protocol.messages.share_fetch import (
    ForgottenShareTopic,
    ShareFetchPartition,
    ShareFetchRequest,
    ShareFetchTopic,
)

FINAL_EPOCH = -1
_EPOCH_MAX = 2**31 - 1
PartitionId: TypeAlias = tuple[bytes, int]


@dataclass(slots=True, eq=False)
class Session:
    """`outbox` holds what the next request carries; `epoch` 0 means that the next fetch opens the session."""

    node_id: int
    epoch: int = 0
    partitions: frozenset[PartitionId] = frozenset()
    outbox: list[Parcel] = field(default_factory=list)
    in_flight: Request | None = None
    is_ended: bool = False
    failures: int = 0
    not_before_ms: int = 0

    def passed(self) -> None:
        """A request of this session was taken: the next one has the next epoch."""
        self.epoch = 1 if self.epoch >= _EPOCH_MAX else self.epoch + 1

    def lost(self) -> None:
        """Forget the session; the next fetch opens one."""
        self.epoch, self.partitions = 0, frozenset()

    def due_parcels(self) -> list[Parcel]:
        """Everything in the outbox, or the first parcel that travels alone."""
        alone = next((parcel for parcel in self.outbox if parcel.is_alone), None)
        return list(self.outbox) if alone is None else [alone]

    def fetch(
        self, wanted: frozenset[PartitionId], parcels: Sequence[Parcel], head: Mapping[str, Any]
    ) -> ShareFetchRequest:
        """The fetch that makes `wanted` the partitions of the session and carries these acknowledgements."""
        acknowledged = by_partition(parcels)
        topics: dict[bytes, ShareFetchTopic] = {}
        for topic_id, partition in sorted((wanted - self.partitions) | acknowledged.keys()):
            topic = topics.setdefault(topic_id, ShareFetchTopic(topic_id=topic_id, partitions=[]))
            said = batches(acknowledged.get((topic_id, partition), ()))
            topic.partitions.append(ShareFetchPartition(partition_index=partition, acknowledgement_batches=said))
        forgotten = _by_topic(self.partitions - wanted)
        return ShareFetchRequest(
            share_session_epoch=self.epoch,
            topics=list(topics.values()),
            forgotten_topics_data=[ForgottenShareTopic(topic_id=t, partitions=p) for t, p in forgotten.items()],
            **head,
        )

    def acknowledge(self, parcels: Sequence[Parcel], head: Mapping[str, Any]) -> ShareAcknowledgeRequest:
        """The request that carries these acknowledgements alone."""
        topics: dict[bytes, ShareAcknowledgeTopic] = {}
        for (topic_id, partition), some in sorted(by_partition(parcels).items(), key=lambda one: one[0]):
            said = [
                AcknowledgementBatch(
                    first_offset=one.first_offset, last_offset=one.last_offset, acknowledge_types=one.acknowledge_types
                )
                for one in batches(some)
            ]
            topic = topics.setdefault(topic_id, ShareAcknowledgeTopic(topic_id=topic_id, partitions=[]))
            topic.partitions.append(ShareAcknowledgePartition(partition_index=partition, acknowledgement_batches=said))
        renews = any(parcel.renews for parcel in parcels)
        return ShareAcknowledgeRequest(
            share_session_epoch=self.epoch, is_renew_ack=renews, topics=list(topics.values()), **head
        )


def _by_topic(partitions: Collection[PartitionId]) -> dict[bytes, list[int]]:
    found: dict[bytes, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        found.setdefault(topic_id, []).append(partition)
    return found
