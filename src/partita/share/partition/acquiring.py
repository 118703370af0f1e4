"""Acquiring: which records of a fetch a member gets. (Kafka: SharePartition.acquire.)

What is in flight and available is delivered again, batch by batch; what was never acquired follows. Whole log batches
are acquired, or exactly as many records as were asked for. Records that were given in vain several times come in ever
smaller pieces, in the end alone, so that one bad record does not spoil the others.

Deviation: Partita never gives a record below the start of a share partition, where Kafka 4.4.0 acquires the whole of a
log batch that begins below it if the state was loaded with a gap there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from partita.share.partition.flight import Flight
from partita.share.partition.model import ACQUIRED, ARCHIVED, AVAILABLE, Acquired, InFlightBatch, Limits, LogBatch, Run


class Wish(NamedTuple):
    """One member's request for records. `is_exact`: at most `records_max`, else whole log batches."""

    member: str
    is_exact: bool
    records_max: int
    batch_size: int


class Acquiring:
    """One acquisition, from the first offset of the log batches that were read to the last one that may be taken."""

    def __init__(
        self, flight: Flight, wish: Wish, limits: Limits, read: Sequence[LogBatch], fetch_offset: int, deadline_ms: int
    ) -> None:
        self._flight = flight
        self._wish = wish
        self._limit = limits.delivery_count
        self._throttles_from = max(2, -(-self._limit // 2))
        self._read = read
        self._deadline_ms = deadline_ms
        self._first, self._last = read[0].first, read[-1].last
        self._most = min(wish.records_max, limits.record_locks - flight.span)
        if self._most <= 0 and fetch_offset <= flight.end:
            self._most = min(wish.records_max, flight.end - fetch_offset + 1)
            self._last = min(self._last, flight.end)
        self._found: list[Acquired] = []
        self._taken = 0

    def run(self) -> list[Acquired]:
        """Acquire; return what the member got, in order."""
        if self._most <= 0:
            return []
        again = self._flight.between(self._first, self._last)
        if not again:
            # A log batch may begin below the start. Kafka forgets that here, and gives again what is done with.
            first = self._first if self._flight.gap_start is None else max(self._first, self._flight.start)
            self._take_new(first, self._read[-1].last)
        elif self._give_again(again) and self._taken < self._most and again[-1].last < self._last:
            self._take_new(again[-1].last + 1, self._last)
        if self._found:
            self._flight.close_gap(self._found[-1].last + 1)
        self._archive_aborted()
        return self._found

    # Records that were acquired before

    def _give_again(self, batches: list[InFlightBatch]) -> bool:
        """Acquire what is available, and gaps; False when nothing may follow."""
        gap = max(self._first, self._flight.start) if self._flight.gap_start is not None else None
        for batch in batches:
            if gap is not None:
                if gap < batch.first and self._taken < self._most:
                    self._take_new(gap, batch.first - 1)
                gap = batch.last + 1
            if self._taken >= self._most:
                return False
            is_bad = self._is_throttled(batch)
            if is_bad and self._taken:
                return False
            if self._give(batch) and is_bad:
                return False
        return True

    def _is_throttled(self, batch: InFlightBatch) -> bool:
        return self._limit > 2 and any(
            run.state is AVAILABLE and run.delivery_count >= self._throttles_from
            for run in batch.runs_in(self._first, self._last)
        )

    def _take(self, run: Run) -> None:
        run.acquire(self._wish.member, self._deadline_ms)
        self._found.append(Acquired(run.first, run.last, run.delivery_count))
        self._taken += run.last - run.first + 1

    def _give(self, batch: InFlightBatch) -> int:
        """Acquire the available records of the range; return how many."""
        left = self._most - self._taken if self._wish.is_exact else batch.size
        taken = 0
        parts: list[Run] = []
        for run in [run for run in batch.cut(self._first, self._last) if run.state is AVAILABLE]:
            last_time = self._limit > 2 and run.delivery_count == self._limit - 1
            if last_time and taken:
                break
            if last_time:
                left = 1
            elif self._limit > 2 and run.delivery_count >= self._throttles_from:
                most = max(1, batch.size >> (run.delivery_count - self._throttles_from + 1))
                # As in Kafka, records before the bad ones may be more than that; then nothing is held back.
                left = min(left, most) if taken < most else left
            piece = min(run.last - run.first + 1, left - taken)
            if piece <= 0:
                break
            parts += batch.cut(run.first, run.first + piece - 1)
            taken += piece
        for part in parts:
            before = self._found[-1] if part is not parts[0] else None
            self._take(part)
            if before is not None and before.last + 1 == part.first and before.delivery_count == part.delivery_count:
                self._found[-2:] = [before._replace(last=part.last)]
        batch.join()
        return taken

    # Records that nobody had yet

    def _take_new(self, first: int, last: int) -> None:
        flight = self._flight
        if not flight.batches:
            first = max(first, flight.end)
        most = self._most - self._taken
        rest = last
        if most < last - first + 1:
            batch_end = self._end_of_batch_at(first + most - 1)
            last = first + most - 1 if self._wish.is_exact else min(batch_end, last)
            rest = min(batch_end, rest)
        for piece_first, piece_last in self._pieces(first, last):
            batch = InFlightBatch(Run(piece_first, piece_last, AVAILABLE, 0))
            self._take(batch.runs[0])
            if piece_last == last < rest:
                batch.runs.append(Run(last + 1, rest, AVAILABLE, 0))
                batch.last = rest
            flight.put(batch)
        if flight.batches[0].first == first:
            flight.start = first
        flight.end = max(flight.end, rest)

    def _end_of_batch_at(self, offset: int) -> int:
        index = bisect_right(self._read, offset, key=_first) - 1
        return max(offset, self._read[index].last)

    def _pieces(self, first: int, last: int) -> list[tuple[int, int]]:
        """Cut the range where a log batch begins, as soon as a piece has the size that was asked for."""
        pieces = []
        for batch in () if self._wish.is_exact else self._read:
            if batch.first > last:
                break
            if batch.first - first >= self._wish.batch_size:
                pieces.append((first, batch.first - 1))
                first = batch.first
        return [*pieces, (first, last)]

    # Aborted transactions

    def _archive_aborted(self) -> None:
        """Archive what was acquired of transactions that the reader must not see."""
        for aborted in self._read:
            if aborted.is_aborted:
                self._archive(aborted)

    def _archive(self, aborted: LogBatch) -> None:
        left: list[Acquired] = []
        for got in self._found:
            if got.last < aborted.first or got.first > aborted.last:
                left.append(got)
                continue
            first, last = max(got.first, aborted.first), min(got.last, aborted.last)
            self._archive_range(first, last)
            if got.first < first:
                left.append(got._replace(last=first - 1))
            if got.last > last:
                left.append(got._replace(first=last + 1))
        self._found = left

    def _archive_range(self, first: int, last: int) -> None:
        for batch in self._flight.between(first, last):
            for run in batch.cut(first, last):
                if run.state is ACQUIRED and run.member == self._wish.member:
                    run.become(ARCHIVED)
            batch.join()


def _first(batch: LogBatch) -> int:
    return batch.first
