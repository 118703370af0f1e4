"""A consumer's view of fetched bytes: data batches in order, without control batches and aborted transactions.

Upstream: CompletedFetch (consumer.md 9.7). Every batch is checked before any of its records is returned; the first
fault ends the walk and is kept, so that everything before it can still be delivered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import itemgetter

from partita.protocol.primitives import Buffer
from partita.records.compression import DEFAULT_MAX_BYTES, READERS_FREE_BYTES, decompress
from partita.records.control import ABORT, control_type
from partita.records.decode import Record, RecordReader
from partita.records.header import (
    HEADER_SIZE,
    MAGIC_AT,
    BatchHeader,
    InvalidBatch,
    check_crc,
    corrupt,
    end_of_entry,
    read_header,
)
from partita.records.legacy import read_legacy


class FetchedBatches:
    """Iterates over (header, inflated records) of the data batches that reach past `fetch_offset`.

    While a batch is in hand, `next_offset` is the first of its offsets that is wanted; asking for the following one
    moves it behind the batch, so that at the end it says where to fetch next. `fault` is the error that ended the walk,
    if any. `aborted` are (producer id, first offset) pairs in any order; give them for read_committed only.
    """

    __slots__ = (
        "_aborted", "_aborting", "_buffers", "_in_hand", "_inflate", "_max_bytes", "_pos", "_view", "check_crcs",
        "fault", "next_offset",
    )  # fmt: skip

    def __init__(
        self,
        data: Buffer | Iterable[Buffer],
        fetch_offset: int = 0,
        *,
        aborted: Iterable[tuple[int, int]] | None = None,
        check_crcs: bool = True,
        max_batch_bytes: int = DEFAULT_MAX_BYTES,
        inflate: bool = True,
    ) -> None:
        self._buffers = iter((data,) if isinstance(data, bytes | bytearray | memoryview) else data)
        self._view = memoryview(b"")
        self._pos = 0
        self._aborted = sorted(aborted, key=itemgetter(1), reverse=True) if aborted is not None else None
        self._aborting: set[int] = set()
        self._in_hand: BatchHeader | None = None
        self._inflate = inflate
        self._max_bytes = max_batch_bytes
        self.check_crcs = check_crcs
        self.next_offset = fetch_offset
        self.fault: InvalidBatch | None = None

    def __iter__(self) -> Iterator[tuple[BatchHeader, Buffer]]:
        return self

    def __next__(self) -> tuple[BatchHeader, Buffer]:
        if self.fault is not None:
            raise StopIteration
        try:
            while True:
                self._pass()
                entry = self._entry()
                found = self._legacy(entry) if entry[MAGIC_AT] < 2 else self._batch(entry)
                if found is not None:
                    return found
        except InvalidBatch as fault:
            self.fault = fault
            raise StopIteration from None

    def stop(self, fault: InvalidBatch, next_offset: int) -> None:
        """A record of the batch in hand is faulty: the walk ends before it."""
        self.fault, self.next_offset, self._in_hand = fault, max(self.next_offset, next_offset), None

    @property
    def follows_transactions(self) -> bool:
        """Do batches of producers need a look, since some of them may be aborted?"""
        return self._aborted is not None

    def here(self) -> tuple[memoryview, int]:
        """The buffer that the walk has reached, and where in it, behind the batch in hand."""
        self._pass()
        while self._pos == len(self._view):
            following = next(self._buffers, None)
            if following is None:
                break
            self._view, self._pos = memoryview(following), 0
        return self._view, self._pos

    def go_on_from(self, pos: int, next_offset: int) -> None:
        """Continue at this offset after a call of `here`: other code has handled the batches before it."""
        self._pos, self.next_offset = pos, next_offset

    def _entry(self) -> memoryview:
        """The next batch or legacy message. Raises StopIteration behind the last whole one of the last buffer."""
        while True:
            pos = self._pos
            following = end_of_entry(self._view, pos)
            if following > pos:
                self._pos = following
                return self._view[pos:following]
            self._view, self._pos = memoryview(next(self._buffers)), 0

    def _pass(self) -> None:
        """Leave the batch in hand behind. Its header counts, not its last record: compaction may have removed that."""
        if self._in_hand is not None:
            self.next_offset = max(self.next_offset, self._in_hand.next_offset)
            self._in_hand = None

    def _legacy(self, entry: memoryview) -> tuple[BatchHeader, Buffer] | None:
        header, payload = read_legacy(entry, self.check_crcs, self._max_bytes)
        return (header, payload) if self._wanted(header) else None

    def _batch(self, entry: memoryview) -> tuple[BatchHeader, Buffer] | None:
        header = read_header(entry)
        if self.check_crcs:
            check_crc(entry)
        hidden = self._is_aborted(header, entry)
        if not self._wanted(header) or hidden or header.is_control:
            return None
        payload = entry[HEADER_SIZE:]
        return header, self._inflated(header, payload) if self._inflate else payload

    def _inflated(self, header: BatchHeader, payload: memoryview) -> Buffer:
        return decompress(header.codec, payload, self._max_bytes, free_bytes=READERS_FREE_BYTES)

    def _wanted(self, header: BatchHeader) -> bool:
        if header.last_offset_delta < 0:
            raise corrupt(f"batch at offset {header.base_offset} has last offset delta {header.last_offset_delta}")
        self._in_hand = header
        return header.last_offset >= self.next_offset

    def _is_aborted(self, header: BatchHeader, entry: memoryview) -> bool:
        """Follow the transactions of read_committed; True for a batch of an aborted one."""
        aborted, producer = self._aborted, header.producer_id
        if aborted is None or producer < 0:
            return False
        while aborted and aborted[-1][1] <= header.last_offset:
            self._aborting.add(aborted.pop()[0])
        if header.is_control:
            if self._ends_in_abort(header, entry):
                self._aborting.discard(producer)
            return False
        return header.is_transactional and producer in self._aborting

    def _ends_in_abort(self, header: BatchHeader, entry: memoryview) -> bool:
        markers = RecordReader(header, self._inflated(header, entry[HEADER_SIZE:])).take(1)
        key = markers[0].key if markers else None
        return isinstance(key, bytes) and control_type(key) == ABORT


class FetchedRecords:
    """The records of one partition's fetched bytes, a few at a time. Same rules and arguments as FetchedBatches."""

    __slots__ = ("_batches", "_partition", "_reader", "_topic", "next_offset")

    def __init__(self, batches: FetchedBatches, topic: str, partition: int) -> None:
        self._batches = batches
        self._reader: RecordReader | None = None
        self._topic = topic
        self._partition = partition
        self.next_offset = batches.next_offset
        """Offset to fetch or commit after the records taken so far."""

    def take(self, limit: int) -> list[Record]:
        """At most `limit` records; none at the end. What is wrong raises InvalidBatch once all before it is taken."""
        taken: list[Record] = []
        while len(taken) < limit:
            reader = self._reader or self._open()
            if reader is None:
                break
            try:
                records = reader.take(limit - len(taken))
            except InvalidBatch as fault:
                self._batches.stop(fault, self.next_offset)
                records = []
            if records:
                if taken:
                    taken += records
                else:
                    taken = records
                self.next_offset = records[-1].offset + 1
            else:
                self._reader = None
        if not taken and limit > 0 and self._batches.fault is not None:
            raise self._batches.fault
        return taken

    def _open(self) -> RecordReader | None:
        for header, payload in self._batches:
            self._reader = RecordReader(
                header,
                payload,
                topic=self._topic,
                partition=self._partition,
                from_offset=self._batches.next_offset,
            )
            return self._reader
        self.next_offset = self._batches.next_offset
        return None
