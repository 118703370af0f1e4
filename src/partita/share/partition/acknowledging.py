"""Acknowledging: a member's verdicts become transitions, which are true once they are stored.

(Kafka: SharePartition.acknowledge, InFlightState.startStateTransition.)
"""

from __future__ import annotations

from collections.abc import Sequence

from partita.protocol.error_codes import ErrorCode
from partita.share.partition.flight import Flight
from partita.share.partition.model import (
    ACQUIRED,
    AFTER,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    Acknowledgement,
    AcknowledgeType,
    InFlightBatch,
    Letter,
    Limits,
    RecordState,
    Run,
    StateBatch,
)


class Refused(Exception):
    """The request is refused as a whole."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code)
        self.code = code


class Transitions:
    """The transitions of one request or of one member's end, before it is known whether they can be stored."""

    def __init__(self, flight: Flight, limits: Limits, member: str, number: int) -> None:
        self._flight = flight
        self._limits = limits
        self._member = member
        self._number = number
        self._touched: dict[InFlightBatch, None] = {}
        """The batches whose runs may have been cut, each once: they are joined at the end."""
        self._renewed: list[Run] = []
        self.batches: list[StateBatch] = []
        """The states to be stored, in the order of the verdicts."""
        self.letters: list[Letter] = []

    def acknowledge(self, verdicts: Sequence[Acknowledgement], renewed_until_ms: int) -> None:
        """Start the transitions of all verdicts. Raises Refused; then none has been started."""
        try:
            for verdict in verdicts:
                if verdict.last >= self._flight.start:
                    self._acknowledge(verdict)
        except Refused:
            self._undo()
            raise
        for run in self._renewed:
            run.deadline_ms = renewed_until_ms
        self._join()

    def release(self) -> None:
        """Start giving back all that the member holds."""
        for batch in self._flight.batches:
            if not any(self._is_held(run) for run in batch.runs):
                continue
            self._touched[batch] = None
            self._flight.cut_at_start(batch)
            for run in batch.runs:
                if self._is_held(run):
                    self._start(run, AVAILABLE)
        self._join()

    def _acknowledge(self, verdict: Acknowledgement) -> None:
        for batch in self._batches_of(verdict):
            first = max(verdict.first, batch.first, self._flight.start)
            last = min(verdict.last, batch.last)
            if first > last:
                continue
            self._touched[batch] = None
            for piece_first, piece_last, kind in pieces(verdict, first, last):
                for run in batch.cut(piece_first, piece_last):
                    self._apply(run, kind)

    def _batches_of(self, verdict: Acknowledgement) -> list[InFlightBatch]:
        """The batches from the one in which the verdict begins to the one in which it ends."""
        flight = self._flight
        index = flight.floor(verdict.first)
        if index < 0 and verdict.first < flight.start <= verdict.last:
            # Kafka finds nothing at the start either and raises a NullPointerException.
            index = flight.floor(flight.start)
        if index < 0:
            raise Refused(ErrorCode.INVALID_RECORD_STATE)
        batches = flight.batches[index : flight.floor(verdict.last) + 1]
        if batches[-1].last < verdict.last:
            raise Refused(ErrorCode.INVALID_REQUEST)
        return batches

    def _is_held(self, run: Run) -> bool:
        return run.state is ACQUIRED and run.target is None and run.member == self._member

    def _apply(self, run: Run, kind: int) -> None:
        is_renewal = kind == AcknowledgeType.RENEW
        if not self._is_held(run) or (is_renewal and not self._limits.renews):
            raise Refused(ErrorCode.INVALID_RECORD_STATE)
        if is_renewal:
            self._renewed.append(run)
        elif kind == AcknowledgeType.REJECT:
            self._start(run, self._limits.given_up, is_rejected=True)
        else:
            self._start(run, AFTER[AcknowledgeType(kind)])

    def _start(self, run: Run, state: RecordState, *, is_rejected: bool = False) -> None:
        run.target, run.write = (
            given_back(self._flight, self._limits, run) if state is AVAILABLE else state,
            self._number,
        )
        self.batches.append(StateBatch(run.first, run.last, run.target, run.delivery_count))
        if run.target is ARCHIVING:
            self.letters.append(Letter(run.first, run.last, run.delivery_count, is_rejected))

    def _undo(self) -> None:
        for batch in self._touched:
            for run in batch.runs:
                if run.write == self._number:
                    run.target, run.write = None, 0
        self.batches.clear()
        self.letters.clear()
        self._join()

    def _join(self) -> None:
        for batch in self._touched:
            batch.join()


def given_back(flight: Flight, limits: Limits, run: Run) -> RecordState:
    """The state of records that are taken back: given up if they were given too often, archived below the start."""
    if run.last < flight.start:
        return ARCHIVED
    return limits.given_up if run.delivery_count >= limits.delivery_count else AVAILABLE


def pieces(verdict: Acknowledgement, first: int, last: int) -> list[tuple[int, int, int]]:
    """Intervals of equal verdicts in a part of its range."""
    if len(verdict.types) == 1:
        return [(first, last, verdict.types[0])]
    found: list[tuple[int, int, int]] = []
    for offset in range(first, last + 1):
        kind = verdict.types[offset - verdict.first]
        if found and found[-1][2] == kind:
            found[-1] = (found[-1][0], offset, kind)
        else:
            found.append((offset, offset, kind))
    return found
