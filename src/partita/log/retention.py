"""Retention: the old segments that a log may delete, by age and by size.

Upstream: UnifiedLog.deleteOldSegments.
"""

from __future__ import annotations

from collections.abc import Sequence

from partita.log.log_config import LogConfig
from partita.log.segment import Segment


def deletable_count(segments: Sequence[Segment], config: LogConfig, log_start_offset: int, wall_ms: int) -> int:
    """Return how many segments, oldest first, can be deleted; may include the active one, which is rolled first."""
    if not config.delete:
        return _below(segments, log_start_offset)
    return max(
        _below(segments, log_start_offset),
        _too_old(segments, config.retention_ms, wall_ms),
        _too_much(segments, config.retention_bytes),
    )


def age_stamp_ms(segment: Segment) -> int:
    """Return the time from which a segment's age counts: its largest timestamp.

    Deviation: Partita ages a segment whose largest timestamp is before 1970 or after its last append from that append,
    where in Kafka a record dated in the future keeps its segment. So it does here if a crash has lost the time of that
    append.
    """
    if 0 <= segment.max_timestamp <= segment.last_append_ms:
        return segment.max_timestamp
    return segment.last_append_ms


def _below(segments: Sequence[Segment], log_start_offset: int) -> int:
    count = 0
    while count + 1 < len(segments) and segments[count + 1].base_offset <= log_start_offset:
        count += 1
    return count


def _too_old(segments: Sequence[Segment], retention_ms: int, wall_ms: int) -> int:
    if retention_ms < 0:
        return 0
    count = 0
    for segment in segments:
        if segment.size == 0 or wall_ms - age_stamp_ms(segment) <= retention_ms:
            break
        count += 1
    return count


def _too_much(segments: Sequence[Segment], retention_bytes: int) -> int:
    if retention_bytes < 0:
        return 0
    surplus = sum(segment.size for segment in segments) - retention_bytes
    count = 0
    for segment in segments:
        if segment.size == 0 or surplus < segment.size:
            break
        surplus -= segment.size
        count += 1
    return count
