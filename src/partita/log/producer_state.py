"""Producer state of a partition: the last five batches of each producer, and transactions.

Duplicates are answered with their first offset, sequence gaps are refused, old producer epochs are fenced; open
transactions bound the last stable offset. A transaction begins only with a guard, which proves that its coordinator
was asked and that no marker came since. Upstream: ProducerStateManager, ProducerAppendInfo of 4.x, where a producer
without state may start at any sequence number.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from struct import Struct
from struct import error as StructError
from typing import TYPE_CHECKING

from partita.lazy import later
from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import Buffer
from partita.records.header import BatchHeader, corrupt

if TYPE_CHECKING:
    from partita.records import batch as record_batch
else:
    record_batch = later("partita.records.batch")


@dataclass(slots=True, eq=False)
class Guard:
    """One question about one producer. `lowest_sequence` is the lowest sequence verified at `epoch`."""

    epoch: int
    lowest_sequence: int
    is_version_2: bool
    asked_ms: int


class Guards:
    """The guards of one partition: at most one for each producer id."""

    def __init__(self) -> None:
        self._guards: dict[int, Guard] = {}

    def __len__(self) -> int:
        return len(self._guards)

    def begin(self, producer_id: int, epoch: int, sequence: int, *, is_version_2: bool, wall_ms: int) -> Guard:
        """Return the guard in place or a new one; a later attempt with a lower sequence lowers its sequence."""
        guard = self._guards.get(producer_id)
        if guard is None:
            guard = self._guards[producer_id] = Guard(epoch, sequence, is_version_2, wall_ms)
        elif epoch > guard.epoch or (epoch == guard.epoch and sequence < guard.lowest_sequence):
            guard.epoch, guard.lowest_sequence, guard.is_version_2 = epoch, sequence, is_version_2
        return guard

    def of(self, producer_id: int) -> Guard | None:
        """Return the guard in place, if any."""
        return self._guards.get(producer_id)

    def remove(self, producer_id: int) -> None:
        """Remove the guard: the transaction has begun or ended, which invalidates earlier answers."""
        self._guards.pop(producer_id, None)

    def expire(self, wall_ms: int, expiration_ms: int) -> None:
        """Remove guards older than `expiration_ms`."""
        old = [producer_id for producer_id, guard in self._guards.items() if wall_ms - guard.asked_ms >= expiration_ms]
        for producer_id in old:
            del self._guards[producer_id]


WINDOW = 5
"""Batches kept per producer, as many as a client may have in flight."""
NO_PRODUCER = -1
NO_SEQUENCE = -1
"""Sequence in batches that a coordinator writes for a producer and has checked itself; refused from clients."""
ABORT, COMMIT = 0, 1
EPOCH_MAX = 32767
_VERSION_2 = 2


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """One batch kept for detecting duplicates."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp: int


@dataclass(slots=True)
class Producer:
    """One producer id. `transaction_start`: first offset of its open transaction."""

    epoch: int
    batches: list[BatchFacts] = field(default_factory=list)
    transaction_start: int | None = None
    last_timestamp: int = -1
    coordinator_epoch: int = -1

    @property
    def last_sequence(self) -> int:
        """Last sequence number of the newest kept batch; -1 without any."""
        return self.batches[-1].last_sequence if self.batches else -1

    @property
    def last_offset(self) -> int:
        """Last offset of the newest kept batch; -1 without any."""
        return self.batches[-1].last_offset if self.batches else -1


@dataclass(frozen=True, slots=True)
class Aborted:
    """An aborted transaction: its first data offset, its marker's offset, and the last stable offset after it."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True)
class LastKnown:
    """Last offset of a producer's newest batch (-1 if only a marker is known) and the producer's epoch."""

    last_offset: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """Reason for refusing a batch."""

    code: ErrorCode
    reason: str


class ProducerStates:
    """All producers of one partition."""

    def __init__(self) -> None:
        self.producers: dict[int, Producer] = {}
        self.aborted: list[Aborted] = []
        """In the order of their markers."""
        self.guards = Guards()
        self._undecided: list[tuple[int, int]] = []
        self._open: dict[int, int] = {}

    def ask(self, header: BatchHeader, *, is_version_2: bool, wall_ms: int) -> Guard | Refusal | None:
        """Return the guard for the append if the coordinator must be asked about this transactional batch.

        None if the producer's transaction is open here at that epoch, a refusal if the epoch is old. (§13.1)
        """
        known = self.producers.get(header.producer_id)
        if known is not None and header.producer_epoch < known.epoch:
            return _fenced(header, known.epoch, "batch")
        if self._is_in_transaction(header):
            return None
        return self.guards.begin(
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            is_version_2=is_version_2,
            wall_ms=wall_ms,
        )

    def _is_in_transaction(self, header: BatchHeader) -> bool:
        known = self.producers.get(header.producer_id)
        return known is not None and known.transaction_start is not None and known.epoch == header.producer_epoch

    def check(
        self, header: BatchHeader, *, guard: Guard | None = None, needs_guard: bool = False
    ) -> BatchFacts | Refusal | None:
        """Return the original of a duplicate, a refusal, or None to append it. For data batches of clients only.

        With `needs_guard`, a batch that begins a transaction must present the `guard` still in place. (§13.3, §14)
        """
        if header.producer_id == NO_PRODUCER or header.base_sequence == NO_SEQUENCE:
            return None
        known = self.producers.get(header.producer_id)
        if known is not None:
            found = _duplicate(known, header)
            if found is not None:
                return found
            if header.producer_epoch < known.epoch:
                return _fenced(header, known.epoch, "batch")
        if needs_guard and header.is_transactional and not self._is_in_transaction(header):
            refusal = self._check_guard(header, guard)
            if refusal is not None:
                return refusal
        if known is None:
            return None
        expected = (known.last_sequence + 1) & 0x7FFFFFFF if header.producer_epoch == known.epoch else 0
        if header.base_sequence != expected:
            return _out_of_order(header, expected)
        if known.transaction_start is not None and not header.is_transactional:
            return Refusal(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {header.producer_id} has a transaction open; the batch is outside of transactions",
            )
        return None

    def _check_guard(self, header: BatchHeader, guard: Guard | None) -> Refusal | None:
        if guard is None or self.guards.of(header.producer_id) is not guard:
            return Refusal(
                ErrorCode.INVALID_TXN_STATE,
                f"the transaction of producer {header.producer_id} is not known to be open any more",
            )
        if guard.is_version_2 and header.base_sequence and header.producer_id not in self.producers:
            return _out_of_order(header, 0)
        if guard.lowest_sequence < header.base_sequence and guard.epoch == header.producer_epoch:
            return _out_of_order(header, guard.lowest_sequence)
        return None

    def remember(self, header: BatchHeader, base_offset: int) -> None:
        """Record an appended data batch."""
        if header.producer_id == NO_PRODUCER or header.is_control:
            return
        producer = self.producers.get(header.producer_id)
        if producer is None:
            producer = self.producers[header.producer_id] = Producer(header.producer_epoch)
        elif header.producer_epoch != producer.epoch:
            producer.epoch = header.producer_epoch
            producer.batches.clear()
        last_offset = base_offset + header.last_offset_delta
        facts = BatchFacts(header.base_sequence, header.last_sequence, base_offset, last_offset, header.max_timestamp)
        producer.batches.append(facts)
        del producer.batches[:-WINDOW]
        producer.last_timestamp = header.max_timestamp
        if header.is_transactional and producer.transaction_start is None:
            producer.transaction_start = base_offset
            self._open[header.producer_id] = base_offset
        if header.is_transactional:
            self.guards.remove(header.producer_id)

    def end_transaction(
        self,
        header: BatchHeader,
        marker_offset: int,
        *,
        is_commit: bool,
        coordinator_epoch: int,
        transaction_version: int = 0,
    ) -> None:
        """Record an appended commit or abort marker."""
        producer = self.producers.setdefault(header.producer_id, Producer(header.producer_epoch))
        if header.producer_epoch > producer.epoch:
            producer.epoch = header.producer_epoch
            producer.batches.clear()
        producer.coordinator_epoch = coordinator_epoch
        producer.last_timestamp = header.max_timestamp
        first_offset = producer.transaction_start
        producer.transaction_start = None
        self._open.pop(header.producer_id, None)
        guard = self.guards.of(header.producer_id)
        if guard is not None and not (transaction_version >= _VERSION_2 and guard.epoch == header.producer_epoch):
            self.guards.remove(header.producer_id)
        if first_offset is None:
            return
        self._undecided.append((marker_offset, first_offset))
        if not is_commit:
            # A fetch below this offset may stop its search of `aborted`: later entries begin at or after it.
            behind = min(self._open.values(), default=marker_offset + 1)
            self.aborted.append(Aborted(header.producer_id, first_offset, marker_offset, behind))

    def check_marker(self, header: BatchHeader, coordinator_epoch: int, transaction_version: int = 0) -> Refusal | None:
        """Return a refusal if the marker is stale. In transaction version 2 its epoch is above the data's. (§14.3)"""
        known = self.producers.get(header.producer_id)
        if known is None:
            return None
        is_old = header.producer_epoch < known.epoch
        if transaction_version >= _VERSION_2 and header.producer_epoch == known.epoch < EPOCH_MAX:
            is_old = known.transaction_start is not None  # without an open transaction it is a repetition
        if is_old:
            return _fenced(header, known.epoch, "marker")
        if coordinator_epoch < known.coordinator_epoch:
            return Refusal(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"a coordinator of epoch {known.coordinator_epoch} has written; the marker says {coordinator_epoch}",
            )
        return None

    def last_stable_offset(self, high_watermark: int) -> int:
        """Return the first offset of any transaction that is open or whose marker is not below the high watermark."""
        if not self._open and not self._undecided:
            return high_watermark
        # A decided transaction still holds the offset back until readers can see its marker.
        self._undecided = [entry for entry in self._undecided if entry[0] >= high_watermark]
        starts = [*self._open.values(), *(first_offset for _, first_offset in self._undecided)]
        return min(high_watermark, *starts) if starts else high_watermark

    def open_since_ms(self, wall_ms: int) -> int:
        """Return the longest silence of a producer with an open transaction; 0 without one."""
        silent = (wall_ms - self.producers[producer_id].last_timestamp for producer_id in self._open)
        return max(silent, default=0)

    def aborted_between(self, offset: int, end_offset: int) -> list[Aborted]:
        """Return the aborted transactions that overlap [offset, end_offset), by first offset."""
        found = []
        for i in range(bisect_left(self.aborted, offset, key=attrgetter("last_offset")), len(self.aborted)):
            entry = self.aborted[i]
            if entry.first_offset < end_offset:
                found.append(entry)
            if entry.last_stable_offset >= end_offset:
                break  # what was aborted later began later
        return sorted(found, key=attrgetter("first_offset"))

    def last_known(self) -> dict[int, LastKnown]:
        """Return the newest state of every producer, which compaction must keep."""
        return {pid: LastKnown(producer.last_offset, producer.epoch) for pid, producer in self.producers.items()}

    def forget_before(self, log_start_offset: int) -> None:
        """Drop aborted transactions whose records are all deleted."""
        self.aborted = [entry for entry in self.aborted if entry.last_offset >= log_start_offset]

    def forget_marked(self, marker_offsets: set[int]) -> None:
        """Drop the aborted transactions that these markers ended."""
        if marker_offsets:
            self.aborted = [entry for entry in self.aborted if entry.last_offset not in marker_offsets]

    def expire(self, wall_ms: int, expiration_ms: int) -> int:
        """Drop producers without open transaction that were silent for `expiration_ms`; return their number.

        Guards of batches that never came expire after the same time.
        """
        self.guards.expire(wall_ms, expiration_ms)
        old = [
            producer_id
            for producer_id, producer in self.producers.items()
            if producer.transaction_start is None and wall_ms - producer.last_timestamp >= expiration_ms
        ]
        for producer_id in old:
            del self.producers[producer_id]
        return len(old)

    def restore(self, producers: Iterable[tuple[int, Producer]], aborted: Iterable[Aborted]) -> None:
        """Load the state of a snapshot."""
        self.producers = dict(producers)
        self.aborted = list(aborted)
        begun = [(p.transaction_start, i) for i, p in self.producers.items() if p.transaction_start is not None]
        self._open = {producer_id: start for start, producer_id in sorted(begun)}
        self._undecided = []


def _duplicate(known: Producer, header: BatchHeader) -> BatchFacts | None:
    if header.producer_epoch == known.epoch:
        for batch in known.batches:
            if (batch.first_sequence, batch.last_sequence) == (header.base_sequence, header.last_sequence):
                return batch
    return None


def _fenced(header: BatchHeader, known_epoch: int, what: str) -> Refusal:
    return Refusal(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"producer {header.producer_id} is at epoch {known_epoch}; the {what} says {header.producer_epoch}",
    )


def _out_of_order(header: BatchHeader, expected: int) -> Refusal:
    return Refusal(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"producer {header.producer_id} at epoch {header.producer_epoch}: sequence {expected} expected, "
        f"the batch starts at {header.base_sequence}",
    )


_KEY = Struct(">hh")
_VALUE = Struct(">hi")


def read_marker(batch: Buffer) -> tuple[int, int] | None:
    """Return (type, coordinator epoch) of a commit or abort marker, None for other control batches."""
    for record in record_batch.iter_records(batch, check_crcs=False):
        try:
            _, kind = _KEY.unpack_from(bytes_of(record.key))
            if kind not in (0, COMMIT):
                return None
            return kind, int(_VALUE.unpack_from(bytes_of(record.value))[1])
        except StructError:
            raise corrupt("a control record without type or coordinator epoch") from None
    return None


def bytes_of(field: object) -> bytes:
    """Return a record's key or value as written; empty for null."""
    assert field is None or isinstance(field, bytes), f"raw records hold bytes, not {type(field)}"
    return field or b""


def note_batch(
    states: ProducerStates, header: BatchHeader, control_batch: Buffer | None, transaction_version: int = 0
) -> None:
    """Apply one batch of the log to the producer states; control batches need their bytes."""
    if not header.is_control:
        states.remember(header, header.base_offset)
        return
    assert control_batch is not None, "a control batch is read with its bytes"
    marker = read_marker(control_batch)
    if marker is not None:
        kind, coordinator_epoch = marker
        states.end_transaction(
            header,
            header.base_offset,
            is_commit=kind == COMMIT,
            coordinator_epoch=coordinator_epoch,
            transaction_version=transaction_version,
        )
