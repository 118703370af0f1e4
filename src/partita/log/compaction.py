"""Compaction: keeps only the newest record of each key, and drops tombstones after `delete.retention.ms`.

`plan_compaction` chooses sealed segments, `CompactionPlan.run` rewrites them on any thread, and `swap_group` replaces
the old files by the new ones, one group of segments at a time, oldest first, so that an old value never outlives the
tombstone after it (D11). Upstream: Cleaner, LogCleaner.

A marker is dropped once a cleaning found no batch of its transaction before it and `delete.retention.ms` has passed
since then. A marker that is the only trace of a live producer stays.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter

from partita.log.partition_log import PartitionLog
from partita.log.producer_state import Aborted, LastKnown, bytes_of
from partita.log.retention import age_stamp_ms
from partita.log.segment import Segment, file_name
from partita.log.segment_swap import CLEANED_SUFFIX, begin_swap, finish_swap, stage_index
from partita.log.sparse_index import NO_TIMESTAMP, SegmentFacts, encode_index
from partita.log.storage import Storage
from partita.now import Now
from partita.protocol.primitives import Buffer
from partita.records.batch import Record, iter_records
from partita.records.builder import assemble, encode_record
from partita.records.compression import writable
from partita.records.header import CODEC_MASK, DELETE_HORIZON_BIT, LOG_APPEND_TIME, BatchHeader, read_header

_WRITE_BYTES = 1 << 20
KEYS_BYTES_MAX = 128 << 20
"""Memory for keys in one round; the next round continues from there. (Kafka: log.cleaner.dedupe.buffer.size)"""
_KEY_BYTES = 100
"""Memory per key in addition to its bytes."""


@dataclass(slots=True)
class SegmentGroup:
    """Adjacent segments that become one file. `size` and the fields after it describe the new file once written."""

    segments: list[Segment]
    size: int = 0
    next_offset: int = 0
    max_timestamp: int = NO_TIMESTAMP
    dropped_markers: set[int] = field(default_factory=set)
    """Offsets of the markers of aborted transactions that are not in the new file."""
    index: bytes = b""
    """Of the new file, once its swap has begun."""

    @property
    def base_offset(self) -> int:
        """First offset of the group, which names the new file."""
        return self.segments[0].base_offset

    @property
    def end_offset(self) -> int:
        """First offset after the group."""
        return self.segments[-1].next_offset


@dataclass(slots=True)
class CompactionPlan:
    """Segments to compact, and the rules. `run` writes the new files beside the old ones."""

    storage: Storage
    directory: str
    groups: list[SegmentGroup]
    dirty_from: int
    now_ms: int
    delete_retention_ms: int
    aborted: dict[int, list[Aborted]]
    """By producer id, in the order of their markers."""
    last_known: dict[int, LastKnown]
    cleaned_to: int = 0
    """After `run`: batches below this offset are compacted, later ones unchanged."""
    is_written: bool = False
    """The plan only finishes the swap of its group, which an error has interrupted."""

    def run(self) -> None:
        """Write the compacted files. Raises StorageError or InvalidBatch; a restart then removes the new files."""
        if self.is_written:
            return
        newest: dict[bytes, int] = {}
        self.cleaned_to = self._note_keys(newest)
        self.groups = [group for group in self.groups if group.base_offset < self.cleaned_to]
        transactions: set[int] = set()
        for group in self.groups:
            self._write(group, newest, transactions)

    def _note_keys(self, newest: dict[bytes, int]) -> int:
        """Collect the newest offset of each key of the uncompacted part; return the offset up to which it is done."""
        room = KEYS_BYTES_MAX
        dirty = (s for group in self.groups for s in group.segments if s.next_offset > self.dirty_from)
        for header, batch in (found for segment in dirty for found in _batches(segment)):
            if header.next_offset <= self.dirty_from:
                continue
            if room <= 0:  # every key before this batch is known, so the round compacts up to here
                return header.base_offset
            if not header.is_control and not self._is_aborted(header):
                for record in iter_records(batch, check_crcs=False):
                    if record.key is not None:
                        key = bytes_of(record.key)
                        room -= 0 if key in newest else len(key) + _KEY_BYTES
                        newest[key] = record.offset
        return self.groups[-1].end_offset

    def _is_aborted(self, header: BatchHeader) -> bool:
        ended = self.aborted.get(header.producer_id) if header.is_transactional else None
        if ended is None:
            return False
        i = bisect_left(ended, header.base_offset, key=attrgetter("last_offset"))
        return i < len(ended) and ended[i].first_offset <= header.base_offset

    def _write(self, group: SegmentGroup, newest: dict[bytes, int], transactions: set[int]) -> None:
        file = self.storage.open(f"{self.directory}/{file_name(group.base_offset, CLEANED_SUFFIX)}", create=True)
        file.truncate(0)
        pending: list[Buffer] = []
        pending_bytes = 0
        for batch in self._cleaned_batches(group, newest, transactions):
            header = read_header(batch)
            group.next_offset = header.next_offset
            group.max_timestamp = max(group.max_timestamp, header.max_timestamp)
            group.size += len(batch)
            pending.append(batch)
            pending_bytes += len(batch)
            if pending_bytes >= _WRITE_BYTES:
                file.append(pending)
                pending, pending_bytes = [], 0
        if pending:
            file.append(pending)
        file.sync()
        file.close()

    def _cleaned_batches(
        self, group: SegmentGroup, newest: dict[bytes, int], transactions: set[int]
    ) -> Iterator[Buffer]:
        """Yield the batches to keep. `transactions`: producers with a batch of their current transaction so far."""
        for segment in group.segments:
            for header, batch in _batches(segment):
                if header.base_offset >= self.cleaned_to:
                    yield batch
                    continue
                if header.is_control:
                    kept_marker = self._cleaned_marker(header, batch, transactions)
                    if kept_marker is not None:
                        yield kept_marker
                    elif header.producer_id in self.aborted:
                        group.dropped_markers.add(header.base_offset)
                    continue
                if header.is_transactional:
                    transactions.add(header.producer_id)
                records = [] if self._is_aborted(header) else list(iter_records(batch, check_crcs=False))
                horizon_ms = header.delete_horizon_ms
                drop_tombstones = horizon_ms is not None and horizon_ms <= self.now_ms
                kept = [record for record in records if _stays(record, newest, drop_tombstones)]
                # The first cleaning that sees tombstones only sets their horizon; a later one drops them.
                if horizon_ms is None and any(record.value is None for record in kept):
                    yield _rebuilt(header, kept, self.now_ms + self.delete_retention_ms)
                elif kept and len(kept) == header.records_count:
                    yield batch
                elif kept or self._is_last_of_producer(header):
                    yield _rebuilt(header, kept, horizon_ms)

    def _cleaned_marker(self, header: BatchHeader, batch: Buffer, transactions: set[int]) -> Buffer | None:
        """Return the marker unchanged or with its delete horizon set; None to drop it. (§16)"""
        if not header.is_transactional or header.producer_id in transactions or self._is_last_of_producer(header):
            transactions.discard(header.producer_id)
            return batch
        horizon_ms = header.delete_horizon_ms
        if horizon_ms is None:
            records = list(iter_records(batch, check_crcs=False))
            return _rebuilt(header, records, self.now_ms + self.delete_retention_ms)
        return None if horizon_ms <= self.now_ms else batch

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        """Whether its sequence numbers or, for a marker, its epoch are the only trace of a live producer."""
        known = self.last_known.get(header.producer_id)
        if known is None:
            return False
        if known.last_offset >= 0:
            return known.last_offset == header.last_offset
        return header.is_control and known.epoch == header.producer_epoch


def plan_compaction(log: PartitionLog, now: Now, *, force: bool = False) -> CompactionPlan | None:
    """Choose the segments to compact; None if the gain would be too small.

    With `force` the active segment is rolled and any uncompacted record is enough. The log must be synced before the
    plan runs, so that the merged records are durable already. A swap that an error has interrupted is all of the next
    plan.
    """
    if isinstance(log.half_swapped, SegmentGroup):
        return _plan(log, now, [log.half_swapped], log.state.cleaned_to, is_written=True)
    config = log.config
    active = log.segments[-1]
    if force or now.wall_ms - active.created_ms > config.max_compaction_lag_ms:
        log.roll(now)
    segments = _cleanable(log, now)
    dirty = [segment for segment in segments if segment.next_offset > log.state.cleaned_to]
    if not dirty:
        return None
    ratio = sum(segment.size for segment in dirty) / max(1, sum(segment.size for segment in segments))
    is_overdue = any(now.wall_ms - age_stamp_ms(segment) > config.max_compaction_lag_ms for segment in dirty)
    if not force and not is_overdue and ratio <= config.min_cleanable_dirty_ratio:
        return None
    return _plan(log, now, _groups(segments, config.segment_bytes))


def _plan(
    log: PartitionLog, now: Now, groups: list[SegmentGroup], cleaned_to: int = 0, *, is_written: bool = False
) -> CompactionPlan:
    aborted: defaultdict[int, list[Aborted]] = defaultdict(list)
    for entry in log.producers.aborted:
        aborted[entry.producer_id].append(entry)
    return CompactionPlan(
        storage=log.storage,
        directory=log.directory,
        groups=groups,
        dirty_from=log.state.cleaned_to,
        now_ms=now.wall_ms,
        delete_retention_ms=log.config.delete_retention_ms,
        aborted=aborted,
        last_known=log.producers.last_known(),
        cleaned_to=cleaned_to,
        is_written=is_written,
    )


def swap_group(log: PartitionLog, group: SegmentGroup) -> list[Segment]:
    """Swap the files of one group; return the segment for `log.replace_segments` to put in its place, if any.

    May run on another thread while the log is read and appended to, and no segment is removed meanwhile
    (`is_being_compacted`): the old segments keep their files open and stay readable. Raises StorageError; if the swap
    had begun by then, the next plan finishes it.
    """
    interval = log.config.index_interval_bytes
    facts = SegmentFacts(
        is_sealed=True,
        log_size=group.size,
        next_offset=group.next_offset,
        max_timestamp=group.max_timestamp,
        last_append_ms=max(segment.last_append_ms for segment in group.segments),
    )
    storage, directory, base_offset, end_offset = log.storage, log.directory, group.base_offset, group.end_offset
    has_begun = log.half_swapped is group
    if not has_begun:
        # The new file takes over a name that is still in use: readers must keep the old bytes.
        for segment in group.segments:
            segment.file.hold()
        cleaned = file_name(base_offset, CLEANED_SUFFIX)
        written = Segment.open_as(storage, directory, base_offset, interval, facts, cleaned)
        group.index = encode_index(written.build_index(), facts) if group.size else b""
        written.file.close()
    stage_index(storage, directory, base_offset, group.index)
    if not has_begun:
        begin_swap(storage, directory, base_offset, end_offset)
        log.half_swapped = group
    finish_swap(storage, directory, base_offset, end_offset, is_empty=not group.size)
    if not group.size:
        return []
    return [Segment.open_as(storage, directory, base_offset, interval, facts)]


def _cleanable(log: PartitionLog, now: Now) -> list[Segment]:
    """Return the sealed segments below the last stable offset and older than the compaction lag."""
    found, lag_ms = [], log.config.min_compaction_lag_ms
    for segment in log.segments[:-1]:
        # Without a lag the clock is not asked: one that was set back would hold compaction up until it has caught up.
        is_young = lag_ms > 0 and now.wall_ms - age_stamp_ms(segment) < lag_ms
        if segment.next_offset > log.last_stable_offset or is_young:
            break
        found.append(segment)
    return found


def _groups(segments: list[Segment], segment_bytes: int) -> list[SegmentGroup]:
    groups: list[SegmentGroup] = []
    size = 0
    for segment in segments:
        if groups and size + segment.size <= segment_bytes:
            groups[-1].segments.append(segment)
            size += segment.size
        else:
            groups.append(SegmentGroup([segment]))
            size = segment.size
    return groups


def _batches(segment: Segment) -> Iterator[tuple[BatchHeader, memoryview]]:
    for header, position in segment.headers():
        yield header, segment.batch_at(position)


def _stays(record: Record, newest: dict[bytes, int], drop_tombstones: bool) -> bool:
    if record.key is None or (record.value is None and drop_tombstones):
        return False
    return newest.get(bytes_of(record.key), -1) <= record.offset


def _rebuilt(header: BatchHeader, records: list[Record], horizon_ms: int | None) -> Buffer:
    """Return the batch reduced to these records; it still covers the same offsets and sequence numbers.

    The delete horizon, after which tombstones may be dropped, replaces the base timestamp. (KIP-534)
    """
    base_timestamp = header.base_timestamp if horizon_ms is None else horizon_ms
    horizon_bit = 0 if horizon_ms is None else DELETE_HORIZON_BIT
    payload = b"".join(
        encode_record(
            record.offset - header.base_offset,
            record.timestamp - base_timestamp,
            bytes_of(record.key),
            None if record.value is None else bytes_of(record.value),
            record.headers,
        )
        for record in records
    )
    codec = writable(header.codec) if records else 0
    is_stamped = header.timestamp_type == LOG_APPEND_TIME or not records
    return assemble(
        payload,
        codec=codec,
        base_offset=header.base_offset,
        leader_epoch=header.partition_leader_epoch,
        attributes=header.attributes & ~CODEC_MASK | codec | horizon_bit,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=header.max_timestamp if is_stamped else max(record.timestamp for record in records),
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        records_count=len(records),
    )
