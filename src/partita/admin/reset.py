"""Targets of a reset of a group's offsets, and the plan made from them. Pure.

Results stay inside the log, as with Kafka's own tool. (Kafka: ConsumerGroupCommand's reset-offsets.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum

from partita.admin.offsets import TopicPartition
from partita.admin.results import OffsetMove
from partita.options import parse_duration_ms


class Kind(Enum):
    """The base that a target is measured from."""

    EARLIEST = "the first record"
    LATEST = "the end of the log"
    CURRENT = "the committed offset"
    OFFSET = "an offset"
    SHIFT = "the committed offset, shifted"
    TIME = "the first record at or after a time"
    TABLE = "an offset for each partition"


@dataclass(frozen=True, slots=True)
class Target:
    """The position to reset to; made by the calls below."""

    kind: Kind
    value: int = 0
    table: Mapping[TopicPartition, int] = field(default_factory=dict)

    @classmethod
    def earliest(cls) -> Target:
        """The first kept record."""
        return cls(Kind.EARLIEST)

    @classmethod
    def latest(cls) -> Target:
        """Behind the last record."""
        return cls(Kind.LATEST)

    @classmethod
    def current(cls) -> Target:
        """Commit the current offsets again; the log's end where there is none."""
        return cls(Kind.CURRENT)

    @classmethod
    def offset(cls, offset: int) -> Target:
        """This offset in every partition, bounded by its log."""
        return cls(Kind.OFFSET, offset)

    @classmethod
    def shift_by(cls, count: int) -> Target:
        """Move forwards by `count` records, or back if negative."""
        return cls(Kind.SHIFT, count)

    @classmethod
    def time(cls, timestamp_ms: int) -> Target:
        """The first record that is not older, in ms since 1970; the end where none is."""
        return cls(Kind.TIME, timestamp_ms)

    @classmethod
    def datetime(cls, text: str) -> Target:
        """A date and time such as 2026-01-31T12:00:00.000; UTC unless it says otherwise."""
        return cls(Kind.TIME, parse_datetime_ms(text))

    @classmethod
    def duration(cls, text: str, now_ms: int) -> Target:
        """A time before now, as an ISO duration: P7D, PT1H30M."""
        return cls(Kind.TIME, now_ms - parse_duration_ms(text))

    @classmethod
    def offsets(cls, table: Mapping[TopicPartition, int]) -> Target:
        """An offset for each partition."""
        return cls(Kind.TABLE, table=dict(table))


@dataclass(frozen=True, slots=True)
class Known:
    """The known offsets of one partition; `at_time` is None where no record is that young."""

    committed: int | None
    log_start: int
    log_end: int
    at_time: int | None = None


def plan_move(partition: TopicPartition, target: Target, known: Known) -> OffsetMove:
    """Return the group's move on this partition. Raises ValueError if the target does not include it."""
    wanted, note = _wanted(partition, target, known)
    after = min(max(wanted, known.log_start), known.log_end)
    if after != wanted:
        edge = "starts at" if wanted < after else "ends at"
        note = f"{wanted} is outside the log, which {edge} {after}"
    return OffsetMove(*partition, known.committed, after, note)


def _wanted(partition: TopicPartition, target: Target, known: Known) -> tuple[int, str]:
    name = f"{partition[0]}-{partition[1]}"
    match target.kind:
        case Kind.EARLIEST:
            return known.log_start, ""
        case Kind.LATEST:
            return known.log_end, ""
        case Kind.OFFSET:
            return target.value, ""
        case Kind.CURRENT:
            return (known.log_end, "nothing committed") if known.committed is None else (known.committed, "")
        case Kind.SHIFT:
            if known.committed is None:
                raise ValueError(f"nothing is committed for {name}, so it cannot be shifted; leave it out")
            return known.committed + target.value, ""
        case Kind.TIME:
            return (known.log_end, "no record that young") if known.at_time is None else (known.at_time, "")
        case Kind.TABLE:
            if partition not in target.table:
                raise ValueError(f"no offset is given for {name}")
            return target.table[partition], ""


def parse_datetime_ms(text: str) -> int:
    """Milliseconds since 1970 of an ISO date and time."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no date and time; expected such as 2026-01-31T12:00:00.000") from None
    return round((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000)


def parse_table(text: str) -> dict[TopicPartition, int]:
    """Parse lines "topic,partition,offset", as Kafka's tool exports them; a line of column names is skipped."""
    table: dict[TopicPartition, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        parts = [part.strip().strip('"') for part in line.split(",")]
        if not line.strip() or (number == 1 and parts[-1:] == ["offset"]):
            continue
        if len(parts) != 3 or not parts[1].isdigit() or not parts[2].isdigit():
            raise ValueError(f"line {number}: expected topic,partition,offset, not {line!r}")
        table[parts[0], int(parts[1])] = int(parts[2])
    return table
