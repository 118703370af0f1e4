"""A digest of the rows of a task, computed column by column: the sum of a 64-bit hash of each row.

Two murmur2 hashes with different seeds make the 64 bits; a row is hashed with those of topic, partition, key, value,
headers and timestamp that the table has.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from partita.spark.planning.markers import Digest
from partita.spark.writing.murmur2_columns import SEED, murmur2

COLUMNS = ("topic", "partition", "key", "value", "headers", "timestamp")
_OTHER_SEED = 0x2F0B4C27


def with_rows(digest: Digest, rows: pa.RecordBatch) -> Digest:
    """The digest with the rows of one Arrow batch."""
    if not rows.num_rows:
        return digest
    parts: list[pa.Array | pa.Scalar] = []
    for name in COLUMNS:
        if name in rows.schema.names:
            parts += _framed(_as_bytes(rows.column(rows.schema.names.index(name))))
    joined = pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.binary()))
    offsets, data = _buffers(joined)
    low, high = murmur2(offsets, data, SEED).astype(np.uint64), murmur2(offsets, data, _OTHER_SEED).astype(np.uint64)
    with np.errstate(over="ignore"):
        total = int((high << np.uint64(32) | low).sum(dtype=np.uint64))
    return digest.plus(rows.num_rows, total)


def _framed(column: pa.Array) -> list[pa.Array]:
    """A column with its lengths in front, so that no two different rows join to the same bytes."""
    lengths = pc.cast(pc.fill_null(pc.binary_length(column), -1), pa.string()).cast(pa.binary())
    return [lengths, pa.array([b":"] * len(column), pa.binary()), column.fill_null(b"")]


def _as_bytes(column: pa.Array) -> pa.Array:
    if pa.types.is_binary(column.type):
        return column
    if pa.types.is_string(column.type):
        return column.cast(pa.binary())
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64()).cast(pa.string()).cast(pa.binary())
    if pa.types.is_integer(column.type):
        return column.cast(pa.string()).cast(pa.binary())
    return pa.array([None if row is None else repr(row).encode() for row in column.to_pylist()], pa.binary())


def _buffers(column: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    return bounds, np.frombuffer(data, np.uint8)
