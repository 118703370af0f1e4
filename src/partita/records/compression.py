"""The five codecs of record batches, by number, with bounds against decompression bombs.

Libraries are imported at first use and were chosen by measurement (1 MB of JSON, one core): isal inflates gzip
at 850 MB/s (zlib 310), cramjam snappy 1.1 GB/s, lz4 2.0 GB/s (the lz4 package 1.5), zstd 590 MB/s; lz4's
own package compresses nine times faster than cramjam's. Output never exceeds `max_bytes`, nor 1,000 times the
input beyond what is free of that. Upstream: CompressionType, and the xerial container of snappy-java.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from struct import Struct
from types import ModuleType
from typing import TYPE_CHECKING

from partita.lazy import later
from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import Buffer
from partita.records.frames import lz4_bound, lz4_repaired, zstd_bound
from partita.records.header import CODEC_NAMES, InvalidBatch, corrupt

if TYPE_CHECKING:
    import zlib

    import cramjam
else:
    cramjam = later("cramjam")
    zlib = later("zlib")

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)

DEFAULT_MAX_BYTES = 256 << 20
"""Most bytes one batch may inflate to."""
LZ4_MISSING = "compression lz4 needs the package lz4; install it with: pip install 'partita[lz4]'"
FREE_BYTES = 1 << 20
"""What a batch may inflate to however small it is."""
READERS_FREE_BYTES = 64 << 20
"""The same for readers: a broker took the batch, and ten million equal bytes are 300 in zstd."""
_MAX_RATIO = 1000
_SNAPPY_MAX_RATIO = 24
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK = 32 << 10
_GZIP_WINDOW = 31
_GZIP_MAGIC = b"\x1f\x8b"
_SIZE = Struct(">i")
_FULL = "failed to write whole buffer"
"""cramjam's error text for an output that is too small."""


def codec_number(name: str) -> int:
    """The number of a codec by Kafka's name. Raises ValueError if there is none, or its package is not installed."""
    if name not in CODEC_NAMES:
        raise ValueError(f"compression type {name!r}; expected {', '.join(CODEC_NAMES)}")
    number = CODEC_NAMES.index(name)
    if number == LZ4 and find_spec("lz4") is None:
        raise ValueError(LZ4_MISSING)
    return number


def writable(codec: int) -> int:
    """The codec itself, or gzip, which every client reads, if the package that writes it is not installed."""
    return GZIP if codec == LZ4 and find_spec("lz4") is None else codec


def compress(codec: int, data: Buffer, level: int | None = None) -> Buffer:
    """Compress with the codec of this number; level None is the codec's default."""
    if codec == NONE:
        return data
    if codec == GZIP:
        return _gzip(data, level)
    if codec == SNAPPY:
        return _xerial(data)
    if codec == LZ4:
        try:
            import lz4.frame
        except ImportError:
            raise ValueError(LZ4_MISSING) from None

        packed: bytes = lz4.frame.compress(
            data,
            compression_level=level or 0,
            block_size=lz4.frame.BLOCKSIZE_MAX64KB,
            block_linked=False,
            store_size=False,
        )
        return packed
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data, 3 if level is None else level))
    raise ValueError(f"codec {codec}; expected 0 to 4")


def decompress(
    codec: int, data: Buffer, max_bytes: int = DEFAULT_MAX_BYTES, *, magic: int = 2, free_bytes: int = FREE_BYTES
) -> Buffer:
    """Inflate; raise InvalidBatch when the bytes are not of this codec or inflate beyond the bounds.

    `magic` is the format around the data: LZ4 inside magic 0 may have a wrong header checksum.
    """
    if codec == NONE:
        return data
    # Two bounds: in all, and by what came in. A bomb of 10 kB must not cost 256 MB before it is found out.
    limit = min(max_bytes, max(free_bytes, _MAX_RATIO * len(data)))
    try:
        if codec == GZIP:
            return _gunzip(data, limit)
        if codec == SNAPPY:
            return _unsnappy(memoryview(data), limit)
        if codec == LZ4:
            return _unlz4(lz4_repaired(data) if magic == 0 else data, limit)
        if codec == ZSTD:
            return _unzstd(data, limit)
    except InvalidBatch:
        raise
    except Exception as problem:  # each library has its own error types
        raise corrupt(f"{CODEC_NAMES[codec]} data cannot be decompressed: {problem}") from None
    raise corrupt(f"unknown compression codec {codec}; expected 0 to 4")


def _too_large(limit: int) -> InvalidBatch:
    return InvalidBatch(
        ErrorCode.INVALID_RECORD,
        f"batch inflates to more than {limit} bytes, the most that is read of one of its size; "
        "the producer has to send smaller batches (batch.size)",
    )


def _gzip(data: Buffer, level: int | None) -> bytes:
    if level is None or level == -1:
        fast: bytes = _zlib().compress(data, wbits=_GZIP_WINDOW)
        return fast

    return zlib.compress(data, level, wbits=_GZIP_WINDOW)


def _zlib() -> ModuleType:
    """isal's twin of zlib where it is installed, else zlib itself: the same bytes can be read, only slower."""
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib
    found: ModuleType = isal_zlib
    return found


def _gunzip(data: Buffer, limit: int) -> bytes:
    members: list[bytes] = []
    left, rest = limit, bytes(data)
    inflater = _zlib().decompressobj
    while not members or rest.startswith(_GZIP_MAGIC):  # like Kafka's, this reader ignores what else may follow
        member = inflater(wbits=_GZIP_WINDOW)
        # One byte more than allowed, so that "exactly full" and "too much" can be told apart.
        members.append(member.decompress(rest, left + 1))
        left -= len(members[-1])
        if left < 0:
            raise _too_large(limit)
        if not member.eof:
            raise corrupt("gzip data ends in the middle of a member")
        rest = member.unused_data
    return members[0] if len(members) == 1 else b"".join(members)


def _xerial(data: Buffer) -> bytes:
    view = memoryview(data)
    parts: list[Buffer] = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK]))
        parts += (_SIZE.pack(len(block)), block)
    return b"".join(parts)


def _unsnappy(data: memoryview, limit: int) -> Buffer:
    blocks = [data]
    if data[:8] == _XERIAL:
        blocks, pos = [], len(_XERIAL_HEADER)
        if len(data) < pos:
            raise corrupt(f"snappy header of {len(data)} bytes; {pos} expected")
        while pos + 4 <= len(data):
            (size,) = _SIZE.unpack_from(data, pos)
            if size < 0 or size > len(data) - pos - 4:
                raise corrupt(f"snappy block of {size} bytes, {len(data) - pos - 4} are left")
            blocks.append(data[pos + 4 : pos + 4 + size])
            pos += 4 + size
    sizes = [_snappy_size(block) for block in blocks]
    # Before anything is allocated, by what the blocks announce.
    if sum(sizes) > limit:
        raise _too_large(limit)

    out = bytearray(sum(sizes))
    view, start = memoryview(out), 0
    for block, size in zip(blocks, sizes, strict=True):
        if cramjam.snappy.decompress_raw_into(block, view[start : start + size]) != size:
            raise corrupt("snappy block is shorter than its header says")
        start += size
    return out


def _snappy_size(block: memoryview) -> int:
    """The size a raw snappy block announces; refused when the format could not reach it."""
    size = shift = 0
    for byte in block[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    # The format cannot compress better than this, so a block that announces more is damaged.
    if size > _SNAPPY_MAX_RATIO * len(block):
        raise corrupt(f"snappy block of {len(block)} bytes announces {size}")
    return size


def _unlz4(data: Buffer, limit: int) -> Buffer:
    end, bound = lz4_bound(data)
    return _inflated(cramjam.lz4.decompress_into, memoryview(data)[:end], bound, limit)


def _unzstd(data: Buffer, limit: int) -> Buffer:
    return _inflated(cramjam.zstd.decompress_into, data, zstd_bound(data), limit)


def _inflated(into: Callable[[Buffer, bytearray], int], data: Buffer, bound: int, limit: int) -> Buffer:
    """Return the output of a library in a buffer of `bound` bytes, the most that the frames can hold, or of `limit`."""
    out = bytearray(min(bound, limit))
    try:
        size = into(data, out)
    except Exception as problem:  # cramjam has one error for a full buffer and for damaged data
        if _FULL not in str(problem):
            raise
        if bound > limit:
            raise _too_large(limit) from None
        raise corrupt(f"frames hold more than the {bound} bytes that they announce") from None
    return out if size == len(out) else memoryview(out)[:size]
