"""What happened during one demo run, as plain values: filled in by the runner, read by checks and report."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Tenure:
    """One member's ownership of one partition; seconds since the start of the run."""

    member: str
    partition: int
    from_s: float
    to_s: float


@dataclass(frozen=True, slots=True)
class Rebalance:
    """One completed rebalance of the plain group, as the coordinator noted it."""

    at_s: float
    generation: int
    cause: str
    member_count: int
    duration_ms: int


@dataclass(frozen=True, slots=True)
class LagSample:
    """High watermark minus committed offset, summed over the partitions of the topic."""

    at_s: float
    group: str
    lag: int


@dataclass(frozen=True, slots=True)
class Check:
    """One comparison of the outcome with the CSV."""

    what: str
    expected: str
    got: str
    holds: bool
    remark: str = ""


class Coverage:
    """Which offsets were processed, and how often more than once."""

    def __init__(self) -> None:
        self._seen: dict[int, bytearray] = {}
        self.processed = 0
        self.distinct = 0

    @property
    def duplicates(self) -> int:
        """How many records were read more than once."""
        return self.processed - self.distinct

    def add(self, partition: int, first: int, end: int) -> None:
        """Count the offsets [first, end) of a partition as processed once more."""
        seen = self._seen.setdefault(partition, bytearray())
        if len(seen) < end:
            seen.extend(bytes(end - len(seen)))
        self.processed += end - first
        self.distinct += seen.count(0, first, end)
        seen[first:end] = b"\x01" * (end - first)


@dataclass(slots=True)
class Story:
    """Everything one run leaves behind."""

    coverage: Coverage = field(default_factory=Coverage)
    tenures: list[Tenure] = field(default_factory=list)
    rebalances: list[Rebalance] = field(default_factory=list)
    lag: list[LagSample] = field(default_factory=list)
    killed_member: str = ""
    killed_at_s: float = 0.0
    delays: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    usable: int = 0
    with_weather: int = 0
    dead_letters: dict[str, int] = field(default_factory=dict)
    dead_letter_rows: int = 0
    spark_batches: int = 0
    final_lag: dict[str, int] = field(default_factory=dict)
    took_s: float = 0.0
    session_timeout_s: float = 0.0
    version: str = ""
    started: str = ""
    machine: str = ""
    command: str = ""
    checks: list[Check] = field(default_factory=list)
