# cython: boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""Reads one record batch of `__consumer_offsets` without an object per record.

The inner loop of loading a shard, and the only place where the group package parses a batch. Compiled by Cython if a
compiler is available (types: replay_batch.pxd); the same file runs uncompiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from partita.lazy import later
from partita.protocol.primitives import Buffer, MalformedRequest
from partita.records.header import HEADER_SIZE, read_header

if TYPE_CHECKING:
    from partita.records import compression
else:
    compression = later("partita.records.compression")

_INT32_MAX = 2**31 - 1
_PADDING = bytes(32)
"""More zeros than a record has varints: a truncated record ends in them and is detected after each field."""


class Rest(NamedTuple):
    """The records of a batch that must be applied in order: (key, value) pairs, the producer, a marker's outcome.

    `coordinator_epoch` belongs to the transaction coordinator that wrote the marker; -1 without one.
    """

    others: list[tuple[bytes, bytes | None]]
    producer_id: int
    producer_epoch: int
    marker: bool | None
    coordinator_epoch: int = -1


def read_batch(batch: Buffer, latest: dict[bytes, bytes | None]) -> Rest:
    """Put the batch's plain offsets into `latest`, the newest per key; return the other records.

    Offsets of a transactional batch are among the others. Raises MalformedRequest for invalid records.
    """
    header = read_header(batch)
    payload = memoryview(batch)[HEADER_SIZE : header.size_in_bytes]
    if header.codec:
        payload = memoryview(compression.decompress(header.codec, payload, _INT32_MAX))
    others: list[tuple[bytes, bytes | None]] = []
    in_order = header.is_transactional or header.is_control
    body = b"".join((payload, _PADDING))
    _cut(body, len(payload), header.records_count, latest, others, in_order)
    if header.is_control:
        if not others:
            return Rest([], header.producer_id, header.producer_epoch, None)
        key, value = others[0]
        coordinator_epoch = int.from_bytes((value or b"")[2:6], "big")
        return Rest([], header.producer_id, header.producer_epoch, key[2:4] == b"\x00\x01", coordinator_epoch)
    producer_id = header.producer_id if header.is_transactional else -1
    return Rest(others, producer_id, header.producer_epoch, None)


def _cut(
    body: bytes,
    end: int,
    count: int,
    latest: dict[bytes, bytes | None],
    others: list[tuple[bytes, bytes | None]],
    in_order: bool,
) -> None:
    """Parse `count` records of `body[:end]`. Plain offsets go to `latest` unless `in_order` is set."""
    data = body
    pos = 0
    for _ in range(count):
        while data[pos] > 127:  # length
            pos += 1
        pos += 2  # its last byte, and the attributes
        skipped = 2
        while skipped:  # timestamp delta, offset delta
            skipped -= data[pos] < 128
            pos += 1
        byte = data[pos]
        pos += 1
        size = byte & 127
        shift = 7
        while byte > 127 and shift < 35:
            byte = data[pos]
            pos += 1
            size |= (byte & 127) << shift
            shift += 7
        size >>= 1
        if size > end - pos:
            raise MalformedRequest(f"a batch of {count} records ends in the middle of a key")
        key = body[pos : pos + size]
        first = pos
        pos += size
        byte = data[pos]
        pos += 1
        size = byte & 127
        shift = 7
        while byte > 127 and shift < 35:
            byte = data[pos]
            pos += 1
            size |= (byte & 127) << shift
            shift += 7
        value = None
        if size & 1 == 0:
            size >>= 1
            if size > end - pos:
                raise MalformedRequest(f"a batch of {count} records ends in the middle of a value")
            value = body[pos : pos + size]
            pos += size
        headers = data[pos]
        pos += 1
        if headers:
            pos = _skip_headers(body, pos, end, headers >> 1)
        if pos > end:
            raise MalformedRequest(f"a batch of {count} records ends in the middle of one")
        if in_order or data[first] != 0 or data[first + 1] > 1:
            others.append((key, value))
        else:
            latest[key] = value


def _skip_headers(body: bytes, pos: int, end: int, count: int) -> int:
    data = body
    for _ in range(2 * count):
        size = 0
        shift = 0
        byte = 128
        while byte > 127 and shift < 35:
            byte = data[pos]
            pos += 1
            size |= (byte & 127) << shift
            shift += 7
        if size & 1 == 0:
            size >>= 1
            if size > end - pos:
                raise MalformedRequest("a batch ends in the middle of a header")
            pos += size
    return pos


def split_key(key: bytes) -> tuple[str, tuple[str, int]]:
    """Return (group id, (topic, partition)) of an offset key of either version."""
    data = key
    size = len(key)
    if size < 4:
        raise MalformedRequest(f"offset key of {size} bytes")
    group_end = 4 + (data[2] << 8 | data[3])
    if group_end + 2 > size:
        raise MalformedRequest(f"offset key of {size} bytes ends in the middle of its group")
    topic_end = group_end + 2 + (data[group_end] << 8 | data[group_end + 1])
    if topic_end + 4 > size:
        raise MalformedRequest(f"offset key of {size} bytes ends in the middle of its topic")
    number = (data[topic_end] << 24) | (data[topic_end + 1] << 16) | (data[topic_end + 2] << 8) | data[topic_end + 3]
    if number >= 0x80000000:
        number -= 0x100000000
    group_id = key[4:group_end].decode("utf-8", "replace")
    return group_id, (key[group_end + 2 : topic_end].decode("utf-8", "replace"), number)


def check_value(value: bytes) -> None:
    """Check that an offset's value can be decoded later. Raises MalformedRequest otherwise."""
    data = value
    size = len(value)
    if size < 2 or data[0] != 0 or data[1] > 4:
        raise MalformedRequest("offset value of an unknown version, or none")
    version = data[1]
    if version < 4:
        at = 14 if version == 3 else 10
        if size < at + 2:
            raise MalformedRequest(f"offset value of {size} bytes")
        least = at + 2 + (data[at] << 8 | data[at + 1]) + (16 if version == 1 else 8)
    else:
        at = 14
        length = 0
        shift = 0
        byte = 128
        while byte > 127 and shift < 35:
            if at >= size:
                raise MalformedRequest(f"offset value of {size} bytes")
            byte = data[at]
            at += 1
            length |= (byte & 127) << shift
            shift += 7
        least = at + length - 1 + 9 if length else size + 1
    if least > size:
        raise MalformedRequest(f"offset value of {size} bytes ends early")
