"""Find an offset by timestamp: by index and batch headers first, then by opening the one batch that can hold it.

Upstream: LogSegment.findOffsetByTimestamp, DefaultRecordBatch.offsetOfMaxTimestamp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from partita.log.segment import Segment
from partita.records.header import LOG_APPEND_TIME, read_header


@dataclass(frozen=True, slots=True)
class TimestampOffset:
    """A record's offset and timestamp, and the leader epoch it was written under."""

    offset: int
    timestamp: int
    leader_epoch: int


def first_at_or_after(segments: Sequence[Segment], timestamp: int, log_start_offset: int) -> TimestampOffset | None:
    """The first record at or above the log start offset with a timestamp of at least `timestamp`."""
    for segment in segments:
        if segment.next_offset <= log_start_offset:
            continue
        start = segment.first_batch_from_timestamp(timestamp)
        if start is None:
            continue
        for header, position in segment.headers(start):
            if header.max_timestamp >= timestamp and header.last_offset >= log_start_offset:
                found = _in_batch(segment.batch_at(position), timestamp, log_start_offset)
                if found is not None:
                    return found
    return None


def with_largest_timestamp(segments: Sequence[Segment], log_start_offset: int) -> TimestampOffset | None:
    """The first record that has the largest timestamp of all."""
    kept = [segment for segment in segments if segment.next_offset > log_start_offset and segment.size]
    if not kept:
        return None
    largest = max(segment.max_timestamp for segment in kept)
    return first_at_or_after(kept, largest, log_start_offset) if largest >= 0 else None


def _in_batch(batch: memoryview, timestamp: int, log_start_offset: int) -> TimestampOffset | None:
    header = read_header(batch)
    if header.timestamp_type == LOG_APPEND_TIME:
        offset = max(header.base_offset, log_start_offset)
        return TimestampOffset(offset, header.max_timestamp, header.partition_leader_epoch)
    from partita.records.batch import iter_records

    for record in iter_records(batch):
        if record.timestamp >= timestamp and record.offset >= log_start_offset:
            return TimestampOffset(record.offset, record.timestamp, header.partition_leader_epoch)
    return None
