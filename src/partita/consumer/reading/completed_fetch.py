"""The answer for one partition, waiting to be handed out as records or as bytes for Arrow (consumer.md 9.5, 9.7).

Bytes stay bytes until `take` makes records of some. Their errors name partition and offset and repeat until the
application seeks.
"""

from __future__ import annotations

from collections.abc import Sequence

from partita.consumer.errors import CorruptRecordError
from partita.errors import KafkaError
from partita.offsets.topic_partition import TopicPartition
from partita.records.batch import InvalidBatch, Record
from partita.records.fetched_batches import FetchedBatches, FetchedRecords
from partita.records.header import MAGIC_AT, cut, end_of_entry, read_header


class CompletedFetch:
    """Records from `next_offset` on; `size` is its memory, `error` replaces its records."""

    __slots__ = ("_batches", "_records", "_returned", "aborted", "data", "error", "fetch_offset", "is_drained",
                 "last_epoch", "next_offset", "node_id", "size", "tp")  # fmt: skip

    def __init__(
        self,
        tp: TopicPartition,
        fetch_offset: int,
        data: memoryview | None,
        *,
        node_id: int = -1,
        aborted: Sequence[tuple[int, int]] | None = None,
        check_crcs: bool = True,
        error: KafkaError | None = None,
    ) -> None:
        self.tp = tp
        self.fetch_offset = self.next_offset = fetch_offset
        self.data = data if data is not None else memoryview(b"")
        self.aborted = aborted
        self.node_id = node_id
        self.size = len(self.data)
        self.last_epoch = -1
        self.error = error
        self.is_drained = self.size == 0
        self._batches = FetchedBatches(self.data, fetch_offset, aborted=aborted, check_crcs=check_crcs)
        self._records = FetchedRecords(self._batches, tp.topic, tp.partition)
        self._returned: list[Record] = []

    def take(self, limit: int) -> list[Record]:
        """The next records, at most `limit`. An error is raised only when no records precede it."""
        taken, self._returned = self._returned[:limit], self._returned[limit:]
        if len(taken) < limit:
            try:
                records = self._records.take(limit - len(taken))
                records[:0] = taken
                taken = records
            except InvalidBatch as invalid:
                if not taken:
                    raise CorruptRecordError(self.tp, self.next_offset, invalid.reason) from None
        if taken:
            if taken[-1].offset < self.next_offset:
                raise CorruptRecordError(self.tp, self.next_offset, f"offsets go back to {taken[-1].offset}")
            self.next_offset = taken[-1].offset + 1
            self.last_epoch = taken[-1].leader_epoch
        if not self._returned:
            self._look_ahead(at_end=len(taken) < limit)
        return taken

    def _look_ahead(self, *, at_end: bool) -> None:
        """Notice the end as soon as it is reached, so that the next fetch need not wait for another poll."""
        if self._batches.fault is not None:
            return
        if not at_end:
            try:
                self._returned = self._records.take(1)
            except InvalidBatch:
                return
        if not self._returned and self._batches.fault is None:
            self.is_drained = True
            self.next_offset = max(self.next_offset, self._records.next_offset)
            self._check_progress()

    def _check_progress(self) -> None:
        if self.next_offset == self.fetch_offset and self.size:
            self.is_drained = False
            raise CorruptRecordError(self.tp, self.fetch_offset, no_progress(self.size))

    def put_back(self, records: list[Record]) -> None:
        """Hand these out again first; they were taken last."""
        self._returned = records + self._returned
        self.next_offset = records[0].offset
        self.is_drained = False

    @property
    def is_untouched(self) -> bool:
        """Whether nothing was taken, so that the bytes can go to Arrow as they are."""
        return self.next_offset == self.fetch_offset and not self._returned


def no_progress(size: int) -> str:
    """The error text for an answer that holds less than one batch."""
    return f"{size} bytes and no whole batch: the consumer cannot make progress; raise max_partition_fetch_bytes"


def end_of_data(fetch: CompletedFetch) -> tuple[int, int]:
    """The offset behind the last whole batch and its leader epoch, from the headers alone."""
    data, last, pos = fetch.data, 0, 0
    # Batches are found one behind the other; only the last one says where the data ends.
    while (following := end_of_entry(data, pos)) > pos:
        last, pos = pos, following
    if not pos:
        return fetch.next_offset, -1
    if data[last + MAGIC_AT] < 2:
        return max(fetch.next_offset, int.from_bytes(data[last : last + 8], "big", signed=True) + 1), -1
    header = read_header(data[last:pos])
    return max(fetch.next_offset, header.next_offset), header.partition_leader_epoch


def end_of_batch(fetch: CompletedFetch | None, offset: int) -> int:
    """The offset behind the batch that holds `offset`; the next offset if that batch is unknown."""
    if fetch is not None:
        for magic, entry in cut(fetch.data):
            if magic >= 2 and (header := read_header(entry)).last_offset >= offset:
                return max(offset + 1, header.last_offset + 1) if header.base_offset <= offset else offset + 1
    return offset + 1
