"""Codecs: round trips, what other writers produce, and bombs."""

import gzip
import struct
import zlib

import cramjam
import lz4.frame
import pytest

from partita.protocol.error_codes import ErrorCode
from partita.records.batch import InvalidBatch
from partita.records.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD, codec_number, compress, decompress
from partita.records.frames import lz4_repaired, xxh32, zstd_bound

DATA = b"".join(b"record %d with some text; " % i for i in range(5000))
CODECS = [NONE, GZIP, SNAPPY, LZ4, ZSTD]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("data", [b"", b"x", DATA, bytes(1 << 20)], ids=["empty", "byte", "text", "zeros"])
def test_what_was_compressed_comes_back(codec: int, data: bytes) -> None:
    assert bytes(decompress(codec, compress(codec, data), 4 << 20)) == data


@pytest.mark.parametrize(("codec", "level"), [(GZIP, 9), (LZ4, 9), (ZSTD, 1), (ZSTD, 19)])
def test_every_level_is_readable(codec: int, level: int) -> None:
    assert bytes(decompress(codec, compress(codec, DATA, level))) == DATA


@pytest.mark.case("CC-157")
def test_concatenated_and_foreign_framing() -> None:
    assert bytes(decompress(GZIP, gzip.compress(DATA) + gzip.compress(b"more"))) == DATA + b"more"
    zstd = bytes(cramjam.zstd.compress(DATA))
    assert bytes(decompress(ZSTD, zstd + zstd)) == DATA + DATA
    assert bytes(decompress(SNAPPY, bytes(cramjam.snappy.compress_raw(DATA)))) == DATA
    large_blocks = lz4.frame.compress(
        DATA, block_size=7, block_linked=False, content_checksum=True, block_checksum=True
    )
    assert bytes(decompress(LZ4, large_blocks)) == DATA


@pytest.mark.case("CC-158")
def test_lz4_header_checksum_is_forgiven_in_magic_0_only() -> None:
    packed = bytearray(lz4.frame.compress(DATA, block_linked=False, store_size=True))
    packed[14] ^= 0x55
    assert bytes(decompress(LZ4, packed, magic=0)) == DATA
    with pytest.raises(InvalidBatch):
        decompress(LZ4, packed, magic=2)


def test_xxh32_gives_the_header_checksums_of_lz4_itself() -> None:
    assert xxh32(b"") == 0x02CC5D05
    for options in ({"store_size": False}, {"store_size": True}, {"block_size": 7}):
        packed = lz4.frame.compress(DATA, block_linked=False, **options)
        assert lz4_repaired(packed) == packed


def test_lz4_with_linked_blocks_is_refused_as_in_kafka() -> None:
    with pytest.raises(InvalidBatch, match="independent"):
        decompress(LZ4, lz4.frame.compress(DATA, block_linked=True))


@pytest.mark.parametrize("codec", CODECS[1:])
def test_damage_is_corrupt_not_a_crash(codec: int) -> None:
    packed = bytes(compress(codec, DATA))
    for size in (0, 1, 5, 11, 20, len(packed) // 2):
        if codec == SNAPPY and size in (0, 20):
            continue  # an empty raw block, and a xerial stream cut between two blocks, are whole
        with pytest.raises(InvalidBatch) as caught:
            decompress(codec, packed[:size])
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", CODECS[1:])
def test_output_is_bounded(codec: int) -> None:
    with pytest.raises(InvalidBatch, match=f"inflates to more than {len(DATA) - 1} bytes, the most .* smaller batches"):
        decompress(codec, compress(codec, DATA), len(DATA) - 1)
    assert len(decompress(codec, compress(codec, DATA), len(DATA))) == len(DATA)


def test_a_bomb_beyond_the_ratio_is_refused() -> None:
    layer = zlib.compressobj(wbits=31)
    gzip_bomb = layer.compress(bytes(40 << 20)) + layer.flush()
    zstd_bomb = bytes(cramjam.zstd.compress(bytes(40 << 20)))
    for codec, bomb in ((GZIP, gzip_bomb), (ZSTD, zstd_bomb)):
        assert len(bomb) * 1000 < 40 << 20
        with pytest.raises(InvalidBatch, match="inflates to more than"):
            decompress(codec, bomb)


def test_announced_sizes_are_never_believed() -> None:
    with pytest.raises(InvalidBatch, match="announces"):
        decompress(SNAPPY, b"\xff\xff\xff\xff\x0f" + b"\0" * 20)
    huge_window = b"\x28\xb5\x2f\xfd" + bytes([0x00, 0xA8]) + b"\x01\x00\x00"
    with pytest.raises(InvalidBatch, match="window"):
        decompress(ZSTD, huge_window)
    lying = b"\x28\xb5\x2f\xfd" + bytes([0xE0]) + struct.pack("<Q", 1 << 60) + b"\x01\x00\x00"
    assert zstd_bound(lying) == 0


@pytest.mark.parametrize(
    ("codec", "data", "said"),
    [
        (GZIP, b"plain text", "gzip data cannot be decompressed"),
        (SNAPPY, b"", "snappy data cannot be decompressed: .*empty"),
        (
            LZ4,
            b"plain text",
            "no LZ4 frame: 10 bytes that begin with 706c6169; one has at least 7 and begins with 04224d18",
        ),
        (LZ4, b"", "no LZ4 frame: no bytes"),
        (ZSTD, b"plain text", "no zstd frame: 10 bytes that begin with 706c6169; one begins with 28b52ffd"),
        (5, b"", "unknown compression codec 5; expected 0 to 4"),
    ],
)
def test_what_is_no_data_of_the_codec_says_what_came(codec: int, data: bytes, said: str) -> None:
    """Issue 13: texts of libraries ("failed to write whole buffer") reached users of Spark."""
    with pytest.raises(InvalidBatch, match=said):
        decompress(codec, data)


def test_an_unknown_codec_is_refused_with_the_known_ones() -> None:
    assert [codec_number(name) for name in ("none", "gzip", "snappy", "lz4", "zstd")] == CODECS
    with pytest.raises(ValueError, match="none, gzip"):
        codec_number("brotli")
    with pytest.raises(ValueError, match="codec 9"):
        compress(9, b"")
