"""Operations that need the records of a batch, not only its header: LogValidator's checks, and search by timestamp.

A batch inflates to a bounded size here, and its records are walked without an object for each. Upstream: LogValidator,
FileRecords.
"""

from __future__ import annotations

from dataclasses import dataclass

from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import Buffer
from partita.records.compression import DEFAULT_MAX_BYTES, decompress
from partita.records.header import (
    HEADER_SIZE,
    LOG_APPEND_TIME,
    BatchHeader,
    InvalidBatch,
    check_crc,
    corrupt,
    read_header,
)
from partita.records.opened.walk import RecordWalk

LONG_FROM_BYTES = 64 * 1024
LONG_FROM_COMPRESSED_BYTES = 2 * 1024
"""So little inflates to a MiB at most."""
LONG_FROM_RECORDS = 5_000
_ANY_TIME = 2**63 - 1


@dataclass(frozen=True, slots=True)
class RecordChecks:
    """The checks to make. Timestamps outside `earliest` to `latest` are rejected; -1 is no timestamp and passes."""

    needs_key: bool = False
    earliest: int = -_ANY_TIME
    latest: int = _ANY_TIME
    max_bytes: int = DEFAULT_MAX_BYTES


def is_long(header: BatchHeader) -> bool:
    """Whether work on the records of this batch is to be done beside an event loop: it may take milliseconds."""
    limit = LONG_FROM_COMPRESSED_BYTES if header.codec else LONG_FROM_BYTES
    return header.size_in_bytes > limit or header.records_count > LONG_FROM_RECORDS


@dataclass(frozen=True, slots=True)
class Checked:
    """A batch's largest timestamp, how many of its records were rejected and why, and the places of the first ones."""

    max_timestamp: int
    keyless_count: int
    mistimed_count: int
    keyless: tuple[int, ...]
    mistimed: tuple[int, ...]


def check_records(batch: Buffer, checks: RecordChecks) -> Checked:
    """Check the records of one whole batch whose header is in order.

    Raises InvalidBatch for what does not inflate within the bounds, or is no sequence of records.
    """
    header = read_header(batch)
    payload = decompress(header.codec, memoryview(batch)[HEADER_SIZE:], checks.max_bytes)
    walk = RecordWalk()
    in_order = header.codec != 0  # as Kafka, which keeps the offset deltas of uncompressed records as they come
    walk.check(
        payload, header.records_count, header.base_timestamp, checks.needs_key, in_order, checks.earliest, checks.latest
    )
    if walk.fault is not None:
        raise InvalidBatch(ErrorCode.INVALID_RECORD, str(walk.fault))
    largest = header.max_timestamp if header.timestamp_type == LOG_APPEND_TIME else walk.max_timestamp
    places = walk.rejected()
    keyless, mistimed = tuple(p for p in places if p >= 0), tuple(~p for p in places if p < 0)
    return Checked(largest, walk.keyless_count, walk.mistimed_count, keyless, mistimed)


def first_at_or_after(
    batch: Buffer, timestamp: int, from_offset: int, max_bytes: int = DEFAULT_MAX_BYTES
) -> tuple[int, int] | None:
    """(Offset, timestamp) of the first record from `from_offset` on that is not older than `timestamp`.

    None when the batch has none. Raises InvalidBatch for records that cannot be read up to there.
    """
    header = read_header(batch)
    if header.timestamp_type == LOG_APPEND_TIME:
        return max(header.base_offset, from_offset), header.max_timestamp
    check_crc(batch)
    payload = decompress(header.codec, memoryview(batch)[HEADER_SIZE:], max_bytes)
    walk = RecordWalk()
    if walk.find(payload, header.records_count, header.base_offset, header.base_timestamp, timestamp, from_offset):
        return walk.found_offset, walk.found_timestamp
    if walk.fault is not None:
        raise corrupt(str(walk.fault))
    return None
