"""The recent past of a cluster in memory: log ends, lag of groups, rebalances. Bounded, whatever is watched.

Each series has a fine ring and a coarse one. One partition takes at most 3 KB and one group at most 16 KB, so 10,000
partitions in 1,000 groups stay below 50 MB. Times are wall-clock milliseconds.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from partita.observe.seen import LogSeen, TopicPartition

UNKNOWN = -1
"""Stands for a value that is not known, in a series of numbers that are never negative."""
END_RINGS = ((64, 4_000), (128, 60_000))
GROUP_RINGS = ((200, 9_000), (288, 300_000))
"""(values kept, least milliseconds between two) of the fine and the coarse ring."""
REBALANCES_KEPT = 200
HOUR_MS = 3_600_000


class Ring:
    """The last rows of integers, in fixed memory. The first column is the time, and it never goes back.

    Rows that come sooner than `every_ms` after the last one are left out.
    """

    __slots__ = ("_capacity", "_columns", "_every_ms", "_last_ms", "_next")

    def __init__(self, width: int, capacity: int, every_ms: int) -> None:
        self._columns = tuple(array("q") for _ in range(width))
        self._capacity = capacity
        self._every_ms = every_ms
        self._next = 0
        self._last_ms = 0

    def add(self, *row: int) -> bool:
        """Keep a row, in place of the oldest one if the ring is full; false if it came too early."""
        if self._columns[0] and row[0] < self._last_ms + self._every_ms:
            return False
        self._last_ms = row[0]
        if len(self._columns[0]) < self._capacity:
            for column, value in zip(self._columns, row, strict=True):
                column.append(value)
        else:
            for column, value in zip(self._columns, row, strict=True):
                column[self._next] = value
            self._next = (self._next + 1) % self._capacity
        return True

    def rows(self) -> Iterator[tuple[int, ...]]:
        """All rows, oldest first."""
        count = len(self._columns[0])
        for position in range(count):
            index = (self._next + position) % count
            yield tuple(column[index] for column in self._columns)

    def row(self, position: int) -> tuple[int, ...]:
        """One row; position 0 is the oldest, -1 the newest."""
        count = len(self._columns[0])
        index = (self._next + position % count) % count
        return tuple(column[index] for column in self._columns)

    def position_after(self, value: int, column: int) -> int:
        """Number of rows with at most `value` in a column that never falls."""
        values, count = self._columns[column], len(self._columns[0])
        return bisect_right(range(count), value, key=lambda position: values[(self._next + position) % count])

    def __len__(self) -> int:
        return len(self._columns[0])


class Series:
    """A fine ring for the last minutes and a coarse one for the hours before."""

    __slots__ = ("coarse", "fine")

    def __init__(self, width: int, rings: tuple[tuple[int, int], ...]) -> None:
        (fine, fine_ms), (coarse, coarse_ms) = rings
        self.fine = Ring(width, fine, fine_ms)
        self.coarse = Ring(width, coarse, coarse_ms)

    def add(self, *row: int) -> bool:
        """Take in a row; true if the fine ring kept it."""
        self.coarse.add(*row)
        return self.fine.add(*row)

    def newest(self) -> tuple[int, ...] | None:
        """The last row that the fine ring kept; None without rows."""
        return self.fine.row(-1) if len(self.fine) else None

    def rows(self) -> list[tuple[int, ...]]:
        """Return the kept rows, oldest first: coarse rows up to where the fine ones begin."""
        fine = list(self.fine.rows())
        begin = fine[0][0] if fine else None
        return [row for row in self.coarse.rows() if begin is None or row[0] < begin] + fine


@dataclass(frozen=True, slots=True)
class LagPoint:
    """A group at one time: records behind, milliseconds behind (None: unknown), and the sum of what it committed."""

    at_ms: int
    lag: int
    behind_ms: int | None
    committed: int

    @property
    def pair(self) -> tuple[int, int]:
        """The time and the lag, for a curve."""
        return self.at_ms, self.lag


@dataclass(frozen=True, slots=True)
class Behind:
    """Age of the next record to read. `is_rough`: before anybody watched, so it is an estimate."""

    ms: int
    is_rough: bool = False


@dataclass(frozen=True, slots=True)
class RebalanceSeen:
    """A change of a group's members or of who holds what, between two looks."""

    at_ms: int
    group_id: str
    what: str

    @property
    def mark(self) -> tuple[int, str]:
        """The time and the words, for a mark on a curve."""
        return self.at_ms, self.what


class History:
    """Series by partition and group, and the last rebalances. Belongs to one thread."""

    def __init__(self) -> None:
        self._ends: dict[TopicPartition, Series] = {}
        self._groups: dict[str, Series] = {}
        self._rebalances: dict[str, deque[RebalanceSeen]] = {}
        self._counted: Counter[str] = Counter()
        self._causes: dict[str, Counter[str]] = {}
        self.began_ms: int | None = None

    def saw_end(self, key: TopicPartition, at_ms: int, end: int) -> None:
        """A partition's log ended here. A log that became shorter was recreated: what was known of it is forgotten."""
        series = self._ends.get(key)
        newest = series.newest() if series is not None else None
        if series is None or (newest is not None and newest[1] > end):
            series = self._ends[key] = Series(2, END_RINGS)
        series.add(at_ms, end)

    def saw_group(self, group_id: str, point: LagPoint) -> bool:
        """Take in a group's lag; true if the point is kept."""
        series = self._groups.get(group_id)
        if series is None:
            series = self._groups[group_id] = Series(4, GROUP_RINGS)
        behind = UNKNOWN if point.behind_ms is None else point.behind_ms
        return series.add(point.at_ms, point.lag, behind, point.committed)

    def saw_rebalance(self, seen: RebalanceSeen) -> None:
        """Note a rebalance."""
        self._rebalances.setdefault(seen.group_id, deque(maxlen=REBALANCES_KEPT)).append(seen)
        self._counted[seen.group_id] += 1

    def forget_group(self, group_id: str) -> None:
        """Drop the history of a deleted group."""
        self._groups.pop(group_id, None)
        self._rebalances.pop(group_id, None)
        self._counted.pop(group_id, None)
        self._causes.pop(group_id, None)

    def forget_partition(self, key: TopicPartition) -> None:
        """Drop the history of a deleted partition."""
        self._ends.pop(key, None)

    def behind(self, log: LogSeen, committed: int, now_ms: int) -> Behind | None:
        """Time since the log's end passed a committed offset; None while nothing is known.

        Where that was before anybody watched, it is estimated from the age of the log's oldest record.
        """
        if log.end is None or log.end <= committed:
            return None if log.end is None else Behind(0)
        series = self._ends.get((log.topic, log.partition))
        if series is None or not len(series.fine):
            return None
        later: tuple[int, ...] = (now_ms, log.end)
        for ring in (series.fine, series.coarse):
            after = ring.position_after(committed, 1)
            if after:
                return Behind(
                    _age(now_ms, committed, ring.row(after - 1), ring.row(after) if after < len(ring) else later)
                )
            later = ring.row(0)
        if log.start is None or log.oldest_ms is None or committed < log.start:
            return Behind(max(0, now_ms - later[0]), is_rough=True)
        return Behind(_age(now_ms, committed, (log.oldest_ms, log.start), later), is_rough=True)

    def lag_before(self, group_id: str, at_ms: int) -> LagPoint | None:
        """The newest point of the fine series that is at least as old as `at_ms`, else its oldest one."""
        series = self._groups.get(group_id)
        if series is None or not len(series.fine):
            return None
        return _point(series.fine.row(max(0, series.fine.position_after(at_ms, 0) - 1)))

    def lag_points(self, group_id: str, since_ms: int = 0) -> list[LagPoint]:
        """The group's lag over time, oldest first."""
        series = self._groups.get(group_id)
        rows = series.rows() if series is not None else []
        return [_point(row) for row in rows if row[0] >= since_ms]

    def ends_of(self, key: TopicPartition) -> list[tuple[int, int]]:
        """The ends of a partition's log that were seen: (time, offset), oldest first."""
        series = self._ends.get(key)
        return [(at_ms, end) for at_ms, end in series.rows()] if series is not None else []

    def produce_rate(self, key: TopicPartition, now_ms: int, window_ms: int = 60_000) -> float | None:
        """Records per second that were appended in the last `window_ms`; None until two looks lie in it."""
        series = self._ends.get(key)
        if series is None:
            return None
        ring = series.fine
        first = ring.position_after(now_ms - window_ms, 0)
        if first >= len(ring) - 1:
            return None
        (begin_ms, begin), (end_ms, end) = ring.row(first), ring.row(-1)
        return (end - begin) * 1000 / max(1, end_ms - begin_ms)

    def rebalances(self, group_id: str | None = None) -> list[RebalanceSeen]:
        """The rebalances of a group, or of all, oldest first."""
        if group_id is not None:
            return list(self._rebalances.get(group_id, ()))
        return sorted((seen for some in self._rebalances.values() for seen in some), key=lambda seen: seen.at_ms)

    def rebalances_total(self, group_id: str) -> int:
        """Number of the group's rebalances since the start."""
        return self._counted[group_id]

    def count_cause(self, group_id: str, cause: str) -> None:
        """Count a rebalance by what began it."""
        self._causes.setdefault(group_id, Counter())[cause] += 1

    def causes(self, group_id: str) -> Counter[str]:
        """Number of the group's rebalances since the start by what began each, as far as that is explained."""
        return self._causes.get(group_id, Counter())

    def last_rebalance(self, group_id: str) -> RebalanceSeen | None:
        """The newest rebalance of a group that was seen."""
        seen = self._rebalances.get(group_id)
        return seen[-1] if seen else None


def _age(now_ms: int, committed: int, before: Sequence[int], after: Sequence[int]) -> int:
    """Time since the end passed `committed`, between two rows (time, end) around it."""
    passed_ms = before[0] + (after[0] - before[0]) * (committed - before[1]) // max(1, after[1] - before[1])
    return max(0, now_ms - passed_ms)


def _point(row: Sequence[int]) -> LagPoint:
    at_ms, lag, behind, committed = row
    return LagPoint(at_ms, lag, None if behind == UNKNOWN else behind, committed)
