"""What a consumer is given of fetched bytes: consumer.md 9.7, on batches built by hand."""

from typing import NamedTuple

import pytest

from partita.records.batch import ABORT, COMMIT, InvalidBatch, build_batch, build_marker, restamp
from partita.records.compression import GZIP, LZ4, READERS_FREE_BYTES, SNAPPY, ZSTD
from partita.records.fetched_batches import FetchedBatches, FetchedRecords
from partita.records.header import HEADER
from partita.records.legacy import read_legacy

T = 1_700_000_000_000
VECTOR_A = bytes.fromhex(
    "000000000000000500000049000000030214876e240000000000010000018bcfe568000000018bcfe56807ffffffffffffffffffffffffffff"
    "0000000212000000026b047631001a000e0201000402680278026e01"
)
VECTOR_B = bytes.fromhex(
    "0000000000000007000000420000000302b55856c80030000000000000018bcfe568080000018bcfe5680800000000000003e90002ffffffff"
    "000000012000000008000000000c00000000000900"
)
MAGIC_0 = bytes.fromhex("0000000000000000000000101fecd70a0000000000016b0000000176")
MAGIC_1 = bytes.fromhex("000000000000000100000017c1672ac501000000018bcfe56800ffffffff0000000176")


class Taken(NamedTuple):
    offsets: list[int]
    next_offset: int
    fault: InvalidBatch | None


def take(
    data: bytes,
    fetch_offset: int = 0,
    aborted: list[tuple[int, int]] | None = None,
    check_crcs: bool = True,
    step: int = 3,
) -> Taken:
    records = FetchedRecords(FetchedBatches(data, fetch_offset, aborted=aborted, check_crcs=check_crcs), "t", 0)
    offsets: list[int] = []
    try:
        while taken := records.take(step):
            offsets += [record.offset for record in taken]
    except InvalidBatch as fault:
        return Taken(offsets, records.next_offset, fault)
    return Taken(offsets, records.next_offset, None)


def batch(
    base_offset: int, count: int = 1, producer_id: int = -1, transactional: bool = False, codec: int = 0
) -> bytes:
    return build_batch(
        [(T + i, None, b"v%d" % i, ()) for i in range(count)],
        base_offset=base_offset,
        codec=codec,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=0 if producer_id >= 0 else -1,
        is_transactional=transactional,
    )


def marker(kind: int, offset: int, producer_id: int) -> bytes:
    return build_marker(
        kind, timestamp=T, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, base_offset=offset
    )


def compacted(source: bytes, last_offset_delta: int, count: int | None = None) -> bytes:
    """The batch as a compactor leaves it: its last offset stays although records are gone."""
    fields = list(HEADER.unpack_from(source, 0))
    fields[6] = last_offset_delta
    if count is not None:
        fields[12] = count
        source = source[:61]
        fields[1] = 49
    changed = bytearray(source)
    HEADER.pack_into(changed, 0, *fields)
    restamp(changed, fields[0], fields[2], 0)  # computes the checksum
    return bytes(changed)


@pytest.mark.case("CC-142")
def test_the_worked_examples_are_decoded_and_rebuilt_byte_for_byte() -> None:
    records = FetchedRecords(FetchedBatches(VECTOR_A, 5), "t", 7)
    first, second = records.take(10)
    assert (first.topic, first.partition, first.offset, first.timestamp) == ("t", 7, 5, T)
    assert (first.key, first.value, first.headers, first.leader_epoch) == (b"k", b"v1", (), 3)
    assert (second.key, second.value, second.headers) == (None, b"", (("h", b"x"), ("n", None)))
    assert second.timestamp == T + 7
    rebuilt = build_batch(
        [(T, b"k", b"v1", ()), (T + 7, None, b"", [("h", b"x"), ("n", None)])], base_offset=5, leader_epoch=3
    )
    assert rebuilt == VECTOR_A
    built = build_marker(
        ABORT, timestamp=T + 8, producer_id=1001, producer_epoch=2, coordinator_epoch=9, base_offset=7, leader_epoch=3
    )
    assert built == VECTOR_B


def test_a_flipped_byte_is_a_crc_error_unless_checks_are_off() -> None:
    damaged = bytearray(VECTOR_A)
    damaged[30] ^= 1
    taken = take(bytes(damaged), 5)
    assert taken.offsets == []
    assert taken.next_offset == 5
    assert taken.fault is not None
    assert "CRC" in str(taken.fault)
    assert take(bytes(damaged), 5, check_crcs=False) == ([5, 6], 7, None)


@pytest.mark.case("CC-144")
def test_the_leader_epoch_is_outside_the_checksum() -> None:
    changed = bytearray(VECTOR_A)
    changed[12:16] = b"\0\0\0\x63"
    (record, _) = FetchedRecords(FetchedBatches(bytes(changed), 5), "t", 0).take(2)
    assert record.leader_epoch == 99


@pytest.mark.case("CC-145")
def test_a_fetch_in_the_middle_of_a_batch_gives_only_the_rest() -> None:
    assert take(VECTOR_A, 6) == ([6], 7, None)


@pytest.mark.case("CC-146")
def test_the_next_offset_follows_the_batch_not_its_last_record() -> None:
    assert take(compacted(batch(10, 4), 9), 10) == ([10, 11, 12, 13], 20, None)


def test_an_empty_batch_moves_the_position() -> None:
    assert take(compacted(batch(20, 5), 4, count=0), 20) == ([], 25, None)


@pytest.mark.case("CC-148", "CC-153")
def test_aborted_data_is_hidden_from_read_committed_only() -> None:
    data = batch(100, 5, 1, True) + marker(ABORT, 105, 1)
    assert take(data, 100, [(1, 100)]) == ([], 106, None)
    assert take(data, 100) == ([100, 101, 102, 103, 104], 106, None)


@pytest.mark.case("CC-149")
def test_a_producer_is_trusted_again_after_its_marker() -> None:
    data = batch(0, 2, 1, True) + marker(ABORT, 2, 1) + batch(3, 2, 1, True) + marker(COMMIT, 5, 1)
    assert take(data, 0, [(1, 0)]) == ([3, 4], 6, None)


@pytest.mark.case("CC-150")
def test_the_aborted_list_may_come_in_any_order() -> None:
    data = batch(0, 1, 1, True) + marker(ABORT, 1, 1) + batch(2, 1, 2, True) + marker(ABORT, 3, 2) + batch(4)
    assert take(data, 0, [(2, 2), (1, 0)]) == take(data, 0, [(1, 0), (2, 2)]) == ([4], 5, None)


@pytest.mark.case("CC-151")
def test_a_solitary_abort_marker_is_no_error() -> None:
    assert take(marker(ABORT, 7, 1) + batch(8), 7, []) == ([8], 9, None)


@pytest.mark.case("CC-152")
def test_interleaved_transactions() -> None:
    data = b"".join((batch(0, 1, 1, True), batch(1, 1, 2, True), batch(2), batch(3, 1, 1, True), batch(4, 1, 2, True)))
    data += marker(ABORT, 5, 1) + marker(COMMIT, 6, 2) + batch(7)
    assert take(data, 0, [(1, 0)]) == ([1, 2, 4, 7], 8, None)


@pytest.mark.case("CC-154")
def test_log_append_time_gives_every_record_the_same_timestamp() -> None:
    data = bytearray(batch(0, 3))
    restamp(data, 0, 4, T + 999)
    records = FetchedRecords(FetchedBatches(bytes(data)), "t", 0).take(9)
    assert {(record.timestamp, record.timestamp_type) for record in records} == {(T + 999, 1)}


@pytest.mark.case("CC-155", "CC-156")
def test_headers_and_nulls_keep_their_differences() -> None:
    headers = [("a", b"1"), ("a", None), ("a", b""), ("b", b"1")]
    data = build_batch([(T, None, b"", headers), (T, b"", None, ())])
    first, second = FetchedRecords(FetchedBatches(data), "t", 0).take(9)
    assert first.headers == tuple(headers)
    assert (first.key, first.value, second.key, second.value) == (None, b"", b"", None)


@pytest.mark.case("CC-160")
def test_old_and_new_formats_in_one_answer() -> None:
    records = FetchedRecords(FetchedBatches(MAGIC_0 + MAGIC_1 + batch(2)), "t", 0).take(9)
    found = [(r.offset, r.key, r.value, r.timestamp, r.timestamp_type) for r in records]
    assert found == [(0, b"k", b"v", -1, -1), (1, None, b"v", T, 0), (2, None, b"v0", T, 0)]


def test_a_truncated_trailing_batch_is_left_out() -> None:
    whole = batch(0, 2)
    for size in range(1, len(whole)):
        assert take(whole + batch(2, 2)[:size]) == ([0, 1], 2, None)
        assert take(whole[:size]) == ([], 0, None)


def test_records_before_a_fault_are_delivered_and_the_position_stays_before_it() -> None:
    good, bad = batch(0, 4), bytearray(batch(4, 4))
    bad[-1] ^= 1
    for step in (1, 3, 4, 100):
        offsets, next_offset, fault = take(good + bytes(bad) + batch(8), step=step)
        assert (offsets, next_offset) == ([0, 1, 2, 3], 4)
        assert fault is not None


def test_a_batch_that_goes_backwards_is_passed_over() -> None:
    assert take(batch(10, 2) + batch(3, 2) + batch(12), 10) == ([10, 11, 12], 13, None)


def test_an_unknown_codec_is_named() -> None:
    data = bytearray(batch(0))
    data[22] = 5
    restamp(data, 0, 0, 0)
    fault = take(bytes(data)).fault
    assert fault is not None
    assert "codec 5" in str(fault)


@pytest.mark.case("CC-159")
def test_relative_offsets_of_a_magic_1_wrapper() -> None:
    from zlib import compressobj, crc32

    def message(offset: int, attributes: int, timestamp: int, value: bytes) -> bytes:
        body = b"\x01" + bytes([attributes]) + timestamp.to_bytes(8, "big") + b"\xff\xff\xff\xff"
        body += len(value).to_bytes(4, "big") + value
        return offset.to_bytes(8, "big") + (len(body) + 4).to_bytes(4, "big") + crc32(body).to_bytes(4, "big") + body

    packer = compressobj(wbits=31)
    inner = packer.compress(b"".join(message(i, 0, T + i, b"v") for i in range(3))) + packer.flush()
    create_time, append_time = message(12, 1, T + 2, inner), message(12, 9, T + 50, inner)
    assert take(create_time, 10) == ([10, 11, 12], 13, None)
    records = FetchedRecords(FetchedBatches(append_time, 11), "t", 0).take(9)
    assert [(r.offset, r.timestamp, r.timestamp_type) for r in records] == [(11, T + 50, 1), (12, T + 50, 1)]
    assert [r.timestamp for r in FetchedRecords(FetchedBatches(create_time), "t", 0).take(9)] == [T, T + 1, T + 2]
    header, _ = read_legacy(create_time)
    assert (header.base_offset, header.next_offset) == (10, 13)


def test_a_faulty_header_that_ends_where_the_record_ends_is_a_fault() -> None:
    record = bytes.fromhex("16 00 00 00 01 01 04 02 61 02 62 ff".replace(" ", ""))  # two headers, the second cut short
    data = bytearray(batch(0)[:61]) + record
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    restamp(data, 0, 0, 0)
    offsets, next_offset, fault = take(bytes(data))
    assert (offsets, next_offset) == ([], 0)
    assert fault is not None


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_what_packs_extremely_well_is_read_all_the_same(codec: int) -> None:
    """Three million equal bytes: brokers took them, and no consumer could pass them."""
    equal = bytes(3_000_000)
    data = build_batch([(T, None, equal, ()), (T, None, b"next", ())], codec=codec)
    records = FetchedRecords(FetchedBatches(data), "t", 0).take(3)
    assert [record.value for record in records] == [equal, b"next"]


def test_a_reader_has_a_bound_as_well() -> None:
    bomb = build_batch([(T, None, bytes(READERS_FREE_BYTES), ())], codec=ZSTD)
    assert len(bomb) < 10_000
    assert "inflates to more than" in str(take(bomb).fault)
