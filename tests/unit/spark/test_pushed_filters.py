"""Filters on topic, partition and offset narrow what is read; others stay with Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from partita.spark.planning.planner import RangeTask
from partita.spark.reading.pushed_filters import PushedFilters

OFFSET, PARTITION, TOPIC = ("offset",), ("partition",), ("topic",)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([], (10, 20)),
        ([EqualTo(PARTITION, 3)], (10, 20)),
        ([EqualTo(PARTITION, 4)], None),
        ([In(PARTITION, (1, 3)), In(PARTITION, (1, 2))], None),
        ([In(TOPIC, ("t", "u")), EqualTo(TOPIC, "t")], (10, 20)),
        ([EqualTo(TOPIC, "u")], None),
        ([EqualTo(OFFSET, 15)], (15, 16)),
        ([GreaterThan(OFFSET, 12), LessThan(OFFSET, 18)], (13, 18)),
        ([GreaterThanOrEqual(OFFSET, 12), LessThanOrEqual(OFFSET, 18)], (12, 19)),
        ([LessThan(OFFSET, 5)], None),
        ([GreaterThan(OFFSET, 50)], None),
    ],
)
def test_filters_narrow_the_range(filters: list[Filter], expected: tuple[int, int] | None) -> None:
    pushed = PushedFilters()
    assert all(pushed.take(found) for found in filters)
    task = pushed.narrow(RangeTask("t", 3, 10, 20))
    assert (task.begin, task.end) == expected if expected is not None else task.size == 0


INSTANT = datetime(2020, 2, 2, 3, tzinfo=timezone(timedelta(hours=3)))


@pytest.mark.parametrize("kind", [GreaterThan, GreaterThanOrEqual, EqualTo])
def test_a_lower_bound_of_the_timestamp_narrows_but_stays_with_spark(kind: type[Filter]) -> None:
    """findings/spark.md 5: timestamp >= X pushed to ListOffsets; records behind that offset may be older."""
    pushed = PushedFilters()
    for instant in (INSTANT, INSTANT - timedelta(days=1), datetime(1969, 1, 1, tzinfo=UTC)):
        assert not pushed.take(kind(("timestamp",), instant))  # type: ignore[call-arg]  # each kind takes both
    assert pushed.not_before_ms == 1_580_601_600_000
    before = PushedFilters()
    assert not before.take(LessThan(("timestamp",), INSTANT))
    assert before.not_before_ms is None


@pytest.mark.parametrize("found", [IsNotNull(OFFSET), EqualTo(("key",), b"k"), Not(EqualTo(PARTITION, 1))])
def test_what_is_left_to_spark(found: Filter) -> None:
    assert not PushedFilters().take(found)
