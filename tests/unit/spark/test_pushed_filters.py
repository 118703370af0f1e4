"""Filters on topic, partition and offset narrow what is read; others stay with Spark."""

from __future__ import annotations

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
def test_ranges(filters: list[Filter], expected: tuple[int, int] | None) -> None:
    pushed = PushedFilters()
    assert all(pushed.take(found) for found in filters)
    task = pushed.narrow(RangeTask("t", 3, 10, 20))
    assert (task.begin, task.end) == expected if expected is not None else task.size == 0


@pytest.mark.parametrize("found", [IsNotNull(OFFSET), EqualTo(("key",), b"k"), Not(EqualTo(PARTITION, 1))])
def test_what_is_left_to_spark(found: Filter) -> None:
    assert not PushedFilters().take(found)
