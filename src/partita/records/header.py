"""The 61-byte header of a record batch (magic 2), and how a records field is cut into batches.

Cutting, checking and restamping never look at a record: the broker works with this module alone.
Upstream: DefaultRecordBatch, ByteBufferLogInputStream.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import Buffer
from partita.records.checksum import crc32c

HEADER_SIZE = 61
LENGTH_OVERHEAD = 12
"""Bytes before `batch_length` starts to count: base offset and the length itself."""
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
CREATE_TIME, LOG_APPEND_TIME, NO_TIMESTAMP_TYPE = 0, 1, -1

CODEC_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

HEADER = Struct(">qiibIhiqqqhii")
_LENGTH = Struct(">i")
_STAMP = Struct(">qii")
_CRC = Struct(">I")
_ATTRIBUTES = Struct(">h")
_MAX_TIMESTAMP = Struct(">q")
_MIN_LENGTH = 14
_MAX_LENGTH = 2**31 - 1 - LENGTH_OVERHEAD
_LENGTH_AT = 8
MAGIC_AT = 16
_CRC_AT, _CRC_FROM = 17, 21
_MAX_TIMESTAMP_AT = 35


class InvalidBatch(ValueError):
    """Bytes that are no valid record batch. `code` is a broker's answer, `reason` the error."""

    def __init__(self, code: ErrorCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


def corrupt(reason: str) -> InvalidBatch:
    """An InvalidBatch with the code CORRUPT_MESSAGE, ready to raise."""
    return InvalidBatch(ErrorCode.CORRUPT_MESSAGE, reason)


class BatchHeader:
    """The fields of a batch header by Kafka's names; `size_in_bytes` counts the whole batch."""

    __slots__ = (
        "attributes", "base_offset", "base_sequence", "base_timestamp", "batch_length", "crc", "last_offset_delta",
        "magic", "max_timestamp", "partition_leader_epoch", "producer_epoch", "producer_id", "records_count",
    )  # fmt: skip

    def __init__(
        self,
        base_offset: int,
        batch_length: int,
        partition_leader_epoch: int,
        magic: int,
        crc: int,
        attributes: int,
        last_offset_delta: int,
        base_timestamp: int,
        max_timestamp: int,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        records_count: int,
    ) -> None:
        self.base_offset = base_offset
        self.batch_length = batch_length
        self.partition_leader_epoch = partition_leader_epoch
        self.magic = magic
        self.crc = crc
        self.attributes = attributes
        self.last_offset_delta = last_offset_delta
        self.base_timestamp = base_timestamp
        self.max_timestamp = max_timestamp
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.records_count = records_count

    @property
    def size_in_bytes(self) -> int:
        """The size of the whole batch, header included."""
        return self.batch_length + LENGTH_OVERHEAD

    @property
    def last_offset(self) -> int:
        """The offset of the last record the batch was written with."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset after the last one of this batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The last record's sequence number; wraps after 2^31-1. -1 without a base sequence."""
        if self.base_sequence == -1:
            return -1
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    @property
    def codec(self) -> int:
        """The number of the compression codec."""
        return self.attributes & CODEC_MASK

    @property
    def is_transactional(self) -> bool:
        """True if the records belong to a transaction."""
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        """True if the batch holds a control record, which consumers never see."""
        return self.attributes & CONTROL_BIT != 0

    @property
    def timestamp_type(self) -> int:
        """CREATE_TIME, LOG_APPEND_TIME, or NO_TIMESTAMP_TYPE for magic 0, which has no timestamps."""
        if self.magic == 0:
            return NO_TIMESTAMP_TYPE
        return LOG_APPEND_TIME if self.attributes & LOG_APPEND_TIME_BIT else CREATE_TIME

    @property
    def delete_horizon_ms(self) -> int | None:
        """When tombstones of a compacted batch may go, in ms of the wall clock; None if not set."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    def __repr__(self) -> str:
        return f"BatchHeader({', '.join(f'{name}={getattr(self, name)}' for name in self.__slots__)})"


def read_header(buf: Buffer, pos: int = 0) -> BatchHeader:
    """Read the header of the magic 2 batch at `pos`. Lengths and checksum are the caller's to check."""
    if len(buf) - pos < HEADER_SIZE:
        raise corrupt(f"a batch header has {HEADER_SIZE} bytes, {len(buf) - pos} are left")
    if buf[pos + MAGIC_AT] != 2:
        raise corrupt(f"magic {buf[pos + MAGIC_AT]} where a batch of magic 2 was expected")
    return BatchHeader(*HEADER.unpack_from(buf, pos))


def cut(buf: Buffer) -> Iterator[tuple[int, memoryview]]:
    """Yield (magic, whole batch or legacy message); stop without error at a partial one."""
    view = memoryview(buf)
    pos = 0
    while (following := end_of_entry(view, pos)) > pos:
        yield view[pos + MAGIC_AT], view[pos:following]
        pos = following


def end_of_entry(view: memoryview, pos: int) -> int:
    """End of the batch or legacy message at `pos`; `pos` itself if it is partial or there is none."""
    left = len(view) - pos
    if left <= MAGIC_AT:
        if left >= LENGTH_OVERHEAD:
            (length,) = _LENGTH.unpack_from(view, pos + 8)
            if length < _MIN_LENGTH:
                raise corrupt(f"batch length {length} at byte {pos}; at least {_MIN_LENGTH} expected")
        return pos
    (length,) = _LENGTH.unpack_from(view, pos + 8)
    if not _MIN_LENGTH <= length <= _MAX_LENGTH:
        raise corrupt(f"batch length {length} at byte {pos}; at least {_MIN_LENGTH} expected")
    if view[pos + MAGIC_AT] > 2:
        raise corrupt(f"magic {view[pos + MAGIC_AT]} at byte {pos}; expected 0, 1 or 2")
    size: int = length + LENGTH_OVERHEAD
    return pos + size if size <= left else pos


def iter_batches(buf: Buffer) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Yield (header, whole batch) of magic 2 batches; stop at a partial one. The checksum is not checked."""
    for _, batch in cut(buf):
        yield read_header(batch), batch


def has_valid_crc(batch: Buffer) -> bool:
    """True if the checksum of this whole batch is right."""
    (announced,) = _CRC.unpack_from(batch, _CRC_AT)
    return bool(crc32c(memoryview(batch)[_CRC_FROM:]) == announced)


def check_crc(batch: Buffer) -> None:
    """Raise InvalidBatch unless the checksum of this whole batch is right."""
    (announced,) = _CRC.unpack_from(batch, _CRC_AT)
    found = crc32c(memoryview(batch)[_CRC_FROM:])
    if found != announced:
        raise corrupt(f"record batch has CRC {found:08x}, its header says {announced:08x}")


def restamp(
    batch: bytearray | memoryview, base_offset: int, leader_epoch: int, log_append_time_ms: int | None = None
) -> None:
    """Write the broker's fields into a whole batch, in place.

    With `log_append_time_ms` the batch's timestamp type becomes LogAppendTime, without it CreateTime; the
    checksum is computed again only if that changes anything.
    """
    (length,) = _LENGTH.unpack_from(batch, _LENGTH_AT)
    _STAMP.pack_into(batch, 0, base_offset, length, leader_epoch)
    (attributes,) = _ATTRIBUTES.unpack_from(batch, _CRC_FROM)
    if log_append_time_ms is not None:
        _ATTRIBUTES.pack_into(batch, _CRC_FROM, attributes | LOG_APPEND_TIME_BIT)
        _MAX_TIMESTAMP.pack_into(batch, _MAX_TIMESTAMP_AT, log_append_time_ms)
    elif attributes & LOG_APPEND_TIME_BIT:
        _ATTRIBUTES.pack_into(batch, _CRC_FROM, attributes & ~LOG_APPEND_TIME_BIT)
    else:
        return
    seal(batch)


def seal(batch: bytearray | memoryview) -> None:
    """Write the checksum of a whole batch into it."""
    _CRC.pack_into(batch, _CRC_AT, crc32c(memoryview(batch)[_CRC_FROM:]))


def with_max_timestamp(batch: Buffer, max_timestamp: int) -> bytearray:
    """Return a copy of this complete batch with another largest timestamp in its header."""
    made = bytearray(batch)
    _MAX_TIMESTAMP.pack_into(made, _MAX_TIMESTAMP_AT, max_timestamp)
    seal(made)
    return made


def with_payload(batch: Buffer, codec: int, payload: Buffer) -> bytearray:
    """A batch like this whole one, with other bytes behind its header and their codec in it."""
    made = bytearray(memoryview(batch)[:HEADER_SIZE])
    made += payload
    _LENGTH.pack_into(made, _LENGTH_AT, len(made) - LENGTH_OVERHEAD)
    (attributes,) = _ATTRIBUTES.unpack_from(made, _CRC_FROM)
    _ATTRIBUTES.pack_into(made, _CRC_FROM, attributes & ~CODEC_MASK | codec)
    seal(made)
    return made
