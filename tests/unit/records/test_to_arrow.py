"""Many batches into one Arrow RecordBatch: the same rows that poll() would give, in a stable schema."""

from typing import Any

import pyarrow as pa
import pytest

from partita.records.batch import ABORT, InvalidBatch, build_batch, build_marker, restamp
from partita.records.fetched_batches import FetchedBatches, FetchedRecords
from partita.records.to_arrow import FetchedPart, arrow_schema, to_arrow
from support.vectors import record_batches as record_vectors

T = 1_700_000_000_000
VECTORS = [vector for vector in record_vectors.load() if "hex" in vector]


def batch(base_offset: int, count: int, **options: Any) -> bytes:
    return build_batch(
        [(T + i, b"k%d" % i if i % 3 else None, b"v%d" % i if i % 5 else None, ()) for i in range(count)],
        base_offset=base_offset,
        **options,
    )


def rows_by_polling(part: FetchedPart) -> tuple[list[dict[str, Any]], int, InvalidBatch | None]:
    walk = FetchedBatches(part.data, part.fetch_offset, aborted=part.aborted)
    records, rows = FetchedRecords(walk, part.topic, part.partition), []
    try:
        while taken := records.take(100):
            for record in taken:
                headers = [{"key": key, "value": value} for key, value in record.headers]
                rows.append(
                    {
                        "key": record.key,
                        "value": record.value,
                        "topic": record.topic,
                        "partition": record.partition,
                        "offset": record.offset,
                        "timestamp": record.timestamp,
                        "timestamp_type": record.timestamp_type,
                        "headers": headers or None,
                        "leader_epoch": record.leader_epoch,
                    }
                )
    except InvalidBatch as fault:
        return rows, records.next_offset, fault
    return rows, records.next_offset, None


def rows_of(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    batch.validate(full=True)
    at = batch.schema.get_field_index("timestamp")
    rows: list[dict[str, Any]] = batch.set_column(at, "timestamp", batch.column(at).cast(pa.int64())).to_pylist()
    return rows


@pytest.mark.parametrize("start", range(0, 8))
def test_vectors_give_the_same_rows_as_polling(start: int) -> None:
    for vector in VECTORS[start::8]:
        part = FetchedPart("topic", 3, bytes.fromhex(vector["hex"]), fetch_offset=-(2**63))
        rows, next_offset, fault = rows_by_polling(part)
        read = to_arrow([part], leader_epoch=True)
        assert rows_of(read.batch) == rows, vector["id"]
        assert read.next_offsets == (next_offset,), vector["id"]
        assert str(read.faults[0]) == str(fault), vector["id"]


def test_the_schema_does_not_depend_on_the_records() -> None:
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    expected = pa.schema(
        [
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("timestamp", pa.timestamp("ms", "UTC")),
            ("timestamp_type", pa.int32()),
            ("headers", pa.list_(pa.field("element", header))),
        ]
    )
    assert arrow_schema() == expected
    assert to_arrow([]).batch.schema == expected
    assert to_arrow([FetchedPart("t", 0, batch(0, 9))]).batch.schema == expected
    assert to_arrow([], headers=False, leader_epoch=True).batch.schema.names == [
        *expected.names[:-1],
        "leader_epoch",
    ]


def test_parts_follow_each_other() -> None:
    parts = [
        FetchedPart("first", 4, [batch(0, 3), batch(3, 2, codec=4)], fetch_offset=1),
        FetchedPart("nothing", 5, b""),
        FetchedPart("second", 6, batch(10, 6), end_offset=14),
    ]
    read = to_arrow(parts)
    assert read.next_offsets == (5, 0, 14)
    assert [(row["topic"], row["partition"], row["offset"]) for row in rows_of(read.batch)] == [
        *[("first", 4, offset) for offset in range(1, 5)],
        *[("second", 6, offset) for offset in range(10, 14)],
    ]


def test_records_of_an_aborted_transaction_are_left_out() -> None:
    data = batch(0, 3, producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    data += build_marker(ABORT, timestamp=T, producer_id=1, producer_epoch=0, coordinator_epoch=0, base_offset=3)
    data += batch(4, 2)
    read = to_arrow([FetchedPart("t", 0, data, aborted=[(1, 0)])])
    assert read.batch.column("offset").to_pylist() == [4, 5]
    assert read.next_offsets == (6,)


def test_a_fault_ends_its_part_and_keeps_what_came_before() -> None:
    bad = bytearray(batch(3, 3))
    bad[-1] ^= 1
    read = to_arrow([FetchedPart("t", 0, batch(0, 3) + bad), FetchedPart("t", 1, batch(0, 2))])
    assert read.batch.column("offset").to_pylist() == [0, 1, 2, 0, 1]
    assert read.next_offsets == (3, 2)
    assert [fault is None for fault in read.faults] == [False, True]


def test_microseconds_saturate_where_64_bits_end() -> None:
    data = build_batch([(T, None, b"", ()), (2**63 - 1, None, b"", ())])
    stamps = to_arrow([FetchedPart("t", 0, data)], timestamp_unit="us").batch.column("timestamp").cast(pa.int64())
    assert stamps.to_pylist() == [T * 1000, (2**63 - 1) // 1000 * 1000]
    with pytest.raises(ValueError, match="'ns'"):
        to_arrow([], timestamp_unit="ns")


def test_growing_columns_keep_what_they_hold() -> None:
    blown_up = b"".join(
        build_batch([(T, b"k" * 50, bytes(2000), [("h" * 40, bytes(500))])] * 200, base_offset=200 * i, codec=4)
        for i in range(5)
    )
    rows = rows_of(to_arrow([FetchedPart("t", 0, blown_up)], headers=True).batch)
    assert [row["offset"] for row in rows] == list(range(1000))
    assert all(row["value"] == bytes(2000) and row["key"] == b"k" * 50 for row in rows)
    assert all(row["headers"] == [{"key": "h" * 40, "value": bytes(500)}] for row in rows)


def test_under_log_append_time_all_records_have_the_time_of_their_batch() -> None:
    data = bytearray(batch(0, 3))
    restamp(data, 0, 0, T + 77)
    read = to_arrow([FetchedPart("t", 0, bytes(data))]).batch
    assert read.column("timestamp").cast(pa.int64()).to_pylist() == [T + 77] * 3
    assert read.column("timestamp_type").to_pylist() == [1] * 3


def test_headers_that_come_late_are_with_their_own_records() -> None:
    none: list[Any] = [(1, b"k", None, ())] * 3
    some: list[Any] = [(1, b"k", b"v", [("h", b"x"), ("h", None)])]
    data = build_batch(none) + build_batch(none + some + none, base_offset=3) + build_batch(some, base_offset=10)
    read = to_arrow([FetchedPart("t", 0, data), FetchedPart("t", 1, build_batch(none))]).batch
    read.validate(full=True)
    told = [{"key": "h", "value": b"x"}, {"key": "h", "value": None}]
    assert read.column("headers").to_pylist() == [None] * 6 + [told] + [None] * 3 + [told] + [None] * 3
    assert read.column("value").to_pylist() == [None] * 6 + [b"v"] + [None] * 3 + [b"v"] + [None] * 3
    assert read.column("offset").to_pylist() == [*range(11), 0, 1, 2]
