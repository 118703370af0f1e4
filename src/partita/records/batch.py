"""Record batches of magic 2, in one place: header, cutting, checksum, records, building.

What the broker needs on its way from start to first answer is in `header` and `validate` alone.
Upstream: RecordBatch, MemoryRecords.
"""

from __future__ import annotations

from collections.abc import Iterator

from partita.protocol.primitives import Buffer
from partita.records.builder import BatchBuilder, Headers, NewRecord, build_batch, build_marker
from partita.records.compression import DEFAULT_MAX_BYTES, decompress
from partita.records.control import ABORT, COMMIT, control_type
from partita.records.decode import Record, RecordReader
from partita.records.header import (
    CREATE_TIME,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    NO_TIMESTAMP_TYPE,
    BatchHeader,
    InvalidBatch,
    check_crc,
    corrupt,
    cut,
    has_valid_crc,
    iter_batches,
    read_header,
    restamp,
)

__all__ = [
    "ABORT",
    "COMMIT",
    "CREATE_TIME",
    "HEADER_SIZE",
    "LOG_APPEND_TIME",
    "NO_TIMESTAMP_TYPE",
    "BatchBuilder",
    "BatchHeader",
    "Headers",
    "InvalidBatch",
    "NewRecord",
    "Record",
    "RecordReader",
    "build_batch",
    "build_marker",
    "check_crc",
    "control_type",
    "corrupt",
    "cut",
    "has_valid_crc",
    "iter_batches",
    "iter_records",
    "payload_of",
    "read_header",
    "restamp",
]

_SLICE = 512


def payload_of(header: BatchHeader, batch: Buffer, max_bytes: int = DEFAULT_MAX_BYTES) -> Buffer:
    """The encoded records of a whole batch, inflated."""
    return decompress(header.codec, memoryview(batch)[HEADER_SIZE:], max_bytes)


def iter_records(batch: Buffer, check_crcs: bool = True) -> Iterator[Record]:
    """Yield the records of one whole batch, control records too; raise InvalidBatch at the first error."""
    header = read_header(batch)
    if check_crcs:
        check_crc(batch)
    reader = RecordReader(header, payload_of(header, batch))
    while records := reader.take(_SLICE):
        yield from records
