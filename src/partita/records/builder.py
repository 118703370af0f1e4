# cython: freethreading_compatible=True
"""Encode records and build batches of magic 2: one shot (`build_batch`) or record by record (`BatchBuilder`).

Compiled by Cython when a compiler is there (its types: builder.pxd); the same file runs uncompiled.
Upstream: MemoryRecordsBuilder, DefaultRecord.writeTo, EndTransactionMarker.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from partita.protocol.primitives import Buffer
from partita.records.compression import compress
from partita.records.control import marker_key, marker_value
from partita.records.header import CONTROL_BIT, HEADER, HEADER_SIZE, LENGTH_OVERHEAD, TRANSACTIONAL_BIT, seal
from partita.records.row_packing import Cells, Output, record_size, varint_size

try:
    import cython
except ImportError:
    from partita.records.uncompiled import cython

_INT64_LIMIT = 1 << 63

Headers: TypeAlias = Sequence[tuple[str, Buffer | None]]
NewRecord: TypeAlias = tuple[int, Buffer | None, Buffer | None, Headers]
"""Timestamp in ms, key, value, headers."""

_ZERO, _NULL = b"\x00", b"\x01"
_ROOM_AT_FIRST: int = 1024


def varint(value: int) -> bytes:
    """Zig-zag varint of a signed number."""
    value = (value << 1) ^ (value >> 63)
    if value < 0x80:
        return _ONE_BYTE[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_ONE_BYTE = [bytes([number]) for number in range(0x80)]
# Sizes and deltas are small numbers: a table of their bytes is quicker than making them.
_VARINTS = [varint(number) for number in range(512)]


def _size(value: int) -> bytes:
    return _VARINTS[value] if 0 <= value < 512 else varint(value)


def encode_record(
    offset_delta: int, timestamp_delta: int, key: Buffer | None, value: Buffer | None, headers: Headers = ()
) -> bytes:
    """One record with its length in front."""
    delta, place = _size(timestamp_delta), _size(offset_delta)
    key, key_size = (b"", _NULL) if key is None else (key, _size(len(key)))
    value, value_size = (b"", _NULL) if value is None else (value, _size(len(value)))
    more = encode_headers(headers) if headers else _ZERO
    size = 1 + len(delta) + len(place) + len(key_size) + len(key) + len(value_size) + len(value) + len(more)
    return b"".join((_size(size), _ZERO, delta, place, key_size, key, value_size, value, more))


def encode_headers(headers: Headers) -> bytes:
    """The headers of one record, with their count in front."""
    parts: list[Buffer] = [_size(len(headers))]
    for key, value in headers:
        name = key.encode()
        parts += (_size(len(name)), name, _NULL if value is None else _size(len(value)), value or b"")
    return b"".join(parts)


def _wrapped(delta: int) -> int:
    """The difference of two timestamps as 64 bits; readers wrap it back."""
    return (delta + _INT64_LIMIT) % (2 * _INT64_LIMIT) - _INT64_LIMIT


class BatchBuilder:
    """Collects records for one batch of at most `max_bytes`, counted before compression.

    The first record always fits; what is too large for a broker is its own to refuse.
    """

    __slots__ = (
        "_base_timestamp", "_out", "codec", "level", "max_bytes", "max_timestamp", "records_count", "size_in_bytes",
    )  # fmt: skip

    def __init__(self, *, codec: int = 0, max_bytes: int = 16_384, level: int | None = None) -> None:
        self.codec = codec
        self.level = level
        self.max_bytes = max_bytes
        self.records_count = 0
        self.size_in_bytes = HEADER_SIZE
        self.max_timestamp = -1
        self._base_timestamp = -1
        self._out = Output(_ROOM_AT_FIRST)

    def append(self, timestamp: int, key: Buffer | None, value: Buffer | None, headers: Headers = ()) -> bool:
        """Add a record; False, and nothing added, when it does not fit any more."""
        count = self.records_count
        if count == 0:
            self._base_timestamp = self.max_timestamp = timestamp
        delta = timestamp - self._base_timestamp
        # Uncompiled, one join of bytes is faster than many small calls; compiled, no object is made but the batch.
        if not cython.compiled:
            return self._append_encoded(timestamp, encode_record(count, _wrapped(delta), key, value, headers))
        key = key if key is None or type(key) is bytes else bytes(key)
        value = value if value is None or type(value) is bytes else bytes(value)
        more = encode_headers(headers) if headers else _ZERO
        key_size = -1 if key is None else len(key)
        value_size = -1 if value is None else len(value)
        # The size stands in front of the record, so it is worked out before the first byte is written.
        rest = record_size(count, delta, key_size, value_size, len(more))
        size = varint_size(rest) + rest
        if self.size_in_bytes + size > self.max_bytes and count:
            return False
        out = self._out
        out.reserve(size)
        out.put_varint(rest)
        out.put_byte(0)
        out.put_varint(delta)
        out.put_varint(count)
        out.put_varint(key_size)
        out.put_bytes(key, key_size)
        out.put_varint(value_size)
        out.put_bytes(value, value_size)
        out.put_bytes(more, len(more))
        self._count(timestamp, size)
        return True

    def append_row(self, timestamp: int, keys: Cells, values: Cells, headers: Cells | None, row: int) -> bool:
        """As `append`, for a row of columns; its headers are encoded, their count in front."""
        count = self.records_count
        if count == 0:
            self._base_timestamp = self.max_timestamp = timestamp
        delta = timestamp - self._base_timestamp
        rest = record_size(count, delta, keys.size(row), values.size(row), 1 if headers is None else headers.size(row))
        size = varint_size(rest) + rest
        if self.size_in_bytes + size > self.max_bytes and count:
            return False
        self._out.reserve(size)
        self._out.put_row(keys, values, headers, row, count, delta)
        self._count(timestamp, size)
        return True

    def _append_encoded(self, timestamp: int, record: bytes) -> bool:
        size = len(record)
        if self.size_in_bytes + size > self.max_bytes and self.records_count:
            return False
        self._out.put_bytes(record, size)
        self._count(timestamp, size)
        return True

    def _count(self, timestamp: int, size: int) -> None:
        self.records_count += 1
        self.size_in_bytes += size
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp

    def build(
        self,
        *,
        base_offset: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        is_transactional: bool = False,
        is_control: bool = False,
        leader_epoch: int = -1,
    ) -> bytes:
        """The whole batch. May be called again, with another producer epoch or sequence."""
        attributes = self.codec | (TRANSACTIONAL_BIT if is_transactional else 0) | (CONTROL_BIT if is_control else 0)
        return bytes(
            assemble(
                self._out.taken(),
                codec=self.codec,
                level=self.level,
                base_offset=base_offset,
                leader_epoch=leader_epoch,
                attributes=attributes,
                last_offset_delta=self.records_count - 1,
                base_timestamp=self._base_timestamp,
                max_timestamp=self.max_timestamp,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                base_sequence=base_sequence,
                records_count=self.records_count,
            )
        )


def assemble(
    payload: memoryview | bytes,
    *,
    codec: int,
    level: int | None = None,
    room: int = 0,
    base_offset: int,
    leader_epoch: int,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    records_count: int,
) -> bytearray | memoryview:
    """A batch of this header around encoded records, which are compressed here; the checksum is right.

    `room` is 0, or HEADER_SIZE where the payload begins with so many free bytes: a batch without compression is then
    completed in the payload itself.
    """
    if room and not codec:
        batch: Any = payload
    else:
        # Only the records are compressed; the header stays readable for brokers that never look inside.
        batch = bytearray().join((bytes(HEADER_SIZE), compress(codec, memoryview(payload)[room:], level)))
    HEADER.pack_into(
        batch,
        0,
        base_offset,
        len(batch) - LENGTH_OVERHEAD,
        leader_epoch,
        2,
        0,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        records_count,
    )
    seal(batch)
    return batch  # type: ignore[no-any-return]  # a payload with room is a memoryview that can be written


def build_batch(
    records: Iterable[NewRecord],
    *,
    codec: int = 0,
    level: int | None = None,
    base_offset: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
    leader_epoch: int = -1,
) -> bytes:
    """A batch of any size from (timestamp, key, value, headers); offsets count up from `base_offset`."""
    builder = BatchBuilder(codec=codec, max_bytes=2**31, level=level)
    for timestamp, key, value, headers in records:
        builder.append(timestamp, key, value, headers)
    return builder.build(
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
        is_control=is_control,
        leader_epoch=leader_epoch,
    )


def build_marker(
    kind: int,
    *,
    timestamp: int,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytes:
    """The control batch that ends a transaction: ABORT or COMMIT."""
    return build_batch(
        [(timestamp, marker_key(kind), marker_value(coordinator_epoch), ())],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
        leader_epoch=leader_epoch,
    )
