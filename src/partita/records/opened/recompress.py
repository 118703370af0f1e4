"""The same records in another codec: batches as a broker stores them where `compression.type` is not `producer`.

The records' own bytes stay as they are; only length, codec and checksum of the batch change. Upstream: LogValidator.
"""

from __future__ import annotations

from partita.protocol.primitives import Buffer
from partita.records.compression import DEFAULT_MAX_BYTES, compress, decompress
from partita.records.header import HEADER_SIZE, read_header, with_payload


def recompress(batch: Buffer, codec: int, level: int | None = None, *, max_bytes: int = DEFAULT_MAX_BYTES) -> Buffer:
    """Return a whole batch of magic 2 in the codec asked for (0 to 4).

    Raises InvalidBatch if it does not inflate, or to more than `max_bytes`.
    """
    header = read_header(batch)
    if header.codec == codec:
        return batch
    payload = decompress(header.codec, memoryview(batch)[HEADER_SIZE:], max_bytes)
    return with_payload(batch, codec, compress(codec, payload, level))
