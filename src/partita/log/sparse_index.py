"""The sparse index of one segment: where to start searching for an offset or a timestamp.

One entry per `interval_bytes` of log: the offset and position of a batch, and the largest timestamp of all batches
before it. Written to disk in one piece when a segment is sealed; its presence proves that the segment was synced.
(Kafka: OffsetIndex and TimeIndex; ours is one file of another format, which no client sees.)
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from struct import Struct
from zlib import crc32

from partita.protocol.primitives import Buffer

NO_TIMESTAMP = -1
_MAGIC = b"PARTIDX1"
_HEADER = Struct("<8sI?qqqqqI")
_COLUMNS = 3


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """Facts about a whole segment when its index is written.

    `is_sealed`: the segment will not be appended to again.
    """

    is_sealed: bool
    log_size: int
    next_offset: int
    max_timestamp: int
    last_append_ms: int


class SparseIndex:
    """Entries in three columns, all ascending."""

    __slots__ = ("_indexed_to", "interval_bytes", "offsets", "positions", "timestamps")

    def __init__(self, interval_bytes: int) -> None:
        self.interval_bytes = interval_bytes
        self.offsets: array[int] = array("q")
        self.positions: array[int] = array("q")
        self.timestamps: array[int] = array("q")
        self._indexed_to = 0

    def add(self, offset: int, position: int, max_timestamp_before: int) -> None:
        """Add an entry for a batch, if the last entry is an interval away."""
        if position >= self._indexed_to:
            self.offsets.append(offset)
            self.positions.append(position)
            self.timestamps.append(max_timestamp_before)
            self._indexed_to = position + max(1, self.interval_bytes)

    def position_for_offset(self, offset: int) -> int:
        """Return a batch boundary at or before the batch that holds `offset`."""
        i = bisect_right(self.offsets, offset)
        return self.positions[i - 1] if i else 0

    def position_before(self, position: int) -> int:
        """Return the last indexed batch boundary at or before `position`."""
        i = bisect_right(self.positions, position)
        return self.positions[i - 1] if i else 0

    def offset_at(self, position: int, otherwise: int) -> int:
        """Return the offset of the batch that starts at `position` if that one is indexed, else `otherwise`."""
        i = bisect_left(self.positions, position)
        return self.offsets[i] if i < len(self.positions) and self.positions[i] == position else otherwise

    def position_for_timestamp(self, timestamp: int) -> int:
        """Return a batch boundary at or before the first batch with a timestamp of at least `timestamp`."""
        i = bisect_left(self.timestamps, timestamp)
        return self.positions[i - 1] if i else 0

    def truncate(self, size: int) -> None:
        """Drop the entries at or after byte `size`."""
        kept = bisect_left(self.positions, size)
        for column in (self.offsets, self.positions, self.timestamps):
            del column[kept:]
        self._indexed_to = self.positions[-1] + max(1, self.interval_bytes) if kept else 0


def encode_index(index: SparseIndex, facts: SegmentFacts) -> bytes:
    """Encode the content of an index file: header, then column after column, little-endian."""
    columns = b"".join(_little_endian(column) for column in (index.offsets, index.positions, index.timestamps))
    rest = _HEADER.pack(
        _MAGIC,
        0,
        facts.is_sealed,
        facts.log_size,
        facts.next_offset,
        facts.max_timestamp,
        facts.last_append_ms,
        len(index.offsets),
        crc32(columns),
    )[12:]
    return b"".join((_MAGIC, crc32(rest).to_bytes(4, "little"), rest, columns))


def decode_facts(content: Buffer, log_size: int) -> SegmentFacts | None:
    """Return the index's facts on its segment; None when it is invalid or of a log of another size."""
    if len(content) < _HEADER.size or bytes(content[:8]) != _MAGIC:
        return None
    _, crc, sealed, size, next_offset, max_timestamp, last_append_ms, count, _ = _HEADER.unpack_from(content)
    if crc32(content[12 : _HEADER.size]) != crc or size != log_size:
        return None
    if len(content) != _HEADER.size + 8 * _COLUMNS * count:
        return None
    return SegmentFacts(sealed, size, next_offset, max_timestamp, last_append_ms)


def decode_index(content: Buffer, log_size: int, interval_bytes: int) -> SparseIndex | None:
    """Return the index; None when it is damaged or belongs to a log of another size."""
    if decode_facts(content, log_size) is None:
        return None
    count, crc = _HEADER.unpack_from(content)[7:]
    columns = memoryview(content)[_HEADER.size :]
    if crc32(columns) != crc:
        return None
    index = SparseIndex(interval_bytes)
    for i, column in enumerate((index.offsets, index.positions, index.timestamps)):
        column.frombytes(columns[8 * i * count : 8 * (i + 1) * count])
        if sys.byteorder == "big":
            column.byteswap()
    if count:
        index._indexed_to = index.positions[-1] + max(1, interval_bytes)
    return index


def _little_endian(column: array[int]) -> bytes:
    if sys.byteorder == "big":
        column = array("q", column)
        column.byteswap()
    return column.tobytes()
