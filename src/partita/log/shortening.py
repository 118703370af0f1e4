"""How a log gets shorter: records deleted on request, segments by retention, records by compaction, a tail cut off.

A part of `PartitionLog`. First what is gone is made durable, then files go: a crash between leaves files that start-up
deletes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING

from partita.log.durability import Durability
from partita.log.log_config import LogConfig
from partita.log.recovery import base_offsets, rebuild_states
from partita.log.retention import deletable_count
from partita.log.segment import Segment, file_name
from partita.log.segment_swap import CLEANED_SUFFIX, remove_segments, swap_in
from partita.log.snapshots import PRODUCERS_SUFFIX, STATE_NAME, encode_state
from partita.log.sparse_index import SegmentFacts
from partita.log.storage import Storage, replace_file
from partita.now import Now

if TYPE_CHECKING:
    from partita.log.compaction import CompactionPlan, Group
    from partita.log.producer_state import ProducerStates
    from partita.log.snapshots import PartitionState


class OffsetOutOfRange(LookupError):
    """An offset outside [log start offset, log end offset]."""


class ShortenedLog(ABC):
    """What is deleted here stays deleted, whenever the process dies."""

    storage: Storage
    directory: str
    config: LogConfig
    durability: Durability
    segments: list[Segment]
    state: PartitionState
    producers: ProducerStates
    log_end_offset: int
    durable_offset: int
    high_watermark: int

    @property
    def log_start_offset(self) -> int:
        return self.state.log_start_offset

    @abstractmethod
    def roll(self, now: Now) -> None:
        """Begin a new segment."""

    @abstractmethod
    def _move_high_watermark(self, offset: int) -> None:
        """Set it, and tell those who watch."""

    def delete_records_before(self, offset: int) -> int:
        """Raise the log start offset (-1: to the high watermark), durably; return it. Raises OffsetOutOfRange."""
        offset = self.high_watermark if offset == -1 else offset
        if not 0 <= offset <= self.high_watermark:
            raise OffsetOutOfRange(f"offset {offset} is beyond the high watermark {self.high_watermark}")
        if offset > self.log_start_offset:
            self._start_at(offset)
        return self.log_start_offset

    def delete_old_segments(self, now: Now) -> int:
        """Apply retention; return how many segments went."""
        count = deletable_count(self.segments, self.config, self.log_start_offset, now.wall_ms)
        while count and self.segments[count - 1].next_offset > self.high_watermark:
            count -= 1
        if not count:
            return 0
        if count == len(self.segments):
            self.roll(now)
        gone, start = self.segments[:count], self.segments[count].base_offset
        # First the durable start offset, then the files: a crash between leaves files that start-up deletes.
        if start > self.log_start_offset:
            self._start_at(start)
        del self.segments[:count]
        for segment in gone:
            segment.delete()
        self.storage.sync_dir(self.directory)
        return count

    def _start_at(self, offset: int) -> None:
        self.state = self.state.started_at(offset)
        self.producers.forget_before(offset)
        self.save_state()

    def take_compacted(self, plan: CompactionPlan) -> None:
        """Put what a compaction wrote in the place of the segments it read, oldest first. Raises StorageError."""
        for group in plan.groups:
            known = [segment for segment in self.segments if segment in group.segments]
            if known != group.segments:
                # Retention was quicker: its segments are gone, and so is what was made of them.
                self.storage.unlink(f"{self.directory}/{file_name(group.base_offset, CLEANED_SUFFIX)}")
                continue
            at = self.segments.index(known[0])
            self.segments[at : at + len(known)] = self._swap_in(group)
            for segment in known:
                segment.file.close()
        self.state = replace(self.state, cleaned_to=plan.groups[-1].end_offset)
        self.save_state()

    def _swap_in(self, group: Group) -> list[Segment]:
        if not group.size:
            remove_segments(self.storage, self.directory, group.base_offset, group.end_offset)
            self.storage.unlink(f"{self.directory}/{file_name(group.base_offset, CLEANED_SUFFIX)}")
            return []
        swap_in(self.storage, self.directory, group.base_offset, group.end_offset)
        last_append_ms = max(segment.last_append_ms for segment in group.segments)
        facts = SegmentFacts(True, group.size, group.next_offset, group.max_timestamp, last_append_ms)
        interval = self.config.index_interval_bytes
        compacted = Segment.open_as(self.storage, self.directory, group.base_offset, interval, facts)
        if self.durability is not Durability.MEMORY:
            compacted.write_index()
        return [compacted]

    def truncate_to(self, offset: int) -> None:
        """Drop every batch that reaches beyond `offset`. Watchers are told: the log may have become shorter."""
        if offset >= self.log_end_offset:
            return
        while len(self.segments) > 1 and self.segments[-1].base_offset >= offset:
            self.segments.pop().delete()
        last = self.segments[-1]
        position = last.position_of(offset)
        end = max((header.next_offset for header, at in last.headers() if at < position), default=last.base_offset)
        last.truncate(position, end)
        self._after_truncation(end)

    def _after_truncation(self, end: int) -> None:
        self.log_end_offset = end
        self.durable_offset = min(self.durable_offset, end)
        state = self.state.truncated(end)
        self.state = replace(state, log_start_offset=min(state.log_start_offset, end))
        self.save_state()
        for base in base_offsets(self.storage.list(self.directory), PRODUCERS_SUFFIX):
            if base > end:
                self.storage.unlink(f"{self.directory}/{file_name(base, PRODUCERS_SUFFIX)}")
        self.storage.sync_dir(self.directory)
        self.segments[-1].file.sync()
        _, self.producers = rebuild_states(self.storage, self.directory, self.segments)
        self._move_high_watermark(min(self.high_watermark, end))

    def save_state(self) -> None:
        if self.durability is not Durability.MEMORY:
            replace_file(self.storage, self.directory, STATE_NAME, encode_state(self.state))
