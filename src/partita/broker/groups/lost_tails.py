"""After an unclean stop: commits beyond the end of a partition's log that were not beyond it when written.

A commit beyond the end of its log is marked with a record header when it is written; Kafka's readers of
`__consumer_offsets` look at keys and values only. At a shard's first load after an unclean stop every other commit
beyond the end has lost the records below it, and is clamped (faults.md D4; `partita.group.offsets.clamp`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from partita.group.contract import Record
from partita.group.coordinator import GroupCoordinator
from partita.group.offsets.clamp import Beyond, beyond_ends, offset_of
from partita.group.records.hard_state import TopicPartition
from partita.group.records.replay_batch import split_key
from partita.lazy import later
from partita.log.log_config import Durability
from partita.log.producer_state import bytes_of
from partita.log.storage import StorageError
from partita.records.header import iter_batches

if TYPE_CHECKING:
    from partita.broker.nodes import Cluster
    from partita.log.partition_log import PartitionLog
    from partita.records import batch as record_batch
    from partita.records.builder import Headers
else:
    record_batch = later("partita.records.batch")

log = logging.getLogger("partita.broker")

AHEAD = "partita.beyond.log.end"
"""The header of a commit that was beyond the end of its log when it was written."""
_MARK: Headers = ((AHEAD, b""),)
_OFFSETS_AT_ONCE = 2000
_SLICE_BYTES = 1 << 20


class LostTails:
    """One per process: marks commits as they are written, and finds those to be clamped, once per shard."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._marks = cluster.store.durability is not Durability.MEMORY
        self._checked: set[int] = set()

    def headers_of(self, record: Record) -> Headers:
        """Return the headers to write with a record of the group log."""
        key, value = record
        if value is None or not self._marks or key[0] or key[1] > 1:
            return ()
        end = self._end_now(split_key(key)[1])
        return _MARK if end is not None and offset_of(value) > end else ()

    def _end_now(self, named: TopicPartition) -> int | None:
        partition = self._cluster.catalogue.partition(*named)
        if partition is None:
            return None
        try:
            return 0 if partition.is_untouched else partition.log.log_end_offset
        except StorageError:
            return None

    def is_owed(self, index: int) -> bool:
        """Whether this shard has still to be checked."""
        return self._cluster.store.unclean and index not in self._checked

    def settled(self, index: int, found: list[Beyond]) -> None:
        """The shard's commits are clamped; no later load looks at them again."""
        self._checked.add(index)
        if found:
            self._cluster.store.counters["offsets_clamped"] += len(found)
            log.warning(
                "records below %d committed offsets of shard %d were lost; these offsets are now the ends of the logs",
                len(found),
                index,
            )

    def find(self, coordinator: GroupCoordinator, group_log: PartitionLog) -> Iterator[list[Beyond]]:
        """Yield, between slices, the commits found so far; the last list is the answer. Raises StorageError."""
        coordinator.hard_state.settle()
        ends: dict[TopicPartition, int | None] = {}

        def end_of(named: TopicPartition) -> int | None:
            if named not in ends:
                ends[named] = self._recovered_end(named)
            return ends[named]

        found: list[Beyond] = []
        for count, beyond in enumerate(beyond_ends(coordinator.hard_state, end_of), 1):
            if beyond is not None:
                found.append(beyond)
            if count % _OFFSETS_AT_ONCE == 0:
                yield found
        if found:
            yield from self._without_marked(found, group_log)
        yield found

    def _recovered_end(self, named: TopicPartition) -> int | None:
        """End of the partition after the start, whatever was appended since."""
        partition = self._cluster.catalogue.partition(*named)
        if partition is None:
            return None
        return 0 if partition.is_untouched else partition.log.report.log_end_offset

    def _without_marked(self, found: list[Beyond], group_log: PartitionLog) -> Iterator[list[Beyond]]:
        """Read the group log once more, for the headers that a load skips; drop marked commits from `found`."""
        marked = dict.fromkeys(((beyond.key, beyond.value) for beyond in found), False)
        offset = group_log.log_start_offset
        while offset < group_log.log_end_offset:
            view = group_log.read(offset, _SLICE_BYTES, up_to=group_log.log_end_offset)
            for header, batch in iter_batches(view):
                _note_marks(batch, marked)
                offset = header.next_offset
            yield found
        found[:] = [beyond for beyond in found if not marked[beyond.key, beyond.value]]


def _note_marks(batch: memoryview, marked: dict[tuple[bytes, bytes], bool]) -> None:
    for record in record_batch.iter_records(batch, check_crcs=False):
        named = (bytes_of(record.key or b""), bytes_of(record.value or b""))
        if named in marked:
            marked[named] = any(name == AHEAD for name, _ in record.headers)
