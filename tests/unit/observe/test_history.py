"""What the dashboard remembers: bounded rings, and lag as time by interpolation."""

from __future__ import annotations

import pytest

from partita.observe.history import END_RINGS, GROUP_RINGS, Behind, History, LagPoint, Ring, Series
from partita.observe.seen import LogSeen

KEY = ("orders", 0)
MINUTE = 60_000


def log(end: int | None, *, start: int | None = None, oldest_ms: int | None = None) -> LogSeen:
    return LogSeen(*KEY, 1, start=start, end=end, oldest_ms=oldest_ms)


def watched(*ends: tuple[int, int]) -> History:
    history = History()
    for at_ms, end in ends:
        history.saw_end(KEY, at_ms, end)
    return history


def test_a_full_ring_replaces_its_oldest_rows() -> None:
    ring = Ring(2, 3, 0)
    for number in range(7):
        ring.add(number, number * 10)
    assert list(ring.rows()) == [(4, 40), (5, 50), (6, 60)]
    assert (ring.row(0), ring.row(-1), len(ring)) == ((4, 40), (6, 60), 3)
    assert [ring.position_after(value, 1) for value in (39, 40, 55, 60)] == [0, 1, 2, 3]


def test_rows_that_come_too_soon_are_left_out() -> None:
    ring = Ring(1, 10, 1_000)
    assert [ring.add(at) for at in (0, 999, 1_000, 1_500, 2_000)] == [True, False, True, False, True]


def test_coarse_rows_end_where_fine_ones_begin() -> None:
    series = Series(1, ((3, 0), (10, 20)))
    for at in range(0, 100, 10):
        series.add(at)
    assert [row[0] for row in series.rows()] == [0, 20, 40, 60, 70, 80, 90]


@pytest.mark.parametrize(
    ("committed", "expected"),
    [
        (300, Behind(0)),
        (250, Behind(5_000)),
        (200, Behind(10_000)),
        (100, Behind(20_000)),
        (50, Behind(30_000, is_rough=True)),
    ],
)
def test_lag_in_time_is_when_the_end_passed_the_committed_offset(committed: int, expected: Behind) -> None:
    history = watched((0, 100), (10_000, 200), (20_000, 300))
    assert history.behind(log(300, start=0, oldest_ms=-20_000), committed, 20_000) == expected


def test_lag_older_than_the_log_is_at_least_as_old_as_the_watch() -> None:
    history = watched((0, 100), (10_000, 200))
    assert history.behind(log(200), 50, 10_000) == Behind(10_000, is_rough=True)
    assert history.behind(log(200, start=80, oldest_ms=-5), 50, 10_000) == Behind(10_000, is_rough=True)


def test_what_is_not_known_is_not_guessed() -> None:
    assert History().behind(log(None), 5, 0) is None
    assert History().behind(log(10), 5, 0) is None
    assert History().behind(log(10), 10, 0) == Behind(0)


def test_a_topic_that_begins_again_is_another_log() -> None:
    history = watched((0, 100), (10_000, 200), (20_000, 5))
    assert history.produce_rate(KEY, 20_000) is None
    assert history.behind(log(5), 2, 20_000) == Behind(0, is_rough=True)


def test_the_rate_is_that_of_the_last_minute() -> None:
    history = watched(*((at * 5_000, at * 50) for at in range(40)))
    assert history.produce_rate(KEY, 39 * 5_000) == pytest.approx(10)


def test_the_lag_of_a_minute_ago_is_found() -> None:
    history = History()
    for at in range(0, 200_000, 10_000):
        history.saw_group("g", LagPoint(at, at // 1_000, None, 0))
    found = history.lag_before("g", 130_000)
    assert found is not None
    assert (found.at_ms, found.lag, found.behind_ms) == (130_000, 130, None)
    first = history.lag_before("g", -1)
    assert first is not None
    assert first.at_ms == 0, "the oldest stands in for what was not watched"


def test_memory_is_bounded_for_ten_thousand_partitions() -> None:
    """Design of the dashboard, section 4: at most 50 MB for 10,000 partitions in 1,000 groups."""

    def size(series: Series) -> int:
        columns = [column for ring in (series.fine, series.coarse) for column in ring._columns]
        return sum(column.buffer_info()[1] * column.itemsize for column in columns)

    ends, groups = Series(2, END_RINGS), Series(4, GROUP_RINGS)
    for number in range(5_000):
        ends.add(number * MINUTE, number)
        groups.add(number * 6 * MINUTE, number, number, number)
    assert 10_000 * size(ends) + 1_000 * size(groups) < 50_000_000
