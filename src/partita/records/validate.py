"""Checks of a broker's produce path before it appends bytes that it does not decode.

One batch of magic 2, complete, with a correct checksum and a consistent header, no larger than allowed.
The records inside are not decoded (decision 20).
Upstream: ProduceRequest.validateRecords, UnifiedLog.analyzeAndValidateRecords, LogValidator.
"""

from __future__ import annotations

from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import Buffer
from partita.records.header import HEADER_SIZE, BatchHeader, InvalidBatch, check_crc, corrupt, cut, read_header

ZSTD = 4
_ZSTD_SINCE_PRODUCE = 7
_MIN_RECORD_SIZE = 7
_MAX_CODEC = 4
_INFLATES_TO = 50
_INFLATED_BYTES_MAX = 256 << 20


def inflated_bytes_max(max_message_bytes: int) -> int:
    """Bound of one batch's uncompressed records: 50 times `max.message.bytes`, 256 MiB at most. (H25)"""
    return min(_INFLATED_BYTES_MAX, _INFLATES_TO * max_message_bytes)


def check_produced(
    records: Buffer | None, *, max_message_bytes: int = 1_048_588, produce_version: int = 12
) -> BatchHeader:
    """Return the header of the one batch in `records`; raise InvalidBatch with the answer.

    A partial batch after it is ignored, as Kafka does: append only `header.size_in_bytes` bytes.
    """
    if not records:
        raise _invalid("no record batch in the request; exactly one per partition is expected")
    batch = _only_batch(records)
    if len(batch) < HEADER_SIZE:
        raise corrupt(f"record batch of {len(batch)} bytes; its header alone has {HEADER_SIZE}")
    header = read_header(batch)
    if header.codec == ZSTD and produce_version < _ZSTD_SINCE_PRODUCE:
        reason = f"zstd needs Produce version {_ZSTD_SINCE_PRODUCE}; the request has {produce_version}"
        raise InvalidBatch(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, reason)
    if header.size_in_bytes > max_message_bytes:
        reason = f"record batch of {header.size_in_bytes} bytes; max.message.bytes is {max_message_bytes}"
        raise InvalidBatch(ErrorCode.MESSAGE_TOO_LARGE, reason)
    check_crc(batch)
    _check_header(header, inflated_bytes_max(max_message_bytes))
    return header


def _only_batch(records: Buffer) -> memoryview:
    entries = cut(records)
    first = next(entries, None)
    if first is None:
        raise _invalid("no whole record batch in the request; exactly one per partition is expected")
    magic, batch = first
    if magic != 2:
        raise _invalid(f"magic {magic}; produced batches must have magic 2")
    if next(entries, None) is not None:
        raise _invalid("more than one record batch for a partition; exactly one is expected")
    return batch


def _check_header(header: BatchHeader, inflated_max: int) -> None:
    count = header.records_count
    if count <= 0 or header.last_offset_delta != count - 1:
        raise _invalid(f"record count {count} with last offset delta {header.last_offset_delta}; count - 1 expected")
    if header.codec > _MAX_CODEC:
        raise _invalid(f"unknown compression codec {header.codec}; expected 0 to 4")
    if header.codec and header.base_offset:
        raise _invalid(f"compressed batch with base offset {header.base_offset}; producers count from 0")
    if header.is_control:
        raise _invalid("control batches are written by the broker alone")
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise _invalid(f"producer id {header.producer_id} with base sequence {header.base_sequence}")
    payload = header.size_in_bytes - HEADER_SIZE
    if payload == 0 or (header.codec == 0 and payload < count * _MIN_RECORD_SIZE):
        raise _invalid(f"{count} records announced in {payload} bytes")
    if header.codec and count * _MIN_RECORD_SIZE > inflated_max:
        raise _invalid(f"{count} records have more than {inflated_max} bytes uncompressed, the largest size accepted")


def _invalid(reason: str) -> InvalidBatch:
    return InvalidBatch(ErrorCode.INVALID_RECORD, reason)
