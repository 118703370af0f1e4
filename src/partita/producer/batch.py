"""What the producer hands round: records, the batches they are collected in, and where they ended up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from partita.protocol.primitives import Buffer
from partita.records.builder import BatchBuilder


class NewRecord(NamedTuple):
    """A record as `send` was given it, serialized. Timestamp in ms; partition None: to be chosen."""

    topic: str
    key: Buffer | None
    value: Buffer | None
    headers: Sequence[tuple[str, Buffer | None]]
    timestamp: int
    partition: int | None


class RecordMetadata(NamedTuple):
    """Where a record is. Offset -1: not known (acks=0, or a duplicate the broker had already)."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    serialized_key_size: int
    serialized_value_size: int


class Failure(NamedTuple):
    """Records that were not delivered, all for the same reason."""

    topic: str
    records_count: int
    error: Exception


@dataclass(slots=True, eq=False)
class Batch:
    """Records of one partition on their way. Done when delivered, or when `error` says why not."""

    topic: str
    partition: int
    builder: BatchBuilder
    created_ms: int
    serial: int
    is_transactional: bool = False
    order: int = -1
    is_closed: bool = False
    is_done: bool = False
    attempts: int = 0
    retry_at_ms: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    base_offset: int = -1
    log_append_time_ms: int = -1
    error: Exception | None = None
    callbacks: list[Callable[[], object]] = field(default_factory=list)

    @property
    def is_sequenced(self) -> bool:
        """True once the batch has sequence numbers, which it keeps when it is sent again."""
        return self.base_sequence >= 0

    def build(self) -> bytes:
        """The encoded batch, with the producer id, epoch and sequence it has now."""
        return self.builder.build(
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
            is_transactional=self.is_transactional,
        )
