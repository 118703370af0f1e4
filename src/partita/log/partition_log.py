"""One partition's log: appends ready batches, reads them back, tracks its offsets.

Theory of operation. The log is a row of segments; the last one takes appends, all others are sealed and never written
again. Five offsets describe it, and always stand in this order:

    log start <= last stable <= high watermark <= log end,   durable <= log end

The log end is the next offset to give. What lies below the durable offset survives a power loss. Consumers read up to
the high watermark, read_committed ones up to the last stable offset: the begin of the first open transaction. With
`sync` durability the high watermark follows the durable offset, so that no consumer sees a record that a power loss
could take back; with `os` and `memory` it follows the log end, and a power loss may cost what the system had not
written yet.

*An append is one straight line:* ask the producer state (duplicate, gap, fenced, guard), look whether the log is
usable, roll the segment if it is full, stamp offset and leader epoch, write, and only then change what memory knows. Up
to the write nothing has changed, so a refusal needs no undoing; the write itself is all or nothing. Work is per batch,
never per record: the checksum covers neither base offset nor leader epoch, so a batch is stored as it came.

*Nothing here waits for a disk.* Appended bytes go to the page cache at once. All other changes that must become durable
(new names, sealed segments, a higher log start, removed files) are chores: closures over values as they are now. The
next sync runs them in order on another thread, then syncs the last file; `begin_sync` and `finish_sync` bracket it on
the log's thread. Order is what makes them safe: data before the index that vouches for it, the state that says "starts
at 7" before the files below 7 go, a snapshot only of data that is synced.

*A failed write or sync is final.* After a failed fsync the kernel may have dropped the very pages it could not write,
and a second fsync would succeed without them (D7). So the log refuses appends until it is opened again, and reads go
on. Two errors are not failures: a full disk and a full table of descriptors. The file is then as long as before.

What must not be done: change `producers` or `state` before the write; let a chore read the log's attributes when it
runs; return bytes that were joined by copying (a slow consumer would own memory); call it from two threads.

Upstream: UnifiedLog, LocalLog.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from partita.log.log_config import MEMORY, OS_SYNC_BYTES, SYNC, Durability, LogConfig, next_sync_ms
from partita.log.producer_state import Aborted, BatchFacts, Guard, Refusal, note_batch, read_marker
from partita.log.recovery import Chore, Recovered, base_offsets, rebuild_states, recover
from partita.log.retention import deletable_count
from partita.log.segment import Segment, file_name
from partita.log.snapshots import PRODUCERS_SUFFIX
from partita.log.storage import TRANSIENT, Storage, StorageError, StorageFull
from partita.log.sync_ticket import SyncTicket, removing, saving, saving_all, sealing
from partita.log.timestamp_search import batches_from, largest_timestamp
from partita.now import Now
from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import Buffer
from partita.records.header import HEADER_SIZE, LOG_APPEND_TIME_BIT, BatchHeader, InvalidBatch, read_header, restamp

_FULL_DISK_PAUSE_MS = 1000
"""Pause before a chore that found the disk full is retried."""


class OffsetOutOfRange(LookupError):
    """The offset is outside [log start offset, log end offset]."""


class AppendRefused(Exception):
    """The batch was not appended; `code` is the error to answer with."""

    def __init__(self, code: ErrorCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Appended:
    """Position of a batch. `is_duplicate`: it was in the log already and nothing was written."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    is_duplicate: bool = False


class PartitionLog:
    """Segments in order; the last one takes appends. Not for use by two threads."""

    def __init__(
        self, storage: Storage, directory: str, config: LogConfig, durability: Durability, recovered: Recovered
    ) -> None:
        self.storage = storage
        self.directory = directory
        self.config = config
        self.durability = durability
        self.report = recovered.report
        self.segments = recovered.segments
        self.state = recovered.state
        self.producers = recovered.producers
        self.log_end_offset = self.segments[-1].next_offset
        # Whatever recovery kept counts as durable: it was checked batch by batch or vouched for by an index, and the
        # store syncs it before anybody is served where that matters.
        self.durable_offset = self.high_watermark = self.log_end_offset
        self._appended_bytes = 0
        self._synced_bytes = 0
        self._unsynced_since_ms = 0
        self._chores: list[Chore] = []
        self._chores_since_ms = 0
        self.failure: str | None = None
        self.is_being_compacted = False
        """Whether sealed segments are being replaced on another thread; retention waits meanwhile."""
        self.half_swapped: object = None
        """The segments whose replacement an error has interrupted (`partita.log.compaction`); retention waits, too."""
        # A dict for a set that keeps its order: watchers are called in the order in which they came, so that a seed
        # replays.
        self._watchers: dict[Callable[[], None], None] = {}
        self.on_unsynced: Callable[[PartitionLog], None] | None = None
        """Called when the next sync (`next_sync_ms`) becomes due earlier."""
        self.on_failed: Callable[[PartitionLog, str], None] | None = None
        """Called once, when the log stops accepting appends because a file operation failed."""
        self.on_damaged: Callable[[PartitionLog, str], None] | None = None
        """Called when a read finds a damaged batch."""
        self.on_no_room: Callable[[str], None] | None = None
        """Called when a batch is refused because the disk or the descriptor table is full; the log continues."""
        for chore in recovered.chores:
            self._later(chore)
        if recovered.chores and (len(self.segments) > 1 or self.state.cleaned_to):  # those in front may go
            self._later(self._snapshots())

    @classmethod
    def open(
        cls,
        storage: Storage,
        directory: str,
        config: LogConfig | None = None,
        *,
        durability: Durability = Durability.OS,
        was_clean: bool = True,
        known_end: int = 0,
        wall_ms: int = 0,
    ) -> PartitionLog:
        """Open or create the log in `directory`; `report` holds the result of recovery, all of which counts as durable.

        Under `sync` the store syncs the files left by a crash first. `known_end`: an offset the log had reached before.
        """
        config = config or LogConfig()
        recovered = recover(storage, directory, config, was_clean=was_clean, known_end=known_end, wall_ms=wall_ms)
        return cls(storage, directory, config, durability, recovered)

    @property
    def log_start_offset(self) -> int:
        """First offset still in the log."""
        return self.state.log_start_offset

    @property
    def last_stable_offset(self) -> int:
        """The first offset of the earliest open transaction, else the high watermark; never below the log start."""
        return max(self.log_start_offset, self.producers.last_stable_offset(self.high_watermark))

    @property
    def size_in_bytes(self) -> int:
        """Total size of all segments."""
        return sum(segment.size for segment in self.segments)

    def append(
        self,
        batch: Buffer,
        leader_epoch: int,
        now: Now,
        *,
        header: BatchHeader | None = None,
        guard: Guard | None = None,
        needs_guard: bool = False,
        transaction_version: int = 0,
    ) -> Appended:
        """Write one complete, checked batch with base offset and leader epoch stamped into it.

        With `needs_guard`, a batch that begins a transaction must present the `guard` from `ProducerStates.ask`.
        `transaction_version` is that of a marker. Raises AppendRefused if the producer's epoch, sequence or transaction
        does not fit, StorageError if the write fails; then nothing was written.
        """
        header = header or read_header(batch)
        marker = read_marker(batch) if header.is_control else None
        verdict: BatchFacts | Refusal | None = None
        if marker:
            verdict = self.producers.check_marker(header, marker[1], transaction_version)
        elif not header.is_control:
            verdict = self.producers.check(header, guard=guard, needs_guard=needs_guard)
        # A retry of a batch that is in the log: answered as if it had been written now. This comes before every other
        # check, even that of a failed log, since the first answer may have been lost on the way.
        if isinstance(verdict, BatchFacts):
            stamp = verdict.timestamp if self.config.log_append_time else -1
            return Appended(verdict.base_offset, verdict.last_offset, stamp, self.log_start_offset, True)
        if verdict is not None:
            raise AppendRefused(verdict.code, verdict.reason)
        self._check_usable()
        # Rolling may fail on a full disk. Then the batch is refused although the old segment might have taken it; the
        # next append tries again, and nothing was half done.
        self._roll_if_due(header.size_in_bytes, now)
        log_append_time_ms = now.wall_ms if self.config.log_append_time and not header.is_control else None
        base_offset = self.log_end_offset
        header, chunks = _stamped(batch, header, base_offset, leader_epoch, log_append_time_ms)
        self._write(header, chunks, now)
        # From here on nothing may raise: the bytes are in the file, and memory has to say so.
        note_batch(self.producers, header, batch if marker else None, transaction_version)
        self.state = self.state.with_epoch(leader_epoch, base_offset)
        self._advance(header, now)
        stamp = -1 if log_append_time_ms is None else log_append_time_ms
        return Appended(base_offset, header.last_offset, stamp, self.log_start_offset)

    def _check_usable(self) -> None:
        if self.failure is not None:
            raise StorageError(f"{self.directory} takes no appends since: {self.failure}")

    def _write(self, header: BatchHeader, chunks: list[Buffer], now: Now) -> None:
        segment = self.segments[-1]
        if not segment.size:
            segment.created_ms = now.wall_ms
        try:
            segment.append(header, header.base_offset, chunks, now.wall_ms)
        except StorageError as error:
            self._note_error(error)
            raise

    def _note_error(self, error: StorageError) -> None:
        if not isinstance(error, TRANSIENT):
            self.fail(str(error))
        elif self.on_no_room is not None:
            self.on_no_room(str(error))

    def _advance(self, header: BatchHeader, now: Now) -> None:
        self.log_end_offset = header.next_offset
        if self.durability is MEMORY:
            self.durable_offset = self.log_end_offset
        else:
            # Counted in bytes, not offsets: a sync that is under way covers what had been appended when it began, and
            # bytes that came since are still the next one's.
            was_synced = self._appended_bytes == self._synced_bytes
            if was_synced:
                self._unsynced_since_ms = now.mono_ms
            self._appended_bytes += header.size_in_bytes
            if self.on_unsynced is not None and (was_synced or self.unsynced_bytes >= OS_SYNC_BYTES):
                self.on_unsynced(self)
        if self.durability is not SYNC:
            self._move_high_watermark(self.log_end_offset)

    def _move_high_watermark(self, offset: int) -> None:
        self.high_watermark = offset
        if self._watchers:
            # A copy, because a watcher that has got what it waited for takes itself out of the dict.
            for watcher in tuple(self._watchers):
                watcher()

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call `watcher()` whenever the high watermark moves or the log fails, until `unwatch`."""
        self._watchers[watcher] = None

    def unwatch(self, watcher: Callable[[], None]) -> None:
        """Stop calling `watcher`; an unknown one is ignored."""
        self._watchers.pop(watcher, None)

    def read(self, offset: int, max_bytes: int, *, up_to: int | None = None, at_least_one: bool = True) -> memoryview:
        """Return whole batches from the one that holds `offset`, none that starts at or after `up_to`.

        `up_to` defaults to the high watermark. Returns at most `max_bytes`, unless the first batch alone is larger and
        `at_least_one` is true; empty if there is no batch. Raises OffsetOutOfRange.
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRange(
                f"offset {offset} is not within [{self.log_start_offset}, {self.log_end_offset}] of {self.directory}"
            )
        up_to = self.high_watermark if up_to is None else up_to
        try:
            return self._read(offset, max_bytes, up_to, at_least_one)
        except (InvalidBatch, StorageError) as error:
            if self.on_damaged is not None and not isinstance(error, TRANSIENT):
                self.on_damaged(self, str(error))
            raise

    def _read(self, offset: int, max_bytes: int, up_to: int, at_least_one: bool) -> memoryview:
        segments = self.segments
        # Compaction may have emptied the tail of a segment: behind its last batch, the next one is read.
        i = max(0, bisect_right(segments, offset, key=_base_offset) - 1) if len(segments) > 1 else 0
        while i < len(segments) and offset < up_to:
            segment = segments[i]
            position = segment.position_of(offset)
            if position < segment.size:
                # One segment per read, even if the next one would fit in: the view must be one piece of one file.
                end = segment.size if up_to >= segment.next_offset else segment.position_of(up_to)
                return segment.read(position, end, max_bytes, at_least_one=at_least_one)
            i += 1
        return memoryview(b"")

    def readable_bytes(self, offset: int, up_to: int) -> int | None:
        """Return the bytes from `offset` to `up_to`; None if another segment begins below `up_to`.

        `read` may return less: it never joins pieces. (Kafka: LogOffsetMetadata.positionDiff, onOlderSegment)
        """
        segments = self.segments
        segment = segments[max(0, bisect_right(segments, offset, key=_base_offset) - 1)]
        if up_to > segment.next_offset:
            return None
        return max(0, segment.position_of(up_to) - segment.position_of(offset))

    def aborted_transactions(self, offset: int, records: memoryview) -> list[Aborted]:
        """Return the aborted transactions for a reader of `records`, fetched from `offset`, by first offset."""
        if not len(records) or not self.producers.aborted:
            return []
        at = 0
        while at < len(records):
            # Only the last header matters, but headers are found one behind the other. It runs only where transactions
            # were aborted.
            header = read_header(records, at)
            at += header.size_in_bytes
        return self.producers.aborted_between(offset, header.next_offset)

    def batches_from_timestamp(self, timestamp: int) -> Iterator[memoryview]:
        """Yield the batches to search, in order, for the first record with at least this timestamp.

        `partita.log.timestamp_search.first_in` searches them; for large batches outside the shell's loop.
        """
        return batches_from(self.segments, timestamp, self.log_start_offset)

    @property
    def largest_timestamp(self) -> int:
        """Return the largest timestamp in the batch headers; -1 when there is none."""
        return largest_timestamp(self.segments, self.log_start_offset)

    def epoch_end_offset(self, leader_epoch: int, current_epoch: int = -1) -> tuple[int, int]:
        """Return (largest known leader epoch at or below, its end offset); (-1, -1) when unknown.

        `current_epoch`: the present leader epoch, which has begun even if it has no record yet.
        """
        state = self.state.with_epoch(current_epoch, self.log_end_offset) if current_epoch >= 0 else self.state
        return state.end_offset_of(leader_epoch, self.log_end_offset)

    def epoch_at(self, offset: int) -> int:
        """Return the leader epoch under which `offset` was written; -1 when unknown."""
        return self.state.epoch_at(offset)

    def _roll_if_due(self, size: int, now: Now) -> None:
        active = self.segments[-1]
        if not active.size:
            return
        is_full = active.size + size > self.config.segment_bytes
        if is_full or now.wall_ms - active.created_ms > self.config.segment_ms:
            self.roll(now)

    def roll(self, now: Now) -> None:
        """Seal the last segment and begin another, unless the last one is empty.

        The sealed segment is synced and indexed with the next sync; after a crash before that it is checked.
        Raises StorageError; then nothing has changed.
        """
        active = self.segments[-1]
        if not active.size:
            return
        interval = self.config.index_interval_bytes
        try:
            begun = Segment.create(self.storage, self.directory, self.log_end_offset, interval, now.wall_ms)
        except StorageError as error:
            self._note_error(error)
            raise
        self.segments.append(begun)
        # In memory only, so far. A crash leaves a segment without an index in front of an empty one: recovery checks
        # the first and goes on with the second.
        active.is_sealed = True
        if self.durability is not MEMORY:
            self._later(sealing(self.storage, self.directory, active, self._snapshots()))

    @property
    def unsynced_bytes(self) -> int:
        """Bytes appended since the last sync began."""
        return self._appended_bytes - self._synced_bytes

    def _later(self, chore: Chore) -> None:
        """Queue `chore` for the next sync, which runs it before the file sync. In memory it runs at once."""
        if self.durability is MEMORY:
            chore()
            return
        self._chores.append(chore)
        if self.on_unsynced is not None:
            self.on_unsynced(self)

    @property
    def has_chores(self) -> bool:
        """Whether changes other than appends wait for the next sync."""
        return bool(self._chores)

    def begin_sync(self, now: Now) -> SyncTicket | None:
        """Return a ticket for the pending sync; None if nothing is pending.

        `run` the ticket on any thread, then pass it to `finish_sync` on this one.
        """
        if not self.unsynced_bytes and not self._chores:
            return None
        # Chores that come while the ticket runs belong to the next sync: their data may not be in the file that this
        # one syncs.
        chores, self._chores, self._chores_since_ms = self._chores, [], 0
        return SyncTicket(chores, self.segments[-1].file, self.log_end_offset, self._appended_bytes, now.mono_ms)

    def finish_sync(self, ticket: SyncTicket) -> None:
        """Apply the outcome of a sync. After a failed one the log accepts no appends (D7)."""
        if ticket.error is not None:
            self.fail(str(ticket.error))
            return
        if ticket.postponed:
            # In front, since later chores may rely on them: a snapshot must not be newer than the state it goes with.
            self._chores = ticket.postponed + self._chores
            self._chores_since_ms = ticket.begun_ms + _FULL_DISK_PAUSE_MS
        # Bytes that came during the sync have waited since it began, not since it ended.
        self._unsynced_since_ms = ticket.begun_ms
        self._note_synced(ticket.end_offset, ticket.appended_bytes)

    def _note_synced(self, offset: int, appended_bytes: int) -> None:
        # The maximum, since a `flush` on this thread may have overtaken a ticket that was under way on another.
        self._synced_bytes = max(self._synced_bytes, appended_bytes)
        self.durable_offset = max(self.durable_offset, offset)
        if self.durability is SYNC and self.durable_offset > self.high_watermark:
            self._move_high_watermark(self.durable_offset)

    def next_sync_ms(self) -> int | None:
        """Return when (monotonic) the shell must sync this log; None: nothing to do."""
        if self.failure is not None:
            return None
        due_ms = next_sync_ms(self.durability, self.unsynced_bytes, self._unsynced_since_ms)
        if not self._chores:
            return due_ms
        return self._chores_since_ms if due_ms is None else min(due_ms, self._chores_since_ms)

    def flush(self, now: Now) -> None:
        """Sync at once. Raises StorageError."""
        if (ticket := self.begin_sync(now)) is not None:
            ticket.run()
            self.finish_sync(ticket)
            if ticket.error is not None:
                raise ticket.error

    def fail(self, reason: str) -> None:
        """Refuse appends from now on; the log stays readable. Further calls change nothing."""
        if self.failure is not None:
            return
        self.failure = reason
        if self.on_failed is not None:
            self.on_failed(self, reason)
        for watcher in tuple(self._watchers):
            watcher()

    def close(self) -> None:
        """Close cleanly: sync and index everything, so that the next start checks nothing (D10).

        Files that a full disk cannot take are checked or rebuilt by the next start. Raises StorageError.
        """
        try:
            if self.durability is not MEMORY and self.failure is None:
                self._sync_and_index()
        finally:
            for segment in self.segments:
                segment.file.close()

    def discard(self) -> None:
        """Close the log of a deleted partition: nothing is synced and later failures are ignored."""
        self.on_failed = self.on_unsynced = self.on_damaged = None
        self._chores = []
        self.fail("the partition was deleted")
        for segment in self.segments:
            segment.file.close()

    def _sync_and_index(self) -> None:
        ticket = SyncTicket(self._chores, self.segments[-1].file, self.log_end_offset, self._appended_bytes, 0)
        self._chores = []
        ticket.run()
        if ticket.error is not None:
            raise ticket.error
        self._note_synced(ticket.end_offset, ticket.appended_bytes)
        with suppress(StorageFull):
            self._snapshots()()
            self.segments[-1].write_index()

    def delete_records_before(self, offset: int) -> int:
        """Raise the log start offset (-1: to the high watermark) and return it. It becomes durable with the next sync.

        Raises OffsetOutOfRange.
        """
        offset = self.high_watermark if offset == -1 else offset
        if not 0 <= offset <= self.high_watermark:
            raise OffsetOutOfRange(f"offset {offset} is beyond the high watermark {self.high_watermark}")
        if offset > self.log_start_offset:
            self._start_at(offset)
        return self.log_start_offset

    def delete_old_segments(self, now: Now) -> int:
        """Apply retention; return the number of removed segments. Their files are deleted with the next sync."""
        if self.is_being_compacted or self.half_swapped is not None:
            return 0
        count = deletable_count(self.segments, self.config, self.log_start_offset, now.wall_ms)
        # Records that consumers may not read yet must not go, however old their timestamps say they are.
        while count and self.segments[count - 1].next_offset > self.high_watermark:
            count -= 1
        if not count:
            return 0
        # A log always has a segment that takes appends. Its base offset is the log's memory of where it ends.
        if count == len(self.segments):
            self.roll(now)
        gone, start = self.segments[:count], self.segments[count].base_offset
        del self.segments[:count]
        if start > self.log_start_offset:
            self.state = self.state.started_at(start)
            self.producers.forget_before(start)
        self._later(removing(self.storage, self.directory, gone, self._state_saver()))
        return count

    def _start_at(self, offset: int) -> None:
        self.state = self.state.started_at(offset)
        self.producers.forget_before(offset)
        self._later(self._state_saver())

    def replace_segments(self, old: list[Segment], new: list[Segment], dropped_markers: set[int]) -> None:
        """Replace adjacent sealed segments by `new`, without these markers; readers of the old ones may finish."""
        at = self.segments.index(old[0])
        self.segments[at : at + len(old)] = new
        self.half_swapped = None
        # Compaction removes markers whose records are all gone. A transaction listed as aborted without its marker
        # would make a reader drop the producer's later records while it waits for the marker.
        self.producers.forget_marked(dropped_markers)
        for segment in old:
            segment.file.close()

    def cleaned_to(self, offset: int) -> None:
        """Record that everything below `offset` is compacted."""
        self.state = replace(self.state, cleaned_to=offset)
        self._later(self._state_saver())

    def truncate_to(self, offset: int) -> None:
        """Drop every batch that reaches beyond `offset` and notify the watchers."""
        if offset >= self.log_end_offset:
            return
        while len(self.segments) > 1 and self.segments[-1].base_offset >= offset:
            self.segments.pop().delete()
        # The cut falls on a batch boundary at or before `offset`: half a batch cannot be kept.
        last = self.segments[-1]
        position = last.position_of(offset)
        end = max((header.next_offset for header, at in last.headers() if at < position), default=last.base_offset)
        last.truncate(position, end)
        self._after_truncation(end)

    def _after_truncation(self, end: int) -> None:
        self.log_end_offset = end
        self.durable_offset = min(self.durable_offset, end)
        state = self.state.truncated(end)
        # Durably and at once, not as a chore: state and snapshots must not know of offsets that the files have lost.
        self.state = replace(state, log_start_offset=min(state.log_start_offset, end))
        self.save_state()
        for base in base_offsets(self.storage.list(self.directory), PRODUCERS_SUFFIX):
            if base > end:
                self.storage.unlink(f"{self.directory}/{file_name(base, PRODUCERS_SUFFIX)}")
        self.storage.sync_dir(self.directory)
        self.segments[-1].file.sync()
        # Producers are rebuilt from the last snapshot at or before the cut; what the dropped batches had taught must be
        # forgotten.
        _, self.producers = rebuild_states(self.storage, self.directory, self.segments, compact=self.config.compact)
        self._move_high_watermark(min(self.high_watermark, end))

    def save_state(self) -> None:
        """Write `state` to its file, durably. Raises StorageError."""
        self._state_saver()()

    def _state_saver(self) -> Chore:
        """Return the chore that writes the current `state`; a log in memory has nothing to write."""
        if self.durability is MEMORY:
            return _nothing
        return saving(self.storage, self.directory, self.state)

    def _snapshots(self) -> Chore:
        """Return the chore that writes the current `state` and `producers` and removes older snapshots."""
        return saving_all(self.storage, self.directory, self._state_saver(), self.producers, self.log_end_offset)


def _nothing() -> None:
    pass


def _base_offset(segment: Segment) -> int:
    return segment.base_offset


def _stamped(
    batch: Buffer, header: BatchHeader, base_offset: int, leader_epoch: int, log_append_time_ms: int | None
) -> tuple[BatchHeader, list[Buffer]]:
    """Return header and pieces of the batch to write; `batch` is not modified and mostly not copied."""
    if log_append_time_ms is not None or header.attributes & LOG_APPEND_TIME_BIT:
        # The checksum covers attributes and timestamp, so a batch with the broker's time has to be copied and sealed
        # again.
        whole = bytearray(batch)
        restamp(whole, base_offset, leader_epoch, log_append_time_ms)
        return read_header(whole), [whole]
    view = memoryview(batch)
    # Only the header is copied: base offset and leader epoch lie in front of what the checksum covers.
    head = bytearray(view[:HEADER_SIZE])
    restamp(head, base_offset, leader_epoch)
    header.base_offset, header.partition_leader_epoch = base_offset, leader_epoch
    return header, [head, view[HEADER_SIZE:]]
