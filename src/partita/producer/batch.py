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


class Delivery:
    """One record's way to the broker: its batch, once it is in one, and its place there."""

    __slots__ = ("_own_callbacks", "batch", "error", "index", "record")

    def __init__(self, record: NewRecord) -> None:
        self.record = record
        self.batch: Batch | None = None
        self.index = 0
        self.error: Exception | None = None
        self._own_callbacks: list[Callable[[], object]] | None = None

    def done(self) -> bool:
        """True once the record was delivered or has failed."""
        return self.error is not None or (self.batch is not None and self.batch.is_done)

    @property
    def callbacks(self) -> list[Callable[[], object]]:
        """What is called at the end; shared by the whole batch once the record is in one."""
        if self.batch is not None:
            return self.batch.callbacks
        if self._own_callbacks is None:
            self._own_callbacks = []
        return self._own_callbacks

    def failure(self) -> Exception | None:
        """Why the record was not delivered, if it is done and was not."""
        return self.error or (self.batch.error if self.batch is not None else None)

    def placed(self, batch: Batch, index: int) -> None:
        """The record has got its place in a batch."""
        self.batch, self.index = batch, index
        if self._own_callbacks:
            batch.callbacks += self._own_callbacks
            self._own_callbacks = None

    def metadata(self) -> RecordMetadata:
        """Where the record is; only once it was delivered."""
        batch, record = self.batch, self.record
        assert batch is not None, "only a delivered record has metadata"
        return RecordMetadata(
            batch.topic,
            batch.partition,
            batch.base_offset + self.index if batch.base_offset >= 0 else -1,
            batch.log_append_time_ms if batch.log_append_time_ms >= 0 else record.timestamp,
            -1 if record.key is None else len(record.key),
            -1 if record.value is None else len(record.value),
        )
