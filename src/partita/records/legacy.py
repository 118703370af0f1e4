"""Message sets of magic 0 and 1, as brokers before 0.11 kept them: read by the consumer, never written.

A message, or a compressed wrapper around several, becomes a header and a payload in the encoding of magic 2, so
that everything after it needs to know one format. Old data is rare; the second encoding costs nothing that counts.
Upstream: AbstractLegacyRecordBatch, LegacyRecord.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError
from typing import NamedTuple
from zlib import crc32

from partita.protocol.primitives import Buffer
from partita.records.builder import encode_record
from partita.records.compression import DEFAULT_MAX_BYTES, NONE, READERS_FREE_BYTES, ZSTD, decompress
from partita.records.header import CODEC_MASK, LENGTH_OVERHEAD, LOG_APPEND_TIME_BIT, BatchHeader, corrupt, cut

_HEAD = Struct(">qiIBB")
_INT32 = Struct(">i")
_INT64 = Struct(">q")
_CRC_FROM = 16
_MIN_SIZE = (26, 34)


class Message(NamedTuple):
    """One message of an old set, or a wrapper around others."""

    offset: int
    magic: int
    crc: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def read_legacy(
    entry: Buffer, check_crcs: bool = True, max_bytes: int = DEFAULT_MAX_BYTES
) -> tuple[BatchHeader, bytes]:
    """The batch header and the records, encoded as in magic 2, of one whole message or wrapper.

    The header says magic 0 or 1, so that a timestamp of magic 0 has no type; its codec is what the wrapper used.
    """
    outer = _read_message(entry, check_crcs)
    codec = outer.attributes & CODEC_MASK
    if codec == NONE:
        return _encoded(outer, [outer], len(entry))
    if codec >= ZSTD:
        raise corrupt(f"compression codec {codec} in a message of magic {outer.magic}; expected 0 to 3")
    if outer.value is None:
        raise corrupt("compressed message without a value")
    packed = decompress(codec, outer.value, max_bytes, magic=outer.magic, free_bytes=READERS_FREE_BYTES)
    inner = [_read_message(one, check_crcs=False) for _, one in cut(packed)]
    if not inner:
        raise corrupt("compressed message holds no message")
    return _encoded(outer, _unwrapped(outer, inner), len(entry))


def _read_message(entry: Buffer, check_crcs: bool) -> Message:
    offset, _, crc, magic, attributes = _HEAD.unpack_from(entry, 0)
    if magic > 1:
        raise corrupt(f"magic {magic} inside a message set; expected 0 or 1")
    if len(entry) < _MIN_SIZE[magic]:
        raise corrupt(f"message of {len(entry)} bytes; magic {magic} needs {_MIN_SIZE[magic]}")
    if check_crcs and crc32(memoryview(entry)[_CRC_FROM:]) != crc:
        raise corrupt(f"message at offset {offset} has a wrong CRC")
    timestamp, pos = -1, _HEAD.size
    if magic == 1:
        (timestamp,) = _INT64.unpack_from(entry, pos)
        pos += 8
    key, pos = _sized(entry, pos)
    value, _ = _sized(entry, pos)
    return Message(offset, magic, crc, attributes, timestamp, key, value)


def _sized(entry: Buffer, pos: int) -> tuple[bytes | None, int]:
    try:
        (size,) = _INT32.unpack_from(entry, pos)
    except StructError:
        raise corrupt(f"message of {len(entry)} bytes cut short at byte {pos}") from None
    pos += 4
    if size < 0:
        return None, pos
    if size > len(entry) - pos:
        raise corrupt(f"size {size} at byte {pos} of a message of {len(entry)} bytes")
    return bytes(entry[pos : pos + size]), pos + size


def _unwrapped(outer: Message, inner: list[Message]) -> list[Message]:
    """Inner messages with their real offsets: magic 1 counts them from 0, unless the wrapper's own offset is 0."""
    for message in inner:
        if message.attributes & CODEC_MASK:
            raise corrupt("compressed message inside a compressed message")
        if message.magic != outer.magic:
            raise corrupt(f"magic {message.magic} inside a wrapper of magic {outer.magic}")
    if outer.magic == 0 or outer.offset == 0:
        return inner
    first = outer.offset - inner[-1].offset
    if first < 0:
        raise corrupt(f"wrapper offset {outer.offset} is below its last inner offset {inner[-1].offset}")
    return [message._replace(offset=first + message.offset) for message in inner]


def _encoded(outer: Message, messages: list[Message], size: int) -> tuple[BatchHeader, bytes]:
    base_offset, base_timestamp = messages[0].offset, messages[0].timestamp
    is_append_time = outer.magic == 1 and outer.attributes & LOG_APPEND_TIME_BIT
    max_timestamp = outer.timestamp if is_append_time else max(message.timestamp for message in messages)
    last_offset = outer.offset if outer.offset else messages[-1].offset
    payload = b"".join(
        encode_record(message.offset - base_offset, message.timestamp - base_timestamp, message.key, message.value)
        for message in messages
    )
    header = BatchHeader(
        base_offset=base_offset,
        batch_length=size - LENGTH_OVERHEAD,
        partition_leader_epoch=-1,
        magic=outer.magic,
        crc=outer.crc,
        attributes=outer.attributes & (CODEC_MASK | (LOG_APPEND_TIME_BIT if outer.magic == 1 else 0)),
        last_offset_delta=last_offset - base_offset,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        records_count=len(messages),
    )
    return header, payload
