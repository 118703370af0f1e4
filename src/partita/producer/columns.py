"""Many records as columns: from lists of bytes and text, and from Arrow. pyarrow is imported when first used."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate
from types import NoneType
from typing import TYPE_CHECKING, Any

from partita.lazy import later
from partita.producer.bulk import Columns
from partita.records import row_packing
from partita.records.builder import encode_headers
from partita.records.row_packing import Cells

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import compute as pc
else:
    pa = later("pyarrow")
    pc = later("pyarrow.compute")

ROWS_AT_ONCE = 8192
"""Rows that are taken in with the producer's lock held once."""
NAMES = ("key", "value", "headers", "partition", "timestamp")
_BYTES_MAX = 1 << 30


class RowError(ValueError):
    """A row that cannot be written."""


def cells_of_list(given: Sequence[Any] | None, rows: int) -> Cells | None:
    """A column of these bytes and texts, of nulls for None; None if there is something else, or too much, in it."""
    if given is None:
        return Cells(memoryview(bytes(4 * (rows + 1))).cast("i"), b"", bytes(rows // 8 + 1), 0, rows)
    kinds = set(map(type, given))
    if not kinds <= {bytes, str, NoneType}:
        return None
    valid = None
    if NoneType in kinds:
        valid = bytearray(rows // 8 + 1)
        for row, one in enumerate(given):
            valid[row >> 3] |= (one is not None) << (row & 7)
    values = given if kinds == {bytes} else [one.encode() if type(one) is str else one or b"" for one in given]
    if sum(map(len, values)) > _BYTES_MAX:
        return None
    return Cells(array("i", accumulate(map(len, values), initial=0)), b"".join(values), valid, 0, rows)


def columns_of_table(table: pa.Table | pa.RecordBatch) -> Iterator[Columns]:
    """The rows of a table, some at a time. Raises ValueError for columns that a record does not have, and RowError."""
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if not isinstance(table, pa.Table):
        raise TypeError(f"a pyarrow Table or RecordBatch was expected, not {table!r}")
    names = table.schema.names
    if "value" not in names or not set(names) <= set(NAMES) or len(set(names)) < len(names):
        raise ValueError(
            f"the columns of a record are value and, if wanted, key, headers, partition and timestamp, each once; "
            f"the table has {', '.join(names) or 'none'}. Choose some with table.select([...])"
        )
    return map(_columns, table.to_batches(max_chunksize=ROWS_AT_ONCE))


def _columns(batch: pa.RecordBatch) -> Columns:
    given = {name: batch.column(i) for i, name in enumerate(batch.schema.names)}
    keys = given.get("key", pa.nulls(batch.num_rows, pa.binary()))
    headers = cells_of(encoded_headers(given["headers"])) if "headers" in given else None
    return Columns(
        cells_of(binary(keys)),
        cells_of(binary(given["value"])),
        headers,
        _numbers(given["timestamp"], "timestamp", pa.int64()) if "timestamp" in given else None,
        _numbers(given["partition"], "partition", pa.int32()) if "partition" in given else None,
    )


def _numbers(column: pa.Array, name: str, kind: pa.DataType) -> memoryview:
    """The numbers of a column as a buffer; instants become ms. Raises RowError for null times and negative numbers."""
    if pa.types.is_timestamp(column.type):
        column = pc.cast(column, pa.timestamp("ms", column.type.tz), safe=False)
    if name == "timestamp" and column.null_count:
        raise RowError("a row has no timestamp; leave the column out, or fill its nulls")
    least = pc.min(column.cast(pa.int64())).as_py() if len(column) else 0
    if least is not None and least < 0:
        raise RowError(f"a row has the negative {name} {least}")
    if column.null_count:
        column = column.fill_null(-1)
    _, numbers = column.cast(kind).buffers()
    size = kind.bit_width // 8
    view = memoryview(numbers if numbers is not None else b"")
    return view[column.offset * size : (column.offset + len(column)) * size].cast("q" if size == 8 else "i")


def binary(column: pa.Array) -> pa.Array:
    """Strings as their UTF-8 bytes."""
    return column if column.type == pa.binary() else pc.cast(column, pa.binary())


def cells_of(column: pa.Array) -> Cells:
    """A binary column, or a list's own part of it, as `partita.records.row_packing` reads it."""
    valid, offsets, *data = column.buffers()
    return Cells(
        memoryview(offsets).cast("B").cast("i") if offsets is not None else memoryview(bytes(4)).cast("i"),
        memoryview(data[0]).cast("B") if pa.types.is_binary(column.type) and data[0] is not None else b"",
        memoryview(valid).cast("B") if column.null_count else None,
        column.offset,
        len(column),
    )


def encoded_headers(column: pa.Array) -> pa.Array:
    """The headers of each row, encoded, their count in front. A null header key cannot be written."""
    column = _header_lists(column)
    entries = column.values
    if row_packing.COMPILED and not entries.null_count and not entries.field("key").null_count:
        return headers_at_once(column)
    return headers_by_row(column)


def _header_lists(column: pa.Array) -> pa.Array:
    """The column as lists of structs; maps and other kinds of lists are cast. Raises ValueError for what is neither.

    The offsets of large lists are wider: read as they are, they would say that no row has a header.
    """
    kind = column.type
    entry = None if pa.types.is_map(kind) else getattr(kind, "value_type", None)
    names = {entry.field(i).name for i in range(len(entry))} if isinstance(entry, pa.StructType) else set()
    if not ({"key", "value"} <= names or pa.types.is_map(kind) or pa.types.is_null(kind)):
        raise ValueError(f"headers are lists of structs of key and value, not {kind}")
    if pa.types.is_list(kind):
        return column
    return column.cast(pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])))


def headers_at_once(column: pa.Array) -> pa.Array:
    """The encoded headers of each row where no header and no header's key is null."""
    names, contents = (cells_of(binary(column.values.field(name))) for name in ("key", "value"))
    offsets = array("i", bytes(4 * (len(column) + 1)))
    data = row_packing.encode_header_lists(cells_of(column), names, contents, offsets)
    return pa.Array.from_buffers(pa.binary(), len(column), [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def headers_by_row(column: pa.Array) -> pa.Array:
    """The encoded headers of each row; null headers are left out. Raises RowError for a key that is null."""
    rows: list[bytes] = []
    for row in column.to_pylist():
        pairs = [(h["key"], h["value"]) for h in row or () if h is not None]
        if any(key is None for key, _ in pairs):
            raise RowError("a header has no key")
        rows.append(encode_headers(pairs) if pairs else b"\x00")
    return pa.array(rows, pa.binary())
