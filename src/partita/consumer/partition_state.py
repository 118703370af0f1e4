"""The state of one assigned partition: where it stands and whether it may be fetched (consumer.md 4.5).

Four states; transitions outside the table are ignored, as in Kafka's SubscriptionState.TopicPartitionState.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from partita.records.batch import Record

UNKNOWN = -1


class FetchState(Enum):
    """The state of an assigned partition: fetching, or the step it waits for."""

    INITIALIZING = "initializing"
    FETCHING = "fetching"
    AWAIT_RESET = "await_reset"
    AWAIT_VALIDATION = "await_validation"


INITIALIZING, FETCHING = FetchState.INITIALIZING, FetchState.FETCHING
AWAIT_RESET, AWAIT_VALIDATION = FetchState.AWAIT_RESET, FetchState.AWAIT_VALIDATION

NEXT_STATES = {
    INITIALIZING: (FETCHING, AWAIT_RESET, AWAIT_VALIDATION),
    FETCHING: (FETCHING, AWAIT_RESET, AWAIT_VALIDATION),
    AWAIT_RESET: (FETCHING, AWAIT_RESET),
    AWAIT_VALIDATION: (FETCHING, AWAIT_RESET, AWAIT_VALIDATION),
}


@dataclass(frozen=True, slots=True)
class Position:
    """The next offset to hand out, the epoch of the record before it, and the leader this was last checked with."""

    offset: int
    offset_epoch: int = UNKNOWN
    leader: int = UNKNOWN
    leader_epoch: int = UNKNOWN


@dataclass(frozen=True, slots=True)
class Reset:
    """Start of a partition without a position: a ListOffsets timestamp, or a duration back from now."""

    name: str
    timestamp: int = 0
    duration_ms: int | None = None

    def timestamp_at(self, wall_ms: int) -> int:
        """The ListOffsets timestamp that this policy means at a given wall clock time."""
        return self.timestamp if self.duration_ms is None else wall_ms - self.duration_ms


EARLIEST = Reset("earliest", -2)
LATEST = Reset("latest", -1)


@dataclass(slots=True, eq=False)
class InHand:
    """Place of the application inside records that it has not finished.

    So many of `records` were `given` to it, and so many of these it has `passed`: one less while it works on the last.
    Before any, it stands at `start`.
    """

    start: int
    records: Sequence[Record] = ()
    passed: int = 0
    given: int = 0

    @property
    def offset(self) -> int:
        """The next offset to pass: what a commit says."""
        passed = self.passed
        return self.records[passed - 1].offset + 1 if passed else self.start

    @property
    def next_offset(self) -> int:
        """The next offset to give."""
        given = self.given
        return self.records[given - 1].offset + 1 if given else self.start

    @property
    def epoch(self) -> int:
        """The leader epoch of the record passed last; -1 if none was."""
        passed = self.passed
        return self.records[passed - 1].leader_epoch if passed else UNKNOWN


class Moves:
    """Number of state changes of one assignment's partitions."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class PartitionState:
    """One assigned partition. Times are monotonic milliseconds.

    `position` is where fetching goes on. While a loop works through fetched records, `in_hand` is where the application
    stands; it counts for commits, `Consumer.position` and the lag. It becomes None when the application seeks or the
    partition goes, and then the rest of the records in hand is dropped. A position at `unsettled_at` is not committed:
    a transaction that commits the offset behind it may have come to its end.
    """

    __slots__ = (
        "awaits_callback", "end_offset_requested", "high_watermark", "in_hand", "is_paused", "last_stable_offset",
        "log_start_offset", "moves", "next_retry_ms", "pending_revocation", "position", "preferred_replica",
        "preferred_until_ms", "reset", "state", "told_end", "unsettled_at",
    )  # fmt: skip

    def __init__(self, moves: Moves | None = None) -> None:
        self.moves = moves or Moves()
        self.state = INITIALIZING
        self.position: Position | None = None
        self.in_hand: InHand | None = None
        self.reset: Reset | None = None
        self.is_paused = False
        self.pending_revocation = False
        self.awaits_callback = False
        self.high_watermark = UNKNOWN
        self.last_stable_offset = UNKNOWN
        self.log_start_offset = UNKNOWN
        self.next_retry_ms = 0
        self.preferred_replica = UNKNOWN
        self.preferred_until_ms = 0
        self.end_offset_requested = False
        self.told_end = UNKNOWN
        self.unsettled_at = UNKNOWN

    @property
    def has_valid_position(self) -> bool:
        """Is there a position, and is it checked?"""
        return self.state is FETCHING

    @property
    def is_fetchable(self) -> bool:
        """May this partition be fetched now?"""
        return (
            self.state is FETCHING and not self.is_paused and not self.pending_revocation and not self.awaits_callback
        )

    @property
    def is_deliverable(self) -> bool:
        """May records that are here already go to the application?"""
        return not self.is_paused and not self.pending_revocation

    @property
    def consumed(self) -> tuple[int, int] | None:
        """Offset and leader epoch behind what the application has passed; None while there is no valid position."""
        if self.in_hand is not None:
            return self.in_hand.offset, self.in_hand.epoch
        if self.state is FETCHING and self.position is not None and self.position.offset != self.unsettled_at:
            return self.position.offset, self.position.offset_epoch
        return None

    @property
    def next_offset(self) -> int | None:
        """The next offset to give to the application; None while there is no valid position."""
        if self.in_hand is not None:
            return self.in_hand.next_offset
        return self.position.offset if self.state is FETCHING and self.position is not None else None

    def renewed(self) -> PartitionState:
        """Without position; requests of the application and the group stay."""
        fresh = PartitionState(self.moves)
        fresh.is_paused, fresh.pending_revocation = self.is_paused, self.pending_revocation
        fresh.awaits_callback = self.awaits_callback
        return fresh

    def seek(self, position: Position) -> None:
        """Take this position as valid, without a request."""
        if self._move(FETCHING):
            self.position = position
            self.reset = None
            self.next_retry_ms = 0
            self.told_end = UNKNOWN

    def advance(self, position: Position) -> None:
        """Move on after records were handed out."""
        if self.state is FETCHING:
            self.position = position

    def seek_unvalidated(self, position: Position) -> None:
        """Take this position; it has to be validated first if both epochs are known."""
        self.seek(position)
        if position.offset_epoch >= 0 and position.leader_epoch >= 0:
            self._move(AWAIT_VALIDATION)

    def request_reset(self, reset: Reset) -> None:
        """Drop the position; the offset that the policy names is looked up."""
        if self._move(AWAIT_RESET):
            self.position = None
            self.reset = reset
            self.next_retry_ms = 0
            self.told_end = UNKNOWN

    def leader_changed(self, leader: int, leader_epoch: int, *, can_validate: bool) -> None:
        """The partition has this leader now; the position is validated there if it can be (8.3)."""
        position = self.position
        if position is None or (position.leader, position.leader_epoch) == (leader, leader_epoch):
            return
        self.preferred_replica = UNKNOWN
        moved = Position(position.offset, position.offset_epoch, leader, leader_epoch)
        must_validate = can_validate and position.offset_epoch >= 0 and leader_epoch >= 0
        if must_validate and self._move(AWAIT_VALIDATION):
            self.position = moved
            self.next_retry_ms = 0
        elif self.state in (FETCHING, AWAIT_VALIDATION):
            self._move(FETCHING)
            self.position = moved

    def validated(self) -> None:
        """The leader confirmed the position."""
        if self.state is AWAIT_VALIDATION:
            self._move(FETCHING)

    def end(self, *, read_committed: bool) -> int:
        """The end of the log for this consumer by the last answer; UNKNOWN before the first."""
        return self.last_stable_offset if read_committed else self.high_watermark

    def lag(self, *, read_committed: bool) -> int | None:
        """Records between the position and the end of the log; None while either is unknown."""
        end = self.end(read_committed=read_committed)
        if end < 0:
            return None
        if self.in_hand is not None:
            return max(0, end - self.in_hand.next_offset)
        return None if self.position is None else max(0, end - self.position.offset)

    def _move(self, to: FetchState) -> bool:
        if to not in NEXT_STATES[self.state]:
            return False
        if self.state is not to:
            self.state = to
            self.moves.count += 1
        return True
