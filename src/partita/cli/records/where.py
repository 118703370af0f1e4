"""Positions in a topic as people name them: an offset, an end, a time, or the last few records. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from partita.admin.reset import parse_datetime_ms
from partita.options import parse_duration_ms

_AGO = re.compile(
    r"(\d+(?:\.\d+)?)\s*(ms|s|sec|seconds?|m|min|minutes?|h|hours?|d|days?|w|weeks?)(?:\s+ago)?", re.IGNORECASE
)
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
EXPECTED = (
    "earliest, latest, an offset, +N for after the first N records, -N for the last N, a time such as "
    "2026-01-31T12:00, or an age such as 1h"
)


class Kind(Enum):
    """The kinds of position."""

    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSET = "offset"
    AFTER = "after"
    LAST = "last"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Where:
    """A position. `value` is the offset, a number of records after the start or before the end, or the time in ms."""

    kind: Kind
    value: int = 0

    @property
    def is_time(self) -> bool:
        """Whether `offset` needs the result of a look-up by time."""
        return self.kind is Kind.TIME

    def offset(self, log_start: int, log_end: int, at_time: int | None) -> int:
        """Return the offset in a partition, never outside its log. `at_time` is the result of a look-up by time."""
        match self.kind:
            case Kind.EARLIEST:
                return log_start
            case Kind.LATEST:
                return log_end
            case Kind.OFFSET:
                return min(max(self.value, log_start), log_end)
            case Kind.AFTER:
                return min(log_start + self.value, log_end)
            case Kind.LAST:
                return max(log_start, log_end - self.value)
            case Kind.TIME:
                return log_end if at_time is None else at_time


def parse_where(text: str, now_ms: int) -> Where:
    """Parse a position; ages count back from `now_ms`, and dates without a zone are UTC. Raises ValueError.

    Accepted are what `EXPECTED` lists, `@1769860800000` or kcat's `s@1769860800000` (ms since 1970), and ISO durations
    such as PT1H.
    """
    word = text.strip()
    match word.lower():
        case "earliest" | "beginning" | "start":
            return Where(Kind.EARLIEST)
        case "latest" | "end" | "now":
            return Where(Kind.LATEST)
    if word.isdigit():
        return Where(Kind.OFFSET, int(word))
    signed = re.fullmatch(r"([-+]|s?@)(\d+)", word)
    if signed is not None:
        kind = {"-": Kind.LAST, "+": Kind.AFTER}.get(signed[1], Kind.TIME)
        return Where(kind, int(signed[2]))
    ago = _AGO.fullmatch(word)
    if ago is not None:
        unit = ago[2].lower()
        return Where(Kind.TIME, max(0, now_ms - round(float(ago[1]) * _UNIT_MS[unit if unit == "ms" else unit[0]])))
    try:
        if word[:1] in "Pp":
            return Where(Kind.TIME, max(0, now_ms - parse_duration_ms(word)))
        return Where(Kind.TIME, max(0, parse_datetime_ms(word)))
    except ValueError:
        raise ValueError(f"{text!r} is not a position; expected {EXPECTED}") from None
