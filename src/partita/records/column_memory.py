"""Arrow memory for the columns of fetched records: given out ahead, grown when needed, made into arrays at the end.

Buffers are larger than what will be written; memory that is never touched costs nothing, and the rest is given back.
Must not know how records are encoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from partita.records.columns import BytesColumn, ColumnWriter

if TYPE_CHECKING:
    import pyarrow as pa

_MAX_COLUMN_BYTES = 2**31 - 1
"""What 32-bit offsets can address."""
_MIN_HEADER_SIZE = 2
_EXPECTED_RECORD_SIZE = 100


class _Memory:
    """One resizable buffer, seen as numbers of one type."""

    __slots__ = ("buffer", "form", "view", "width")

    def __init__(self, form: Literal["B", "i", "q"], width: int) -> None:
        import pyarrow as pa

        self.form: Literal["B", "i", "q"] = form
        self.width = width
        self.buffer: pa.Buffer = pa.allocate_buffer(width, resizable=True)
        self.grow(1)

    def grow(self, count: int) -> None:
        self.view = memoryview(b"")
        self.buffer.resize(max(1, count) * self.width)
        self.view = memoryview(self.buffer).cast("B").cast(self.form)

    def cut(self, count: int) -> pa.Buffer:
        """The first `count` numbers; the view is gone afterwards."""
        self.view = memoryview(b"")
        self.buffer.resize(count * self.width, shrink_to_fit=True)
        return self.buffer


class _Bytes:
    """Memory of one BytesColumn."""

    __slots__ = ("column", "offsets", "room", "rows", "valid", "written")

    def __init__(self) -> None:
        self.column = BytesColumn()
        self.offsets, self.valid, self.written = _Memory("i", 4), _Memory("B", 1), _Memory("B", 1)
        self.offsets.view[0] = 0
        self.rows = self.room = 0
        self._attach()

    def reserve(self, rows: int, size: int) -> bool:
        """Room for that much more; False when the column cannot hold it."""
        rows, size = self.column.rows + rows, self.column.size + size
        if size > _MAX_COLUMN_BYTES:
            return False
        if rows > self.rows or size > self.room:
            if rows > self.rows:
                self.rows = max(rows, 2 * self.rows)
                self.offsets.grow(self.rows + 1)
                self.valid.grow((self.rows + 7) // 8)
            if size > self.room:
                self.room = max(size, min(2 * self.room, _MAX_COLUMN_BYTES))
                self.written.grow(self.room)
            self._attach()
        return True

    def _attach(self) -> None:
        self.column.attach(self.offsets.view, self.valid.view, self.written.view)

    def array(self, kind: pa.DataType) -> pa.Array:
        import pyarrow as pa

        rows, nulls = self.column.rows, self.column.null_count
        self.column.detach()
        valid = self.valid.cut((rows + 7) // 8) if nulls else None
        buffers = [valid, self.offsets.cut(rows + 1), self.written.cut(self.column.size)]
        return pa.Array.from_buffers(kind, rows, buffers)


class ColumnMemory:
    """All columns; `writer` fills them. Ask `reserve` before each batch."""

    def __init__(self, expected_bytes: int, *, with_headers: bool, in_microseconds: bool) -> None:
        self.with_headers = with_headers
        self._keys, self._values, self._header_keys, self._header_values = _Bytes(), _Bytes(), _Bytes(), _Bytes()
        self._offsets, self._timestamps = _Memory("q", 8), _Memory("q", 8)
        self._timestamp_types, self._epochs = _Memory("i", 4), _Memory("i", 4)
        self._header_offsets, self._header_valid = _Memory("i", 4), _Memory("B", 1)
        self._header_offsets.view[0] = 0
        self._rows = 0
        self.writer = ColumnWriter(
            self._keys.column,
            self._values.column,
            self._header_keys.column,
            self._header_values.column,
            with_headers,
            in_microseconds,
        )
        self.reserve(expected_bytes // _EXPECTED_RECORD_SIZE, min(expected_bytes, _MAX_COLUMN_BYTES))

    def reserve(self, rows: int, size: int) -> bool:
        """Room for `rows` more records of `size` bytes altogether; False when a column cannot hold them."""
        headers = size // _MIN_HEADER_SIZE if self.with_headers else 0
        if not self._keys.reserve(rows, size) or not self._values.reserve(rows, size):
            return False
        if self.with_headers and not (
            self._header_keys.reserve(headers, size) and self._header_values.reserve(headers, size)
        ):
            return False
        rows += self.writer.rows
        if rows > self._rows or self._rows == 0:
            self._rows = max(rows, 2 * self._rows, 1)
            for column in (self._offsets, self._timestamps, self._timestamp_types, self._epochs):
                column.grow(self._rows)
            self._header_offsets.grow(self._rows + 1)
            self._header_valid.grow((self._rows + 7) // 8)
            self.writer.attach(
                self._offsets.view,
                self._timestamps.view,
                self._timestamp_types.view,
                self._epochs.view,
                self._header_offsets.view,
                self._header_valid.view,
            )
        return True

    def columns(self, schema: pa.Schema) -> dict[str, pa.Array]:
        """The arrays by name, of the schema's types. Nothing can be written afterwards."""
        import pyarrow as pa

        rows = self.writer.rows
        self.writer.detach()

        def numbers(name: str, memory: _Memory) -> pa.Array:
            return pa.Array.from_buffers(schema.field(name).type, rows, [None, memory.cut(rows)])

        columns = {
            "key": self._keys.array(pa.binary()),
            "value": self._values.array(pa.binary()),
            "offset": numbers("offset", self._offsets),
            "timestamp": numbers("timestamp", self._timestamps),
            "timestamp_type": numbers("timestamp_type", self._timestamp_types),
        }
        if "leader_epoch" in schema.names:
            columns["leader_epoch"] = numbers("leader_epoch", self._epochs)
        if self.with_headers:
            columns["headers"] = self._headers(schema.field("headers").type, rows)
        return columns

    def _headers(self, kind: pa.ListType, rows: int) -> pa.Array:
        import pyarrow as pa

        keys = self._header_keys.array(pa.string())
        values = self._header_values.array(pa.binary())
        headers = pa.StructArray.from_arrays([_readable(keys), values], fields=list(kind.value_type))
        valid = self._header_valid.cut((rows + 7) // 8) if self.writer.headerless_count else None
        return pa.Array.from_buffers(kind, rows, [valid, self._header_offsets.cut(rows + 1)], children=[headers])


def _readable(keys: pa.Array) -> pa.Array:
    """Header keys as text; bytes that are no UTF-8 are replaced, as Kafka's consumer does."""
    import pyarrow as pa

    try:
        keys.validate(full=True)
    except pa.ArrowInvalid:
        return pa.array([key.decode("utf-8", "replace") for key in keys.cast(pa.binary()).to_pylist()], pa.string())
    return keys
