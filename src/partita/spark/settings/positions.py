"""Start or end of a read, in the user's options: a word, offsets, one timestamp, or timestamps per partition.

Parses the JSON of startingOffsets, endingOffsets and their ...ByTimestamp relatives, in the forms of Spark's own
Kafka connector; the offset JSON of our own streams is accepted too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from partita.options import ConfigError
from partita.spark.settings.table import LONG_MAX

TopicPartition: TypeAlias = tuple[str, int]

LATEST = -1
EARLIEST = -2


@dataclass(frozen=True, slots=True)
class AtWord:
    """earliest, latest or committed, for every partition."""

    word: str


@dataclass(frozen=True, slots=True)
class AtOffsets:
    """One offset for each partition; -1 means latest, -2 earliest."""

    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first offset at or after one timestamp, for every partition.

    `ago`: that many milliseconds before the read is planned. A partition without so young a record is then taken at its
    end, since the last minutes of a quiet partition are empty.
    """

    timestamp_ms: int
    ago: bool = False

    def at(self, now_ms: int) -> AtTime:
        """The same as an absolute time."""
        return replace(self, timestamp_ms=max(0, now_ms - self.timestamp_ms)) if self.ago else self


@dataclass(frozen=True, slots=True)
class AtTimes:
    """The first offset at or after a timestamp given for each partition."""

    timestamps: Mapping[TopicPartition, int]


Position: TypeAlias = AtWord | AtOffsets | AtTime | AtTimes


def at_now(position: Position, now_ms: int) -> Position:
    """The same position; a time before now as an absolute one."""
    return position.at(now_ms) if isinstance(position, AtTime) else position


def parse_offsets(option: str, text: str, words: tuple[str, ...]) -> AtWord | AtOffsets:
    """The value of startingOffsets or endingOffsets: one of `words` in any case, or JSON."""
    word = text.strip().lower()
    if word in words:
        return AtWord(word)
    if not word.startswith("{"):
        raise ConfigError(
            f'{option} must be one of {", ".join(words)} or JSON like {{"topic":{{"0":23}}}}, not {text!r}'
        )
    return AtOffsets(_per_partition(option, text))


def parse_timestamps(option: str, text: str) -> AtTimes:
    """The value of a ...ByTimestamp option: JSON with milliseconds for each partition."""
    return AtTimes(_per_partition(option, text))


def parse_assign(text: str) -> tuple[TopicPartition, ...]:
    """The value of assign: JSON with a list of partitions for each topic, sorted and without repetitions."""
    try:
        given = json.loads(text)
        pairs = {(str(topic), _whole(number)) for topic, numbers in given.items() for number in numbers}
    except (ValueError, TypeError, AttributeError):
        raise ConfigError(f'assign must be JSON like {{"topic":[0,1]}}, not {text!r}') from None
    if any(partition < 0 for _, partition in pairs):
        raise ConfigError(f"assign has a negative partition number: {text}")
    return tuple(sorted(pairs))


def _per_partition(option: str, text: str) -> dict[TopicPartition, int]:
    """Values of {"topic":{"0":value}}; of our own offset JSON, each partition's end."""
    try:
        given = json.loads(text)
        if given.keys() >= {"v", "t"} and given["v"] == 1:
            given = {topic: {p: entry[1] for p, entry in parts.items()} for topic, parts in given["t"].items()}
        return {
            (str(topic), int(partition)): _whole(value)
            for topic, parts in sorted(given.items())
            for partition, value in parts.items()
        }
    except (ValueError, TypeError, AttributeError, KeyError, IndexError):
        raise ConfigError(f'{option} must be JSON like {{"topic":{{"0":23,"1":-2}}}}, not {text!r}') from None


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > LONG_MAX:
        raise ValueError(value)
    return value
