# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True, freethreading_compatible=True
# mypy: disable-error-code="attr-defined, index, assignment"
"""Copy the records of batches straight into Arrow's column buffers, with no Python object per record.

Compiled by Cython when a compiler is there (its types: columns.pxd); the same file runs uncompiled.
"""

from __future__ import annotations

from collections.abc import Callable

try:
    import cython
except ImportError:
    from partita.records.uncompiled import cython

if cython.compiled:
    from cython.cimports.libc.string import memcpy
else:
    from partita.records.scanner import RecordScanner, wrapped

_MAX_SCALED: int = 9223372036854775
_HEADER_SIZE: int = 61
_MIN_RECORD_SIZE: int = 7
_SPECIAL: int = 0x27
"""The attributes of compressed batches and of control batches."""
_APPEND_TIME: int = 0x08
_MAX_BASE: int = 1 << 62
"""Numbers of records behind such an offset would not fit into 64 bits."""


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
            # Bits are set at first and cleared for nulls, so taking a row back sets its bit again.
            self.valid[self.rows >> 3] |= 1 << (self.rows & 7)
        self.size = self.offsets[rows]


class ColumnWriter(RecordScanner):
    """Appends batches to columns of fixed width and, through BytesColumn, of keys, values and headers.

    Most records have no headers: at the first one that has, `append` stops with `wants_header_room`, and goes on once
    the batch is forgotten, `attach_headers` was called and the batch appended again.
    """

    __slots__ = (
        "has_header_room", "header_keys", "header_offsets", "header_valid", "header_values", "headerless_count", "keys",
        "next_offset", "noted", "offsets", "rows", "runs", "scale", "timestamps", "values", "wants_header_room",
        "with_headers",
    )  # fmt: skip

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
        self.rows = self.headerless_count = self.noted = 0
        self.runs: list[tuple[int, int, int]] = []
        """Timestamp type, leader epoch, and how many records in a row have them."""
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
        # Other threads go on meanwhile: decoding an answer takes milliseconds, and heartbeats must not wait for it.
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
                # The record does not count: it is appended again as a whole once there is room for headers, or it was
                # faulty.
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
            # Of the last record looked at, so that a reader goes on behind it even where the rest of the batch is
            # passed over.
            self.next_offset = wrapped(offset + 1)

    def append_plain(
        self,
        answer: memoryview,
        pos: int,
        first: int,
        end: int,
        crc32c: Callable[[memoryview], int] | None,
        skips_producers: bool,
    ) -> int:
        """Append whole batches from byte `pos` of an answer on, as long as nothing is special about them.

        Returns where it stopped: at the end, or at a batch that others have to look at, of which nothing is
        appended then. That is one without room in the columns, of another magic, compressed, with control records or
        headers, faulty in any way, cut short, or from offset `end` on; with `skips_producers` also one of an
        idempotent producer. `next_offset` is what is wanted afterwards; `first` is what is wanted now. `crc32c` is
        None if checksums do not count.
        """
        self.next_offset = wanted = first
        if self.has_header_room:
            return pos
        view = answer
        size = view.shape[0]
        is_open = False
        while size - pos >= _HEADER_SIZE:
            length = number(view, pos + 8, 4)
            following = pos + 12 + length
            attributes = number(view, pos + 21, 2)
            if length < _HEADER_SIZE - 12 or following > size or view[pos + 16] != 2 or attributes & _SPECIAL:
                break
            base, delta = number(view, pos, 8), number(view, pos + 23, 4)
            if base < 0 or base >= end or base > _MAX_BASE or delta < 0:
                break
            if skips_producers and number(view, pos + 43, 8) >= 0:
                break
            if crc32c is not None and crc32c(answer[pos + 21 : following]) != number(view, pos + 17, 4) & 0xFFFFFFFF:
                break
            if base + delta >= wanted:
                count = number(view, pos + 57, 4)
                if count < 0 or not self.has_room(count, following - pos - _HEADER_SIZE):
                    break
                if not is_open:
                    self.open(answer, 0)
                    is_open = True
                self.pos, self.end, self.left = pos + _HEADER_SIZE, following, count
                is_append_time = attributes & _APPEND_TIME != 0
                if not self.append_one(base, number(view, pos + (35 if is_append_time else 27), 8), is_append_time,
                                       wanted, end):  # fmt: skip
                    break
                self.note_run(1 if is_append_time else 0, number(view, pos + 12, 4))
                wanted = base + delta + 1
            pos = following
        self.next_offset = wanted
        return pos

    def append_one(self, base_offset: int, timestamp: int, is_append_time: bool, first: int, end: int) -> bool:
        """Append the records of a batch that `pos`, `end` and `left` delimit: all or, if something is special, none."""
        before = self.rows
        with cython.nogil:
            self.append_all(base_offset, timestamp, is_append_time, first, end)
        if self.fault is None and not self.wants_header_room:
            return True
        self.forget(before)
        self.fault = None
        self.wants_header_room = False
        return False

    def has_room(self, rows: int, size: int) -> bool:
        """Do the columns have room for so many more records of `size` bytes altogether?"""
        keys, values = self.keys, self.values
        rows = min(rows, size // _MIN_RECORD_SIZE) + self.rows
        return (
            rows <= self.offsets.shape[0]
            and rows < keys.offsets.shape[0]
            and rows < values.offsets.shape[0]
            and keys.size + size <= keys.written.shape[0]
            and values.size + size <= values.written.shape[0]
        )

    def note_run(self, timestamp_type: int, leader_epoch: int) -> None:
        """The records since the last call have this timestamp type and leader epoch."""
        rows = self.rows - self.noted
        self.noted = self.rows
        before = self.runs.pop() if self.runs else (timestamp_type, leader_epoch, 0)
        if before[0] == timestamp_type and before[1] == leader_epoch:
            rows += before[2]
        else:
            self.runs.append(before)
        self.runs.append((timestamp_type, leader_epoch, rows))

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


def number(view: memoryview, at: int, width: int) -> int:
    """The signed number of 2, 4 or 8 bytes that stands there, its most significant byte first."""
    if not cython.compiled:
        return int.from_bytes(view[at : at + width], "big", signed=True)
    value = view[at]
    if value >= 0x80:
        value -= 0x100
    for index in range(at + 1, at + width):
        value = value * 256 + view[index]
    return value


def fill_offsets(offsets: memoryview, row: int, rows: int, step: int) -> None:
    """Give `rows` values of `step` bytes each to a column of 32-bit offsets, from `row` on."""
    value = offsets[row]
    for index in range(row + 1, row + rows + 1):
        value += step
        offsets[index] = value
