# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True, freethreading_compatible=True
# mypy: disable-error-code="attr-defined, index, assignment"
"""Copy the records of batches straight into Arrow's column buffers, with no Python object per record.

Compiled by Cython when a compiler is there (its types: columns.pxd); the same file runs uncompiled.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from partita.records.uncompiled import cython

if cython.compiled:
    from cython.cimports.libc.string import memcpy
else:
    from partita.records.scanner import RecordScanner, wrapped

_MAX_SCALED: int = 9223372036854775


class BytesColumn:
    """One nullable binary column: 32-bit offsets, bytes, and a bitmap of what is not null.

    The buffers belong to the caller, who calls `attach` again whenever he moved them.
    """

    __slots__ = ("null_count", "offsets", "rows", "size", "valid", "written")

    def __init__(self) -> None:
        self.rows = self.size = self.null_count = 0
        self.detach()

    def attach(self, offsets: memoryview, valid: memoryview, written: memoryview) -> None:
        """`offsets` as ints, zero first; `valid`, all bits set, and `written` as bytes. What is there stays."""
        self.offsets = offsets
        self.valid = valid
        self.written = written

    def detach(self) -> None:
        """Let go of the buffers."""
        self.offsets = None
        self.valid = None
        self.written = None

    def put(self, scanner: RecordScanner, at: int, size: int) -> None:
        """Append a field of the scanner's payload; a negative size is null."""
        if size < 0:
            self.valid[self.rows >> 3] &= 0xFF ^ (1 << (self.rows & 7))
            self.null_count += 1
        else:
            if cython.compiled:
                memcpy(cython.address(self.written[self.size]), scanner.data + at, size)
            else:
                self.written[self.size : self.size + size] = scanner.data[at : at + size]
            self.size += size
        self.rows += 1
        self.offsets[self.rows] = self.size

    def forget(self, rows: int) -> None:
        """Take back all but the first `rows`; null_count stays too high, which only costs a bitmap."""
        while self.rows > rows:
            self.rows -= 1
            self.valid[self.rows >> 3] |= 1 << (self.rows & 7)
        self.size = self.offsets[rows]


class ColumnWriter(RecordScanner):
    """Appends batches to columns of fixed width and, through BytesColumn, of keys, values and headers.

    Most records have no headers: at the first one that has, `append` stops with `wants_header_room`, and goes on once
    the batch is forgotten, `attach_headers` was called and the batch appended again.
    """

    __slots__ = (
        "has_header_room",
        "header_keys",
        "header_offsets",
        "header_valid",
        "header_values",
        "headerless_count",
        "keys",
        "next_offset",
        "offsets",
        "rows",
        "scale",
        "timestamps",
        "values",
        "wants_header_room",
        "with_headers",
    )

    def __init__(
        self,
        keys: BytesColumn,
        values: BytesColumn,
        header_keys: BytesColumn,
        header_values: BytesColumn,
        with_headers: bool,
        in_microseconds: bool,
    ) -> None:
        RecordScanner.__init__(self)
        self.keys = keys
        self.values = values
        self.header_keys = header_keys
        self.header_values = header_values
        self.with_headers = with_headers
        self.has_header_room = self.wants_header_room = False
        self.scale = 1000 if in_microseconds else 1
        self.rows = self.headerless_count = 0
        self.next_offset = 0
        self.detach()

    def attach(self, offsets: memoryview, timestamps: memoryview) -> None:
        """Buffers of 64-bit numbers with room for what comes."""
        self.offsets = offsets
        self.timestamps = timestamps

    def attach_headers(self, offsets: memoryview, valid: memoryview) -> None:
        """A buffer of 32-bit numbers and a bitmap, both zero so far, with room for what comes."""
        self.header_offsets = offsets
        self.header_valid = valid
        self.has_header_room = True
        self.wants_header_room = False

    def detach(self) -> None:
        """Let go of the buffers and of the last payload."""
        self.offsets = None
        self.timestamps = None
        self.header_offsets = None
        self.header_valid = None
        self.has_header_room = False
        self.owner = None

    def append(
        self,
        payload: object,
        count: int,
        base_offset: int,
        base_timestamp: int,
        is_append_time: bool,
        first: int,
        end: int,
    ) -> None:
        """Append the records with offsets from `first` until `end` of a batch of `count`; see `fault` afterwards.

        With LogAppendTime `base_timestamp` is every record's. `next_offset` follows the last record looked at.
        """
        self.open(payload, count)
        self.next_offset = first
        with cython.nogil:
            self.append_all(base_offset, base_timestamp, is_append_time, first, end)

    def append_all(self, base_offset: int, base_timestamp: int, is_append_time: bool, first: int, end: int) -> None:
        """Append the records with offsets from `first` until `end` of the opened batch. Needs no GIL."""
        while self.advance():
            offset = wrapped(base_offset + self.offset_delta)
            if offset < first or offset >= end:
                if self.header_count and not self.skip_headers():
                    return
                continue
            row = self.rows
            self.keys.put(self, self.key_at, self.key_size)
            self.values.put(self, self.value_at, self.value_size)
            if self.header_count and not self.put_headers():
                self.keys.forget(row)
                self.values.forget(row)
                return
            self.offsets[row] = offset
            self.timestamps[row] = self.scaled(
                base_timestamp if is_append_time else wrapped(base_timestamp + self.timestamp_delta)
            )
            if self.has_header_room:
                self.end_headers(row)
            self.rows = row + 1
            self.next_offset = wrapped(offset + 1)

    def forget(self, rows: int) -> None:
        """Take back all but the first `rows`. Those taken back must have no headers."""
        self.keys.forget(rows)
        self.values.forget(rows)
        self.rows = rows

    def scaled(self, timestamp_ms: int) -> int:
        """In the column's unit; what 64 bits cannot hold becomes the nearest they can."""
        if self.scale == 1:
            return timestamp_ms
        if timestamp_ms > _MAX_SCALED:
            return _MAX_SCALED * 1000
        if timestamp_ms < -_MAX_SCALED:
            return -_MAX_SCALED * 1000
        return timestamp_ms * 1000

    def end_headers(self, row: int) -> None:
        """Close the row's headers; a record without headers has a null list, as in Spark."""
        if self.header_count:
            self.header_valid[row >> 3] |= 1 << (row & 7)
        else:
            self.headerless_count += 1
        self.header_offsets[row + 1] = self.header_keys.rows

    def skip_headers(self) -> bool:
        """Pass over the headers of one record; False when they are malformed."""
        left = self.header_count
        while left > 0:
            if not self.advance_header():
                return False
            left -= 1
        return self.finish()

    def put_headers(self) -> bool:
        """Append the record's headers; all or none."""
        if not self.with_headers:
            return self.skip_headers()
        if not self.has_header_room:
            self.wants_header_room = True
            return False
        left = self.header_count
        before = self.header_keys.rows
        while left > 0 and self.advance_header():
            self.header_keys.put(self, self.key_at, self.key_size)
            self.header_values.put(self, self.value_at, self.value_size)
            left -= 1
        if left == 0 and self.finish():
            return True
        self.header_keys.forget(before)
        self.header_values.forget(before)
        return False


def fill_offsets(offsets: memoryview, row: int, rows: int, step: int) -> None:
    """Give `rows` values of `step` bytes each to a column of 32-bit offsets, from `row` on."""
    value = offsets[row]
    for index in range(row + 1, row + rows + 1):
        value += step
        offsets[index] = value
