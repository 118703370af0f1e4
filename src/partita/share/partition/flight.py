"""The records of a share partition that are in flight: batches by offset, where they start and end, and gaps.

The share-partition start offset (SPSO) is the first offset that is not done with, the end offset (SPEO) the last one
that was ever acquired. (Kafka: SharePartition's cachedState, startOffset, endOffset and GapWindow.)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from partita.share.partition.model import (
    ARCHIVED,
    AVAILABLE,
    BY_FIRST,
    BY_LAST,
    COMPLETED,
    InFlightBatch,
    RecordState,
    Run,
    Stored,
)  # fmt: skip


class Flight:
    """Batches in flight, in order of their offsets."""

    __slots__ = ("_gap_end", "_gap_start", "batches", "end", "start")

    def __init__(self, stored: Stored) -> None:
        """Take the stored state. Offsets that no stored batch covers were never acquired: the gap window."""
        self.batches: list[InFlightBatch] = []
        self.start = self.end = stored.start
        self._gap_start: int | None = None
        self._gap_end = -1
        expected = stored.start
        for batch in stored.batches:
            if batch.first > expected and self._gap_start is None:
                self._gap_start = expected
            expected = batch.last + 1
            run = Run(batch.first, batch.last, RecordState(batch.state), batch.delivery_count)
            self.batches.append(InFlightBatch(run))
        if self.batches:
            self.end = self._gap_end = self.batches[-1].last
            self.advance()

    @property
    def gap_start(self) -> int | None:
        """The first offset that was never acquired below the end; None when there is none, or none any more."""
        return self._gap_start if self._gap_end == self.end else None

    def cut_at_start(self, batch: InFlightBatch) -> None:
        """Take a batch apart in which the start lies: what is below the start ends otherwise."""
        if batch.first < self.start <= batch.last:
            batch.cut(batch.first, self.start - 1)

    def close_gap(self, up_to: int) -> None:
        """Offsets below `up_to` are no gap any more."""
        if self.gap_start is None:
            self._gap_start = None
        else:
            self._gap_start = up_to

    @property
    def span(self) -> int:
        """The number of offsets from start to end, completed ones and gaps included."""
        return self.end - self.start + 1 if self.batches else 0

    @property
    def completed(self) -> int:
        """The number of records from the start on that are done with, or will be once their write succeeds."""
        return sum(
            run.last - max(run.first, self.start) + 1
            for batch in self.batches
            if batch.last >= self.start
            for run in batch.runs
            if run.last >= self.start and (run.state if run.target is None else run.target) in COMPLETED
        )

    @property
    def is_behind(self) -> bool:
        """Whether nothing from the start on is in flight."""
        return not self.batches or self.start > self.batches[-1].last

    @property
    def next_offset(self) -> int:
        """The start of the next fetch: a record that can be given again, a gap, else the first never acquired."""
        if self.is_behind:
            return self.end
        gap = self.gap_start
        for batch in self.batches:
            if gap is not None:
                if batch.first > gap:
                    return gap
                gap = max(batch.last + 1, gap)
            for run in batch.runs:
                if run.state is AVAILABLE:
                    return run.first
        return self.end + 1

    def floor(self, offset: int) -> int:
        """The index of the last batch that begins at or below the offset; -1 without one."""
        return bisect_right(self.batches, offset, key=BY_FIRST) - 1

    def between(self, first: int, last: int) -> list[InFlightBatch]:
        """The batches that touch the range."""
        begin = bisect_left(self.batches, first, key=BY_LAST)
        return self.batches[begin : self.floor(last) + 1]

    def put(self, batch: InFlightBatch) -> None:
        """Add a batch where there is none."""
        self.batches.insert(self.floor(batch.first) + 1, batch)

    def archive_available(self, first: int, last: int) -> bool:
        """Archive what is available in the range: it is no longer in the log. True if there was any."""
        found = False
        for batch in self.between(first, last):
            for run in batch.cut(first, last):
                if run.state is AVAILABLE:
                    run.become(ARCHIVED)
                    found = True
            batch.join()
        return found

    def log_start_moved(self, offset: int) -> None:
        """The log starts later than this partition: what is available below is archived, what is acquired stays."""
        if offset <= self.start:
            return
        self.archive_available(self.start, offset - 1)
        self.start = offset
        if not self.batches or offset > self.end:
            self.end = offset
        self.close_gap(offset)

    def advance(self) -> bool:
        """Move the start past what is done with, and forget whole batches behind it; True if it moved."""
        done_to = self._done_to() if self._can_advance() else None
        if done_to is None:
            return False
        if done_to == self.batches[-1].last:
            self.start = self.end = max(self.start, done_to + 1)
            self.batches.clear()
            return True
        index = self.floor(done_to)
        start = done_to + 1
        if done_to == self.batches[index].last:
            index += 1
            start = self.batches[index].first
            if self.gap_start is not None:
                start = min(self.gap_start, start)
        self.start = max(self.start, start)
        del self.batches[:index]
        return True

    def _can_advance(self) -> bool:
        index = self.floor(self.start)
        if index < 0:
            return False
        batch = self.batches[index]
        return all(run.is_completed for run in batch.runs_in(self.start, self.start) or batch.runs[-1:])

    def _done_to(self) -> int | None:
        """The last offset of the completed ones at the front."""
        done: int | None = None
        for batch in self.batches:
            if self.gap_start is not None and batch.last >= self.gap_start:
                return done
            for run in batch.runs:
                if not run.is_completed:
                    return done
                done = run.last
        return done
