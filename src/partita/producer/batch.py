"""Records, the batches that collect them, and their places in the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, cast

from partita.protocol.primitives import Buffer
from partita.records.batch import iter_records
from partita.records.builder import BatchBuilder

_UNBOUNDED_BYTES = 2**31


class NewRecord(NamedTuple):
    """A record as `send` was given it, serialized. Timestamp in ms; partition None: to be chosen."""

    topic: str
    key: Buffer | None
    value: Buffer | None
    headers: Sequence[tuple[str, Buffer | None]]
    timestamp: int
    partition: int | None


class RecordMetadata(NamedTuple):
    """Place of a record. Offset -1: unknown (acks=0, or a duplicate the broker had already)."""

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
    """Records of one partition on their way. Done when delivered, or when `error` says why not.

    A batch that was divided is never done: its records are in other batches, which `find` gives.
    """

    topic: str
    partition: int
    builder: BatchBuilder
    created_ms: int
    serial: int
    """Its place among the batches of its partition."""
    is_transactional: bool = False
    is_closed: bool = False
    is_done: bool = False
    is_behind: bool = False
    """It was refused only for an earlier batch under way, so it leaves when that one is done."""
    attempts: int = 0
    excused: int = 0
    """Number of attempts that failed only for other batches, or led to a division."""
    retry_at_ms: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    base_offset: int = -1
    log_append_time_ms: int = -1
    error: Exception | None = None
    callbacks: list[tuple[int, Callable[[], object]]] = field(default_factory=list)
    """Each with the place of the record whose outcome it waits for, -1 for all records."""
    moved: list[tuple[Batch, int]] = field(default_factory=list)
    """Of a batch that was divided: for each record the batch it went to, and its place there."""

    @property
    def is_sequenced(self) -> bool:
        """True once the batch has sequence numbers, which it keeps when it is sent again."""
        return self.base_sequence >= 0

    @property
    def own_attempts(self) -> int:
        """The attempts that count against `retries`."""
        return self.attempts - self.excused

    def find(self, index: int) -> tuple[Batch, int]:
        """The batch that holds the record of this place now, and its place there."""
        batch = self
        while batch.moved:
            batch, index = batch.moved[index]
        return batch, index

    def divide(self, groups: Sequence[Sequence[int]]) -> list[Batch]:
        """New batches, one for each group of places, with those records; every record is in one group.

        They have no sequence numbers. Callbacks go with their records; those for all records are called once all of
        the new batches are done.
        """
        records = list(iter_records(self.builder.build()))
        moved: list[tuple[Batch, int]] = [(self, 0)] * len(records)
        parts = []
        for group in groups:
            builder = BatchBuilder(codec=self.builder.codec, max_bytes=_UNBOUNDED_BYTES, level=self.builder.level)
            part = replace(
                self,
                builder=builder,
                excused=self.excused + 1,
                base_sequence=-1,
                is_behind=False,
                retry_at_ms=0,
                callbacks=[],
                moved=[],
            )
            for place, index in enumerate(group):
                record = records[index]
                builder.append(
                    record.timestamp,
                    cast("bytes | None", record.key),
                    cast("bytes | None", record.value),
                    record.headers,
                )
                moved[index] = part, place
            parts.append(part)
        self.moved = moved
        self._hand_callbacks_over(parts)
        return parts

    def _hand_callbacks_over(self, parts: Sequence[Batch]) -> None:
        for index, call in self.callbacks:
            if index >= 0:
                batch, place = self.find(index)
                batch.callbacks.append((place, call))
            else:
                last = after(len(parts), call)
                for part in parts:
                    part.callbacks.append((-1, last))
        self.callbacks = []

    def build(self) -> bytes:
        """The encoded batch, with the producer id, epoch and sequence it has now."""
        return self.builder.build(
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
            is_transactional=self.is_transactional,
        )


def after(count: int, call: Callable[[], object]) -> Callable[[], object]:
    """A call that makes `call` when it is made for the last of `count` times."""
    left = count

    def one() -> None:
        nonlocal left
        left -= 1
        if not left:
            call()

    return one
