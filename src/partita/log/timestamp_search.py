"""Finds an offset by timestamp: by index and batch headers first, then by opening the one batch that can hold it.

Upstream: LogSegment.findOffsetByTimestamp, DefaultRecordBatch.offsetOfMaxTimestamp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from partita.lazy import later
from partita.log.segment import Segment
from partita.records.header import read_header

if TYPE_CHECKING:
    from partita.records import compression
    from partita.records.opened import inspect as inspect_records
else:
    compression = later("partita.records.compression")
    inspect_records = later("partita.records.opened.inspect")


@dataclass(frozen=True, slots=True)
class TimestampOffset:
    """A record's offset, timestamp and leader epoch."""

    offset: int
    timestamp: int
    leader_epoch: int


def batches_from(segments: Sequence[Segment], timestamp: int, log_start_offset: int) -> Iterator[memoryview]:
    """Yield the batches that may, by their headers, hold a record not older than `timestamp`, by offset.

    Between two of them, `segments` may change: compaction replaces some, and retention removes some.
    """
    offset = log_start_offset
    while (batch := _next_from(segments, timestamp, offset)) is not None:
        yield batch
        offset = read_header(batch).next_offset


def _next_from(segments: Sequence[Segment], timestamp: int, offset: int) -> memoryview | None:
    for segment in segments:
        start = segment.first_batch_from_timestamp(timestamp) if segment.next_offset > offset else None
        if start is not None:
            for header, position in segment.headers(max(start, segment.position_of(offset))):
                if header.max_timestamp >= timestamp:
                    return segment.batch_at(position)
    return None


def largest_timestamp(segments: Sequence[Segment], log_start_offset: int) -> int:
    """Return the largest timestamp in the batch headers; -1 when there is none."""
    kept = [segment for segment in segments if segment.next_offset > log_start_offset and segment.size]
    return max((segment.max_timestamp for segment in kept), default=-1)


def first_in(
    batch: memoryview, timestamp: int, log_start_offset: int, max_bytes: int | None = None
) -> TimestampOffset | None:
    """Return the first record of a batch at or above the log start offset that is not older than `timestamp`.

    This decompresses the batch and may run on another thread. Raises InvalidBatch, also for a batch that inflates to
    more than `max_bytes`.
    """
    found = inspect_records.first_at_or_after(
        batch, timestamp, log_start_offset, max_bytes or compression.DEFAULT_MAX_BYTES
    )
    return None if found is None else TimestampOffset(*found, read_header(batch).partition_leader_epoch)
