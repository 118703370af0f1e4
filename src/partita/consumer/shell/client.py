"""The consumer for asyncio: its calls that wait are coroutines over the core.

The I/O happens in a thread of its own, so a callback or handler that blocks the application's loop costs no heartbeat.
The blocking face runs these same coroutines. (Kafka: Consumer, ClassicKafkaConsumer; consumer.md 2.)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from partita.consumer.errors import ApiTimeoutError, NoOffsetForPartitionError
from partita.consumer.records import ConsumerRecord, ConsumerRecords, K, V
from partita.consumer.shell import arguments
from partita.consumer.shell.calls import LOOP_POLL_S, Config, ConsumerCalls, checked, is_own
from partita.consumer.shell.waiting import AsyncWaiter
from partita.errors import InvalidTopicError, error_for
from partita.lazy import later
from partita.offsets import committable
from partita.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    import pyarrow as pa

    from partita.consumer import arrow as as_arrow
    from partita.consumer.arrow import Decode
    from partita.consumer.deserializers import Given
    from partita.consumer.group import commits
    from partita.consumer.shell import closing, subscribing
    from partita.consumer.shell import driver as consumer_driver
    from partita.consumer.shell.arguments import Partitions
    from partita.now import Clock
    from partita.offsets.committable import Committable
    from partita.offsets.topic_partition import OffsetAndMetadata, OffsetAndTimestamp, TopicPartition
    from partita.option_types import ConsumerOptions
    from partita.protocol.metadata_view import TopicView
else:
    as_arrow = later("partita.consumer.arrow")
    closing = later("partita.consumer.shell.closing")
    commits = later("partita.consumer.group.commits")
    consumer_driver = later("partita.consumer.shell.driver")
    subscribing = later("partita.consumer.shell.subscribing")

_LEGAL_ERRORS = (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE)


class AsyncConsumer(ConsumerCalls[K, V]):
    """The calls of `Consumer` for asyncio: those that wait are coroutines. `async with AsyncConsumer(...) as consumer`.

    Options and time-outs are as in `Consumer`. Tasks of one loop may share it; of the calls that exclude each other
    (poll, unsubscribe, close) only one may run at a time.
    """

    def __init__(
        self,
        config: Config = None,
        /,
        *,
        key_deserializer: Given[K] = None,
        value_deserializer: Given[V] = None,
        clock: Clock | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> None:
        values = checked(config, options, key_deserializer, value_deserializer)
        self._start(consumer_driver.ConsumerDriver(values, AsyncWaiter(), strict=False, clock=clock))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close. If an exception leaves the block, no automatic commit covers the records of the last poll."""
        if kind is not None:
            self._delivery.take_back()
        await self.close()

    async def unsubscribe(self) -> None:
        """End the subscription or assignment; a group member leaves its group. Commits nothing."""
        with self._driver.owned(exclusive=True):
            await closing.leave_group(self._driver, subscribing.UNSUBSCRIBED)

    async def poll(self, timeout: float = 0.0, *, max_records: int | None = None) -> ConsumerRecords[K, V]:
        """Records, as soon as there are some; empty at the timeout, or when only positions moved."""
        if max_records is not None and arguments.whole_number(max_records, "max_records") == 0:
            await self._delivery.poll(timeout, None)
            return ConsumerRecords()
        limit = max_records or self._driver.config.max_poll_records
        return await self._delivery.poll_records(timeout, limit)

    async def consume(self, num_messages: int, timeout: float) -> ConsumerRecords[K, V]:
        """Exactly so many records, or those that came within `timeout` seconds."""
        arguments.whole_number(num_messages, "num_messages")
        delivery, driver = self._delivery, self._driver
        deadline_ms = driver.deadline_ms(timeout)
        # Until all are there they are in hand, as a loop's records are: no commit covers what is not given out yet.
        while delivery.in_hand.count_deliverable() < num_messages:
            left_ms = deadline_ms - driver.mono_ms()
            await delivery.poll(max(0, left_ms) / 1000, delivery.take_in_hand)
            if left_ms <= 0:
                break
        return await self.poll(max_records=num_messages)

    async def poll_arrow(
        self,
        timeout: float = 0.0,
        *,
        key: Decode = "bytes",
        value: Decode = "bytes",
        headers: bool = True,
        binary_view: bool = False,
        timestamp_unit: str = "ms",
        json_schema: Any = None,
    ) -> pa.RecordBatch | None:
        """Everything fetched as one Arrow RecordBatch, of a stable schema; None at the timeout."""
        decode = as_arrow.DecodeAs(key, value, binary_view, headers, timestamp_unit, json_schema)
        return await self._delivery.poll_arrow(timeout, decode)

    def __aiter__(self) -> AsyncIterator[ConsumerRecord[K, V]]:
        """Records one by one, as a loop over a `Consumer` gives them."""
        if is_own(self, "__anext__", _NEXT):
            self._delivery.in_hand.begin_loop()
            return self
        return self._loop(None)

    def until_end(self) -> AsyncIterator[ConsumerRecord[K, V]]:
        """The records up to the ends of the assigned partitions, one by one as a loop over the consumer gives them."""
        return self._loop(self._goal().is_over)

    async def _loop(self, is_over: Callable[[], bool | None] | None) -> AsyncIterator[ConsumerRecord[K, V]]:
        in_hand = self._delivery.in_hand
        in_hand.begin_loop()
        while not self._driver.is_closed:
            record = in_hand.next()
            if record is not None:
                yield record
                for following in in_hand.burst():
                    yield following
                continue
            if is_over is not None:
                with self._driver.io.lock:
                    if is_over():
                        return
            await self._refill(is_over)

    async def _refill(self, is_over: Callable[[], bool | None] | None = None) -> None:
        if not is_own(self, "poll", _POLL):
            await self._delivery.refill(is_over)
        elif self._delivery.in_hand.has_deliverable:
            await self.poll(0.0, max_records=0)
        else:
            self._fill(await self.poll(LOOP_POLL_S))

    async def __anext__(self) -> ConsumerRecord[K, V]:
        """Pass the record before and wait for the next one: `record = await anext(consumer)`."""
        while not self._driver.is_closed:
            record = self._delivery.in_hand.next()
            if record is not None:
                return record
            await self._refill()
        raise StopAsyncIteration

    async def commit(self, offsets: Committable | None = None, *, timeout: float | None = None) -> None:
        """Commit these offsets (the next ones to read), or all positions. Returns when the group has them."""
        driver = self._driver
        wanted = committable.offsets(offsets)
        with driver.owned():
            self._driver.need_group("commit")
            deadline_ms = driver.deadline_ms(timeout)
            with driver.io.lock:
                self._delivery.in_hand.pass_committed(wanted)
                operation = self._core.commits.commit(commits.Kind.SYNC, wanted)
            started_ms = driver.mono_ms()
            try:
                await driver.result(operation, deadline_ms, "the commit", self._core.commits.cancel)
            finally:
                driver.metrics.took("commit-sync", driver.mono_ms() - started_ms)
            if not operation.value:  # nothing was sent behind which the earlier commits would have been answered
                begun = self._core.commits.begun
                await driver.until(lambda: not self._core.commits.has_async_before(begun), deadline_ms)
            await driver.dispatch()

    async def committed(
        self, partitions: Partitions, *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's committed offsets of these partitions."""
        with self._driver.owned():
            self._driver.need_group("committed")
            deadline_ms = self._driver.deadline_ms(timeout)
            wanted = arguments.partitions(partitions, "committed")
            if not wanted:
                return {}
            started_ms = self._driver.mono_ms()
            with self._driver.io.lock:
                operation = self._core.committed.ask(wanted)
            found: dict[TopicPartition, OffsetAndMetadata | None] = await self._driver.result(
                operation, deadline_ms, "fetching committed offsets", self._core.committed.cancel
            )
            self._driver.metrics.took("committed", self._driver.mono_ms() - started_ms)
            return found

    async def seek_to_committed(
        self, partitions: Partitions = (), *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Go back to the group's committed offsets for these partitions (none given: all); return them."""
        wanted = arguments.partitions(partitions, "seek_to_committed") or list(self.assignment())
        with self._driver.io.lock:
            for tp in wanted:
                self._core.subscription.state(tp)
        found = await self.committed(wanted, timeout=timeout)
        missing = [tp for tp, at in found.items() if at is None]
        policy = self._driver.config.reset
        if missing and policy is None:
            raise NoOffsetForPartitionError(missing)
        for tp, at in found.items():
            if at is not None:
                self.seek(tp, at)
        if missing and policy is not None:
            self._reset(missing, policy, "seek_to_committed")
        return found

    async def position(self, partition: tuple[str, int], *, timeout: float | None = None) -> int:
        """The next offset to be handed out; waits until it is known and valid."""
        driver, tp = self._driver, committable.partition(partition, "position")
        with driver.owned():
            deadline_ms = driver.deadline_ms(timeout)
            while True:
                with driver.io.lock:
                    self._core.positions.ask_for(tp)
                    offset = self._core.subscription.state(tp).next_offset
                    if offset is not None:
                        return offset
                    seen = driver.io.activity
                    driver.step()
                    error = self._core.validation.errors.pop(0) if self._core.validation.errors else None
                    error = error or self._core.positions.error()
                if error is not None:
                    raise self._driver.named(error)
                driver.check()
                left_ms = deadline_ms - driver.mono_ms()
                if left_ms <= 0:
                    with driver.io.lock:
                        absence = self._core.metadata.absence_of(tp)
                    raise absence or ApiTimeoutError(f"the position of {tp} is not known in time")
                await driver.waiter.wait(driver.io, seen, left_ms / 1000)

    async def offsets_for_times(
        self, timestamps: Mapping[tuple[str, int], int], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """For each partition the first offset whose timestamp is at least this one, in ms; None if there is none."""
        wanted = committable.by_partition(timestamps, "offsets_for_times", "timestamps in ms")
        for timestamp in wanted.values():
            arguments.whole_number(timestamp, "a timestamp in ms (beginning_offsets and end_offsets give the ends)")
        return await self._look_up(wanted, timeout)

    async def beginning_offsets(
        self, partitions: Partitions, *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first kept offset of each partition, assigned or not."""
        found = await self._look_up(dict.fromkeys(arguments.partitions(partitions, "beginning_offsets"), -2), timeout)
        return {tp: at.offset for tp, at in found.items() if at is not None}

    async def end_offsets(self, partitions: Partitions, *, timeout: float | None = None) -> dict[TopicPartition, int]:
        """The high watermark of each partition; under read_committed the last stable offset."""
        found = await self._look_up(dict.fromkeys(arguments.partitions(partitions, "end_offsets"), -1), timeout)
        ends = {tp: at.offset for tp, at in found.items() if at is not None}
        with self._driver.io.lock:
            for tp, offset in ends.items():
                self._core.learn_end(tp, offset)
        return ends

    async def _look_up(
        self, targets: dict[TopicPartition, int], timeout: float | None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        with self._driver.owned():
            deadline_ms = self._driver.deadline_ms(timeout)
            with self._driver.io.lock:
                operation = self._core.lookups.ask(targets)
            found: dict[TopicPartition, OffsetAndTimestamp | None] = await self._driver.result(
                operation, deadline_ms, "looking up offsets", self._core.lookups.cancel
            )
            return {tp: found[tp] for tp in targets if tp in found}

    async def partitions_for(self, topic: str, *, timeout: float | None = None) -> list[int]:
        """The topic's partition numbers; empty if there is no such topic."""
        with self._driver.owned():
            with self._driver.io.lock:
                known = self._core.metadata.view.topics.get(topic)
            if known is None or known.error_code:
                known = (await self._topics(frozenset({topic}), timeout)).get(topic)
            if known is None:
                return []
            if known.error_code not in _LEGAL_ERRORS:
                raise error_for(known.error_code, topic)
            return [p.partition for p in known.partitions]

    async def list_topics(self, *, timeout: float | None = None) -> dict[str, TopicView]:
        """Every topic this client may see."""
        with self._driver.owned():
            return await self._topics(None, timeout)

    async def _topics(self, names: frozenset[str] | None, timeout: float | None) -> dict[str, TopicView]:
        deadline_ms = self._driver.deadline_ms(timeout)
        with self._driver.io.lock:
            operation = self._core.metadata.look_up(names)
        found: dict[str, TopicView] = await self._driver.result(
            operation, deadline_ms, "asking for topics", self._core.metadata.cancel
        )
        for topic in found.values():
            if names is not None and topic.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION:
                raise InvalidTopicError(topic.name)
        return found

    async def close(
        self, timeout: float = 30.0, *, membership: Literal["default", "leave_group", "remain_in_group"] = "default"
    ) -> None:
        """Commit if auto-commit is on, leave the group and close, within the timeout. A second call has no effect."""
        await closing.close_consumer(self._driver, self._delivery, timeout, membership)


_NEXT, _POLL = AsyncConsumer.__anext__, AsyncConsumer.poll
