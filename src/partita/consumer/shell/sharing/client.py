"""The share consumer for asyncio: its calls that wait are coroutines over the core. The blocking face runs the same."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, Self, Unpack

from partita.consumer.records import K, V
from partita.consumer.shell import arguments
from partita.consumer.shell.sharing import closing
from partita.consumer.shell.sharing.calls import Config, ShareCalls, checked, driver_of, not_while_pooled
from partita.consumer.shell.sharing.records import ShareRecord, ShareRecords
from partita.consumer.shell.waiting import AsyncWaiter
from partita.errors import KafkaError
from partita.lazy import later
from partita.offsets.topic_partition import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

    from partita.consumer import arrow as as_arrow
    from partita.consumer.arrow import Decode
    from partita.consumer.deserializers import Given
    from partita.consumer.shell.sharing import workers as pools
    from partita.now import Clock
    from partita.option_types import ShareOptions
else:
    as_arrow = later("partita.consumer.arrow")
    pools = later("partita.consumer.shell.sharing.workers")

LOOP_POLL_S = 1.0


class AsyncShareConsumer(ShareCalls[K, V]):
    """The calls of `ShareConsumer` for asyncio: those that wait are coroutines."""

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
        self._start(driver_of(values, AsyncWaiter(), random.uniform, strict=False, clock=clock))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def poll(self, timeout: float = 0.0, *, max_records: int | None = None) -> ShareRecords[K, V]:
        """Records, as soon as there are some; empty at the timeout."""
        not_while_pooled(self._delivery)
        most = self._driver.config.max_poll_records
        if max_records is not None:
            most = max(1, arguments.whole_number(max_records, "max_records"))
        return await self._delivery.poll(timeout, most)

    def __aiter__(self) -> AsyncIterator[ShareRecord[K, V]]:
        """Records one by one, as a loop over a `ShareConsumer` gives them."""
        return self._loop()

    async def _loop(self) -> AsyncIterator[ShareRecord[K, V]]:
        not_while_pooled(self._delivery)
        while not self._driver.is_closed:
            for record in await self._delivery.poll_for_loop(LOOP_POLL_S):
                try:
                    yield record
                finally:
                    record._hold.is_in_loop = False

    async def commit_sync(self, *, timeout: float | None = None) -> dict[TopicPartition, KafkaError | None]:
        """Send what was acknowledged, and return what became of it."""
        driver = self._driver
        deadline_ms = driver.deadline_ms(timeout)
        with driver.owned(exclusive=True):
            with driver.io.lock:
                commit = self._core.commit()
                driver.step()
            found: dict[TopicPartition, KafkaError | None] = await driver.result(
                commit, deadline_ms, "the commit of acknowledgements"
            )
            await driver.dispatch()
            return found

    async def poll_arrow(
        self,
        timeout: float = 0.0,
        *,
        key: Decode = "bytes",
        value: Decode = "bytes",
        headers: bool = True,
        timestamp_unit: str = "ms",
        json_schema: Any = None,
    ) -> pa.RecordBatch | None:
        """The records of one poll as an Arrow RecordBatch; None at the timeout."""
        not_while_pooled(self._delivery)
        decode = as_arrow.DecodeAs(key, value, False, headers, timestamp_unit, json_schema)
        return await self._delivery.poll_arrow(timeout, self._driver.config.max_poll_records, decode)

    async def work(
        self,
        handler: Callable[[ShareRecord[K, V]], Awaitable[Any]],
        *,
        workers: int = 8,
        time_limit: float | None = None,
        rejected: tuple[type[Exception], ...] | type[Exception] = (),
    ) -> None:
        """Call `handler` for each record, in so many tasks, until `wakeup()`; cancelled, it cancels the handlers."""
        terms = pools.Terms.of(workers, time_limit, rejected)
        await pools.TaskPool(self._driver, self._delivery, terms, handler).run()

    async def dead_letter(self, record: ShareRecord[Any, Any], reason: str) -> None:
        """Have the record durable in the dead-letter topic, then reject it."""
        with self._driver.owned():
            self._acknowledging.need_explicit("a record as a dead letter")
            await self._acknowledging.bury(self._held(record), reason)

    async def unsubscribe(self) -> None:
        """Leave the group. Records that were handed out may still be acknowledged."""
        await closing.unsubscribe(self._driver)

    async def close(self, timeout: float = 30.0) -> None:
        """Send what was acknowledged, release the rest, leave the group. A second call has no effect."""
        await closing.close_share_consumer(self._driver, self._acknowledging, timeout)
