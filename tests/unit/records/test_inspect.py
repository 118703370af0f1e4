"""Walks over records that make no objects: what is counted, what is found, how much they inflate to."""

from __future__ import annotations

import pytest

from partita.protocol.error_codes import ErrorCode
from partita.records.builder import build_batch
from partita.records.header import HEADER_SIZE, InvalidBatch, read_header, seal
from partita.records.opened.inspect import RecordChecks, check_records, first_at_or_after, is_long
from partita.records.validate import check_produced, inflated_bytes_max

HEADERS = (("h", b"v"), ("n", None))
REJECTED_MAX = 100
"""As in `partita.records.opened.walk`, which keeps it to itself when it is compiled."""


def batch(count: int = 4, codec: int = 0, *, key: bytes | None = b"k") -> bytes:
    """Records at 1000, 1010, 1020 ..., every second one with headers."""
    records = [(1000 + 10 * i, key, b"v", HEADERS if i % 2 else ()) for i in range(count)]
    return bytes(build_batch(records, codec=codec))


@pytest.mark.parametrize("codec", range(5))
def test_keyless_and_mistimed_records_are_counted_and_placed(codec: int) -> None:
    checked = check_records(batch(codec=codec), RecordChecks(needs_key=True, earliest=1010, latest=1020))
    assert (checked.keyless_count, checked.mistimed_count, checked.mistimed) == (0, 2, (0, 3))
    assert checked.max_timestamp == 1030
    keyless = check_records(batch(codec=codec, key=None), RecordChecks(needs_key=True))
    assert (keyless.keyless_count, keyless.mistimed_count, keyless.keyless) == (4, 0, (0, 1, 2, 3))


def test_any_number_of_rejected_records_costs_a_bounded_list() -> None:
    """A1: one error object for each of twenty million records took six gigabytes."""
    checked = check_records(batch(3 * REJECTED_MAX, key=None), RecordChecks(needs_key=True))
    assert checked.keyless_count == 3 * REJECTED_MAX
    assert checked.keyless == tuple(range(REJECTED_MAX))


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize(
    ("timestamp", "from_offset", "found"),
    [(0, 0, (7, 1000)), (1001, 0, (8, 1010)), (0, 9, (9, 1020)), (1031, 0, None), (1030, 11, None)],
)
def test_the_first_record_of_a_time_is_found(
    codec: int, timestamp: int, from_offset: int, found: tuple[int, int] | None
) -> None:
    moved = bytearray(batch(codec=codec))
    moved[:8] = (7).to_bytes(8, "big")
    assert first_at_or_after(moved, timestamp, from_offset) == found


def test_a_batch_inflates_to_its_bound_and_no_further() -> None:
    """H25, A3."""
    large = build_batch([(0, b"k", bytes(200_000), ())], codec=4)
    with pytest.raises(InvalidBatch):
        check_records(large, RecordChecks(max_bytes=100_000))
    with pytest.raises(InvalidBatch):
        first_at_or_after(large, 0, 0, 100_000)
    assert inflated_bytes_max(1_000_000) == 50_000_000
    assert inflated_bytes_max(100 << 20) == 256 << 20


def test_more_records_than_fit_into_the_bound_are_refused_by_the_header() -> None:
    """A1, A2: nothing inflates the batch to learn that."""
    many = bytearray(batch(codec=4))
    count = 10_000_000
    many[57:61] = count.to_bytes(4, "big")
    many[23:27] = (count - 1).to_bytes(4, "big")
    seal(many)
    with pytest.raises(InvalidBatch, match="uncompressed") as refused:
        check_produced(many)
    assert refused.value.code is ErrorCode.INVALID_RECORD
    assert check_produced(many, max_message_bytes=2_000_000).records_count == count


@pytest.mark.parametrize(
    ("made", "long"),
    [
        (batch(10), False),
        (batch(10, codec=4), False),
        (batch(5_001), True),
        (bytes(build_batch([(0, None, bytes(70_000), ())])), True),
    ],
)
def test_long_work_is_told_by_the_header(made: bytes, long: bool) -> None:
    assert len(made) > HEADER_SIZE
    assert is_long(read_header(made)) is long
