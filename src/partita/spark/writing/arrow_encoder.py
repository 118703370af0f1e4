"""Encode records with Arrow's own functions, for installations without the compiled `partita.records.row_packing`.

The bytes are those of `partita.records.builder.encode_record`; Arrow joins prefix, key, value and headers of all
rows at once.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from partita.records.builder import varint
from partita.records.header import HEADER_SIZE
from partita.records.row_packing import RECORD_OVERHEAD_MAX

TABLE_SIZE = 1 << 16
NO_HEADERS = pa.scalar(b"\x00", pa.binary())
ATTRIBUTES = pa.scalar(b"\x00", pa.binary())
NO_TIME = pa.scalar(b"\x00", pa.binary())
"""The time delta of a record that has the timestamp of its batch."""
VARLONG_MAX = 10


class ArrowEncoder:
    """The same as `partita.records.row_packing.RowEncoder`, with columns of Arrow."""

    def __init__(
        self, keys: pa.Array, values: pa.Array, headers: pa.Array | None, times: NDArray[np.int64] | None
    ) -> None:
        self._keys = keys
        self._values = values
        self._headers = headers
        self._times = times
        self._bounds = _lengths(keys).clip(0) + _lengths(values).clip(0) + RECORD_OVERHEAD_MAX
        if headers is not None:
            self._bounds += _lengths(headers)

    def cuts(self, places: NDArray[np.int64], batch_bytes: int) -> list[int]:
        """Cuts of the rows into batches of at most `batch_bytes`: 0 first, their count last."""
        reach = np.cumsum(self._bounds[places])
        cuts = [0]
        while cuts[-1] < len(reach):
            before = int(reach[cuts[-1] - 1]) if cuts[-1] else 0
            fitting = int(np.searchsorted(reach, before + batch_bytes, side="right"))
            cuts.append(max(fitting, cuts[-1] + 1))
        return cuts

    def encode(self, places: NDArray[np.int64]) -> memoryview:
        """The records of these rows behind room for a header, with offsets from 0 and times from the first row's on."""
        at = pa.array(places)
        keys, values = self._keys.take(at), self._values.take(at)
        headers = None if self._headers is None else self._headers.take(at)
        moments = None if self._times is None else self._times[places]
        key_sizes, value_sizes = _lengths(keys), _lengths(values)
        deltas = varints(np.arange(len(keys)))
        key_prefix, value_prefix = varints(key_sizes), varints(value_sizes)
        times = NO_TIME if moments is None else varints(moments - moments[0])
        sizes = (
            1
            + (1 if moments is None else _lengths(times))
            + _lengths(deltas)
            + _lengths(key_prefix)
            + key_sizes.clip(0)
            + _lengths(value_prefix)
            + value_sizes.clip(0)
            + (1 if headers is None else _lengths(headers))
        )
        return _joined(
            varints(sizes),
            ATTRIBUTES,
            times,
            deltas,
            key_prefix,
            keys.fill_null(b""),
            value_prefix,
            values.fill_null(b""),
            NO_HEADERS if headers is None else headers,
        )


def _joined(*parts: pa.Array | pa.Scalar) -> memoryview:
    """The parts of each row joined, row behind row, behind the room for a header."""
    rows = pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.binary()))
    if isinstance(rows, pa.ChunkedArray):
        rows = rows.combine_chunks()
    _, offsets, data = rows.buffers()
    bounds = np.frombuffer(offsets, np.int32)
    first, last = rows.offset, rows.offset + len(rows)
    return memoryview(bytearray().join((bytes(HEADER_SIZE), memoryview(data)[int(bounds[first]) : int(bounds[last])])))


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
