"""The words of a share partition: states of records, batches in flight, limits, and what goes in and comes out.

An in-flight batch is kept as runs: intervals of offsets whose state is equal. (Kafka: RecordState, InFlightState,
InFlightBatch, which keeps one object for each offset once a part of it differs.)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from enum import IntEnum
from operator import attrgetter
from typing import NamedTuple


class RecordState(IntEnum):
    """The state of a record, with its number in the share coordinator's log.

    ARCHIVING: given up, and on its way to the dead letters of the group. (4.4.0)
    """

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4


class AcknowledgeType(IntEnum):
    """A member's verdict on a record, with its number on the wire."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED = RecordState
COMPLETED = frozenset({ACKNOWLEDGED, ARCHIVED})
BY_FIRST, BY_LAST = attrgetter("first"), attrgetter("last")
"""Keys by which runs and batches are searched."""
AFTER = {
    AcknowledgeType.GAP: ARCHIVED,
    AcknowledgeType.ACCEPT: ACKNOWLEDGED,
    AcknowledgeType.RELEASE: AVAILABLE,
    AcknowledgeType.REJECT: ARCHIVED,
}
"""The state that each verdict leads to; a renewal keeps the record acquired."""
MOVES = {
    AVAILABLE: {ACQUIRED: "a member gets it", ARCHIVED: "an aborted transaction, or no longer in the log"},
    ACQUIRED: {
        AVAILABLE: "release; its lock or the member's session ends",
        ACKNOWLEDGED: "accept",
        ARCHIVED: "reject; gap; given back at the delivery limit",
        ARCHIVING: "the same, in a group with dead letters",
    },
    ACKNOWLEDGED: {},
    ARCHIVING: {ARCHIVED: "its dead letter is written, or cannot be"},
    ARCHIVED: {},
}
"""Every move between states, and what leads to it."""


class Limits(NamedTuple):
    """The settings of a group that its share partitions read at each use."""

    delivery_count: int = 5
    record_locks: int = 2000
    lock_ms: int = 30_000
    renews: bool = True
    has_dead_letters: bool = False

    @property
    def given_up(self) -> RecordState:
        """The state of a record that is rejected, or was given too often."""
        return ARCHIVING if self.has_dead_letters else ARCHIVED


class LogBatch(NamedTuple):
    """One batch as it was read from the log. `is_aborted`: of a transaction that the reader must not see."""

    first: int
    last: int
    is_aborted: bool = False


class Acquired(NamedTuple):
    """Records that a member got, and how often they have been delivered now."""

    first: int
    last: int
    delivery_count: int


class Acknowledgement(NamedTuple):
    """The verdicts on a range of offsets: one for all, or one for each."""

    first: int
    last: int
    types: tuple[int, ...]


class StateBatch(NamedTuple):
    """One line of the stored state."""

    first: int
    last: int
    state: int
    delivery_count: int


class Letter(NamedTuple):
    """Records that are given up, for the dead letters of the group."""

    first: int
    last: int
    delivery_count: int
    is_rejected: bool
    """Rejected by a member, not given too often."""


class Write(NamedTuple):
    """State to be stored; `number` names it when its outcome is known."""

    number: int
    start: int
    completed: int
    batches: list[StateBatch]
    letters: Sequence[Letter] = ()
    """Dead letters to be written once the state is stored."""


class Stored(NamedTuple):
    """The state that the share coordinator holds; `start` is decided already."""

    start: int
    batches: tuple[StateBatch, ...] = ()


class Run:
    """Offsets of equal state.

    During a transition `target` is the state to come, and `write` the number of its write.
    """

    __slots__ = ("deadline_ms", "delivery_count", "first", "last", "member", "state", "target", "write")

    def __init__(
        self, first: int, last: int, state: RecordState, delivery_count: int, member: str = "", deadline_ms: int = 0
    ) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.delivery_count = delivery_count
        self.member = member
        self.deadline_ms = deadline_ms
        self.target: RecordState | None = None
        self.write = 0

    def become(self, state: RecordState) -> None:
        """Take a state in which no member holds the records."""
        assert state is self.state or state in MOVES[self.state], f"{self.state.name} does not become {state.name}"
        self.state, self.member, self.deadline_ms = state, "", 0
        self.target, self.write = None, 0

    def acquire(self, member: str, deadline_ms: int) -> None:
        """Give the records to a member."""
        self.state, self.member, self.deadline_ms = ACQUIRED, member, deadline_ms
        self.delivery_count += 1

    @property
    def is_completed(self) -> bool:
        """Whether the records are done with, and this is stored."""
        return self.state in COMPLETED

    def continues(self, other: Run) -> bool:
        """Whether both are one interval of equal state."""
        return (
            other.last + 1 == self.first
            and self.state is other.state
            and self.delivery_count == other.delivery_count
            and self.member == other.member
            and self.deadline_ms == other.deadline_ms
            and self.target is other.target
            and self.write == other.write
        )

    def cut(self, offset: int) -> Run:
        """End before `offset`; return the rest."""
        rest = Run(offset, self.last, self.state, self.delivery_count, self.member, self.deadline_ms)
        rest.target, rest.write = self.target, self.write
        self.last = offset - 1
        return rest


class InFlightBatch:
    """Records that were acquired together once, as runs without holes from `first` to `last`."""

    __slots__ = ("first", "last", "runs")

    def __init__(self, run: Run) -> None:
        self.first = run.first
        self.last = run.last
        self.runs = [run]

    @property
    def size(self) -> int:
        """The number of its offsets."""
        return self.last - self.first + 1

    def runs_in(self, first: int, last: int) -> list[Run]:
        """The runs that touch the range, uncut."""
        begin = bisect_left(self.runs, first, key=BY_LAST)
        return self.runs[begin : bisect_right(self.runs, last, lo=begin, key=BY_FIRST)]

    def cut(self, first: int, last: int) -> list[Run]:
        """Cut runs where the range begins and ends; return those of exactly the range. `join` undoes it."""
        self._cut_at(first)
        self._cut_at(last + 1)
        return self.runs_in(first, last)

    def join(self) -> None:
        """Make one of neighbours that are equal."""
        joined = self.runs[:1]
        for run in self.runs[1:]:
            if run.continues(joined[-1]):
                joined[-1].last = run.last
            else:
                joined.append(run)
        self.runs = joined

    def _cut_at(self, offset: int) -> None:
        index = bisect_left(self.runs, offset, key=BY_LAST)
        if index < len(self.runs) and self.runs[index].first < offset:
            self.runs.insert(index + 1, self.runs[index].cut(offset))
