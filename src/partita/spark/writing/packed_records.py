"""Encodes rows into record batches column by column: no Python object for each record.

The bytes are those of `partita.records.builder.encode_record`; Arrow joins prefix, key,
value and headers of all rows at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from partita.records.builder import assemble, varint
from partita.records.header import TRANSACTIONAL_BIT

RECORD_OVERHEAD_MAX = 32
"""Bytes of a record besides key, value and headers: four varints of five bytes, attributes, one of ten for the time."""
TABLE_SIZE = 1 << 16
NO_HEADERS = pa.scalar(b"\x00", pa.binary())
ATTRIBUTES = pa.scalar(b"\x00", pa.binary())
NO_TIME = pa.scalar(b"\x00", pa.binary())
"""The time delta of a record that has the timestamp of its batch."""
VARLONG_MAX = 10


@dataclass(frozen=True, slots=True)
class Rows:
    """The columns of some rows of one partition.

    `headers` holds the encoded headers of each row with their count in front; None: no row has any. `timestamps_ms`
    holds a timestamp for each row; None: all have `timestamp_ms`.
    """

    keys: pa.Array
    values: pa.Array
    headers: pa.Array | None
    timestamp_ms: int
    timestamps_ms: NDArray[np.int64] | None = None

    def slice(self, begin: int, end: int) -> Rows:
        """Rows `begin` to `end` (exclusive), without copying."""
        return Rows(
            keys=self.keys.slice(begin, end - begin),
            values=self.values.slice(begin, end - begin),
            headers=None if self.headers is None else self.headers.slice(begin, end - begin),
            timestamp_ms=self.timestamp_ms,
            timestamps_ms=None if self.timestamps_ms is None else self.timestamps_ms[begin:end],
        )


@dataclass(frozen=True, slots=True)
class PackedRecords:
    """Encoded records of one batch. `rows` are what they were encoded from, for `split`."""

    payload: memoryview
    rows: Rows
    codec: int
    level: int | None = None

    @property
    def records_count(self) -> int:
        """How many records it holds."""
        return len(self.rows.values)

    @property
    def size(self) -> int:
        """Bytes of the records before compression."""
        return len(self.payload)

    def split(self, batch_bytes: int) -> list[PackedRecords]:
        """The same records in batches of at most `batch_bytes`, but for a single large record."""
        return pack(self.rows, batch_bytes=batch_bytes, codec=self.codec, level=self.level)

    def build(
        self,
        *,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        is_transactional: bool = False,
    ) -> bytes:
        """The bytes of the whole batch, compressed here."""
        times = self.rows.timestamps_ms
        return assemble(
            self.payload,
            codec=self.codec,
            level=self.level,
            base_offset=0,
            leader_epoch=-1,
            attributes=self.codec | (TRANSACTIONAL_BIT if is_transactional else 0),
            last_offset_delta=self.records_count - 1,
            base_timestamp=self.rows.timestamp_ms if times is None else int(times[0]),
            max_timestamp=self.rows.timestamp_ms if times is None else int(times.max()),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            records_count=self.records_count,
        )


def pack(rows: Rows, *, batch_bytes: int, codec: int, level: int | None = None) -> list[PackedRecords]:
    """Batches of about `batch_bytes` (never more, but for a single large record), in row order."""
    sizes = _lengths(rows.keys).clip(0) + _lengths(rows.values).clip(0) + RECORD_OVERHEAD_MAX
    if rows.headers is not None:
        sizes += _lengths(rows.headers)
    packed = []
    for begin, end in _cuts(np.cumsum(sizes), batch_bytes):
        part = rows.slice(begin, end)
        packed.append(PackedRecords(_payload(part), part, codec, level))
    return packed


def _cuts(reach: NDArray[np.int64], batch_bytes: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows that fit one batch each; `reach` is the running total of sizes."""
    cuts = [0]
    while cuts[-1] < len(reach):
        before = int(reach[cuts[-1] - 1]) if cuts[-1] else 0
        fitting = int(np.searchsorted(reach, before + batch_bytes, side="right"))
        cuts.append(max(fitting, cuts[-1] + 1))
    return pairwise(cuts)


def _payload(rows: Rows) -> memoryview:
    """The records one behind the other."""
    keys, values, headers = rows.keys, rows.values, rows.headers
    key_sizes, value_sizes = _lengths(keys), _lengths(values)
    deltas = varints(np.arange(len(keys)))
    key_prefix, value_prefix = varints(key_sizes), varints(value_sizes)
    rest = 1 if headers is None else _lengths(headers)
    times = NO_TIME if rows.timestamps_ms is None else varints(rows.timestamps_ms - rows.timestamps_ms[0])
    sizes = (
        1
        + (1 if rows.timestamps_ms is None else _lengths(times))
        + _lengths(deltas)
        + _lengths(key_prefix)
        + key_sizes.clip(0)
        + _lengths(value_prefix)
        + value_sizes.clip(0)
        + rest
    )
    records = pc.binary_join_element_wise(
        varints(sizes),
        ATTRIBUTES,
        times,
        deltas,
        key_prefix,
        keys.fill_null(b""),
        value_prefix,
        values.fill_null(b""),
        NO_HEADERS if headers is None else headers,
        pa.scalar(b"", pa.binary()),
    )
    if isinstance(records, pa.ChunkedArray):
        records = records.combine_chunks()
    _, offsets, data = records.buffers()
    bounds = np.frombuffer(offsets, np.int32)
    first, last = records.offset, records.offset + len(records)
    return memoryview(data)[int(bounds[first]) : int(bounds[last])]


def varints(numbers: NDArray[np.int64]) -> pa.Array:
    """Each number as a zig-zag varint."""
    if numbers.min(initial=0) >= -1 and numbers.max(initial=0) < TABLE_SIZE - 1:
        return _table().take(pa.array(numbers + 1))
    zigzag = ((numbers << 1) ^ (numbers >> 63)).astype(np.uint64)
    lengths = np.ones(len(numbers), np.int64)
    for groups in range(1, VARLONG_MAX):
        lengths += zigzag >= np.uint64(1 << 7 * groups)
    ends = np.cumsum(lengths)
    data = np.empty(int(ends[-1]), np.uint8)
    for place in range(int(lengths.max())):
        reaches = np.nonzero(lengths > place)[0]
        group = (zigzag[reaches] >> np.uint64(7 * place)).astype(np.uint8) & np.uint8(0x7F)
        more = np.where(lengths[reaches] > place + 1, np.uint8(0x80), np.uint8(0))
        data[ends[reaches] - lengths[reaches] + place] = group | more
    offsets = np.concatenate([np.zeros(1, np.int32), ends.astype(np.int32)])
    return pa.Array.from_buffers(pa.binary(), len(numbers), [None, pa.py_buffer(offsets), pa.py_buffer(data)])


@cache
def _table() -> pa.Array:
    return pa.array([varint(n) for n in range(-1, TABLE_SIZE - 1)], pa.binary())


def _lengths(column: pa.Array) -> NDArray[np.int64]:
    """Bytes of each row; -1 for null."""
    found: NDArray[np.int64] = np.asarray(pc.binary_length(column).fill_null(-1), np.int64).copy()
    return found
