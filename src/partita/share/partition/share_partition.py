"""One partition as a group shares it: a state machine over its records, without log, clock and share coordinator.

Inputs are calls with the time; what is to be stored comes out as a `Write`, whose outcome is told by `stored` or
`refused`. All locks have one deadline: the earliest, found anew when it has passed. (Kafka: SharePartition.)

Deviation: Partita stores an expired lock and what a member returns by one write for all records of a share partition,
where Kafka writes once for each record or batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from partita.protocol.error_codes import ErrorCode
from partita.share.partition.acknowledging import Refused, Transitions, given_back
from partita.share.partition.acquiring import Acquiring, Wish
from partita.share.partition.flight import Flight
from partita.share.partition.model import (
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    Acknowledgement,
    Acquired,
    Letter,
    Limits,
    LogBatch,
    Run,
    StateBatch,
    Stored,
    Write,
)


class SharePartition:
    """The records of one partition for one group."""

    def __init__(self, stored: Stored, limits: Callable[[], Limits]) -> None:
        """Begin with what is stored. `limits` are asked for at each use, since a group's settings may change."""
        self.flight = Flight(stored)
        self._limits = limits
        self._writes = 0
        self.next_deadline_ms: int | None = None
        """When to call `expire`; there may be nothing to do then."""

    @property
    def next_fetch_offset(self) -> int:
        """The start offset of the next fetch."""
        return self.flight.next_offset

    @property
    def can_acquire(self) -> bool:
        """Whether a fetch may get anything: there is something to give again, or room for more."""
        flight = self.flight
        return flight.next_offset != flight.end + 1 or flight.span < self._limits().record_locks

    def acquire(self, wish: Wish, read: Sequence[LogBatch], fetch_offset: int, now_ms: int) -> list[Acquired]:
        """Give records of the log batches that were read to a member; nothing is to be stored."""
        if not read or read[-1].last < self.flight.start:
            return []
        if read[0].first > fetch_offset and self.flight.archive_available(fetch_offset, read[0].first - 1):
            self.flight.advance()
        if wish.records_max <= 0:
            return []
        limits = self._limits()
        deadline_ms = now_ms + limits.lock_ms
        acquired = Acquiring(self.flight, wish, limits, read, fetch_offset, deadline_ms).run()
        if acquired:
            self._lock_until(deadline_ms)
        elif not self.can_acquire:
            # Kafka stays here for good when an aborted transaction fills all there may be in flight.
            self.flight.advance()
        return acquired

    def acknowledge(self, member: str, verdicts: Sequence[Acknowledgement], now_ms: int) -> Write | ErrorCode | None:
        """Begin what the verdicts lead to; return the state to store, None when there is none, or the error."""
        limits = self._limits()
        transitions = self._transitions(member, limits)
        try:
            transitions.acknowledge(verdicts, now_ms + limits.lock_ms)
        except Refused as refused:
            return refused.code
        return self._write(transitions)

    def release(self, member: str) -> Write | None:
        """The member's session has ended: begin to give back all it holds."""
        transitions = self._transitions(member, self._limits())
        transitions.release()
        return self._write(transitions)

    def expire(self, now_ms: int) -> Write | None:
        """Take back what is locked no longer, at once; return the state to store."""
        if self.next_deadline_ms is None or now_ms < self.next_deadline_ms:
            return None
        self.next_deadline_ms = None
        limits, flight = self._limits(), self.flight
        batches: list[StateBatch] = []
        letters: list[Letter] = []
        for batch in flight.batches:
            if any(_is_due(run, now_ms) for run in batch.runs):
                flight.cut_at_start(batch)
            for run in batch.runs:
                if _is_due(run, now_ms):
                    run.become(given_back(flight, limits, run))
                    batches.append(StateBatch(run.first, run.last, run.state, run.delivery_count))
                    if run.state is ARCHIVING:
                        letters.append(Letter(run.first, run.last, run.delivery_count, is_rejected=False))
                elif run.state is ACQUIRED and run.target is None:
                    self._lock_until(run.deadline_ms)
            batch.join()
        if not batches:
            return None
        write = Write(self._next_number(), flight.start, flight.completed, batches, letters)
        flight.advance()
        return write

    def dead_letters(self) -> list[Letter]:
        """The records that were on their way to the dead letters when the state was stored that this began with."""
        limit = self._limits().delivery_count
        return [
            Letter(run.first, run.last, run.delivery_count, is_rejected=run.delivery_count < limit)
            for batch in self.flight.batches
            for run in batch.runs
            if run.state is ARCHIVING
        ]

    def is_given_up(self, letter: Letter) -> bool:
        """Whether any of its records still waits for its letter."""
        return any(
            run.state is ARCHIVING
            for batch in self.flight.between(letter.first, letter.last)
            for run in batch.runs_in(letter.first, letter.last)
        )

    def archive(self, letters: Sequence[Letter]) -> Write | None:
        """The dead letters are written, or cannot be: begin to archive their records; return the state to store."""
        number, batches = self._next_number(), list[StateBatch]()
        for letter in letters:
            for batch in self.flight.between(letter.first, letter.last):
                for run in batch.cut(letter.first, letter.last):
                    if run.state is ARCHIVING and run.target is None:
                        run.target, run.write = ARCHIVED, number
                        batches.append(StateBatch(run.first, run.last, ARCHIVED, run.delivery_count))
                batch.join()
        return Write(number, self.flight.start, self.flight.completed, batches) if batches else None

    def stored(self, write: Write) -> None:
        """The write has succeeded: its transitions are complete, and the start moves past what is done with."""
        for batch in self.flight.batches:
            for run in batch.runs:
                if run.write == write.number and run.target is not None:
                    run.become(run.target)
            batch.join()
        self.flight.advance()

    def refused(self, write: Write) -> None:
        """The write has failed: records are held as before; `expire` takes back those whose lock has ended.

        Records whose dead letters are written are archived all the same; after a load they are written again.
        """
        is_archived = False
        for batch in self.flight.batches:
            for run in batch.runs:
                if run.write == write.number and run.state is ARCHIVING:
                    run.become(ARCHIVED)
                    is_archived = True
                elif run.write == write.number:
                    run.target, run.write = None, 0
                    self._lock_until(run.deadline_ms)
            batch.join()
        if is_archived:
            self.flight.advance()

    def log_start_moved(self, offset: int) -> None:
        """The log starts at this offset now."""
        self.flight.log_start_moved(offset)

    def _transitions(self, member: str, limits: Limits) -> Transitions:
        return Transitions(self.flight, limits, member, self._next_number())

    def _write(self, transitions: Transitions) -> Write | None:
        if not transitions.batches:
            return None
        return Write(
            self._writes, self.flight.start, self.flight.completed, transitions.batches, tuple(transitions.letters)
        )

    def _next_number(self) -> int:
        self._writes += 1
        return self._writes

    def _lock_until(self, deadline_ms: int) -> None:
        if self.next_deadline_ms is None or deadline_ms < self.next_deadline_ms:
            self.next_deadline_ms = deadline_ms


def _is_due(run: Run, now_ms: int) -> bool:
    return run.state is ACQUIRED and run.target is None and run.deadline_ms <= now_ms
