"""The share consumer with blocking calls, over the coroutines of the asyncio face."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Never, Self, Unpack

from partita.consumer.records import K, V
from partita.consumer.shell.sharing.calls import Config, ShareCalls, checked, driver_of, not_while_pooled
from partita.consumer.shell.sharing.client import LOOP_POLL_S, AsyncShareConsumer
from partita.consumer.shell.sharing.records import ShareRecord, ShareRecords
from partita.consumer.shell.waiting import BlockingWaiter, run_blocking
from partita.errors import KafkaError
from partita.lazy import later
from partita.offsets.topic_partition import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

    from partita.consumer.arrow import Decode
    from partita.consumer.deserializers import Given
    from partita.consumer.sharing.core import ShareCore
    from partita.consumer.shell.client_driver import ClientDriver
    from partita.consumer.shell.sharing import workers as pools
    from partita.consumer.shell.sharing.delivery import ShareDelivery
    from partita.now import Clock
    from partita.option_types import ShareOptions
else:
    pools = later("partita.consumer.shell.sharing.workers")


class ShareConsumer(ShareCalls[K, V]):
    """Takes records as a member of a share group, each for a time; calls block. `AsyncShareConsumer` is for asyncio.

    Options are keyword arguments in Kafka's names with underscores, or a dict in Kafka's own spelling:
    `ShareConsumer(bootstrap_servers="localhost:9092", group_id="jobs")`. Timeouts are in seconds. One thread at a time
    may use it; `wakeup` and the acknowledgements of a record may be called from others. `with` closes it: what was not
    acknowledged is released and delivered again.
    """

    def __init__(
        self,
        config: Config = None,
        /,
        *,
        key_deserializer: Given[K] = None,
        value_deserializer: Given[V] = None,
        clock: Clock | None = None,
        **options: Unpack[ShareOptions],
    ) -> None:
        values = checked(config, options, key_deserializer, value_deserializer)
        self._start(driver_of(values, BlockingWaiter(), random.uniform, strict=True, clock=clock))

    def _start(self, driver: ClientDriver[ShareCore], delivery: ShareDelivery | None = None) -> None:
        super()._start(driver, delivery)
        self._calls = AsyncShareConsumer[K, V]._over(driver, self._delivery)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def poll(self, timeout: float = 0.0, *, max_records: int | None = None) -> ShareRecords[K, V]:
        """Records, as soon as there are some; empty at the timeout.

        In implicit mode this accepts the records of the last poll; in explicit mode each of them has to be acknowledged
        before. At most `max_records`, else max_poll_records. Records that were renewed come first. Callbacks run in
        here. Raises IllegalStateError before subscribe and for records not acknowledged, WakeupError, the errors of the
        cluster, RecordDeserializationError (see poison_policy) and CorruptRecordError.
        """
        return run_blocking(self._calls.poll(timeout, max_records=max_records))

    def __iter__(self) -> Iterator[ShareRecord[K, V]]:
        """Records one by one. A record is accepted once the next one is asked for; in explicit mode say so before.

        Locks are renewed meanwhile, that of the record in the body and those of records that wait, as long as the body
        takes less than max_poll_interval_ms. A loop that is left in any way accepts nothing: break and an exception
        look alike from inside, so the record in hand is released when the consumer is closed, and given again. Accept
        it by itself (explicit mode) where a loop is to end after its last record. The loop ends when the consumer is
        closed.
        """
        not_while_pooled(self._delivery)
        while not self._driver.is_closed:
            for record in run_blocking(self._delivery.poll_for_loop(LOOP_POLL_S)):
                try:
                    yield record
                finally:
                    record._hold.is_in_loop = False

    def __aiter__(self) -> Never:
        """Explain the mistake of `async for` over this face."""
        raise TypeError("`async for` needs an AsyncShareConsumer: `async with AsyncShareConsumer(...) as consumer:`")

    def commit_sync(self, *, timeout: float | None = None) -> dict[TopicPartition, KafkaError | None]:
        """Send what was acknowledged, and return what became of it: for each partition the error, or None.

        In implicit mode it accepts the records of the last poll. Empty if there was nothing to send. An error means
        that the records of that partition may be given again. Raises ApiTimeoutError after `timeout` seconds
        (default_api_timeout_ms).
        """
        return run_blocking(self._calls.commit_sync(timeout=timeout))

    def poll_arrow(
        self,
        timeout: float = 0.0,
        *,
        key: Decode = "bytes",
        value: Decode = "bytes",
        headers: bool = True,
        timestamp_unit: str = "ms",
        json_schema: Any = None,
    ) -> pa.RecordBatch | None:
        """The records of one poll as an Arrow RecordBatch, with their delivery_count; None at the timeout.

        Otherwise as `poll`: `acknowledge(batch, "accept")` takes the batch or a part of it. `key` and `value` are left
        as bytes or become str or json. Raises RecordDeserializationError for the first record that is no str or json;
        all records come again then. Needs `pip install 'partita[arrow]'`.
        """
        return run_blocking(
            self._calls.poll_arrow(
                timeout, key=key, value=value, headers=headers, timestamp_unit=timestamp_unit, json_schema=json_schema
            )
        )

    def work(
        self,
        handler: Callable[[ShareRecord[K, V]], Any],
        *,
        workers: int = 8,
        time_limit: float | None = None,
        rejected: tuple[type[Exception], ...] | type[Exception] = (),
    ) -> None:
        """Call `handler` for each record, in so many threads, until `wakeup()`; then finish the records in work.

        A record is accepted when its handler returns, released when it raises, rejected when it raises one of
        `rejected`; with a dead_letter_topic it is durable there before it is rejected, and so is a record that fails at
        delivery dead_letter_deliveries. The lock is renewed meanwhile, for `time_limit` seconds at most; after that the
        record is released. No more records are taken than workers are free. Works in both modes.
        """
        terms = pools.Terms.of(workers, time_limit, rejected)
        run_blocking(pools.ThreadPool(self._driver, self._delivery, terms, handler).run())

    def dead_letter(self, record: ShareRecord[Any, Any], reason: str) -> None:
        """Have the record durable in the dead-letter topic, then reject it (explicit mode).

        Raises DeadLetterError when the topic does not take it; then the record is held still. Sent twice if the
        consumer dies between the two.
        """
        run_blocking(self._calls.dead_letter(record, reason))

    def unsubscribe(self) -> None:
        """Leave the group. Records that were handed out may still be acknowledged."""
        run_blocking(self._calls.unsubscribe())

    def close(self, timeout: float = 30.0) -> None:
        """Send what was acknowledged, release the rest, leave the group. A second call has no effect.

        Nothing is accepted that was not: in implicit mode the records of the last poll are delivered again.
        """
        run_blocking(self._calls.close(timeout))
