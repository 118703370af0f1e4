# cython: boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
# mypy: disable-error-code="untyped-decorator, no-any-return, valid-type, attr-defined, index"
"""Records inside a batch: found by position, made into objects, or copied straight into Arrow's columns.

Compiled by Cython when a compiler is there; the same file runs uncompiled. `RecordScanner` finds the fields of one
record after the other and checks them; `RecordReader` makes `Record` objects of them on demand.
Upstream: DefaultRecord, DefaultRecordBatch.
Must not know about codecs, checksums, fetches or pyarrow.
"""

from __future__ import annotations

from partita.records.header import BatchHeader, corrupt

try:
    import cython  # type: ignore[import-untyped]
except ImportError:
    from partita.records.uncompiled import cython

COMPILED: bool = cython.compiled
"""Whether this module runs as machine code."""


@cython.freelist(1024)
@cython.cclass
class Record:
    """One record as a consumer gets it. `headers` keeps order and duplicates; a null value is a tombstone."""

    __slots__ = (
        "headers",
        "key",
        "leader_epoch",
        "offset",
        "partition",
        "timestamp",
        "timestamp_type",
        "topic",
        "value",
    )

    if cython.compiled:
        topic = cython.declare(object, visibility="public")
        partition = cython.declare(cython.int, visibility="public")
        offset = cython.declare(cython.longlong, visibility="public")
        timestamp = cython.declare(cython.longlong, visibility="public")
        timestamp_type = cython.declare(cython.int, visibility="public")
        key = cython.declare(object, visibility="public")
        value = cython.declare(object, visibility="public")
        headers = cython.declare(object, visibility="public")
        leader_epoch = cython.declare(cython.int, visibility="public")

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        timestamp: int,
        timestamp_type: int,
        key: object,
        value: object,
        headers: tuple[tuple[str, bytes | None], ...] = (),
        leader_epoch: int = -1,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestamp = timestamp
        self.timestamp_type = timestamp_type
        self.key = key
        self.value = value
        self.headers = headers
        self.leader_epoch = leader_epoch

    def _fields(self) -> tuple[object, ...]:
        return (
            self.topic,
            self.partition,
            self.offset,
            self.timestamp,
            self.timestamp_type,
            self.key,
            self.value,
            self.headers,
            self.leader_epoch,
        )

    def __reduce__(self) -> tuple[type[Record], tuple[object, ...]]:
        return Record, self._fields()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self._fields() == other._fields()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        where = f"{self.topic}-{self.partition}@{self.offset}"
        return f"Record({where}, timestamp={self.timestamp}, key={self.key!r}, value={self.value!r})"


@cython.cclass
class RecordScanner:
    """Walks the records of one uncompressed payload; `advance` puts the next one's positions into the fields.

    `fault` says why the walk ended early. Sizes below 0 are nulls. Positions count from the payload's start.
    """

    __slots__ = (
        "data",
        "end",
        "fault",
        "header_count",
        "key_at",
        "key_size",
        "left",
        "offset_delta",
        "owner",
        "pos",
        "record_end",
        "timestamp_delta",
        "value_at",
        "value_size",
    )

    if cython.compiled:
        data = cython.declare(cython.p_const_uchar)
        owner = cython.declare(object)
        fault = cython.declare(object, visibility="public")
        pos = cython.declare(cython.Py_ssize_t)
        end = cython.declare(cython.Py_ssize_t)
        left = cython.declare(cython.Py_ssize_t)
        record_end = cython.declare(cython.Py_ssize_t)
        timestamp_delta = cython.declare(cython.longlong)
        offset_delta = cython.declare(cython.longlong)
        key_at = cython.declare(cython.Py_ssize_t)
        key_size = cython.declare(cython.longlong)
        value_at = cython.declare(cython.Py_ssize_t)
        value_size = cython.declare(cython.longlong)
        header_count = cython.declare(cython.longlong)

    def __init__(self) -> None:
        self.owner = None
        self.fault = None
        self.pos = self.end = self.left = 0

    @cython.cfunc
    @cython.locals(view="const unsigned char[::1]", count=cython.Py_ssize_t)
    def open(self, payload: object, count: int) -> None:
        """Start over with another payload of `count` records."""
        if cython.compiled:
            view = payload
            self.owner = view
            self.data = cython.address(view[0])
            self.end = view.shape[0]
        else:
            self.data = self.owner = bytes(payload)  # type: ignore[call-overload]
            self.end = len(self.data)
        self.pos = 0
        self.left = count
        self.fault = None if count >= 0 else f"negative record count {count}"

    @cython.cfunc
    @cython.inline
    @cython.returns(cython.longlong)
    @cython.exceptval(check=False)
    @cython.locals(value=cython.ulonglong, shift=cython.int, byte=cython.ulonglong, data=cython.p_const_uchar)
    def varint(self, bits: cython.int) -> int:
        """A zig-zag varint of 32 or 64 bits."""
        data = self.data
        value = 0
        shift = 0
        while self.pos < self.end:
            byte = data[self.pos]
            self.pos += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if bits == 32:
                    value &= 0xFFFFFFFF
                elif not cython.compiled:
                    value &= 0xFFFFFFFFFFFFFFFF
                return cython.cast(cython.longlong, value >> 1) ^ -cython.cast(cython.longlong, value & 1)
            shift += 7
            if shift >= bits:
                self.fault = f"varint longer than {bits} bits"
                return -1
        self.fault = "record cut short"
        return -1

    @cython.cfunc
    @cython.returns(cython.bint)
    @cython.exceptval(check=False)
    @cython.locals(size=cython.longlong)
    def advance(self) -> bool:
        """Find the next record; False when there is none or it is faulty."""
        if self.left <= 0 or self.fault is not None:
            return False
        self.left -= 1
        size = self.varint(32)
        if size < 0 or size > self.end - self.pos:
            return self.fail("record length", size)
        self.record_end = self.pos + size
        self.pos += 1
        self.timestamp_delta = self.varint(64)
        self.offset_delta = self.varint(32)
        self.key_size = self.varint(32)
        self.key_at = self.pos
        if self.key_size > 0:
            if self.key_size > self.record_end - self.pos:
                return self.fail("key length", self.key_size)
            self.pos += self.key_size
        self.value_size = self.varint(32)
        self.value_at = self.pos
        if self.value_size > 0:
            if self.value_size > self.record_end - self.pos:
                return self.fail("value length", self.value_size)
            self.pos += self.value_size
        self.header_count = self.varint(32)
        if self.fault is not None:
            return False
        if self.header_count < 0 or self.header_count > self.record_end - self.pos:
            return self.fail("header count", self.header_count)
        return True if self.header_count else self.finish()

    @cython.cfunc
    @cython.returns(cython.bint)
    @cython.exceptval(check=False)
    def advance_header(self) -> bool:
        """Find the next header of the record found last; its key and value use the record's fields."""
        self.key_size = self.varint(32)
        self.key_at = self.pos
        if self.key_size < 0 or self.key_size > self.record_end - self.pos:
            return self.fail("header key length", self.key_size)
        self.pos += self.key_size
        self.value_size = self.varint(32)
        self.value_at = self.pos
        if self.value_size > 0:
            if self.value_size > self.record_end - self.pos:
                return self.fail("header value length", self.value_size)
            self.pos += self.value_size
        return self.fault is None

    @cython.cfunc
    @cython.inline
    @cython.returns(cython.bint)
    @cython.exceptval(check=False)
    def finish(self) -> bool:
        """After a record's headers: it must end where it said, and the last one where the payload ends."""
        if self.pos != self.record_end:
            return self.fail("record end", self.record_end)
        if self.left == 0 and self.pos != self.end:
            return self.fail("payload end", self.end)
        return True

    @cython.cfunc
    @cython.returns(cython.bint)
    @cython.exceptval(check=False)
    def fail(self, what: str, found: cython.longlong) -> bool:
        if self.fault is None:
            self.fault = f"{what} {found} does not fit at byte {self.pos} of {self.end}"
        return False


@cython.cclass
class RecordReader(RecordScanner):
    """Makes Record objects of one data batch, a few at a time. Records below `from_offset` are passed over."""

    __slots__ = ("epoch", "first_offset", "first_timestamp", "from_offset", "partition", "timestamp_type", "topic")

    if cython.compiled:
        topic = cython.declare(object)
        partition = cython.declare(cython.int)
        epoch = cython.declare(cython.int)
        timestamp_type = cython.declare(cython.int)
        first_offset = cython.declare(cython.longlong)
        first_timestamp = cython.declare(cython.longlong)
        from_offset = cython.declare(cython.longlong)

    def __init__(
        self, header: BatchHeader, payload: object, *, topic: str = "", partition: int = -1, from_offset: int = -(2**63)
    ) -> None:
        self.open(payload, header.records_count)
        self.topic = topic
        self.partition = partition
        self.epoch = header.partition_leader_epoch
        self.timestamp_type = header.timestamp_type
        self.first_offset = header.base_offset
        self.first_timestamp = header.max_timestamp if header.timestamp_type == 1 else header.base_timestamp
        self.from_offset = from_offset

    @cython.locals(offset=cython.longlong, room=cython.Py_ssize_t)
    def take(self, limit: int) -> list[Record]:
        """The next records, at most `limit`; fewer only at the end. A fault is raised by the next call after it."""
        room = limit
        taken: list[Record] = []
        if self.fault is not None and room > 0:
            raise corrupt(self.fault)
        while room > 0 and self.advance():
            offset = wrapped(self.first_offset + self.offset_delta)
            record = self.record(offset)
            if record is None:
                break
            if offset >= self.from_offset:
                taken.append(record)
                room -= 1
        if not taken and self.fault is not None and room > 0:
            raise corrupt(self.fault)
        return taken

    @cython.cfunc
    @cython.locals(offset=cython.longlong, record=Record)
    def record(self, offset: int) -> Record | None:
        record = Record.__new__(Record)
        record.topic = self.topic
        record.partition = self.partition
        record.offset = offset
        record.timestamp_type = self.timestamp_type
        record.timestamp = self.first_timestamp
        if self.timestamp_type != 1:
            record.timestamp = wrapped(self.first_timestamp + self.timestamp_delta)
        record.key = None if self.key_size < 0 else self.data[self.key_at : self.key_at + self.key_size]
        record.value = None if self.value_size < 0 else self.data[self.value_at : self.value_at + self.value_size]
        record.leader_epoch = self.epoch
        record.headers = ()
        if self.header_count:
            record.headers = self.headers()
            if not self.finish():
                return None
        return record

    @cython.cfunc
    @cython.locals(left=cython.longlong)
    def headers(self) -> tuple[tuple[str, bytes | None], ...]:
        found = []
        left = self.header_count
        while left > 0 and self.advance_header():
            key = self.data[self.key_at : self.key_at + self.key_size].decode("utf-8", "replace")
            value = None if self.value_size < 0 else self.data[self.value_at : self.value_at + self.value_size]
            found.append((key, value))
            left -= 1
        return tuple(found)


@cython.cfunc
@cython.inline
@cython.returns(cython.longlong)
@cython.exceptval(check=False)
def wrapped(value: cython.longlong) -> int:
    """The number as 64 bits hold it; machine code wraps by itself."""
    if not cython.compiled and not -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF:
        value = (value + 0x8000000000000000) % 0x10000000000000000 - 0x8000000000000000
    return value
