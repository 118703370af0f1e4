"""The events of one demo run, as plain values: filled in by the runner, read by checks and report."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Tenure:
    """One member's ownership of one partition; seconds since the start of the run."""

    member: str
    partition: int
    from_s: float
    to_s: float


@dataclass(frozen=True, slots=True)
class Rebalance:
    """One completed rebalance of the group, as the coordinator noted it."""

    at_s: float
    generation: int
    cause: str
    member_count: int
    duration_ms: int


@dataclass(frozen=True, slots=True)
class LagSample:
    """High watermark minus committed offset, summed over the partitions of the topic."""

    at_s: float
    lag: int


@dataclass(slots=True)
class Kill:
    """A SIGKILL of `who`; `back_s` is when it was started again, 0 if it was not.

    `uncommitted` maps each partition that it owned to the offsets [first, end) that it may have processed without a
    commit: from what the group has committed to the end of the log at the kill.
    """

    who: str
    at_s: float
    back_s: float = 0.0
    uncommitted: dict[int, tuple[int, int]] = field(default_factory=dict)

    def explains(self, partition: int, offset: int) -> bool:
        """Whether this kill can be why the record was processed twice."""
        first, end = self.uncommitted.get(partition, (0, 0))
        return first <= offset < end


@dataclass(frozen=True, slots=True)
class Check:
    """One comparison of the outcome with the CSV."""

    what: str
    expected: str
    got: str
    holds: bool
    remark: str = ""


class Coverage:
    """How often each offset was processed, up to 255 times."""

    def __init__(self) -> None:
        self._times: dict[int, bytearray] = {}
        self.processed = 0
        self.distinct = 0

    def add(self, partition: int, offset: int) -> bool:
        """Count an offset of a partition once more; return whether it is the first time."""
        times = self._times.setdefault(partition, bytearray())
        if len(times) <= offset:
            times.extend(bytes(max(offset + 1 - len(times), 4096)))
        is_first = not times[offset]
        times[offset] = min(times[offset] + 1, 255)
        self.processed += 1
        self.distinct += is_first
        return is_first

    def repeated(self) -> Iterator[tuple[int, int]]:
        """Partition and offset of each record that was processed more than once."""
        for partition, times in sorted(self._times.items()):
            yield from ((partition, offset) for offset, count in enumerate(times) if count > 1)


@dataclass(slots=True)
class Outcome:
    """Contents of the files and the dead-letter topic. A flight counts once in all but the rows and `coverage`.

    `spark_repeated` counts rows of Spark's Parquet files that repeat another one of them.
    """

    coverage: Coverage = field(default_factory=Coverage)
    usable: int = 0
    with_weather: int = 0
    dead_letter_rows: int = 0
    dead_letters: dict[str, int] = field(default_factory=dict)
    delays: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    spark_rows: int = 0
    spark_repeated: int = 0
    consumer_rows: int = 0


@dataclass(slots=True)
class Inside:
    """Inside of the run: where the group's coordinator was and went, the notes of one rebalance, the last records."""

    partition: int = 0
    partitions: int = 0
    node: int = 0
    moved_to: int = 0
    moved_s: float = 0.0
    rebalances_by_move: int = 0
    notes: list[Mapping[str, Any]] = field(default_factory=list)
    groups: deque[Any] = field(default_factory=lambda: deque(maxlen=4))
    offsets: deque[Any] = field(default_factory=lambda: deque(maxlen=4))
    """Records of `__consumer_offsets`, as a consumer gives them: of the group itself, and of its commits."""


@dataclass(slots=True)
class Story:
    """Everything recorded in one run."""

    outcome: Outcome = field(default_factory=Outcome)
    tenures: list[Tenure] = field(default_factory=list)
    rebalances: list[Rebalance] = field(default_factory=list)
    lag: list[LagSample] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    spark_batches: int = 0
    final_lag: int = -1
    took_s: float = 0.0
    version: str = ""
    started: str = ""
    machine: str = ""
    command: str = ""
    checks: list[Check] = field(default_factory=list)
    inside: Inside = field(default_factory=Inside)
