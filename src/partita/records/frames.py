"""Walk LZ4 and Zstandard frames without inflating them: how large can the output be at most?

An output buffer of that size is enough, so nothing is ever allocated by a number an attacker may choose freely.
Upstream: the LZ4 frame format 1.6, RFC 8878, and KafkaLZ4BlockInputStream for what Kafka accepts.
"""

from __future__ import annotations

from struct import Struct

from partita.protocol.primitives import Buffer
from partita.records.header import corrupt

_U16 = Struct("<H")
_U32 = Struct("<I")
_U64 = Struct("<Q")

_LZ4_MAGIC = 0x184D2204
_LZ4_HEADER = 7
_LZ4_UNCOMPRESSED = 0x80000000
_LZ4_MAX_RATIO = 255
_ZSTD_MAGIC = 0xFD2FB528
_SKIPPABLE = 0x184D2A50
_ZSTD_BLOCK = 128 << 10
_ZSTD_MAX_WINDOW = 1 << 27
"""Largest window that zstd accepts by default; level 22 of Kafka's producer writes it."""

_P1, _P2, _P3, _P4, _P5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
_M32 = 0xFFFFFFFF


def lz4_bound(data: Buffer) -> tuple[int, int]:
    """End of the LZ4 frame at the start, and the most bytes it can hold.

    Refuses what Kafka's reader refuses. It reads one frame and ignores the rest; so do we.
    """
    if len(data) < _LZ4_HEADER or _U32.unpack_from(data, 0)[0] != _LZ4_MAGIC:
        raise corrupt(f"no LZ4 frame: {_begins(data)}; one has at least 7 and begins with 04224d18")
    end, bound = _lz4_blocks(data)
    return end, min(bound, _LZ4_MAX_RATIO * len(data))


def _begins(data: Buffer) -> str:
    return f"{len(data)} bytes that begin with {bytes(data[:4]).hex()}" if len(data) else "no bytes"


def _lz4_blocks(data: Buffer) -> tuple[int, int]:
    flags, block_max = data[4], 1 << (8 + 2 * (data[5] >> 4 & 7))
    if flags >> 6 != 1 or not flags & 0x20 or flags & 0x03 or not 1 << 16 <= block_max <= 1 << 22:
        raise corrupt(f"LZ4 frame flags {flags:02x} {data[5]:02x}; version 1 and independent blocks expected")
    pos, bound = _LZ4_HEADER + (8 if flags & 0x08 else 0), 0
    check_size = 4 if flags & 0x10 else 0
    while True:
        if pos + 4 > len(data):
            raise corrupt("LZ4 frame cut short")
        (announced,) = _U32.unpack_from(data, pos)
        pos += 4
        if announced == 0:
            return pos + (4 if flags & 0x04 else 0), bound
        size = announced & ~_LZ4_UNCOMPRESSED
        if size > block_max:
            raise corrupt(f"LZ4 block of {size} bytes, the frame allows {block_max}")
        bound += size if announced & _LZ4_UNCOMPRESSED else block_max
        pos += size + check_size


def lz4_repaired(data: Buffer) -> Buffer:
    """The same frame with a right header checksum: writers of magic 0 batches hashed the magic too."""
    if len(data) < _LZ4_HEADER:
        return data
    end = 6 + (8 if data[4] & 0x08 else 0)
    if len(data) <= end:
        return data
    fixed = bytearray(data)
    fixed[end] = xxh32(bytes(data[4:end])) >> 8 & 0xFF
    return fixed


def xxh32(data: bytes) -> int:
    """xxHash32 with seed 0 of fewer than 16 bytes."""
    assert len(data) < 16, f"{len(data)} bytes; the long form is not needed here"
    state, pos = (_P5 + len(data)) & _M32, 0
    while pos + 4 <= len(data):
        state = (state + _U32.unpack_from(data, pos)[0] * _P3) & _M32
        state = _rotated(state, 17) * _P4 & _M32
        pos += 4
    for byte in data[pos:]:
        state = (state + byte * _P5) & _M32
        state = _rotated(state, 11) * _P1 & _M32
    state = (state ^ state >> 15) * _P2 & _M32
    state = (state ^ state >> 13) * _P3 & _M32
    return state ^ state >> 16


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _M32


def zstd_bound(data: Buffer) -> int:
    """The most bytes these Zstandard frames can hold: announced sizes, else what their blocks allow."""
    pos, bound = 0, 0
    while pos < len(data):
        if len(data) - pos < 8:
            raise corrupt("zstd frame cut short")
        (magic,) = _U32.unpack_from(data, pos)
        if magic & ~0xF == _SKIPPABLE:
            pos += 8 + _U32.unpack_from(data, pos + 4)[0]
            continue
        if magic != _ZSTD_MAGIC:
            raise corrupt(f"no zstd frame: {_begins(data[pos:])}; one begins with 28b52ffd")
        pos, size = _zstd_frame(data, pos + 4)
        bound += size
    return bound


def _zstd_frame(data: Buffer, start: int) -> tuple[int, int]:
    descriptor = data[start]
    single, pos = descriptor & 0x20, start + 1
    block_max = _ZSTD_BLOCK
    if not single:
        exponent, mantissa = data[pos] >> 3, data[pos] & 7
        window = (1 << 10 + exponent) + (1 << 7 + exponent) * mantissa
        if window > _ZSTD_MAX_WINDOW:
            raise corrupt(f"zstd window of {window} bytes; at most {_ZSTD_MAX_WINDOW} are read")
        block_max = min(window, _ZSTD_BLOCK)
        pos += 1
    pos += (0, 1, 2, 4)[descriptor & 3]
    announced = None
    kind = descriptor >> 6
    width = (1 if single else 0, 2, 4, 8)[kind]
    if pos + width > len(data):
        raise corrupt("zstd frame cut short")
    if width:
        announced = _content_size(data, pos, width)
    end, blocks = _zstd_blocks(data, pos + width, block_max)
    return end + (4 if descriptor & 0x04 else 0), blocks if announced is None else min(announced, blocks)


def _content_size(data: Buffer, pos: int, width: int) -> int:
    if width == 1:
        return data[pos]
    if width == 2:
        return int(_U16.unpack_from(data, pos)[0]) + 256
    return int((_U32 if width == 4 else _U64).unpack_from(data, pos)[0])


def _zstd_blocks(data: Buffer, pos: int, block_max: int) -> tuple[int, int]:
    bound, is_last = 0, 0
    while not is_last:
        if pos + 3 > len(data):
            raise corrupt("zstd frame cut short")
        header = data[pos] | data[pos + 1] << 8 | data[pos + 2] << 16
        is_last, kind, size = header & 1, header >> 1 & 3, header >> 3
        if kind == 3 or size > _ZSTD_BLOCK:
            raise corrupt(f"zstd block of kind {kind} and {size} bytes")
        bound += block_max if kind == 2 else size
        pos += 3 + (1 if kind == 1 else size)
    return pos, bound
