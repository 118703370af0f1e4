"""The options for where a read starts and ends: which are given, their precedence, and contradictions.

startingTimestamp goes before startingOffsetsByTimestamp, and that before startingOffsets. Problems that Spark's
connector reports only once the query runs are added to `problems`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from partita.options import ConfigError
from partita.spark.settings.positions import (
    EARLIEST,
    AtOffsets,
    AtTime,
    AtTimes,
    AtWord,
    Position,
    TopicPartition,
    parse_offsets,
    parse_timestamps,
)
from partita.spark.settings.table import LONG_MAX

UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_AGO = re.compile(rf"-(\d{{1,12}})({'|'.join(UNITS_MS)})")
START_WORDS = ("earliest", "latest", "committed")


def starting(values: Mapping[str, Any], problems: list[str]) -> Position | None:
    """Return the start that counts among those given, None when none is. All of them are checked."""
    found: list[Position] = []
    if values["startingTimestamp"] is not None:
        found.append(_timestamp("startingTimestamp", values["startingTimestamp"], problems))
    if values["startingOffsetsByTimestamp"] is not None:
        found.append(parse_timestamps("startingOffsetsByTimestamp", values["startingOffsetsByTimestamp"]))
    if values["startingOffsets"] is not None:
        found.append(
            _bounded(
                "startingOffsets", parse_offsets("startingOffsets", values["startingOffsets"], START_WORDS), problems
            )
        )
    return found[0] if found else None


def ending(values: Mapping[str, Any], problems: list[str]) -> tuple[Position | None, tuple[str, ...]]:
    """Return the end of a batch and the names of the options that were given for it."""
    names = [n for n in ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets") if values[n] is not None]
    found: list[Position] = []
    for name in names:
        if name == "endingTimestamp":
            found.append(_timestamp(name, values[name], problems))
        elif name == "endingOffsetsByTimestamp":
            found.append(parse_timestamps(name, values[name]))
        else:
            found.append(_ending_offsets(values[name], problems))
    return (found[0] if found else None), tuple(names)


def _ending_offsets(text: str, problems: list[str]) -> Position:
    if text.strip().lower() == "earliest":
        raise ConfigError("endingOffsets must not be earliest: nothing would be read")
    position = parse_offsets("endingOffsets", text, ("latest",))
    if mentions(position, EARLIEST):
        raise ConfigError("endingOffsets must not hold -2 (earliest): nothing would be read")
    return _bounded("endingOffsets", position, problems)


def _timestamp(option: str, text: str, problems: list[str]) -> AtTime:
    ago = _AGO.fullmatch(text.strip())
    if ago is not None:
        return AtTime(int(ago[1]) * UNITS_MS[ago[2]], ago=True)
    try:
        timestamp_ms = int(text)
    except ValueError:
        raise ConfigError(
            f"{option} must be a whole number of milliseconds, or a time before now like -10m, not {text!r}"
        ) from None
    if timestamp_ms > LONG_MAX:
        raise ConfigError(f"{option} must be at most {LONG_MAX}, not {timestamp_ms}")
    if timestamp_ms < 0:
        problems.append(f"{option} must not be negative, but is {timestamp_ms}")
    return AtTime(timestamp_ms)


def _bounded(option: str, position: AtWord | AtOffsets, problems: list[str]) -> AtWord | AtOffsets:
    if isinstance(position, AtOffsets):
        low = sorted(key for key, offset in position.offsets.items() if offset < EARLIEST)
        problems.extend(f"{option} of {topic}-{partition} is below -2" for topic, partition in low)
    return position


def mentions(position: Position | None, offset: int) -> bool:
    """Whether the position is given by offsets, and this one is among them."""
    return isinstance(position, AtOffsets) and offset in position.offsets.values()


def check_start_against_end(starting: Position | None, ending: Position | None) -> None:
    """Raises ConfigError when both name offsets, or both timestamps, and the start lies after the end."""
    pairs = ((AtOffsets, "offsets"), (AtTimes, "timestamps"))
    for kind, attribute in pairs:
        if not (isinstance(starting, kind) and isinstance(ending, kind)):
            continue
        begins: Mapping[TopicPartition, int] = getattr(starting, attribute)
        ends: Mapping[TopicPartition, int] = getattr(ending, attribute)
        if begins.keys() != ends.keys():
            odd = ", ".join(f"{topic}-{p}" for topic, p in sorted(begins.keys() ^ ends.keys()))
            raise ConfigError(f"starting and ending {attribute} must name the same partitions; only one has {odd}")
        for (topic, p), begin in sorted(begins.items()):
            if 0 <= ends[topic, p] < begin:
                raise ConfigError(f"starting {attribute}: {begin} of {topic}-{p} lies after its end {ends[topic, p]}")
