"""Records waiting to be sent: one queue of batches per partition, counted against the buffer.

A batch is ready when it is full, when it has waited for linger.ms, or when somebody is flushing. Batches of a
partition leave in the order they were filled in; one that must be sent again goes back to its place. Sequence numbers
are given when a batch leaves for the first time. (Kafka: RecordAccumulator, TransactionManager's partition map.)
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from partita.producer.batch import Batch, NewRecord
from partita.producer.config import ProducerConfig
from partita.producer.delivery import Delivery
from partita.records.builder import BatchBuilder

WINDOW = 5
"""Batches of a producer that a partition remembers, to tell duplicates from gaps."""
_SEQUENCE_END = 2**31


@dataclass(slots=True, eq=False)
class PartitionQueue:
    """What waits for one partition, what is under way, and its idempotent state."""

    topic: str
    partition: int
    waiting: deque[Batch] = field(default_factory=deque)
    in_flight: list[Batch] = field(default_factory=list)
    producer_id: int = -1
    producer_epoch: int = -1
    next_sequence: int = 0
    next_order: int = 0
    must_bump: bool = False
    """A sequence number is lost: go on with a new epoch once nothing is in flight."""
    is_begun: bool = False
    """Has the broker taken a batch of this epoch?"""

    def may_send(self) -> bool:
        """True while the broker will still know every batch that is not acknowledged, should it come again."""
        if self.must_bump:
            return not self.in_flight
        if self.waiting[0].is_sequenced:
            return len(self.in_flight) < WINDOW
        return all(self.next_order - batch.order < WINDOW for batch in self.in_flight)

    def is_first(self, batch: Batch) -> bool:
        """True if no earlier batch is still to be acknowledged."""
        return all(other.serial >= batch.serial for other in (*self.in_flight, *self.waiting))

    def put_back(self, batch: Batch) -> None:
        """Return a batch to its place among the waiting ones."""
        place = sum(other.serial < batch.serial for other in self.waiting)
        self.waiting.insert(place, batch)

    def give_sequence(self, batch: Batch) -> None:
        """Give a batch that leaves for the first time the next sequence numbers of the partition."""
        batch.producer_id, batch.producer_epoch = self.producer_id, self.producer_epoch
        batch.base_sequence, batch.order = self.next_sequence, self.next_order
        self.next_order += 1
        self.next_sequence = (self.next_sequence + batch.builder.records_count) % _SEQUENCE_END

    def start_epoch(self, producer_id: int, producer_epoch: int) -> None:
        """Number from 0 again; whatever waits with an old number gets a new one."""
        self.producer_id, self.producer_epoch, self.next_sequence = producer_id, producer_epoch, 0
        self.must_bump = self.is_begun = False
        for batch in self.waiting:
            batch.base_sequence = -1


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
        self._serial = 0

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
        """Put a record into the partition's last batch or a new one; True if the sender should have a look."""
        queue = self.queues.get((record.topic, partition)) or self.queue(record.topic, partition)
        last = queue.waiting[-1] if queue.waiting else None
        if last is not None and not last.is_closed and not last.attempts:
            builder = last.builder
            before = builder.size_in_bytes
            if builder.append(record.timestamp, record.key, record.value, record.headers):
                self.used_bytes += builder.size_in_bytes - before
                delivery.placed(last, builder.records_count - 1)
                return self._close_if_full(last)
            last.is_closed = True
        batch = self._new_batch(record.topic, partition, now_ms)
        batch.builder.append(record.timestamp, record.key, record.value, record.headers)
        self.used_bytes += batch.builder.size_in_bytes
        delivery.placed(batch, 0)
        queue.waiting.append(batch)
        self._close_if_full(batch)
        return True

    def is_ready(self, queue: PartitionQueue, now_ms: int) -> bool:
        """True if the first waiting batch of the queue may leave now; the queue must not be empty."""
        first = queue.waiting[0]
        if now_ms < first.retry_at_ms:
            return False
        return (
            first.is_closed
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

    def _new_batch(self, topic: str, partition: int, now_ms: int) -> Batch:
        config = self._config
        self._serial += 1
        builder = BatchBuilder(codec=config.codec, max_bytes=max(1, config.batch_size), level=config.codec_level)
        return Batch(topic, partition, builder, now_ms, self._serial, config.transactional_id is not None)

    def _close_if_full(self, batch: Batch) -> bool:
        if batch.builder.size_in_bytes >= self._config.batch_size:
            batch.is_closed = True
        return batch.is_closed
