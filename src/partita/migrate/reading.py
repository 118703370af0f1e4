"""How far each partition is read, and for how long it was not: from the requests that a broker gets. Pure.

A fetch at an offset says that all before it was read, a fetch at an earlier one that records are read again; an
acknowledgement says that records of a share group are done. Records are written to every partition all the time, so
a partition without progress is one that is not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from partita.offsets.topic_partition import TopicPartition

PAUSE_MS = 250
"""A shorter time without progress is not counted as a pause."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The course of reading while `deed` was done to a group, in milliseconds and records.

    `longest_ms`: the longest time without progress of any partition; `paused`: partitions without progress for
    `PAUSE_MS`; `again`: records that were fetched again; `out_of_order`: records of a share group that were done after
    a later one of their partition; `session_ms`: the part of the pauses that was a dead member's session.
    """

    protocol: str
    deed: str
    longest_ms: int
    paused: int
    partitions: int
    again: int
    out_of_order: int
    session_ms: int = 0

    def as_json(self) -> dict[str, Any]:
        """The fields."""
        return asdict(self)


class Reading:
    """The progress of all partitions of a program."""

    def __init__(self, partitions: Iterable[TopicPartition], now_ms: int) -> None:
        self._last_ms = dict.fromkeys(partitions, now_ms)
        self._reached = dict.fromkeys(self._last_ms, 0)
        self.begin(now_ms)

    def begin(self, now_ms: int) -> None:
        """Forget what was measured; a pause that goes on counts from now."""
        self._last_ms = dict.fromkeys(self._last_ms, now_ms)
        self._longest = dict.fromkeys(self._last_ms, 0)
        self._again = self._out_of_order = self._session_ms = 0

    def fetched(self, partition: TopicPartition, offset: int, now_ms: int) -> None:
        """A fetch begins at this offset."""
        if partition not in self._last_ms or offset == self._reached[partition]:
            return
        self._again += max(0, self._reached[partition] - offset)
        self._reached[partition] = offset
        self._progress(partition, now_ms)

    def acknowledged(self, partition: TopicPartition, first: int, last: int, now_ms: int) -> None:
        """These records of a share group are done, the last one included."""
        if partition not in self._last_ms:
            return
        self._out_of_order += max(0, min(self._reached[partition], last + 1) - first)
        self._reached[partition] = max(self._reached[partition], last + 1)
        self._progress(partition, now_ms)

    def _progress(self, partition: TopicPartition, now_ms: int) -> None:
        self._longest[partition] = max(self._longest[partition], now_ms - self._last_ms[partition])
        self._last_ms[partition] = now_ms

    def skip(self, left_ms: Mapping[TopicPartition, int]) -> None:
        """The session of a partition's dead owner ended early, by so much: its pause is that much longer."""
        for partition in self._last_ms.keys() & left_ms:
            self._session_ms = max(self._session_ms, left_ms[partition])
            self._last_ms[partition] -= left_ms[partition]

    def is_read_since(self, at_ms: int) -> bool:
        """Has every partition made progress since then?"""
        return all(last_ms >= at_ms for last_ms in self._last_ms.values())

    def measured(self, protocol: str, deed: str) -> Measured:
        """The result since `begin`."""
        paused = sum(ms >= PAUSE_MS for ms in self._longest.values())
        return Measured(
            protocol, deed, max(self._longest.values()), paused, len(self._longest), self._again, self._out_of_order,
            self._session_ms,
        )  # fmt: skip
