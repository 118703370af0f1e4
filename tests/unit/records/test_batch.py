"""Headers, building, restamping, and what the produce path refuses."""

from typing import Any

import pytest

from partita.protocol.error_codes import ErrorCode
from partita.records.batch import (
    BatchBuilder,
    InvalidBatch,
    build_batch,
    check_crc,
    has_valid_crc,
    iter_batches,
    iter_records,
    read_header,
    restamp,
)
from partita.records.builder import varint
from partita.records.checksum import crc32c
from partita.records.validate import check_produced

T = 1_700_000_000_000


def batch(count: int = 3, **options: Any) -> bytes:
    return build_batch([(T + i, b"k", b"v%d" % i, ()) for i in range(count)], **options)


def test_the_checksum_is_castagnolis() -> None:
    assert crc32c(b"123456789") == 0xE3069283


@pytest.mark.parametrize(
    ("number", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (64, "8001"),
        (300, "d804"),
        (-300, "d704"),
        (2**31 - 1, "feffffff0f"),
        (-(2**31), "ffffffff0f"),
    ],
)
def test_a_varint_is_zigzag_encoded(number: int, encoded: str) -> None:
    assert varint(number).hex() == encoded


def test_iterating_batches_stops_at_a_partial_one() -> None:
    data = batch() + batch(2, base_offset=3)
    assert [header.next_offset for header, _ in iter_batches(data)] == [3, 5]
    assert [len(view) for _, view in iter_batches(data[:-1])] == [len(batch())]


def test_restamp_writes_only_what_is_the_brokers() -> None:
    original = batch()
    stamped = bytearray(original)
    restamp(stamped, 1000, 7)
    header = read_header(stamped)
    assert (header.base_offset, header.partition_leader_epoch) == (1000, 7)
    assert stamped[16:] == original[16:]
    check_crc(stamped)


def test_log_append_time_changes_type_timestamp_and_checksum() -> None:
    stamped = bytearray(batch())
    restamp(memoryview(stamped), 0, 0, T + 5)
    assert {(record.timestamp, record.timestamp_type) for record in iter_records(stamped)} == {(T + 5, 1)}
    restamp(stamped, 0, 0)
    assert [record.timestamp_type for record in iter_records(stamped)] == [0, 0, 0]


def test_a_builder_is_full_at_its_size_but_takes_any_first_record() -> None:
    builder = BatchBuilder(max_bytes=200)
    assert builder.append(T, None, bytes(1000))
    assert not builder.append(T, None, b"")
    builder = BatchBuilder(max_bytes=200)
    while builder.append(T, b"key", b"value"):
        pass
    built = builder.build(producer_id=9, producer_epoch=1, base_sequence=5)
    assert len(built) == builder.size_in_bytes <= 200
    header = read_header(built)
    assert header.records_count == builder.records_count == len(list(iter_records(built)))
    assert header.last_sequence == 5 + header.last_offset_delta


def refusal(data: bytes, **options: int) -> InvalidBatch:
    with pytest.raises(InvalidBatch) as caught:
        check_produced(data, **options)
    return caught.value


def test_produced_batches_larger_than_allowed() -> None:
    data = batch(100)
    assert check_produced(data, max_message_bytes=len(data)).records_count == 100
    assert refusal(data, max_message_bytes=len(data) - 1).code is ErrorCode.MESSAGE_TOO_LARGE


def test_zstd_needs_produce_7() -> None:
    assert refusal(batch(codec=4), produce_version=6).code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert check_produced(batch(codec=4), produce_version=7).codec == 4


def test_nothing_and_several_batches_are_refused() -> None:
    assert refusal(b"").code is ErrorCode.INVALID_RECORD
    assert refusal(batch() + batch()).code is ErrorCode.INVALID_RECORD
    assert check_produced(batch() + batch()[:-1]).size_in_bytes == len(batch())


def test_every_flipped_bit_behind_the_checksum_is_refused() -> None:
    original = batch(2)
    for position in range(17, len(original)):
        for bit in range(8):
            damaged = bytearray(original)
            damaged[position] ^= 1 << bit
            assert not has_valid_crc(damaged)
            assert refusal(bytes(damaged)).code is ErrorCode.CORRUPT_MESSAGE


def test_every_flipped_bit_before_the_checksum_is_refused_or_the_brokers_own_to_write() -> None:
    original = batch(2)
    for position in range(17):
        for bit in range(8):
            damaged = bytearray(original)
            damaged[position] ^= 1 << bit
            if position < 8 or 12 <= position < 16:
                restamp(damaged, 0, -1)
                assert check_produced(damaged) is not None
                assert damaged == original
            else:
                refusal(bytes(damaged))


def test_every_truncation_is_refused() -> None:
    original = batch(2)
    for size in range(len(original)):
        refusal(original[:size])
