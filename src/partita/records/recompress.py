"""The same records in another codec: what a broker stores where `compression.type` is not `producer`.

The records' own bytes stay as they are; only length, codec and checksum of the batch change. Upstream: LogValidator.
Must not know about topics or their settings.
"""

from __future__ import annotations

from struct import Struct

from partita.protocol.primitives import Buffer
from partita.records.checksum import crc32c
from partita.records.compression import compress, decompress
from partita.records.header import CODEC_MASK, HEADER_SIZE, LENGTH_OVERHEAD, read_header

_LENGTH, _ATTRIBUTES, _CRC = Struct(">i"), Struct(">h"), Struct(">I")
_LENGTH_AT, _CRC_AT, _ATTRIBUTES_AT = 8, 17, 21


def recompress(batch: Buffer, codec: int, level: int | None = None) -> Buffer:
    """Return a whole batch of magic 2 in the codec asked for (0 to 4). Raises InvalidBatch if it does not inflate."""
    header = read_header(batch)
    if header.codec == codec:
        return batch
    packed = compress(codec, decompress(header.codec, memoryview(batch)[HEADER_SIZE:]), level)
    made = bytearray(memoryview(batch)[:HEADER_SIZE])
    made += packed
    _LENGTH.pack_into(made, _LENGTH_AT, len(made) - LENGTH_OVERHEAD)
    _ATTRIBUTES.pack_into(made, _ATTRIBUTES_AT, header.attributes & ~CODEC_MASK | codec)
    _CRC.pack_into(made, _CRC_AT, crc32c(memoryview(made)[_ATTRIBUTES_AT:]))
    return made
