"""The consumer: blocking calls, and through `async with` the asyncio ones, over the same coroutines.

Nothing is written twice: a call here runs the coroutine of `AsyncConsumer` with a waiter that blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, Never, Unpack, overload

from partita.consumer.arrow import Decode
from partita.consumer.config import ConsumerConfig
from partita.consumer.deserializers import AsBytes, AsText, From, given_deserializers
from partita.consumer.reading.partition_ends import ReadToEnd
from partita.consumer.records import ConsumerRecord, ConsumerRecords, K, V
from partita.consumer.shell.arguments import Committable, Partitions
from partita.consumer.shell.client import AsyncConsumer, Config
from partita.consumer.shell.driver import ConsumerDriver
from partita.consumer.shell.waiting import AsyncWaiter, BlockingWaiter, run_blocking
from partita.consumer.topic_partition import OffsetAndMetadata, OffsetAndTimestamp, TopicPartition
from partita.net.loop_thread import not_pickled
from partita.now import Clock
from partita.protocol.metadata_view import TopicView
from partita.references import resolve_options

if TYPE_CHECKING:
    import pyarrow as pa

    from partita.consumer.option_types import ConsumerOptions


class Consumer(Generic[K, V]):
    """`with Consumer(...) as consumer` blocks; `async with Consumer(...) as consumer` is an AsyncConsumer.

    Options are keyword arguments in Kafka's names with underscores, or a dict in Kafka's own spelling:
    `Consumer(bootstrap_servers="localhost:9092", group_id="g")` or `Consumer({"bootstrap.servers": "localhost:9092"})`.
    Timeouts are in seconds. One thread at a time may use it; only `wakeup` and `done` may be called from others.
    """

    __reduce__ = not_pickled

    # fmt: off
    @overload
    def __init__(
        self: Consumer[bytes, bytes], config: Config = None, /, *, key_deserializer: AsBytes = None,
        value_deserializer: AsBytes = None, clock: Clock | None = None, **options: Unpack[ConsumerOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[bytes, str], config: Config = None, /, *, key_deserializer: AsBytes = None,
        value_deserializer: AsText, clock: Clock | None = None, **options: Unpack[ConsumerOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[bytes, V], config: Config = None, /, *, key_deserializer: AsBytes = None,
        value_deserializer: From[V], clock: Clock | None = None, **options: Unpack[ConsumerOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[str, bytes], config: Config = None, /, *, key_deserializer: AsText,
        value_deserializer: AsBytes = None, clock: Clock | None = None, **options: Unpack[ConsumerOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[str, str], config: Config = None, /, *, key_deserializer: AsText,
        value_deserializer: AsText, clock: Clock | None = None, **options: Unpack[ConsumerOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[str, V], config: Config = None, /, *, key_deserializer: AsText,
        value_deserializer: From[V], clock: Clock | None = None, **options: Unpack[ConsumerOptions],
    ) -> None: ...
    @overload
    def __init__(
        self, config: Config = None, /, *, key_deserializer: From[K],
        value_deserializer: From[V], clock: Clock | None = None, **options: Unpack[ConsumerOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[Any, Any], config: Config = None, /, *, key_deserializer: object = None,
        value_deserializer: object = None, clock: Clock | None = None, **options: Unpack[ConsumerOptions],
    ) -> None: ...
    # fmt: on
    def __init__(
        self,
        config: Config = None,
        /,
        *,
        key_deserializer: object = None,
        value_deserializer: object = None,
        clock: Clock | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> None:
        checked = ConsumerConfig.of(
            resolve_options(config),
            **resolve_options(options),
            **given_deserializers(key_deserializer, value_deserializer),
        )
        self._start(ConsumerDriver(checked, BlockingWaiter(), strict=True, clock=clock))

    @classmethod
    def _over(cls, driver: ConsumerDriver) -> Consumer[K, V]:
        """A consumer over a driver made elsewhere (with another clock, or without sockets)."""
        consumer = cls.__new__(cls)
        consumer._start(driver)
        return consumer

    def _start(self, driver: ConsumerDriver) -> None:
        self._driver = driver
        self._calls = calls = AsyncConsumer[K, V]._over(driver)
        self.subscribe = calls.subscribe
        self.assign = calls.assign
        self.assignment = calls.assignment
        self.subscription = calls.subscription
        self.hold = calls.hold
        self.done = calls.done
        self.commit_async = calls.commit_async
        self.seek = calls.seek
        self.seek_to_beginning = calls.seek_to_beginning
        self.seek_to_end = calls.seek_to_end
        self.pause = calls.pause
        self.resume = calls.resume
        self.paused = calls.paused
        self.at_end = calls.at_end
        self.current_lag = calls.current_lag
        self.lag = calls.lag
        self.group_metadata = calls.group_metadata
        self.is_settled = calls.is_settled
        self.enforce_rebalance = calls.enforce_rebalance
        self.wakeup = calls.wakeup
        self.on_note = calls.on_note
        self.stalled = calls.stalled
        self.metrics = calls.metrics
        self.metrics_text = calls.metrics_text

    def __enter__(self) -> Consumer[K, V]:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close. If an exception leaves the block, no automatic commit covers what the last poll gave."""
        if kind is not None:
            self._calls._delivery.take_back()
        self.close()

    async def __aenter__(self) -> AsyncConsumer[K, V]:
        self._driver.become(AsyncWaiter(), strict=False)
        return self._calls

    async def __aexit__(self, *exc: Any) -> None:
        await self._calls.__aexit__(*exc)

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        """Records one by one; each counts as passed, for commits and for a new loop, once the next is asked for.

        A loop polls when it needs records, when the group rebalances, and about once a second, so that only a single
        record has to be processed within max_poll_interval_ms. It ends when the consumer is closed.
        """
        return self._loop(None)

    def until_end(self) -> Iterator[ConsumerRecord[K, V]]:
        """The records up to the ends of the assigned partitions, one by one as a loop over the consumer gives them."""
        core = self._driver.core
        with self._driver.io.lock:
            goal = ReadToEnd(core.ends, core.member, core.subscription)
        return self._loop(goal.is_over)

    def _loop(self, is_over: Callable[[], bool | None] | None) -> Iterator[ConsumerRecord[K, V]]:
        delivery = self._calls._delivery
        in_hand = delivery.in_hand
        in_hand.begin_again()
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
            run_blocking(delivery.refill(is_over))

    def __aiter__(self) -> Never:
        """Say what a program forgot that has `async for` over this face."""
        raise TypeError("`async for` needs `async with Consumer(...) as consumer`")

    def __next__(self) -> ConsumerRecord[K, V]:
        """Pass the record before and wait for the next one: `record = next(consumer)`."""
        try:
            return run_blocking(self._calls.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None

    def poll(self, timeout: float = 0.0, *, max_records: int | None = None) -> ConsumerRecords[K, V]:
        """Records, as soon as there are some; empty at the timeout, or when only positions moved."""
        return run_blocking(self._calls.poll(timeout, max_records=max_records))

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
        """Everything fetched as one Arrow RecordBatch, of a stable schema; None at the timeout."""
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
        """Commit these offsets (the next ones to read), or all positions. Returns when the group has them."""
        run_blocking(self._calls.commit(offsets, timeout=timeout))

    def committed(
        self, partitions: Partitions, *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed for these partitions."""
        return run_blocking(self._calls.committed(partitions, timeout=timeout))

    def position(self, partition: tuple[str, int], *, timeout: float | None = None) -> int:
        """The next offset to be handed out; waits until it is known and valid."""
        return run_blocking(self._calls.position(partition, timeout=timeout))

    def offsets_for_times(
        self, timestamps: Mapping[tuple[str, int], int], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """For each partition the first offset whose timestamp is at least this one, in ms; None if there is none."""
        return run_blocking(self._calls.offsets_for_times(timestamps, timeout=timeout))

    def beginning_offsets(self, partitions: Partitions, *, timeout: float | None = None) -> dict[TopicPartition, int]:
        """The first kept offset of each partition, assigned or not."""
        return run_blocking(self._calls.beginning_offsets(partitions, timeout=timeout))

    def end_offsets(self, partitions: Partitions, *, timeout: float | None = None) -> dict[TopicPartition, int]:
        """The high watermark of each partition; under read_committed the last stable offset."""
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
        """Commit if auto-commit is on, leave the group, close everything, all within the timeout.

        Calling it again has no effect.
        """
        run_blocking(self._calls.close(timeout, membership=membership))


for _name, _call in vars(Consumer).items():  # what a call promises is said in full there
    if not _name.startswith("_") and hasattr(AsyncConsumer, _name):
        _call.__doc__ = getattr(AsyncConsumer, _name).__doc__
