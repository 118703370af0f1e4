"""Limits and splits: where a batch ends and into which tasks it is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.spark.planning.offsets import Range
from partita.spark.planning.planner import RangeTask, is_held_back, limited, split, together
from partita.spark.settings.options import Limits


def ranges(*sizes: int) -> dict[tuple[str, int], Range]:
    return {("t", p): Range(100, 100 + size) for p, size in enumerate(sizes)}


def cut(limits: Limits, *sizes: int, record_bytes: float = 1.0) -> list[int]:
    found = ranges(*sizes)
    return [r.size for r in limited(found, limits, dict.fromkeys(found, record_bytes)).values()]


@pytest.mark.parametrize(
    ("limit", "sizes", "expected"),
    [
        (10, (5, 5), [5, 5]),
        (10, (100, 300), [2, 7]),
        (1, (10, 10), [1, 1]),
        (4, (3, 3, 0), [2, 2, 0]),
        (10, (1, 999), [1, 9]),
        (1000, (3, 4), [3, 4]),
        (5, (0, 0), [0, 0]),
    ],
)
def test_offsets_are_shared_out_by_backlog(limit: int, sizes: tuple[int, ...], expected: list[int]) -> None:
    assert cut(Limits(max_offsets=limit), *sizes) == expected


def test_bytes_become_offsets_by_the_average_record() -> None:
    assert cut(Limits(max_bytes=1000), 100, 100, record_bytes=50.0) == [10, 10]
    assert cut(Limits(max_bytes=10), 100, 100, record_bytes=500.0) == [1, 1]
    assert cut(Limits(max_bytes=1000, max_offsets=6), 100, 100, record_bytes=50.0) == [3, 3]


def test_no_batch_is_held_back_for_ever() -> None:
    limits = Limits(min_offsets=10, max_delay_ms=1000)
    assert is_held_back(9, limits, 999)
    assert not is_held_back(10, limits, 999)
    assert not is_held_back(9, limits, 1000)


def tasks(*sizes: int) -> list[RangeTask]:
    return [RangeTask("t", p, 0, size) for p, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "least", "most", "expected"),
    [
        ((10, 0, 10), None, None, [10, 10]),
        ((10, 10), 1, None, [10, 10]),
        ((90, 10), 4, None, [30, 30, 30, 10]),
        ((10,), None, 4, [3, 3, 4]),
        ((100, 4), 6, 50, [20, 20, 20, 20, 20, 4]),
        ((2,), 5, None, [1, 1]),
        ((), 5, None, []),
    ],
)
def test_tasks_are_split_largest_first(
    sizes: tuple[int, ...], least: int | None, most: int | None, expected: list[int]
) -> None:
    assert [task.size for task in split(tasks(*sizes), least, most)] == expected


@given(st.lists(st.integers(0, 1000), max_size=8), st.none() | st.integers(1, 40), st.none() | st.integers(1, 300))
def test_splitting_keeps_every_offset_once(sizes: list[int], least: int | None, most: int | None) -> None:
    pieces = split(tasks(*sizes), least, most)
    for p, size in enumerate(sizes):
        mine = [piece for piece in pieces if piece.partition == p]
        assert [offset for piece in mine for offset in range(piece.begin, piece.end)] == list(range(size))
    assert all(piece.size > 0 for piece in pieces)
    assert most is None or all(piece.size <= most for piece in pieces)
    assert least is None or len(pieces) >= min(least, sum(sizes))


@pytest.mark.parametrize(
    ("sizes", "most", "expected"),
    [
        ((100, 100), 4096, [[0, 1]]),
        ((3000, 1000, 97), 4096, [[0, 1], [2]]),
        ((10, 9000, 10, 10), 4096, [[0], [1], [2, 3]]),
        ((10, 10), 0, [[0], [1]]),
        ((), 4096, []),
    ],
)
def test_small_neighbours_share_a_task(sizes: tuple[int, ...], most: int, expected: list[list[int]]) -> None:
    """Issue 13, item 6: a task costs more than 200 records."""
    assert [[task.partition for task in ranges] for ranges in together(tasks(*sizes), most)] == expected


@given(st.lists(st.integers(1, 1000), max_size=20), st.integers(0, 3000))
def test_sharing_keeps_every_range_in_its_order(sizes: list[int], most: int) -> None:
    shared = together(tasks(*sizes), most)
    assert [task for ranges in shared for task in ranges] == tasks(*sizes)
    assert all(len(ranges) == 1 or sum(task.size for task in ranges) <= most for ranges in shared)


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=8), st.integers(1, 5000))
def test_a_limit_moves_every_partition_with_backlog(sizes: list[int], limit: int) -> None:
    found = cut(Limits(max_offsets=limit), *sizes)
    assert all((got > 0) == (size > 0) and got <= size for got, size in zip(found, sizes, strict=True))
    assert sum(found) <= limit + sum(1 for size in sizes if size)
