"""Filters that Spark offers to a batch read: those on topic, partition, offset and timestamp narrow the ranges.

A lower bound of the timestamp is turned into offsets by the cluster: before the first record that is young enough, all
are older. Later ones may be older too, so Spark still applies that filter.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from partita.spark.planning.planner import RangeTask
from partita.spark.spark_api import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

ON_DECODED = (EqualTo, GreaterThan, GreaterThanOrEqual, In, IsNotNull, LessThan, LessThanOrEqual)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class PushedFilters:
    """The filters taken: allowed values of topic and partition (None: any), and bounds of the offset.

    `not_before_ms` was not taken: the filter it comes from lets nothing through that is older.
    """

    decoded: frozenset[str] = frozenset()
    """Decoded columns, which may have names of a record's."""
    of_decoded: list[Filter] = field(default_factory=list)
    """Filters on them: applied by the tasks, and once more by Spark."""
    topics: set[object] | None = None
    partitions: set[object] | None = None
    first: int = 0
    behind: int = field(default=2**63 - 1)
    not_before_ms: int | None = None

    def take(self, found: Filter) -> bool:
        """Whether the filter is applied from now on; False leaves it to Spark."""
        if isinstance(found, ON_DECODED) and found.attribute[0] in self.decoded:
            if len(found.attribute) == 1:
                self.of_decoded.append(found)
            return False
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
            case (
                EqualTo(attribute=("timestamp",), value=datetime() as instant)
                | GreaterThan(attribute=("timestamp",), value=datetime() as instant)
                | GreaterThanOrEqual(attribute=("timestamp",), value=datetime() as instant)
            ) if instant.tzinfo is not None:
                self.not_before_ms = max((instant - EPOCH) // timedelta(milliseconds=1), self.not_before_ms or 0)
                return False
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
