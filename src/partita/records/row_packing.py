# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True, freethreading_compatible=True
# mypy: disable-error-code="attr-defined, index, assignment"
"""From columns of rows to encoded records and hashes of keys, with no Python object per record.

Compiled by Cython when a compiler is there (its types: row_packing.pxd); the same file runs uncompiled, much slower
than Arrow's own functions do the same. The way back is `partita.records.columns`.
Upstream: DefaultRecord.writeTo, Utils.murmur2.
"""

from __future__ import annotations

from partita.records.header import HEADER_SIZE

try:
    import cython
except ImportError:
    from partita.records.uncompiled import cython

if cython.compiled:
    from cython.cimports.libc.string import memcpy

COMPILED: bool = cython.compiled
"""Whether this module runs as machine code."""
RECORD_OVERHEAD_MAX: int = 32
"""Bytes of a record besides key, value and headers: four varints of five bytes, attributes, one of ten for the time."""
_HEADER_SIZE: int = HEADER_SIZE
_RECORD_OVERHEAD_MAX: int = RECORD_OVERHEAD_MAX
_HEADER_OVERHEAD_MAX: int = 10
_COUNT_MAX: int = 5
_M: int = 0x5BD1E995
_MASK: int = 0xFFFFFFFF
_SEED: int = 0x9747B28C


class Cells:
    """A nullable column of bytes or of lists, as Arrow lays it out; its row 0 is at `first`.

    `offsets` are 32-bit integers, `data` and the bitmap `valid` bytes; without `valid` nothing is null. Lists have no
    `data`: their offsets count entries. Nothing is checked, the buffers have to be as long as the offsets say.
    """

    __slots__ = ("data", "first", "has_nulls", "offsets", "rows", "valid")

    def __init__(self, offsets: object, data: object, valid: object, first: int, rows: int) -> None:
        self.offsets = offsets
        self.data = data
        self.valid = valid
        self.has_nulls = valid is not None
        self.first = first
        self.rows = rows

    def begin(self, row: int) -> int:
        """Start of the row."""
        return self.offsets[self.first + row]  # type: ignore[no-any-return]  # a buffer of integers

    def size(self, row: int) -> int:
        """Bytes or entries of the row; -1 for null."""
        at = self.first + row
        if self.has_nulls and not self.valid[at >> 3] & (1 << (at & 7)):
            return -1
        return self.offsets[at + 1] - self.offsets[at]  # type: ignore[no-any-return]  # a buffer of integers

    def get(self, row: int) -> bytes | None:
        """The bytes of the row; None for null."""
        size = self.size(row)
        begin = self.begin(row)
        return None if size < 0 else bytes(self.data[begin : begin + size])

    def hash(self, row: int) -> int:
        """Kafka's murmur2 of the row, which is not null."""
        begin = self.begin(row)
        return murmur2_of(self.data, begin, begin + self.size(row), _SEED)


class Output:
    """Bytes written one behind the other into a buffer that is large enough: `reserve` makes it so."""

    __slots__ = ("at", "out")

    def __init__(self, room: int) -> None:
        self.out = bytearray(max(1, room))
        self.at = 0

    def reserve(self, more: int) -> None:
        """Make room for so many more bytes; the buffer doubles."""
        if self.at + more > len(self.out):
            old = self.out
            self.out = bytearray(max(2 * len(old), self.at + more))
            self.out[: self.at] = old[: self.at]

    def put_byte(self, byte: int) -> None:
        """Append one byte."""
        self.out[self.at] = byte
        self.at += 1

    def put_varint(self, number: int) -> None:
        """Append a zig-zag varint."""
        zigzag = (number << 1) ^ (number >> 63)
        while zigzag > 0x7F:
            self.out[self.at] = zigzag & 0x7F | 0x80
            self.at += 1
            zigzag >>= 7
        self.out[self.at] = zigzag
        self.at += 1

    def put_bytes(self, data: bytes | None, size: int) -> None:
        """Append bytes, `size` of them; none for -1."""
        if size <= 0:
            return
        if cython.compiled:
            source = data
            memcpy(cython.address(self.out[self.at]), source, size)
        else:
            self.out[self.at : self.at + size] = data
        self.at += size

    def put_cell(self, cells: Cells, row: int, size: int) -> None:
        """Append the bytes of a row, `size` of them; none for null."""
        if size <= 0:
            return
        begin = cells.begin(row)
        if cython.compiled:
            memcpy(cython.address(self.out[self.at]), cython.address(cells.data[begin]), size)
        else:
            self.out[self.at : self.at + size] = bytes(cells.data[begin : begin + size])
        self.at += size

    def put_row(self, keys: Cells, values: Cells, headers: Cells | None, row: int, index: int, delta: int) -> None:
        """Append a record with its length in front."""
        key_size = keys.size(row)
        value_size = values.size(row)
        rest = 1 if headers is None else headers.size(row)
        self.put_varint(record_size(index, delta, key_size, value_size, rest))
        self.put_byte(0)
        self.put_varint(delta)
        self.put_varint(index)
        self.put_varint(key_size)
        self.put_cell(keys, row, key_size)
        self.put_varint(value_size)
        self.put_cell(values, row, value_size)
        if headers is None:
            self.put_byte(0)
        else:
            self.put_cell(headers, row, rest)

    def taken(self) -> memoryview:
        """Return the bytes written."""
        return memoryview(self.out)[: self.at]


class RowEncoder:
    """Encodes rows of one table as records. `headers` are already encoded, their count in front; None: no row has any.

    `times` are 64-bit milliseconds; None: every record has the timestamp of its batch. Rows are named by their places,
    64-bit integers.
    """

    __slots__ = ("has_times", "headers", "keys", "places", "times", "values", "written")

    def __init__(self, keys: Cells, values: Cells, headers: Cells | None, times: object | None) -> None:
        self.keys = keys
        self.values = values
        self.headers = headers
        self.times = None if times is None else view(times)
        self.has_times = times is not None

    def cuts(self, places: object, batch_bytes: int) -> list[int]:
        """Cuts of the rows into batches of at most `batch_bytes`: 0 first, their count last.

        A row that is too large by itself gets a batch of its own.
        """
        self.places = view(places)
        count = len(self.places)
        found = [0]
        reach = index = 0
        while index < count:
            size = self.bound(self.places[index])
            if reach and reach + size > batch_bytes:
                found.append(index)
                reach = 0
            reach += size
            index += 1
        if count:
            found.append(count)
        return found

    def encode(self, places: object) -> memoryview:
        """The records of these rows behind room for a header, with offsets from 0 and times from the first row's on."""
        self.places = view(places)
        count = len(self.places)
        room = _HEADER_SIZE
        index = 0
        while index < count:
            room += self.bound(self.places[index])
            index += 1
        self.written = Output(room)
        self.written.at = _HEADER_SIZE
        with cython.nogil:
            self.encode_all(count)
        return self.written.taken()

    def bound(self, row: int) -> int:
        """At least as many bytes as the record has."""
        size = _RECORD_OVERHEAD_MAX + max(self.keys.size(row), 0) + max(self.values.size(row), 0)
        if self.headers is not None:
            size += self.headers.size(row)
        return size

    def encode_all(self, count: int) -> None:
        """Encode the first `count` of the places. Needs no GIL."""
        index = 0
        delta = 0
        while index < count:
            row = self.places[index]
            if self.has_times:
                delta = self.times[row] - self.times[self.places[0]]
            self.encode_one(row, index, delta)
            index += 1

    def encode_one(self, row: int, index: int, delta: int) -> None:
        """Append one record."""
        self.written.put_row(self.keys, self.values, self.headers, row, index, delta)


def record_size(index: int, delta: int, key_size: int, value_size: int, headers_size: int) -> int:
    """Bytes of a record without the length in front of it. Sizes are -1 for null; the headers have their count."""
    return (
        1
        + varint_size(delta)
        + varint_size(index)
        + varint_size(key_size)
        + max(key_size, 0)
        + varint_size(value_size)
        + max(value_size, 0)
        + headers_size
    )


def varint_size(number: int) -> int:
    """Bytes of a number as a zig-zag varint."""
    zigzag = (number << 1) ^ (number >> 63)
    size = 1
    while zigzag > 0x7F:
        zigzag >>= 7
        size += 1
    return size


def encode_header_lists(lists: Cells, keys: Cells, values: Cells, offsets: object) -> memoryview:
    """The headers of each row, their count in front, one row behind the other; `offsets` gets where each row begins.

    Each entry of a list is the row of that number in `keys`, of which none is null, and `values`. `offsets` is a
    buffer of 32-bit integers, one more than rows.
    """
    bounds = view(offsets)
    room = _COUNT_MAX * lists.rows
    row = 0
    while row < lists.rows:
        entry = lists.begin(row)
        end = entry + max(lists.size(row), 0)
        while entry < end:
            room += _HEADER_OVERHEAD_MAX + keys.size(entry) + max(values.size(entry), 0)
            entry += 1
        row += 1
    written = Output(room)
    row = 0
    while row < lists.rows:
        bounds[row] = written.at
        entry = lists.begin(row)
        end = entry + max(lists.size(row), 0)
        written.put_varint(end - entry)
        while entry < end:
            written.put_varint(keys.size(entry))
            written.put_cell(keys, entry, keys.size(entry))
            written.put_varint(values.size(entry))
            written.put_cell(values, entry, values.size(entry))
            entry += 1
        row += 1
    bounds[row] = written.at
    return written.taken()


def hash_all(offsets: object, data: object, seed: int, hashes: object) -> None:
    """Kafka's murmur2 of each cell: cell i is `data[offsets[i]:offsets[i + 1]]`.

    `offsets` are 64-bit integers, one more than there are cells; `hashes` gets 32-bit unsigned ones.
    """
    starts, read, found = view(offsets), view(data), view(hashes)
    rows = len(starts) - 1
    for row in range(rows):
        found[row] = murmur2_of(read, starts[row], starts[row + 1], seed)


def murmur2_of(read: object, at: int, end: int, seed: int) -> int:
    """Kafka's murmur2 of `read[at:end]`."""
    rest = (end - at) & 3
    h = seed ^ (end - at)
    while at < end - rest:
        k = read[at] | read[at + 1] << 8 | read[at + 2] << 16 | read[at + 3] << 24
        k = k * _M & _MASK
        h = (h * _M & _MASK) ^ ((k ^ k >> 24) * _M & _MASK)
        at += 4
    if rest:
        k = read[at]
        if rest > 1:
            k |= read[at + 1] << 8
        if rest > 2:
            k |= read[at + 2] << 16
        h = (h ^ k) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


def view(buffer: object) -> memoryview:
    """Any object with the buffer protocol; uncompiled its elements become plain numbers."""
    return memoryview(buffer)  # type: ignore[arg-type]  # numpy's arrays do not say that they have the protocol
