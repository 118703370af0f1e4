# cython: freethreading_compatible=True
"""Records waiting to be sent: one queue of batches per partition, counted against the buffer.

A batch is ready when it is full, when it has waited for linger.ms, or when a flush is under way. Batches of a
partition leave in the order they were filled in; one that must be sent again goes back to its place. Sequence numbers
are given when a batch leaves for the first time. Compiled by Cython when a compiler is there (its types:
accumulator.pxd); the same file runs uncompiled. (Kafka: RecordAccumulator, TransactionManager's partition map.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from partita.producer.batch import Batch, NewRecord
from partita.producer.config import ProducerConfig
from partita.producer.delivery import Delivery
from partita.records.builder import BatchBuilder

WINDOW = 5
"""Batches of a producer that a partition remembers, to distinguish duplicates from gaps."""
WIDE_BYTES = 262_144
"""The largest batch of many records that come at once, where batch.size is less."""
NO_GAP = 1 << 62
_SEQUENCE_END = 2**31


@dataclass(slots=True, eq=False)
class PartitionQueue:
    """One partition's waiting batches, those under way, and its idempotent state."""

    topic: str
    partition: int
    waiting: deque[Batch] = field(default_factory=deque)
    in_flight: list[Batch] = field(default_factory=list)
    producer_id: int = -1
    producer_epoch: int = -1
    next_sequence: int = 0
    next_serial: int = 0
    bytes_max: int = 1 << 62
    """The topic refused a batch of twice as many bytes: new ones are no larger."""
    must_bump: bool = False
    """A sequence number is lost: continue with a new epoch once nothing is in flight."""
    gap: int = NO_GAP
    """No batch of this serial or a later one is in the log, so they can be renumbered."""
    is_begun: bool = False
    """Has the broker taken a batch of this epoch?"""

    def may_send(self) -> bool:
        """True while the broker will still know every batch that is not acknowledged, should it come again."""
        first = self.waiting[0]
        if self.needs_epoch(first):
            return not self.in_flight
        # Brokers remember the last five batches of a producer: a sixth would push out one that may yet come again.
        return all(first.serial - batch.serial < (1 if first.is_behind else WINDOW) for batch in self.in_flight)

    def needs_epoch(self, batch: Batch) -> bool:
        """True if the batch can only leave in a new epoch.

        After a number was lost, one that may be in the log already keeps its own: otherwise it could come twice.
        """
        # Serials number the batches of a partition for ever; sequences begin anew with each epoch, so they cannot be
        # compared.
        return self.must_bump and not (batch.is_sequenced and batch.serial < self.gap)

    def is_first(self, batch: Batch) -> bool:
        """True if no earlier batch is still to be acknowledged."""
        return all(other.serial >= batch.serial for other in (*self.in_flight, *islice(self.waiting, 1)))

    def has_earlier_in_flight(self, batch: Batch) -> bool:
        """True if an earlier batch is under way."""
        return any(other.serial < batch.serial for other in self.in_flight)

    def put_back(self, batch: Batch) -> None:
        """Return a batch to its place among the waiting ones."""
        place = sum(other.serial < batch.serial for other in self.waiting)
        self.waiting.insert(place, batch)

    def replace(self, batch: Batch, parts: Sequence[Batch]) -> None:
        """Put new batches in the place of one that was under way."""
        self.in_flight.remove(batch)
        more = len(parts) - 1
        for later in (*self.in_flight, *self.waiting):
            later.serial += more if later.serial > batch.serial else 0
        # A batch becomes several: all behind it move on, or two would share a serial.
        self.gap += more if batch.serial < self.gap < NO_GAP else 0
        self.next_serial += more
        for number, part in enumerate(parts):
            part.serial = batch.serial + number
            self.put_back(part)

    def give_sequence(self, batch: Batch) -> None:
        """Give a batch that leaves for the first time the next sequence numbers of the partition."""
        batch.producer_id, batch.producer_epoch = self.producer_id, self.producer_epoch
        batch.base_sequence = self.next_sequence
        self.next_sequence = sequence_after(batch)

    def start_epoch(self, producer_id: int, producer_epoch: int) -> None:
        """Number from 0 again; whatever waits with an old number gets a new one."""
        self.producer_id, self.producer_epoch, self.next_sequence = producer_id, producer_epoch, 0
        self.must_bump = self.is_begun = False
        self.gap = NO_GAP
        for batch in self.waiting:
            # Only those that wait. One that is under way keeps its number, and its answer is judged by that.
            batch.base_sequence, batch.is_behind = -1, False


def sequence_after(batch: Batch) -> int:
    """The sequence number of the record after a batch that has numbers."""
    return (batch.base_sequence + batch.builder.records_count) % _SEQUENCE_END


class Accumulator:
    """All queues. Times are milliseconds of the monotonic clock."""

    def __init__(self, config: ProducerConfig) -> None:
        self.queues: dict[tuple[str, int], PartitionQueue] = {}
        self.used_bytes = 0
        self.flushes = 0
        self.is_short_of_memory = False
        self.is_completing = False
        """A transaction is being committed: nothing lingers."""
        self._config = config

    def queue(self, topic: str, partition: int) -> PartitionQueue:
        """The queue of a partition; it is created when first asked for."""
        queue = self.queues.get((topic, partition))
        if queue is None:
            queue = self.queues[topic, partition] = PartitionQueue(topic, partition)
        return queue

    def has_room(self) -> bool:
        """False while the records that wait take all of buffer.memory."""
        return self.used_bytes < self._config.buffer_memory

    def append(self, delivery: Delivery, record: NewRecord, partition: int, now_ms: int) -> bool:
        """Put a record into the partition's last batch or a new one; True if the sender should have a look.

        Raises TypeError for a timestamp that is no whole number, which an interceptor may have left.
        """
        if not isinstance(record.timestamp, int):  # compiled code would cut a fraction off without a word
            raise TypeError(f"the timestamp of a record is a whole number of ms, not {record.timestamp!r}")
        # The dict first and the method second: this line runs for every record.
        queue = self.queues.get((record.topic, partition)) or self.queue(record.topic, partition)
        last = queue.waiting[-1] if queue.waiting else None
        # A batch that came back is not filled further: the broker may know it by its number of records.
        if last is not None and not last.is_closed and not last.attempts:
            builder = last.builder
            before = builder.size_in_bytes
            if builder.append(record.timestamp, record.key, record.value, record.headers):
                self.used_bytes += builder.size_in_bytes - before
                delivery.placed(last, builder.records_count - 1)
                return self._close_if_full(last)
            last.is_closed = True
        batch = self._new_batch(queue, now_ms)
        batch.builder.append(record.timestamp, record.key, record.value, record.headers)
        self.used_bytes += batch.builder.size_in_bytes
        delivery.placed(batch, 0)
        queue.waiting.append(batch)
        self._close_if_full(batch)
        return True

    def open_wide(self, topic: str, partition: int, now_ms: int) -> Batch:
        """The batch that is filled next, made wide enough for many records that come at once; a new one is empty.

        A batch larger than batch.size costs no memory ahead of its records, and far fewer requests.
        """
        queue = self.queue(topic, partition)
        batch = queue.waiting[-1] if queue.waiting else None
        if batch is None or batch.is_closed or batch.attempts:
            batch = self._new_batch(queue, now_ms)
            self.used_bytes += batch.builder.size_in_bytes
            queue.waiting.append(batch)
        builder = batch.builder
        builder.max_bytes = max(builder.max_bytes, min(WIDE_BYTES, self._config.max_request_size, queue.bytes_max))
        return batch

    def is_ready(self, queue: PartitionQueue, now_ms: int) -> bool:
        """True if the first waiting batch of the queue may leave now; the queue must not be empty."""
        first = queue.waiting[0]
        if now_ms < first.retry_at_ms:
            return False
        return (
            first.is_closed
            # A second batch exists because the first did not take the record: it is full, whatever its size says.
            or len(queue.waiting) > 1
            or self.flushes > 0
            or self.is_completing
            or self.is_short_of_memory
            or now_ms >= first.created_ms + self._config.linger_ms
        )

    def ready_in_ms(self, queue: PartitionQueue, now_ms: int) -> int:
        """Time until the first batch is ready, if nothing else happens."""
        first = queue.waiting[0]
        lingers = not first.is_closed and len(queue.waiting) == 1
        when = max(first.retry_at_ms, first.created_ms + self._config.linger_ms if lingers else 0)
        return max(0, when - now_ms)

    def release(self, batch: Batch) -> None:
        """A batch is done: its memory is free."""
        self.used_bytes -= batch.builder.size_in_bytes

    def unfinished(self) -> list[Batch]:
        """Every batch that is waiting or in flight."""
        return [batch for queue in self.queues.values() for batch in (*queue.in_flight, *queue.waiting)]

    def _new_batch(self, queue: PartitionQueue, now_ms: int) -> Batch:
        config = self._config
        max_bytes = max(1, min(config.batch_size, queue.bytes_max))
        builder = BatchBuilder(codec=config.codec, max_bytes=max_bytes, level=config.codec_level)
        serial = queue.next_serial
        queue.next_serial += 1
        return Batch(queue.topic, queue.partition, builder, now_ms, serial, config.transactional_id is not None)

    def _close_if_full(self, batch: Batch) -> bool:
        if batch.builder.size_in_bytes >= batch.builder.max_bytes:
            batch.is_closed = True
        return batch.is_closed
