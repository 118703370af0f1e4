"""Filters that Spark offers to a batch read: those on topic, partition and offset narrow the ranges that are read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from partita.spark.planning.planner import RangeTask


@dataclass(slots=True)
class PushedFilters:
    """What was taken: allowed values of topic and partition (None: any), and bounds of the offset."""

    topics: set[object] | None = None
    partitions: set[object] | None = None
    first: int = 0
    behind: int = field(default=2**63 - 1)

    def take(self, found: Filter) -> bool:
        """Whether the filter is applied from now on; False leaves it to Spark."""
        match found:
            case EqualTo(attribute=(column,), value=value) if column in ("topic", "partition"):
                self._allow(column, {value})
            case In(attribute=(column,), value=values) if column in ("topic", "partition"):
                self._allow(column, set(values))
            case EqualTo(attribute=("offset",), value=int(value)):
                self._bound(value, value + 1)
            case GreaterThan(attribute=("offset",), value=int(value)):
                self._bound(value + 1, self.behind)
            case GreaterThanOrEqual(attribute=("offset",), value=int(value)):
                self._bound(value, self.behind)
            case LessThan(attribute=("offset",), value=int(value)):
                self._bound(self.first, value)
            case LessThanOrEqual(attribute=("offset",), value=int(value)):
                self._bound(self.first, value + 1)
            case _:
                return False
        return True

    def narrow(self, task: RangeTask) -> RangeTask:
        """The part of the range that the filters let through; empty when there is none."""
        is_wanted = (self.topics is None or task.topic in self.topics) and (
            self.partitions is None or task.partition in self.partitions
        )
        begin, end = max(task.begin, self.first), min(task.end, self.behind)
        return replace(task, begin=begin, end=end if is_wanted and end > begin else begin)

    def _allow(self, column: str, values: set[object]) -> None:
        if column == "topic":
            self.topics = values if self.topics is None else self.topics & values
        else:
            self.partitions = values if self.partitions is None else self.partitions & values

    def _bound(self, first: int, behind: int) -> None:
        self.first, self.behind = max(self.first, first), min(self.behind, behind)
