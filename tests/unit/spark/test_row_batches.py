"""From a written table to record batches: bytes, partitions, order, sizes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.producer.columns import RowError, cells_of, headers_at_once, headers_by_row
from partita.records import row_packing
from partita.records.batch import build_batch, iter_records
from partita.records.builder import encode_headers, varint
from partita.records.row_packing import RowEncoder
from partita.spark.settings.options import SinkOptions
from partita.spark.settings.produce import ProduceSettings
from partita.spark.writing.arrow_encoder import ArrowEncoder, varints
from partita.spark.writing.murmur2_columns import SEED, hash_by_words, murmur2, partitions_of
from partita.spark.writing.packed_records import PackedRecords, pack, rows_of
from partita.spark.writing.row_batches import RowBatches
from partita.spark.writing.rows_out import packer_of

VECTORS = Path(__file__).parents[2] / "vectors" / "murmur2.jsonl"
HEADER = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def column(keys: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    return np.cumsum([0, *map(len, keys)]), np.frombuffer(b"".join(keys), np.uint8)


def test_hashes_are_kafkas_own() -> None:
    vectors = [json.loads(line) for line in VECTORS.read_text().splitlines()]
    offsets, data = column([bytes.fromhex(v["key"]) for v in vectors])
    assert murmur2(offsets, data).astype(np.int32).tolist() == [v["murmur2"] for v in vectors]
    for count in (1, 3, 12, 65536):
        assert partitions_of(offsets, data, count).tolist() == [v["partitions"][str(count)] for v in vectors]


@given(st.lists(st.binary(max_size=40), min_size=1), st.integers(0, 2**32 - 1), st.data())
def test_machine_code_hashes_as_numpy_does(keys: list[bytes], seed: int, data: st.DataObject) -> None:
    offsets, content = column(keys)
    first = data.draw(st.integers(0, len(keys) - 1))
    for chosen in (SEED, seed):
        hashes = np.empty(len(keys) - first, np.uint32)
        row_packing.hash_all(offsets[first:], content, chosen, hashes)
        assert hashes.tolist() == hash_by_words(offsets[first:], content, chosen).tolist()


cells = st.none() | st.binary(max_size=70)
a_row = st.tuples(cells, cells, st.binary(min_size=1, max_size=9), st.integers(0, 2**50))


@given(st.lists(a_row, min_size=1, max_size=30), st.integers(1, 400), st.data())
def test_machine_code_encodes_and_cuts_as_arrow_does(
    table: list[tuple[bytes | None, bytes | None, bytes, int]], batch_bytes: int, data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, len(table) - 1))
    keys, values, headers = (pa.array([row[i] for row in table], pa.binary()).slice(first) for i in range(3))
    times = np.array([row[3] for row in table[first:]])
    places = np.array(data.draw(st.lists(st.integers(0, len(table) - first - 1), min_size=1)))
    for some_headers in (None, headers):
        for some_times in (None, times):
            encoded = None if some_headers is None else cells_of(some_headers)
            machine = RowEncoder(cells_of(keys), cells_of(values), encoded, some_times)
            arrow = ArrowEncoder(keys, values, some_headers, some_times)
            assert machine.cuts(places, batch_bytes) == arrow.cuts(places, batch_bytes)
            assert bytes(machine.encode(places)) == bytes(arrow.encode(places))


headers_of_a_row = st.none() | st.lists(st.tuples(st.text(max_size=4), cells), max_size=3)


@given(st.lists(headers_of_a_row, min_size=1, max_size=9), st.data())
def test_machine_code_encodes_headers_as_they_are_encoded_row_by_row(
    table: list[list[tuple[str, bytes | None]] | None], data: st.DataObject
) -> None:
    given = [None if row is None else [{"key": k, "value": v} for k, v in row] for row in table]
    lists = pa.array(given, HEADER).slice(data.draw(st.integers(0, len(table) - 1)))
    assert headers_at_once(lists).to_pylist() == headers_by_row(lists).to_pylist()


rows = st.lists(st.tuples(st.none() | st.binary(max_size=300), st.none() | st.binary(max_size=300)), min_size=1)


@given(rows)
def test_packed_bytes_are_those_of_a_built_batch(pairs: list[tuple[bytes | None, bytes | None]]) -> None:
    keys, values = (pa.array(part, pa.binary()) for part in zip(*pairs, strict=True))
    (packed,) = pack(rows_of(keys, values, None, 5), batch_bytes=1 << 20, codec=0)
    expected = build_batch(
        [(5, key, value, ()) for key, value in pairs], producer_id=7, producer_epoch=1, base_sequence=3
    )
    assert packed.build(producer_id=7, producer_epoch=1, base_sequence=3) == expected


def test_lengths_beyond_the_table_and_headers() -> None:
    value, headers = b"v" * 70_000, [("h", b"1"), ("h", None)]
    encoded = pa.array([encode_headers(headers), b"\x00"], pa.binary())
    columns = pa.array([None, b"k"], pa.binary()), pa.array([value, b""], pa.binary())
    (packed,) = pack(rows_of(*columns, encoded, 5), batch_bytes=1 << 20, codec=0)
    assert packed.build() == build_batch([(5, None, value, headers), (5, b"k", b"", ())])


@given(st.lists(st.integers(0, 400), min_size=1, max_size=40), st.integers(1, 1500))
def test_no_batch_is_too_large_but_for_a_single_record(sizes: list[int], limit: int) -> None:
    values = pa.array([b"x" * size for size in sizes], pa.binary())
    batches = pack(rows_of(pa.nulls(len(sizes), pa.binary()), values, None, 0), batch_bytes=limit, codec=0)
    assert sum(batch.records_count for batch in batches) == len(sizes)
    assert all(len(batch.payload) <= limit or batch.records_count == 1 for batch in batches)


def test_timestamps_of_rows_become_those_of_records() -> None:
    """findings/spark.md 8: a timestamp column honoured by the sink."""
    pairs = [(b"k", b"1", 1_000), (None, b"2", 5_000_000_000_000), (b"k", b"3", 7)]
    keys, values = pa.array([key for key, _, _ in pairs]), pa.array([value for _, value, _ in pairs])
    times = np.array([time for _, _, time in pairs])
    (packed,) = pack(rows_of(keys, values, None, 9, times), batch_bytes=1 << 20, codec=0)
    assert packed.build() == build_batch([(time, key, value, ()) for key, value, time in pairs])


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=20))
def test_every_number_is_the_varint_that_kafka_writes(numbers: list[int]) -> None:
    assert varints(np.array(numbers)).to_pylist() == [varint(number) for number in numbers]


def test_a_batch_can_be_split_into_smaller_ones() -> None:
    values = pa.array([bytes([i]) * 50 for i in range(10)], pa.binary())
    (whole,) = pack(rows_of(pa.nulls(10, pa.binary()), values, None, 3), batch_bytes=1 << 20, codec=0)
    halves = whole.split(whole.size // 2)
    assert len(halves) > 1
    assert [row for half in halves for row in records_of(half)] == records_of(whole)


def test_a_timestamp_column_is_written_where_a_row_has_one() -> None:
    instants = pa.array([None, 1_234_567_000], pa.timestamp("us", "UTC"))
    packer = RowBatches("t", codec=0, batch_bytes=1 << 20)
    built = packer.build(pa.record_batch({"value": pa.array(["a", "b"]), "timestamp": instants}), lambda *_: 1, 99)
    (batch,) = built["t", 0]
    assert [r.timestamp for r in iter_records(memoryview(batch.build()))] == [99, 1_234_567]
    for other in (pa.array(["x", "y"]), pa.array([1, 2], pa.timestamp("us")), pa.nulls(2, pa.timestamp("us", "UTC"))):
        built = packer.build(pa.record_batch({"value": pa.array(["a", "b"]), "timestamp": other}), lambda *_: 1, 99)
        assert {r.timestamp for b in built["t", 0] for r in iter_records(memoryview(b.build()))} == {99}


def test_keys_can_be_ignored() -> None:
    packer = RowBatches("t", codec=0, batch_bytes=1 << 20, ignore_keys=True)
    table = pa.record_batch({"value": pa.array(["a"] * 8), "key": pa.array([str(i) for i in range(8)])})
    assert [list(packer.build(table, lambda *_: 4, 9)) for _ in range(2)] == [[("t", 1)], [("t", 2)]]


def written(table: dict[str, pa.Array], topic: str | None = "t", partitions: int = 4) -> dict[tuple[str, int], Any]:
    packer = RowBatches(topic, codec=0, batch_bytes=1 << 20)
    built = packer.build(pa.record_batch(table), lambda topic, least: max(partitions, least), 9)
    return {key: [r for batch in batches for r in records_of(batch)] for key, batches in built.items()}


def records_of(batch: PackedRecords) -> list[tuple[Any, Any, list[Any]]]:
    return [(r.key, r.value, list(r.headers)) for r in iter_records(memoryview(batch.build()))]


def test_rows_go_by_topic_partition_and_key_in_order() -> None:
    table = {
        "value": pa.array(["1", "2", "3", "4", "5", None]),
        "key": pa.array(["foobar", "foobar", None, None, "foobar", "21"]),
        "partition": pa.array([None, 0, 0, 0, None, None], pa.int32()),
        "topic": pa.array(["a", "a", "a", "b", "a", "a"]),
        "other": pa.array([1, 2, 3, 4, 5, 6]),
    }
    found = written(table, topic=None, partitions=5)
    assert {key: [(k, v) for k, v, _ in records] for key, records in found.items()} == {
        ("a", 1): [(b"foobar", b"1"), (b"foobar", b"5")],
        ("a", 0): [(b"foobar", b"2"), (None, b"3"), (b"21", None)],
        ("b", 0): [(None, b"4")],
    }


def test_the_option_wins_over_the_column() -> None:
    table = {"value": pa.array([b"1"]), "topic": pa.array(["column"])}
    assert {topic for topic, _ in written(table, topic="option")} == {"option"}


def test_keyless_rows_take_turns_by_batch() -> None:
    packer = RowBatches("t", codec=0, batch_bytes=1 << 20)
    table = pa.record_batch({"value": pa.array([b"1", b"2"])})
    used = [list(packer.build(table, lambda topic, least: 3, 9)) for _ in range(4)]
    assert used == [[("t", 1)], [("t", 2)], [("t", 0)], [("t", 1)]]


def test_headers_keep_order_repetitions_and_nulls() -> None:
    headers = [[{"key": "h", "value": b"1"}, {"key": "h", "value": None}, {"key": "e", "value": b""}], None, []]
    found = written({"value": pa.array([b"1", b"2", b"3"]), "headers": pa.array(headers, HEADER)}, partitions=1)
    assert [h for _, _, h in found["t", 0]] == [[("h", b"1"), ("h", None), ("e", b"")], [], []]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"topic": pa.array([None], pa.string())}, "a row has no topic"),
        ({"partition": pa.array([-3], pa.int32()), "topic": pa.array(["t"])}, "negative partition -3"),
        (
            {"headers": pa.array([[{"key": None, "value": b"x"}]], HEADER), "topic": pa.array(["t"])},
            "a header has no key",
        ),
    ],
)
def test_rows_that_cannot_be_written(table: dict[str, pa.Array], said: str) -> None:
    with pytest.raises(RowError, match=said):
        written({"value": pa.array([b"1"])} | table, topic=None)


def test_null_headers_are_left_out() -> None:
    headers = pa.array([[{"key": "h", "value": b"1"}, None], [None]], HEADER)
    found = written({"value": pa.array([b"1", b"2"]), "headers": headers}, partitions=1)
    assert [h for _, _, h in found["t", 0]] == [[("h", b"1")], []]


def test_slices_of_larger_arrow_batches_are_read_where_they_begin() -> None:
    whole = pa.record_batch({"key": pa.array(["x", "foobar", "21"]), "value": pa.array(["0", "1", "2"])})
    packer = RowBatches("t", codec=0, batch_bytes=1 << 20)
    built = packer.build(whole.slice(1), lambda topic, least: 5, 9)
    assert {key: records_of(batches[0])[0][0] for key, batches in built.items()} == {
        ("t", 1): b"foobar",
        ("t", 0): b"21",
    }


def test_tasks_begin_their_turns_at_random() -> None:
    """Issue 13, item 4: each task began with partition 1, so a stream of small batches wrote to it alone."""
    options = SinkOptions({}, ProduceSettings(), topic="t")
    table = pa.record_batch({"value": pa.array(["a", "b"])})
    found = [packer_of(options).build(table, lambda topic, least: 4, 0) for _ in range(300)]
    assert {key for built in found for key in built} == {("t", partition) for partition in range(4)}
    assert all(len(built) == 1 for built in found), "the rows of one Arrow batch stay together"
