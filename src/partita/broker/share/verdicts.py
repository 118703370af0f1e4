"""Acknowledgements as they come from the wire: their shape is checked before any of a partition is done."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import Protocol

from partita.share.partition.model import Acknowledgement, AcknowledgeType
from partita.share.sessions import Key

RENEW_FROM = 2
"""The first version of ShareFetch and ShareAcknowledge with renewals."""


class AcknowledgedBatch(Protocol):
    """An AcknowledgementBatch of either API."""

    @property
    def first_offset(self) -> int: ...
    @property
    def last_offset(self) -> int: ...
    @property
    def acknowledge_types(self) -> list[int]: ...


class AcknowledgedPartition(Protocol):
    """A partition in a request of either API."""

    @property
    def partition_index(self) -> int: ...
    @property
    def acknowledgement_batches(self) -> Sequence[AcknowledgedBatch]: ...


class AcknowledgedTopic(Protocol):
    """A topic in a request of either API."""

    @property
    def topic_id(self) -> bytes: ...
    @property
    def partitions(self) -> Sequence[AcknowledgedPartition]: ...


Verdicts = list[Acknowledgement] | None
"""What a partition is told; None if the shape is wrong."""


class Asked:
    """The partitions that a request names, and the verdicts on those that it acknowledges."""

    def __init__(self) -> None:
        self.listed: list[Key] = []
        self.verdicts: dict[Key, Verdicts] = {}

    def read(self, topics: Iterable[AcknowledgedTopic], version: int, *, renews: bool) -> Generator[None, None, None]:
        """Go through a request; yields after each element of its arrays."""
        for topic in topics:
            yield None
            for asked in topic.partitions:
                yield None
                key = (topic.topic_id, asked.partition_index)
                self.listed.append(key)
                if asked.acknowledgement_batches:
                    self.verdicts[key] = yield from _verdicts(asked.acknowledgement_batches, version, renews)


def _verdicts(batches: Sequence[AcknowledgedBatch], version: int, renews: bool) -> Generator[None, None, Verdicts]:
    """The verdicts on one partition. (Kafka: validateAcknowledgementBatches)"""
    last_type = AcknowledgeType.RENEW if version >= RENEW_FROM else AcknowledgeType.REJECT
    found: list[Acknowledgement] = []
    is_fine, before = True, -1
    for batch in batches:
        yield None
        first, last, types = batch.first_offset, batch.last_offset, batch.acknowledge_types
        is_fine = (
            is_fine
            and before <= first <= last
            and len(types or ()) in (1, last - first + 1)
            and min(types) >= AcknowledgeType.GAP
            and max(types) <= last_type
            and (renews or AcknowledgeType.RENEW not in types)
        )
        if is_fine:
            found.append(Acknowledgement(first, last, tuple(types)))
            before = last
    return found if is_fine else None
