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

RECORD_OVERHEAD_MAX = 22
"""Bytes of a record besides key, value and headers: three varints of five bytes, attributes, time, a little room."""
TABLE_SIZE = 1 << 16
NO_HEADERS = pa.scalar(b"\x00", pa.binary())
ATTRIBUTES_AND_TIME = pa.scalar(b"\x00\x00", pa.binary())


@dataclass(frozen=True, slots=True)
class PackedRecords:
    """Encoded records of one batch, all with the same timestamp."""

    payload: memoryview
    records_count: int
    timestamp_ms: int
    codec: int

    def build(self, *, producer_id: int = -1, producer_epoch: int = -1, base_sequence: int = -1) -> bytes:
        """The whole batch."""
        return assemble(
            self.payload,
            codec=self.codec,
            base_offset=0,
            leader_epoch=-1,
            attributes=self.codec,
            last_offset_delta=self.records_count - 1,
            base_timestamp=self.timestamp_ms,
            max_timestamp=self.timestamp_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            records_count=self.records_count,
        )


def pack(
    keys: pa.Array, values: pa.Array, headers: pa.Array | None, *, batch_bytes: int, codec: int, timestamp_ms: int
) -> list[PackedRecords]:
    """Batches of about `batch_bytes` (never more, but for a single large record), in row order.

    `headers` holds the encoded headers of each row with their count in front; None: no row has any.
    """
    sizes = _lengths(keys).clip(0) + _lengths(values).clip(0) + RECORD_OVERHEAD_MAX
    if headers is not None:
        sizes += _lengths(headers)
    packed = []
    for begin, end in _cuts(np.cumsum(sizes), batch_bytes):
        count = end - begin
        rows = None if headers is None else headers.slice(begin, count)
        payload = _payload(keys.slice(begin, count), values.slice(begin, count), rows)
        packed.append(PackedRecords(payload, count, timestamp_ms, codec))
    return packed


def _cuts(reach: NDArray[np.int64], batch_bytes: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows that fit one batch each; `reach` is the running total of sizes."""
    cuts = [0]
    while cuts[-1] < len(reach):
        before = int(reach[cuts[-1] - 1]) if cuts[-1] else 0
        fitting = int(np.searchsorted(reach, before + batch_bytes, side="right"))
        cuts.append(max(fitting, cuts[-1] + 1))
    return pairwise(cuts)


def _payload(keys: pa.Array, values: pa.Array, headers: pa.Array | None) -> memoryview:
    """The records one behind the other."""
    key_sizes, value_sizes = _lengths(keys), _lengths(values)
    deltas = varints(np.arange(len(keys)))
    key_prefix, value_prefix = varints(key_sizes), varints(value_sizes)
    rest = 1 if headers is None else _lengths(headers)
    sizes = (
        2
        + _lengths(deltas)
        + _lengths(key_prefix)
        + key_sizes.clip(0)
        + _lengths(value_prefix)
        + value_sizes.clip(0)
        + rest
    )
    records = pc.binary_join_element_wise(
        varints(sizes),
        ATTRIBUTES_AND_TIME,
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
    """Each number (-1 or more) as a zig-zag varint."""
    if numbers.max(initial=0) < TABLE_SIZE - 1:
        return _table().take(pa.array(numbers + 1))
    distinct, places = np.unique(numbers, return_inverse=True)
    return pa.array([varint(int(n)) for n in distinct], pa.binary()).take(pa.array(places))


@cache
def _table() -> pa.Array:
    return pa.array([varint(n) for n in range(-1, TABLE_SIZE - 1)], pa.binary())


def _lengths(column: pa.Array) -> NDArray[np.int64]:
    """Bytes of each row; -1 for null."""
    found: NDArray[np.int64] = np.asarray(pc.binary_length(column).fill_null(-1), np.int64).copy()
    return found
