"""Arrow memory for the columns of fetched records: given out ahead, grown when needed, made into arrays at the end.

Buffers are larger than what will be written; memory that is never touched costs nothing, and the rest is given back.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import pack
from typing import Literal, TypeAlias

import pyarrow as pa

from partita.protocol.primitives import Buffer
from partita.records.checksum import crc32c
from partita.records.columns import BytesColumn, ColumnWriter
from partita.records.fetched_batches import FetchedBatches
from partita.records.header import LOG_APPEND_TIME, BatchHeader

_MAX_COLUMN_BYTES = 2**31 - 1
"""Largest size that 32-bit offsets can address."""
_MIN_RECORD_SIZE = 7
_MIN_HEADER_SIZE = 2
_EXPECTED_RECORD_SIZE = 100


Form: TypeAlias = Literal["B", "i", "q", "d"]


class Memory:
    """One resizable buffer, seen as numbers of one type. With `fill` all its bytes are that to begin with."""

    __slots__ = ("buffer", "fill", "form", "view", "width")

    def __init__(self, form: Form, width: int, count: int, fill: bytes | None = None) -> None:
        self.form: Form = form
        self.width = width
        self.fill = fill
        self.buffer: pa.Buffer = pa.allocate_buffer(max(1, count) * width, resizable=True)
        self.view: memoryview
        self._look(0)

    def grow(self, count: int) -> None:
        """Room for that many numbers; `view` is another one afterwards."""
        before = len(self.view) * self.width
        self.view = memoryview(b"")
        self.buffer.resize(max(1, count) * self.width)
        self._look(before)

    def _look(self, before: int) -> None:
        view = memoryview(self.buffer).cast("B")
        if self.fill is not None:
            view[before:] = self.fill * (len(view) - before)
        self.view = view if self.form == "B" else view.cast(self.form)  # type: ignore[assignment]  # also of floats

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
        self.rows = self.room = -1

    def reserve(self, rows: int, size: int) -> bool:
        """Room for that much more; False when the column cannot hold it."""
        rows, size = self.column.rows + rows, self.column.size + size
        if size > _MAX_COLUMN_BYTES:
            return False
        if rows > self.rows or size > self.room:
            if self.rows < 0:
                self._begin(rows, size)
            else:
                self._grow(rows, size)
            self.column.attach(self.offsets.view, self.valid.view, self.written.view)
        return True

    def _begin(self, rows: int, size: int) -> None:
        self.rows, self.room = rows, size
        self.offsets, self.valid = Memory("i", 4, rows + 1), Memory("B", 1, (rows + 7) // 8, b"\xff")
        self.written = Memory("B", 1, size)
        self.offsets.view[0] = 0

    def _grow(self, rows: int, size: int) -> None:
        if rows > self.rows:
            self.rows = max(rows, 2 * self.rows)
            self.offsets.grow(self.rows + 1)
            self.valid.grow((self.rows + 7) // 8)
        if size > self.room:
            self.room = max(size, min(2 * self.room, _MAX_COLUMN_BYTES))
            self.written.grow(self.room)

    def array(self, kind: pa.DataType) -> pa.Array:
        rows, nulls = self.column.rows, self.column.null_count
        self.column.detach()
        valid = self.valid.cut((rows + 7) // 8) if nulls else None
        buffers = [valid, self.offsets.cut(rows + 1), self.written.cut(self.column.size)]
        return pa.Array.from_buffers(kind, rows, buffers)


class ColumnMemory:
    """All columns; `append` fills them."""

    def __init__(self, expected_bytes: int, *, with_headers: bool, in_microseconds: bool) -> None:
        self._with_headers = with_headers
        self._keys, self._values, self._header_keys, self._header_values = _Bytes(), _Bytes(), _Bytes(), _Bytes()
        self._rows = max(1, expected_bytes // _EXPECTED_RECORD_SIZE)
        self._offsets, self._timestamps = Memory("q", 8, self._rows), Memory("q", 8, self._rows)
        self._header_offsets: Memory | None = None
        self._header_valid: Memory | None = None
        self.writer = ColumnWriter(
            self._keys.column,
            self._values.column,
            self._header_keys.column,
            self._header_values.column,
            with_headers,
            in_microseconds,
        )
        self.writer.attach(self._offsets.view, self._timestamps.view)
        size = min(expected_bytes, _MAX_COLUMN_BYTES)
        self._keys.reserve(self._rows, size)
        self._values.reserve(self._rows, size)

    def append(self, header: BatchHeader, payload: Buffer, first: int, end: int) -> bool:
        """Append the records of one batch from offset `first` until `end`; False when a column cannot hold them."""
        rows = min(header.records_count, len(payload) // _MIN_RECORD_SIZE)
        if not self._reserve(rows, len(payload)):
            return False
        writer = self.writer
        before = writer.rows
        is_append_time = header.timestamp_type == LOG_APPEND_TIME
        timestamp = header.max_timestamp if is_append_time else header.base_timestamp
        given = (payload, header.records_count, header.base_offset, timestamp, is_append_time, first, end)
        writer.append(*given)
        if writer.wants_header_room:
            writer.forget(before)
            if not self._reserve_headers(len(payload)):
                return False
            writer.append(*given)
        writer.note_run(header.timestamp_type, header.partition_leader_epoch)
        return True

    def append_plain(self, walk: FetchedBatches, end: int) -> None:
        """Append the batches that `walk` would give next, as long as nothing is special about them."""
        view, pos = walk.here()
        check = crc32c if walk.check_crcs else None
        reached = self.writer.append_plain(view, pos, walk.next_offset, end, check, walk.follows_transactions)
        if reached != pos:
            walk.go_on_from(reached, self.writer.next_offset)

    def _reserve(self, rows: int, size: int) -> bool:
        """Room for `rows` more records of `size` bytes altogether."""
        if not self._keys.reserve(rows, size) or not self._values.reserve(rows, size):
            return False
        rows += self.writer.rows
        if rows > self._rows:
            self._rows = max(rows, 2 * self._rows)
            self._offsets.grow(self._rows)
            self._timestamps.grow(self._rows)
            self.writer.attach(self._offsets.view, self._timestamps.view)
        return self._header_offsets is None or self._reserve_headers(size)

    def _reserve_headers(self, size: int) -> bool:
        """Make room for as many headers as `size` more bytes can hold; return whether there is any."""
        count = size // _MIN_HEADER_SIZE
        if not self._header_keys.reserve(count, size) or not self._header_values.reserve(count, size):
            return False
        if self._header_offsets is None or self._header_valid is None:
            self._header_offsets = Memory("i", 4, self._rows + 1, b"\0")
            self._header_valid = Memory("B", 1, (self._rows + 7) // 8, b"\0")
            self.writer.headerless_count = self.writer.rows
        elif len(self._header_offsets.view) <= self._rows:
            self._header_offsets.grow(self._rows + 1)
            self._header_valid.grow((self._rows + 7) // 8)
        self.writer.attach_headers(self._header_offsets.view, self._header_valid.view)
        return True

    def columns(self, schema: pa.Schema) -> dict[str, pa.Array]:
        """The arrays by name, of the schema's types. Nothing can be written afterwards."""
        rows = self.writer.rows
        self.writer.detach()

        def numbers(name: str, buffer: pa.Buffer) -> pa.Array:
            return pa.Array.from_buffers(schema.field(name).type, rows, [None, buffer])

        columns = {
            "key": self._keys.array(pa.binary()),
            "value": self._values.array(pa.binary()),
            "offset": numbers("offset", self._offsets.cut(rows)),
            "timestamp": numbers("timestamp", self._timestamps.cut(rows)),
            "timestamp_type": numbers("timestamp_type", repeated((kind, count) for kind, _, count in self.writer.runs)),
        }
        if "leader_epoch" in schema.names:
            columns["leader_epoch"] = numbers("leader_epoch", repeated((epoch, n) for _, epoch, n in self.writer.runs))
        if self._with_headers:
            columns["headers"] = self._headers(schema.field("headers").type, rows)
        return columns

    def _headers(self, kind: pa.ListType, rows: int) -> pa.Array:
        if self._header_offsets is None or self._header_valid is None:
            return pa.nulls(rows, kind)
        keys = self._header_keys.array(pa.string())
        values = self._header_values.array(pa.binary())
        headers = pa.StructArray.from_arrays([_readable(keys), values], fields=list(kind.value_type))
        valid = self._header_valid.cut((rows + 7) // 8) if self.writer.headerless_count else None
        return pa.Array.from_buffers(kind, rows, [valid, self._header_offsets.cut(rows + 1)], children=[headers])


def repeated(runs: Iterable[tuple[int, int]]) -> pa.Buffer:
    """Numbers of 32 bits, each as often as said."""
    return pa.py_buffer(b"".join(pack("=i", number) * count for number, count in runs))


def _readable(keys: pa.Array) -> pa.Array:
    """Header keys as text; bytes that are no UTF-8 are replaced, as Kafka's consumer does."""
    try:
        keys.validate(full=True)
    except pa.ArrowInvalid:
        return pa.array([key.decode("utf-8", "replace") for key in keys.cast(pa.binary()).to_pylist()], pa.string())
    return keys
