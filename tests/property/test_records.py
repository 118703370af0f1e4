"""Any records survive any codec, by either way of reading; any damage is detected, harmless, or a declared error."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.records.batch import (
    InvalidBatch,
    build_batch,
    check_crc,
    has_valid_crc,
    iter_records,
    read_header,
    restamp,
)
from partita.records.compression import compress, decompress
from partita.records.fetched_batches import FetchedBatches, FetchedRecords
from partita.records.to_arrow import FetchedPart, to_arrow
from support.vectors import record_batches as record_vectors

SMALL = st.binary(max_size=40)
HEADERS = st.lists(st.tuples(st.text(max_size=8), st.none() | SMALL), max_size=3)
TIMESTAMPS = st.integers(-1, 2**42) | st.integers(2**62, 2**63 - 1)
RECORDS = st.lists(st.tuples(TIMESTAMPS, st.none() | SMALL, st.none() | st.binary(max_size=300), HEADERS), max_size=30)
CODECS = st.integers(0, 4)
SEEDS = [bytes.fromhex(v["hex"]) for v in record_vectors.load() if 0 < len(v.get("hex", "")) < 1200]


def arrow_rows(data: bytes, **options: Any) -> list[tuple[Any, ...]]:
    batch = to_arrow([FetchedPart("t", 1, data, fetch_offset=-(2**63))], **options).batch
    batch.validate(full=True)
    columns = [batch.column(name) for name in ("offset", "key", "value", "headers")]
    stamps = batch.column("timestamp").cast(pa.int64()).to_pylist()
    rows = zip(stamps, *(column.to_pylist() for column in columns), strict=True)
    return [(t, o, k, v, [(h["key"], h["value"]) for h in headers or ()]) for t, o, k, v, headers in rows]


@given(RECORDS, CODECS, st.integers(0, 2**62))
def test_records_survive(records: list[Any], codec: int, base_offset: int) -> None:
    data = build_batch(records, codec=codec, base_offset=base_offset)
    header = read_header(data)
    assert header.records_count == len(records)
    assert header.max_timestamp == max((record[0] for record in records), default=-1)
    wanted = [(t, base_offset + i, k, v, headers) for i, (t, k, v, headers) in enumerate(records)]
    found = [(r.timestamp, r.offset, r.key, r.value, list(r.headers)) for r in iter_records(data)]
    assert found == wanted
    assert arrow_rows(data) == wanted


@given(st.lists(RECORDS, max_size=4), CODECS, st.integers(1, 50), st.integers(0, 100))
def test_polling_in_any_portions_gives_what_arrow_gives(
    batches: list[list[Any]], codec: int, portion: int, start: int
) -> None:
    data, offset = b"", 0
    for records in batches:
        data += build_batch(records, codec=codec, base_offset=offset) if records else b""
        offset += len(records)
    polled = FetchedRecords(FetchedBatches(data, start), "t", 1)
    offsets: list[int] = []
    while taken := polled.take(portion):
        assert len(taken) <= portion
        offsets += [record.offset for record in taken]
    read = to_arrow([FetchedPart("t", 1, data, fetch_offset=start)])
    assert offsets == list(range(start, offset)) == read.batch.column("offset").to_pylist()
    assert read.next_offsets == (polled.next_offset,) == (max(start, offset),)


@given(RECORDS.filter(bool), CODECS, st.data())
def test_damage_is_detected(records: list[Any], codec: int, choice: st.DataObject) -> None:
    data = bytearray(build_batch(records, codec=codec))
    position = choice.draw(st.integers(17, len(data) - 1))
    data[position] ^= choice.draw(st.integers(1, 255))
    assert not has_valid_crc(data)
    with pytest.raises(InvalidBatch):
        check_crc(data)


@given(RECORDS.filter(bool), st.data())
def test_truncation_is_harmless(records: list[Any], choice: st.DataObject) -> None:
    data = build_batch(records)
    part = data[: choice.draw(st.integers(0, len(data) - 1))]
    assert FetchedRecords(FetchedBatches(part), "t", 0).take(99) == []


@pytest.mark.case("CC-163")
@given(st.sampled_from(SEEDS), st.lists(st.tuples(st.integers(0, 599), st.integers(0, 255)), min_size=1, max_size=6))
def test_mutated_bytes_raise_declared_errors_only(seed: bytes, changes: list[tuple[int, int]]) -> None:
    data = bytearray(seed)
    for position, byte in changes:
        data[position % len(data)] = byte
    if len(data) >= 61 and data[16] == 2:
        restamp(data, 0, 0, 5)  # a right checksum: the decoder behind it is meant
    part = FetchedPart("t", 1, bytes(data), fetch_offset=-(2**63), aborted=[(5, 0)])
    for check_crcs in (True, False):
        read = to_arrow([part], check_crcs=check_crcs)
        read.batch.validate(full=True)
        walk = FetchedBatches(part.data, part.fetch_offset, aborted=part.aborted, check_crcs=check_crcs)
        polled = FetchedRecords(walk, "t", 1)
        offsets: list[int] = []
        fault = None
        try:
            while taken := polled.take(7):
                offsets += [record.offset for record in taken]
        except InvalidBatch as problem:
            fault = problem
        assert str(fault) == str(read.faults[0])
        assert read.batch.column("offset").to_pylist() == offsets
        assert read.next_offsets == (polled.next_offset,)


@given(st.binary(max_size=4000), st.integers(1, 4))
def test_codecs_round_trip(data: bytes, codec: int) -> None:
    assert bytes(decompress(codec, compress(codec, data))) == data


@given(st.binary(max_size=300), st.integers(0, 7), st.integers(0, 2))
def test_nonsense_never_crashes_a_codec(data: bytes, codec: int, magic: int) -> None:
    prefix = {1: b"\x1f\x8b\x08", 2: b"\x82SNAPPY\0", 3: b"\x04\x22\x4d\x18\x60\x40\x82", 4: b"\x28\xb5\x2f\xfd"}
    for source in (data, prefix.get(codec, b"") + data):
        try:
            assert len(decompress(codec, source, 1 << 20, magic=magic)) <= 1 << 20
        except InvalidBatch:
            continue
