"""Whole answers into columns in one pass: which batches are plain, and where the pass leaves off."""

import pytest

from partita.records.batch import build_batch
from partita.records.builder import build_marker
from partita.records.checksum import crc32c
from partita.records.column_memory import ColumnMemory
from partita.records.columns import ColumnWriter
from partita.records.header import seal
from partita.records.to_arrow import FetchedPart, to_arrow

PLAIN = [(1_000, b"key", b"value", ()), (1_001, None, None, ())]


def writer(expected_bytes: int = 10_000) -> ColumnWriter:
    return ColumnMemory(expected_bytes, with_headers=True, in_microseconds=False).writer


def changed(at: int, to: bytes) -> bytes:
    """A batch at offset 2 with these bytes in it, and a checksum that is right."""
    batch = bytearray(build_batch(PLAIN, base_offset=2))
    batch[at : at + len(to)] = to
    seal(batch)
    return bytes(batch)


OTHERS = {
    "compressed": build_batch(PLAIN, codec=3, base_offset=2),
    "control": build_marker(1, timestamp=1, producer_id=7, producer_epoch=0, coordinator_epoch=0, base_offset=2),
    "headers": build_batch([*PLAIN, (1, None, b"", [("name", b"value")])], base_offset=2),
    "bad checksum": build_batch(PLAIN, base_offset=2)[:-1] + b"x",
    "faulty record": changed(61, b"\x7f"),
    "no count": changed(57, b"\xff\xff\xff\xff"),
    "offsets go back": changed(23, b"\xff\xff\xff\xff"),
    "far away": changed(0, b"\x7f" + b"\xff" * 7),
    "magic 1": changed(16, b"\x01"),
    "short": changed(8, b"\x00\x00\x00\x0e"),
    "cut": build_batch(PLAIN, base_offset=2)[:-1],
    "too large": build_batch([(1, None, bytes(20_000), ())], base_offset=2),
    "too many": build_batch([(1, None, None, ())] * 200, base_offset=2),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_a_batch_that_is_not_plain_is_left_as_a_whole(kind: str) -> None:
    first, last = build_batch(PLAIN), build_batch(PLAIN, base_offset=500)
    to = writer()
    answer = memoryview(first + OTHERS[kind] + (b"" if kind == "cut" else last))
    assert to.append_plain(answer, 0, 0, 1 << 62, crc32c, False) == len(first)
    assert (to.rows, to.next_offset, to.fault) == (2, 2, None)
    assert to.runs == [(0, -1, 2)]


def test_batches_of_producers_are_plain_unless_transactions_are_followed() -> None:
    answer = memoryview(build_batch(PLAIN) + build_batch(PLAIN, base_offset=2, producer_id=0, producer_epoch=0))
    assert writer().append_plain(answer, 0, 0, 1 << 62, crc32c, False) == len(answer)
    assert writer().append_plain(answer, 0, 0, 1 << 62, crc32c, True) == len(answer) // 2


def test_only_the_offsets_that_are_wanted_are_appended() -> None:
    batches = [build_batch(PLAIN, base_offset=base, leader_epoch=base) for base in (0, 2, 4, 6)]
    to = writer()
    assert to.append_plain(memoryview(b"".join(batches)), 0, 3, 6, None, False) == len(b"".join(batches[:3]))
    assert (to.rows, to.next_offset) == (3, 6)
    assert to.runs == [(0, 2, 1), (0, 4, 2)]


def test_the_times_of_the_log_count_where_the_header_says_so() -> None:
    stamped = bytearray(build_batch([(1_000, None, None, ()), (1_005, None, None, ())]))
    stamped[22] |= 0x08
    seal(stamped)
    created = build_batch([(1_000, None, None, ()), (1_003, None, None, ())], base_offset=2)
    read = to_arrow([FetchedPart("t", 0, bytes(stamped) + created)])
    assert read.batch.column("timestamp").cast("int64").to_pylist() == [1_005, 1_005, 1_000, 1_003]
    assert read.batch.column("timestamp_type").to_pylist() == [1, 1, 0, 0]


def test_a_checksum_counts_only_if_it_is_asked_for() -> None:
    broken = memoryview(build_batch(PLAIN)[:17] + b"\0\0\0\0" + build_batch(PLAIN)[21:])
    assert writer().append_plain(broken, 0, 0, 1 << 62, crc32c, False) == 0
    assert writer().append_plain(broken, 0, 0, 1 << 62, None, False) == len(broken)
