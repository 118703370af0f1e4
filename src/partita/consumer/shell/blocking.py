"""The consumer with blocking calls, over the coroutines of the asyncio face.

A call that waits runs the coroutine of `AsyncConsumer` with a waiter that blocks, so no rule is written twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, Never, Self, Unpack

from partita.consumer.records import ConsumerRecord, ConsumerRecords, K, V
from partita.consumer.shell.calls import LOOP_POLL_S, Config, ConsumerCalls, checked, is_own
from partita.consumer.shell.client import AsyncConsumer
from partita.consumer.shell.waiting import AsyncWaiter, BlockingWaiter, run_blocking
from partita.lazy import later

if TYPE_CHECKING:
    import pyarrow as pa

    from partita.consumer.arrow import Decode
    from partita.consumer.deserializers import Given
    from partita.consumer.shell import driver as consumer_driver
    from partita.consumer.shell.arguments import Partitions
    from partita.consumer.shell.delivery import Delivery
    from partita.consumer.shell.driver import ConsumerDriver
    from partita.now import Clock
    from partita.offsets.committable import Committable
    from partita.offsets.topic_partition import OffsetAndMetadata, OffsetAndTimestamp, TopicPartition
    from partita.option_types import ConsumerOptions
    from partita.protocol.metadata_view import TopicView
else:
    consumer_driver = later("partita.consumer.shell.driver")


class Consumer(ConsumerCalls[K, V]):
    """Reads topics as a member of a group, or given partitions on its own; calls block. `AsyncConsumer` is for asyncio.

    Options are keyword arguments in Kafka's names with underscores, or a dict in Kafka's own spelling:
    `Consumer(bootstrap_servers="localhost:9092", group_id="g")` or `Consumer({"bootstrap.servers": "localhost:9092"})`.
    Timeouts are in seconds. One thread at a time may use it; only `wakeup` and `done` may be called from others.
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
        self._start(consumer_driver.ConsumerDriver(values, BlockingWaiter(), strict=True, clock=clock))

    def _start(self, driver: ConsumerDriver, delivery: Delivery | None = None) -> None:
        super()._start(driver, delivery)
        self._calls = AsyncConsumer[K, V]._over(driver, self._delivery)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close. If an exception leaves the block, no automatic commit covers the records of the last poll."""
        if kind is not None:
            self._delivery.take_back()
        self.close()

    async def __aenter__(self) -> AsyncConsumer[K, V]:
        self._driver.become(AsyncWaiter(), strict=False)
        return self._calls

    async def __aexit__(self, *exc: Any) -> None:
        await self._calls.__aexit__(*exc)

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        """Records one by one, none of them twice; each counts as passed, for commits, once more is asked for.

        A loop polls when it needs records, when the group rebalances, and about once a second, so that only a single
        record has to be processed within max_poll_interval_ms. It ends when the consumer is closed. A subclass or a
        patch with a `__next__` or `poll` of its own is asked by it.
        """
        if is_own(self, "__next__", _NEXT):
            self._delivery.in_hand.begin_loop()
            return self
        return self._loop(None)

    def until_end(self) -> Iterator[ConsumerRecord[K, V]]:
        """The records up to the ends of the assigned partitions, one by one as a loop over the consumer gives them.

        `for record in consumer.until_end():` stops behind the last record there was when the loop first saw the
        partition's end; partitions that come later are read to their ends, too. It waits for an assignment, and stops
        if the group gave this member no partition. Afterwards every record counts as passed.
        """
        return self._loop(self._goal().is_over)

    def _loop(self, is_over: Callable[[], bool | None] | None) -> Iterator[ConsumerRecord[K, V]]:
        in_hand = self._delivery.in_hand
        in_hand.begin_loop()
        while not self._driver.is_closed:
            record = in_hand.next()
            if record is not None:
                yield record
                yield from in_hand.burst()
                continue
            if is_over is not None:
                with self._driver.io.lock:
                    if is_over():
                        return
            self._refill(is_over)

    def _refill(self, is_over: Callable[[], bool | None] | None = None) -> None:
        if not is_own(self, "poll", _POLL):
            run_blocking(self._delivery.refill(is_over))
        elif self._delivery.in_hand.has_deliverable:
            self.poll(0.0, max_records=0)
        else:
            self._fill(self.poll(LOOP_POLL_S))

    def __aiter__(self) -> Never:
        """Explain the mistake of `async for` over this face."""
        raise TypeError("`async for` needs an AsyncConsumer: `async with AsyncConsumer(...) as consumer:`")

    def __next__(self) -> ConsumerRecord[K, V]:
        """Pass the record before and wait for the next one: `record = next(consumer)`."""
        while not self._driver.is_closed:
            record = self._delivery.in_hand.next()
            if record is not None:
                return record
            self._refill()
        raise StopIteration

    def poll(self, timeout: float = 0.0, *, max_records: int | None = None) -> ConsumerRecords[K, V]:
        """Records, as soon as there are some; empty at the timeout, or when only positions moved.

        `timeout` is in seconds; 0 returns buffered records. At most `max_records`, else max_poll_records; with 0 it
        only takes part in the group. Records that a loop left in hand come first. With enable_partition_eof it also
        returns when the end of a partition is reached, without records if need be: see `ends` of the result. Rebalance
        callbacks run in here. Raises IllegalStateError before subscribe or assign, WakeupError, the errors of rebalance
        callbacks and of the cluster, and RecordDeserializationError (see poison_policy).
        """
        return run_blocking(self._calls.poll(timeout, max_records=max_records))

    def consume(self, num_messages: int, timeout: float) -> ConsumerRecords[K, V]:
        """Exactly so many records, or those that came within `timeout` seconds; otherwise as `poll`.

        max_poll_records is no limit here. If the call is interrupted, the records that had come are given by the next
        poll. (confluent-kafka: consume.)
        """
        return run_blocking(self._calls.consume(num_messages, timeout))

    def poll_arrow(
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
        """Everything fetched as one Arrow RecordBatch, of a stable schema; None at the timeout.

        With enable_partition_eof it also returns None when the end of a partition is reached: ask `at_end`.
        `key` and `value` are left as bytes or become str or json (a struct column, of the fields of `json_schema` if
        that is text such as "carrier string, delay int" or a schema of Arrow). Deserializers, interceptors and
        max_poll_records are not applied. `timeout` is in seconds. Raises as `poll` does; RecordDeserializationError
        names the first record that is no str or json. Needs `pip install 'partita[arrow]'`.
        """
        return run_blocking(
            self._calls.poll_arrow(
                timeout,
                key=key,
                value=value,
                headers=headers,
                binary_view=binary_view,
                timestamp_unit=timestamp_unit,
                json_schema=json_schema,
            )
        )

    def unsubscribe(self) -> None:
        """End the subscription or assignment; a group member leaves its group. Commits nothing."""
        run_blocking(self._calls.unsubscribe())

    def commit(self, offsets: Committable | None = None, *, timeout: float | None = None) -> None:
        """Commit offsets: given, behind a record, behind the records of a poll, or all positions.

        `offsets` is a dict from partition to the next offset to read, a record, or the result of a poll. In a loop over
        the consumer the record in the body is not part of its position yet: `commit(record)` says that it is done.
        Returns when the group has the offsets. Temporary errors are retried for `timeout` seconds
        (default_api_timeout_ms), and the end of a cooperative rebalance is awaited; then ApiTimeoutError is raised.
        Raises CommitFailedError when the group has moved on, RebalanceRunningError when a poll has to come first.
        """
        run_blocking(self._calls.commit(offsets, timeout=timeout))

    def committed(
        self, partitions: Partitions, *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's committed offsets of these partitions; None for no offset. Raises ApiTimeoutError."""
        return run_blocking(self._calls.committed(partitions, timeout=timeout))

    def seek_to_committed(
        self, partitions: Partitions = (), *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Go back to the group's committed offsets for these partitions (none given: all); return them.

        A partition without a committed offset goes where auto_offset_reset says; NoOffsetForPartitionError if that is
        none. Raises IllegalStateError if a partition is not assigned, ApiTimeoutError. (aiokafka: seek_to_committed.)
        """
        return run_blocking(self._calls.seek_to_committed(partitions, timeout=timeout))

    def position(self, partition: tuple[str, int], *, timeout: float | None = None) -> int:
        """The next offset to be handed out; waits until it is known and valid.

        Raises IllegalStateError if the partition is not assigned, NoOffsetForPartitionError, ApiTimeoutError.
        """
        return run_blocking(self._calls.position(partition, timeout=timeout))

    def offsets_for_times(
        self, timestamps: Mapping[tuple[str, int], int], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """For each partition the first offset whose timestamp is at least this one, in ms; None if there is none."""
        return run_blocking(self._calls.offsets_for_times(timestamps, timeout=timeout))

    def beginning_offsets(self, partitions: Partitions, *, timeout: float | None = None) -> dict[TopicPartition, int]:
        """The first kept offset of each partition, assigned or not. Raises ApiTimeoutError."""
        return run_blocking(self._calls.beginning_offsets(partitions, timeout=timeout))

    def end_offsets(self, partitions: Partitions, *, timeout: float | None = None) -> dict[TopicPartition, int]:
        """The high watermark of each partition; under read_committed the last stable offset. Raises ApiTimeoutError."""
        return run_blocking(self._calls.end_offsets(partitions, timeout=timeout))

    def partitions_for(self, topic: str, *, timeout: float | None = None) -> list[int]:
        """The topic's partition numbers; empty if there is no such topic."""
        return run_blocking(self._calls.partitions_for(topic, timeout=timeout))

    def list_topics(self, *, timeout: float | None = None) -> dict[str, TopicView]:
        """Every topic this client may see."""
        return run_blocking(self._calls.list_topics(timeout=timeout))

    def close(
        self, timeout: float = 30.0, *, membership: Literal["default", "leave_group", "remain_in_group"] = "default"
    ) -> None:
        """Commit if auto-commit is on, leave the group and close, within the timeout. A second call has no effect."""
        run_blocking(self._calls.close(timeout, membership=membership))


_NEXT, _POLL = Consumer.__next__, Consumer.poll
