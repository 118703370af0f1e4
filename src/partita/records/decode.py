# cython: boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
# mypy: disable-error-code="attr-defined, index"
"""Records as Python objects, made on demand.

Compiled by Cython when a compiler is there; the same file runs uncompiled.
Upstream: DefaultRecord, DefaultRecordBatch, ConsumerRecord.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from partita.records.header import BatchHeader, corrupt

if TYPE_CHECKING:  # Cython's own types would take those of Record's fields away
    from partita.records.uncompiled import cython
else:
    try:
        import cython
    except ImportError:
        from partita.records.uncompiled import cython

if not cython.compiled:
    from partita.records.scanner import RecordScanner, wrapped
    from partita.records.uncompiled import untrack

COMPILED: bool = cython.compiled
"""Whether this module runs as machine code."""


# As many are kept as a large poll gives: those made anew count for the collector, which after 700 looks at them all.
@cython.freelist(16384)
@cython.cclass
class Record:
    """One record as a consumer gets it. `headers` keeps order and duplicates; a null value is a tombstone.

    `timestamp` is in ms since 1970; `timestamp_type` is 0 where the producer set it (CreateTime), 1 where the broker
    did (LogAppendTime), -1 for none. The serialized sizes are those of key and value in bytes as they came, whatever
    a deserializer made of them; -1 for null.
    """

    __slots__ = (
        "headers", "key", "leader_epoch", "offset", "partition", "serialized_key_size", "serialized_value_size",
        "timestamp", "timestamp_type", "topic", "value",
    )  # fmt: skip

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
        serialized_key_size: int | None = None,
        serialized_value_size: int | None = None,
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
        self.serialized_key_size = _size(key) if serialized_key_size is None else serialized_key_size
        self.serialized_value_size = _size(value) if serialized_value_size is None else serialized_value_size

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
            self.serialized_key_size,
            self.serialized_value_size,
        )

    @classmethod
    def __class_getitem__(cls, types: object) -> type[Record]:
        """`ConsumerRecord[str, bytes]` in annotations; checkers know more of it."""
        return cls

    def __reduce__(self) -> tuple[type[Record], tuple[object, ...]]:
        return Record, self._fields()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self._fields() == other._fields()

    __hash__ = None  # type: ignore[assignment]  # how Python marks a class as unhashable

    def __repr__(self) -> str:
        where = f"{self.topic}-{self.partition}@{self.offset}"
        return f"Record({where}, timestamp={self.timestamp}, key={self.key!r}, value={self.value!r})"


def _size(data: object) -> int:
    """The size of bytes; -1 for what is none."""
    return len(data) if isinstance(data, bytes) else -1


class RecordReader(RecordScanner):
    """Makes Record objects of one data batch, a few at a time. Records below `from_offset` are passed over."""

    __slots__ = ("epoch", "first_offset", "first_timestamp", "from_offset", "partition", "timestamp_type", "topic")

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

    def record(self, offset: int) -> Record | None:
        """Build a Record at the scanner's place; None if its headers are malformed."""
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
        record.serialized_key_size = -1 if self.key_size < 0 else self.key_size
        record.serialized_value_size = -1 if self.value_size < 0 else self.value_size
        record.leader_epoch = self.epoch
        record.headers = ()
        if self.header_count:
            record.headers = self.headers()
            if not self.finish():
                return None
        # Bytes and text are in no cycle. The collector, which looked at every record, took a third of a poll's time.
        untrack(record)
        return record

    def headers(self) -> tuple[tuple[str, bytes | None], ...]:
        """Read the headers of one record as (name, value) pairs."""
        found = []
        left = self.header_count
        while left > 0 and self.advance_header():
            key = self.data[self.key_at : self.key_at + self.key_size].decode("utf-8", "replace")
            value = None if self.value_size < 0 else self.data[self.value_at : self.value_at + self.value_size]
            found.append((key, value))
            left -= 1
        return tuple(found)
