"""Reads one record batch of `__consumer_offsets` without an object per record.

The inner loop of loading a shard, and the only place where the group package opens a batch. This file also runs
compiled. Compressed batches go through `records.compression` first. Must not know what an offset or a group means,
except that keys 0 and 1 may wait in a dict until the whole log is read.
"""

from __future__ import annotations

from typing import NamedTuple

from partita.protocol.primitives import Buffer, MalformedRequest
from partita.records.header import HEADER_SIZE, read_header

_INT32_MAX = 2**31 - 1


class Rest(NamedTuple):
    """What of a batch has to be taken in order: (key, value) pairs, the producer, and a marker's verdict."""

    others: list[tuple[bytes, bytes | None]]
    producer_id: int
    producer_epoch: int
    marker: bool | None


def read_batch(batch: Buffer, latest: dict[bytes, bytes | None]) -> Rest:
    """Put the batch's plain offsets into `latest`, the newest per key; return the other records.

    Offsets of a transactional batch are among the others. Raises MalformedRequest for bytes that are no records.
    """
    header = read_header(batch)
    payload = memoryview(batch)[HEADER_SIZE : header.size_in_bytes]
    if header.codec:
        from partita.records.compression import decompress

        payload = memoryview(decompress(header.codec, payload, _INT32_MAX))
    body = bytes(payload)
    others: list[tuple[bytes, bytes | None]] = []
    try:
        if header.is_transactional or header.is_control:
            _cut(body, header.records_count, None, others)
        else:
            _cut(body, header.records_count, latest, others)
    except IndexError:
        raise MalformedRequest(f"a batch of {header.records_count} records ends early") from None
    if header.is_control:
        marker = others[0][0][2:4] == b"\x00\x01" if others else None
        return Rest([], header.producer_id, header.producer_epoch, marker)
    producer_id = header.producer_id if header.is_transactional else -1
    return Rest(others, producer_id, header.producer_epoch, None)


def _cut(
    body: bytes, count: int, latest: dict[bytes, bytes | None] | None, others: list[tuple[bytes, bytes | None]]
) -> None:
    """Cut `count` records. A plain offset (key 0 or 1) goes to `latest` unless that is None."""
    pos = 0
    end = len(body)
    for _ in range(count):
        # length, attributes, timestamp delta, offset delta: skipped
        while body[pos] > 127:
            pos += 1
        pos += 2
        while body[pos] > 127:
            pos += 1
        pos += 1
        while body[pos] > 127:
            pos += 1
        pos += 1
        byte = body[pos]
        pos += 1
        size = byte & 127
        shift = 7
        while byte > 127:
            byte = body[pos]
            pos += 1
            size |= (byte & 127) << shift
            shift += 7
        size >>= 1
        key = body[pos : pos + size]
        pos += size
        byte = body[pos]
        pos += 1
        size = byte & 127
        shift = 7
        while byte > 127:
            byte = body[pos]
            pos += 1
            size |= (byte & 127) << shift
            shift += 7
        if size & 1:
            value = None
        else:
            size >>= 1
            value = body[pos : pos + size]
            pos += size
        if pos > end:
            raise IndexError
        headers = body[pos]
        pos += 1
        if headers:
            pos = _skip_headers(body, pos, headers >> 1)
        if latest is not None and key[:1] == b"\x00" and key[1:2] <= b"\x01":
            latest[key] = value
        else:
            others.append((key, value))


def _skip_headers(body: bytes, pos: int, count: int) -> int:
    for _ in range(2 * count):
        size = shift = 0
        byte = 128
        while byte > 127:
            byte = body[pos]
            pos += 1
            size |= (byte & 127) << shift
            shift += 7
        pos += 0 if size & 1 else size >> 1
    return pos
