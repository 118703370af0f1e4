# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True, freethreading_compatible=True
# mypy: disable-error-code="attr-defined, index, assignment, call-overload, operator, union-attr"
"""Columns that grow by one value at a time, and shrink again when a record turns out to be malformed.

Compiled by Cython when a compiler is there (its types: cells.pxd); the same file runs uncompiled. Arrow arrays are made
of them in `filled`.
"""

from __future__ import annotations

from collections.abc import Sequence

try:
    import cython
except ImportError:
    from partita.records.uncompiled import cython

from partita.records.column_memory import Memory

if cython.compiled:
    from cython.cimports.libc.string import memcpy

_TEXT_MAX: int = 0x7FFFFFFF
"""Bytes that 32-bit offsets can address."""
_LOW_64: int = 0xFFFFFFFFFFFFFFFF


class Cells:
    """Rows so far, and which of them are null. The kinds of columns below add their values."""

    __slots__ = ("bits", "null_count", "room", "rows", "valid")

    def __init__(self) -> None:
        self.rows = self.null_count = self.room = 0
        self.bits: Memory | None = None
        self.valid = None

    def begin(self, room: int) -> None:
        """Start an empty column, with memory for so many rows to begin with."""
        self.rows = self.null_count = 0
        self.room = (max(room, 1) + 7) & -8
        self.bits = Memory("B", 1, self.room >> 3, b"\xff")
        self.valid = self.bits.view

    def grow(self) -> None:
        """Twice the room."""
        self.room *= 2
        self.bits.grow(self.room >> 3)
        self.valid = self.bits.view

    def null(self) -> None:
        """Append a null."""
        if self.rows == self.room:
            self.grow()
        self.valid[self.rows >> 3] &= 0xFF ^ (1 << (self.rows & 7))
        self.null_count += 1
        self.step()

    def step(self) -> None:
        """End a row whose value is in place, or null."""
        self.rows += 1

    def forget(self, rows: int) -> None:
        """Take back all but the first `rows`; null_count stays too high, which only costs a bitmap."""
        while self.rows > rows:
            self.rows -= 1
            self.valid[self.rows >> 3] |= 1 << (self.rows & 7)


class Whole(Cells):
    """Whole numbers of 64 bits, which also hold smaller ones, booleans, dates and timestamps."""

    __slots__ = ("memory", "numbers")

    def begin(self, room: int) -> None:
        Cells.begin(self, room)
        self.memory = Memory("q", 8, self.room)
        self.numbers = self.memory.view

    def grow(self) -> None:
        Cells.grow(self)
        self.memory.grow(self.room)
        self.numbers = self.memory.view

    def put(self, number: int) -> None:
        """Append a number."""
        if self.rows == self.room:
            self.grow()
        self.numbers[self.rows] = number
        self.rows += 1


class Real(Cells):
    """Floating-point numbers of 64 bits."""

    __slots__ = ("memory", "numbers")

    def begin(self, room: int) -> None:
        Cells.begin(self, room)
        self.memory = Memory("d", 8, self.room)
        self.numbers = self.memory.view

    def grow(self) -> None:
        Cells.grow(self)
        self.memory.grow(self.room)
        self.numbers = self.memory.view

    def put(self, number: float) -> None:
        """Append a number."""
        if self.rows == self.room:
            self.grow()
        self.numbers[self.rows] = number
        self.rows += 1


class Wide(Cells):
    """Whole numbers of 128 bits: decimals without their point."""

    __slots__ = ("memory", "numbers")

    def begin(self, room: int) -> None:
        Cells.begin(self, room)
        self.memory = Memory("q", 8, 2 * self.room)
        self.numbers = self.memory.view

    def grow(self) -> None:
        Cells.grow(self)
        self.memory.grow(2 * self.room)
        self.numbers = self.memory.view

    def put(self, number: int) -> None:
        """Append a number that 64 bits hold."""
        if self.rows == self.room:
            self.grow()
        self.numbers[2 * self.rows] = number
        self.numbers[2 * self.rows + 1] = -1 if number < 0 else 0
        self.rows += 1

    def put_wide(self, number: int) -> None:
        """Append any number that 128 bits hold, lower half first."""
        self.put(0)
        low = number & _LOW_64
        self.numbers[2 * self.rows - 2] = low - 2**64 if low >= 2**63 else low
        self.numbers[2 * self.rows - 1] = number >> 64


class Text(Cells):
    """Bytes or text: 32-bit offsets and the bytes."""

    __slots__ = ("memory", "offsets", "place", "size", "space", "written")

    def begin(self, room: int) -> None:
        Cells.begin(self, room)
        self.size = 0
        self.space = 16 * self.room
        self.place = Memory("i", 4, self.room + 1)
        self.offsets = self.place.view
        self.offsets[0] = 0
        self.memory = Memory("B", 1, self.space)
        self.written = self.memory.view

    def grow(self) -> None:
        Cells.grow(self)
        self.place.grow(self.room + 1)
        self.offsets = self.place.view

    def widen(self, size: int) -> None:
        """Room for so many more bytes. Raises OverflowError beyond what 32-bit offsets address."""
        if self.size + size > _TEXT_MAX:
            raise OverflowError("a column of one batch would have more than 2 GB; read smaller batches")
        self.space = min(max(2 * self.space, self.size + size), _TEXT_MAX)
        self.memory.grow(self.space)
        self.written = self.memory.view

    def step(self) -> None:
        self.rows += 1
        self.offsets[self.rows] = self.size

    def put(self, data: bytes, at: int, size: int) -> None:
        """Append so many bytes of `data`, from `at` on."""
        if self.rows == self.room:
            self.grow()
        if size > self.space - self.size:
            self.widen(size)
        if cython.compiled:
            memcpy(cython.address(self.written[self.size]), data + at, size)
        else:
            self.written[self.size : self.size + size] = data[at : at + size]
        self.size += size
        self.rows += 1
        self.offsets[self.rows] = self.size

    def cut(self, size: int) -> None:
        """Have the last value end where the bytes of all are so many."""
        self.size = self.offsets[self.rows] = size

    def put_bytes(self, value: bytes) -> None:
        """Append a whole object."""
        self.put(value, 0, len(value))

    def forget(self, rows: int) -> None:
        Cells.forget(self, rows)
        self.size = self.offsets[self.rows]


class Listed(Cells):
    """Lists: offsets into a column of their elements. A map is a list of key and value."""

    __slots__ = ("item", "offsets", "place")

    def __init__(self, item: Cells) -> None:
        Cells.__init__(self)
        self.item = item

    def begin(self, room: int) -> None:
        Cells.begin(self, room)
        self.place = Memory("i", 4, self.room + 1)
        self.offsets = self.place.view
        self.offsets[0] = 0
        self.item.begin(room)

    def grow(self) -> None:
        Cells.grow(self)
        self.place.grow(self.room + 1)
        self.offsets = self.place.view

    def step(self) -> None:
        """End the list with the elements that were appended since the last one."""
        if self.rows == self.room:
            self.grow()
        self.rows += 1
        self.offsets[self.rows] = self.item.rows

    def forget(self, rows: int) -> None:
        Cells.forget(self, rows)
        self.item.forget(self.offsets[self.rows])


class Struct(Cells):
    """Rows of several columns."""

    __slots__ = ("columns",)

    def __init__(self, columns: Sequence[Cells]) -> None:
        Cells.__init__(self)
        self.columns = list(columns)

    def begin(self, room: int) -> None:
        Cells.begin(self, room)
        for column in self.columns:
            column.begin(room)

    def step(self) -> None:
        """End a row: columns that got no value in it have null."""
        if self.rows == self.room:
            self.grow()
        self.rows += 1
        self.fill_up()

    def fill_up(self) -> None:
        """Give null to the columns that are behind."""
        for column in self.columns:
            if column.rows < self.rows:
                column.null()

    def forget(self, rows: int) -> None:
        Cells.forget(self, rows)
        # Also of a row that is not ended yet: a list in it may have elements already.
        for column in self.columns:
            column.forget(rows)
