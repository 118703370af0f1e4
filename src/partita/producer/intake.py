"""Records coming in: which partition each goes to, and those that have to wait before they can be placed.

A record waits while its topic or partition is not known, or the buffer is full; records of one topic keep their order,
and none waits longer than max.block.ms. Records for a partition that their topic does not have, or not yet, wait aside:
others of the topic pass them. (Kafka: KafkaProducer.doSend and waitOnMetadata, which block instead.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from partita.errors import error_for
from partita.producer.accumulator import Accumulator
from partita.producer.batch import NewRecord
from partita.producer.config import ProducerConfig
from partita.producer.delivery import Delivery
from partita.producer.errors import BufferExhaustedError, NoMetadataError, RecordTooLargeError
from partita.producer.partitioner import StickyPartitioner, partition_for_key
from partita.protocol.error_codes import ErrorCode
from partita.protocol.metadata_view import MetadataView
from partita.wording import count

RECORD_OVERHEAD_BYTES = 96
STICKY_OVERHEAD_BYTES = 12
NEVER_MS = 1 << 40


class _Blocked(NamedTuple):
    delivery: Delivery
    deadline_ms: int
    size_in_bytes: int


class Intake:
    """Takes records in and places them in batches; `fail` is called for those that cannot be placed."""

    def __init__(
        self,
        config: ProducerConfig,
        view: MetadataView,
        accumulator: Accumulator,
        draw: Callable[[int], int],
        fail: Callable[[Delivery, Exception], None],
    ) -> None:
        self.config = config
        self.view = view
        self.accumulator = accumulator
        self._draw = draw
        self._fail = fail
        self.sticky: dict[str, StickyPartitioner] = {}
        self.blocked: dict[str, deque[_Blocked]] = {}
        """Records that wait, by topic."""
        self.aside: dict[tuple[str, int], deque[_Blocked]] = {}
        """Records that wait for one partition which their topic does not have."""
        self.waiting_bytes = 0
        """Bytes of buffer.memory that records without a batch take."""
        self.trouble = ""
        """Why no broker can be reached; "" while one can be."""
        self.size_max = min(config.max_request_size, config.buffer_memory) - RECORD_OVERHEAD_BYTES
        """Most bytes that key and value of a record may have together."""

    @property
    def topics_wanted(self) -> set[str]:
        """Topics that records wait for."""
        return {*self.blocked, *(topic for topic, _ in self.aside)}

    def has_room(self) -> bool:
        """False while batches and records without one take all of buffer.memory."""
        return self.accumulator.used_bytes + self.waiting_bytes < self.config.buffer_memory

    def add(self, delivery: Delivery, now_ms: int) -> bool:
        """Take a record in; True if the sender should look. Raises errors of the record itself.

        A caller who cannot wait for room may go on until as much again as buffer.memory is taken: BufferExhaustedError.
        """
        record = delivery.record
        assert record is not None, "a record is taken in once"
        size = _size(record)
        if size > self.size_max:
            raise self.too_large(size)
        blocked = None
        if record.topic not in self.blocked and self.has_room():
            blocked = self._line_aside(record)
            partition = self._partition_of(record) if blocked is None else None
            if partition is not None:
                return self._place(delivery, record, partition, size, now_ms)
        taken = self.accumulator.used_bytes + self.waiting_bytes
        if taken >= 2 * self.config.buffer_memory:
            raise BufferExhaustedError(
                f"{taken} bytes of records wait, twice buffer_memory {self.config.buffer_memory}; await each send, or "
                "room() between sends"
            )
        if blocked is None:
            blocked = self.blocked.setdefault(record.topic, deque())
        blocked.append(_Blocked(delivery, now_ms + self.config.max_block_ms, size + RECORD_OVERHEAD_BYTES))
        self.waiting_bytes += size + RECORD_OVERHEAD_BYTES
        return True

    def waiting(self) -> list[Delivery]:
        """The records that have no batch yet, topic by topic in the order they came."""
        return [one.delivery for blocked in (*self.blocked.values(), *self.aside.values()) for one in blocked]

    def count_waiting(self) -> int:
        """Number of records without a batch."""
        return sum(map(len, (*self.blocked.values(), *self.aside.values())))

    def fail_topic(self, topic: str, error: Exception) -> None:
        """Records waiting for this topic cannot be sent at all."""
        aside = [self.aside.pop(place) for place in [*self.aside] if place[0] == topic]
        for line in (self.blocked.pop(topic, ()), *aside):
            for blocked in line:
                self.waiting_bytes -= blocked.size_in_bytes
                self._fail(blocked.delivery, error)

    def unblock(self, now_ms: int) -> int:
        """Place waiting records, fail those that waited too long; return the time to the next deadline."""
        for topic in self.topics_wanted:
            view = self.view.topics.get(topic)
            code = ErrorCode(view.error_code) if view is not None else ErrorCode.NONE
            if code != ErrorCode.NONE and not code.retriable:
                told, user = f"topic {topic!r}: {code.meaning}", self.config.user
                self.fail_topic(topic, error_for(code, told, operation="WRITE", names=[topic], user=user))
        wait_ms = NEVER_MS
        for topic, blocked in [*self.blocked.items()]:
            wait_ms = min(wait_ms, self._let_in(blocked, now_ms))
            if not blocked:
                del self.blocked[topic]
        # Behind the topics, whose records may have been moved here.
        for place, blocked in [*self.aside.items()]:
            wait_ms = min(wait_ms, self._let_in(blocked, now_ms))
            if not blocked:
                del self.aside[place]
        self.accumulator.is_short_of_memory = not self.has_room()
        return wait_ms

    def _let_in(self, blocked: deque[_Blocked], now_ms: int) -> int:
        """Place the records of a line, fail those that waited too long; return the time to the next deadline."""
        while blocked and self.accumulator.has_room():
            delivery, record = blocked[0].delivery, blocked[0].delivery.record
            assert record is not None, "a record that waits has no batch yet"
            aside = self._line_aside(record)
            if aside is not None and aside is not blocked:
                aside.append(blocked.popleft())
                continue
            try:
                partition = self._partition_of(record)
                if partition is not None:
                    self._place(delivery, record, partition, _size(record), now_ms)
            except BaseException as error:  # of a partitioner, which nothing else must suffer from
                wrapped = error if isinstance(error, Exception) else ValueError(f"the partitioner raised {error!r}")
                self._fail(self._unblocked(blocked), wrapped)
                continue
            if partition is None:
                break
            self._unblocked(blocked)
        while blocked and blocked[0].deadline_ms <= now_ms:
            late = self._unblocked(blocked)
            self._fail(late, self._why_blocked(late.record))
        return blocked[0].deadline_ms - now_ms if blocked else NEVER_MS

    def _line_aside(self, record: NewRecord) -> deque[_Blocked] | None:
        """The line of the record's partition, if its topic does not have it, or others still wait there."""
        if record.partition is None:
            return None
        place = (record.topic, record.partition)
        view = self.view.topics.get(record.topic)
        if place not in self.aside and view is not None and 0 < len(view.partitions) <= record.partition:
            self.aside[place] = deque()
        return self.aside.get(place)

    def _unblocked(self, blocked: deque[_Blocked]) -> Delivery:
        """Take the first one out; its memory is no longer counted here."""
        first = blocked.popleft()
        self.waiting_bytes -= first.size_in_bytes
        return first.delivery

    def _why_blocked(self, record: NewRecord | None) -> Exception:
        assert record is not None, "a record that waits has no batch yet"
        limit = self.config.max_block_ms
        view = self.view.topics.get(record.topic)
        if self.trouble and view is None:
            text = f"no broker could be asked about topic {record.topic!r} within max_block_ms {limit}: {self.trouble}"
            return NoMetadataError(text)
        if view is None or not view.partitions:
            return NoMetadataError(f"topic {record.topic!r} did not turn up in the cluster within max_block_ms {limit}")
        if record.partition is not None and record.partition >= len(view.partitions):
            return self.no_such_partition(record.topic, record.partition)
        return BufferExhaustedError(
            f"no room in buffer_memory {self.config.buffer_memory} within max_block_ms {limit}; send more slowly, "
            "or wait for deliveries"
        )

    def no_such_partition(self, topic: str, partition: int) -> NoMetadataError:
        """Why a record for this partition cannot be sent."""
        view = self.view.topics.get(topic)
        has = count(0 if view is None else len(view.partitions), "partition")
        limit = self.config.max_block_ms
        return NoMetadataError(
            f"partition {partition} of {topic!r} did not turn up within max_block_ms {limit}; the topic has {has}"
        )

    def too_large(self, size: int) -> Exception:
        """Why a record whose key and value have this size together cannot be sent."""
        size += RECORD_OVERHEAD_BYTES
        limit, name = self.config.max_request_size, "max_request_size"
        if size <= limit:
            limit, name = self.config.buffer_memory, "buffer_memory"
        return RecordTooLargeError(f"the record takes {size} bytes, more than {name} {limit} allows")

    def _place(self, delivery: Delivery, record: NewRecord, partition: int, size: int, now_ms: int) -> bool:
        sticky = self.sticky.get(record.topic)
        if sticky is not None:
            sticky.sent(partition, STICKY_OVERHEAD_BYTES + size)
        return self.accumulator.append(delivery, record, partition, now_ms)

    def _partition_of(self, record: NewRecord) -> int | None:
        """The record's partition; None while the topic, or that partition of it, is not known."""
        view = self.view.topics.get(record.topic)
        partitions = 0 if view is None else len(view.partitions)
        if not partitions:
            return None
        if record.partition is not None:
            return record.partition if record.partition < partitions else None
        if self.config.partitioner is not None:
            chosen = self.config.partitioner(record.topic, record.key, record.value, partitions)
            if chosen is None:
                return self.sticky_partition(record.topic, partitions)
            if not hasattr(chosen, "__index__"):
                raise TypeError(f"a partitioner returns a whole number, or None for any partition, not {chosen!r}")
            if not 0 <= chosen < partitions:
                has = count(partitions, "partition")
                raise ValueError(f"the partitioner chose {chosen} for {record.topic}, which has {has}")
            return int(chosen)
        if record.key is not None and not self.config.ignore_keys:
            return partition_for_key(record.key, partitions)
        return self.sticky_partition(record.topic, partitions)

    def sticky_partition(self, topic: str, partitions: int) -> int:
        """The partition of the next record without a key."""
        sticky = self.sticky.get(topic)
        if sticky is None:
            sticky = self.sticky[topic] = StickyPartitioner(self.config.batch_size, self._draw)
        version = self.view.version
        current = sticky.current(version)
        if current >= 0:
            return current
        available = [p for p in range(partitions) if self.view.leader(topic, p) is not None] or list(range(partitions))
        if self.config.rack:
            available = [p for p in available if self._rack_of(topic, p) == self.config.rack] or available
        sizes = (lambda p: self._queue_size(topic, p)) if self.config.adaptive else None
        return sticky.switch(available, sizes, version)

    def _rack_of(self, topic: str, partition: int) -> str | None:
        leader = self.view.leader(topic, partition)
        return None if leader is None else leader.rack

    def _queue_size(self, topic: str, partition: int) -> int:
        queue = self.accumulator.queues.get((topic, partition))
        return 0 if queue is None else len(queue.waiting)


def _size(record: NewRecord) -> int:
    key, value = record.key, record.value
    return (len(key) if key else 0) + (len(value) if value else 0)
