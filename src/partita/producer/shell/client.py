"""The producer people use: `Producer` blocks, `async with Producer(...)` gives an AsyncProducer.

    with Producer(bootstrap_servers="localhost:9092") as producer:
        producer.send("flights", b"value", key=b"N12345")

`send` is the same in both and returns at once with a future: `.result()` waits for it, `await` does in asyncio. Leaving
the block sends what is left.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, Unpack

from partita.net.loop_thread import LoopThread
from partita.producer.batch import Delivery, NewRecord, RecordMetadata
from partita.producer.config import ProducerConfig
from partita.producer.errors import ProducerClosedError
from partita.producer.serializing import GivenHeaders, to_bytes, to_headers
from partita.producer.shell.driver import ProducerDriver

if TYPE_CHECKING:
    from partita.producer.option_types import ProducerOptions

CLOSE_TIMEOUT_SECONDS = 30.0

__all__ = ["AsyncProducer", "DeliveryFuture", "Producer", "RecordMetadata"]


class DeliveryFuture(Delivery):
    """The outcome of one `send`: RecordMetadata, or what went wrong. Awaitable, and waitable from any thread."""

    __slots__ = ("_driver",)

    def __init__(self, record: NewRecord, driver: ProducerDriver) -> None:
        Delivery.__init__(self, record)
        self._driver = driver

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Where the record is. Blocks; raises the delivery's error, or TimeoutError after `timeout` seconds."""
        self._wait(timeout)
        failure = self.failure()
        if failure is not None:
            raise failure
        return self.metadata()

    def exception(self, timeout: float | None = None) -> Exception | None:
        """The delivery's error, or None. Blocks as `result` does."""
        self._wait(timeout)
        return self.failure()

    def add_done_callback(self, call: Callable[[DeliveryFuture], object]) -> None:
        """Have `call(future)` made on the producer's loop when done; at once if it is."""
        with self._driver.changed:
            if not self.done():
                self.callbacks.append(lambda: call(self))
                return
        call(self)

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        if not self.done():
            loop = asyncio.get_running_loop()
            arrived = loop.create_future()

            def wake() -> None:
                if not arrived.done():
                    arrived.set_result(None)

            self.add_done_callback(lambda _: loop.call_soon_threadsafe(wake))
            yield from arrived
        return self.result(0)

    def _wait(self, timeout: float | None) -> None:
        if self.done():
            return
        if self._driver.is_own_thread():
            raise RuntimeError("result() would block the loop that delivers the record; use `await` here")
        with self._driver.changed:
            if not self._driver.changed.wait_for(self.done, timeout):
                raise TimeoutError(f"the record is not delivered after {timeout} s")


class AsyncProducer:
    """The asyncio face, and all there is to say about sending. `async with AsyncProducer(...)` or `Producer(...)`."""

    def __init__(self, config: Mapping[str, Any] | None = None, /, **options: Unpack[ProducerOptions]) -> None:
        self.config = ProducerConfig.of(config, **options)
        self._driver = ProducerDriver(self.config)
        self._key_serializer = self.config.values["key_serializer"]
        self._value_serializer = self.config.values["value_serializer"]
        self._interceptors = self.config.values["interceptor_classes"]

    async def __aenter__(self) -> AsyncProducer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> AsyncProducer:
        """Belong to the running loop; `async with` does this."""
        self._driver.start()
        return self

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: GivenHeaders | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> DeliveryFuture:
        """Add a record to a batch; the future tells where it went.

        Without `partition` the key's hash decides, without a key the load does. `timestamp` is in ms, now by default.
        Never waits: while the buffer is full, or the topic not known yet, records queue up for at most max.block.ms
        (see `room`). Raises RecordTooLargeError and ProducerClosedError.
        """
        record = self._record(topic, value, key, headers, partition, timestamp)
        delivery = DeliveryFuture(record, self._driver)
        self._driver.add(delivery)
        if self._interceptors:
            delivery.add_done_callback(self._tell_interceptors)
        return delivery

    def has_room(self) -> bool:
        """False while the buffer is full."""
        return self._driver.core.has_room()

    def wait_for_room(self) -> None:
        """As `room`, for callers on other threads than the loop's. Raises BufferExhaustedError after max.block.ms."""
        self._driver.wait_for_room()

    async def room(self) -> None:
        """Wait while the buffer is full; `await` this between sends when records come faster than they can go."""
        await self._driver.room()

    async def flush(self) -> None:
        """Send everything now and wait until all of it is delivered or has failed. Raises nothing: ask the futures."""
        await self._driver.flush()

    async def close(self, timeout: float | None = CLOSE_TIMEOUT_SECONDS) -> None:
        """Flush for at most `timeout` seconds, fail the rest, disconnect. May be called again."""
        await self._driver.close(timeout)

    async def partitions_for(self, topic: str) -> list[int]:
        """The partition numbers of a topic; it is created if the broker creates topics by itself, else empty."""
        topics = await self._driver.cluster.topics([topic], create=True)
        return [p.partition for p in topics[topic].partitions] if topic in topics else []

    def _record(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: GivenHeaders | None,
        partition: int | None,
        timestamp: int | None,
    ) -> NewRecord:
        if not isinstance(topic, str) or not topic:
            raise ValueError(f"topic must be a name, not {topic!r}")
        if partition is not None and partition < 0:
            raise ValueError(f"partition must be 0 or more, not {partition}")
        if timestamp is not None and timestamp < 0:
            raise ValueError(f"timestamp must be 0 or more, in ms, not {timestamp}")
        record = NewRecord(
            topic,
            None if key is None else to_bytes(key, self._key_serializer, "key"),
            to_bytes(value, self._value_serializer, "value"),
            to_headers(headers) if headers else (),
            time.time_ns() // 1_000_000 if timestamp is None else timestamp,
            partition,
        )
        for interceptor in self._interceptors:
            record = interceptor.on_send(record)
        return record

    def _tell_interceptors(self, future: DeliveryFuture) -> None:
        failure = future.failure()
        metadata = None if failure is not None else future.metadata()
        for interceptor in self._interceptors:
            interceptor.on_acknowledgement(metadata, failure)


class Producer:
    """Sends records to topics. Options are Kafka's, with underscores; `config` takes a dict in Kafka's own spelling.

    Calls block; `async with Producer(...) as producer` is an AsyncProducer. The loop behind the blocking calls runs in
    a thread of its own. Threads may share a producer.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, /, **options: Unpack[ProducerOptions]) -> None:
        self._producer = AsyncProducer(config, **options)
        self._lock = threading.Lock()
        self._thread: LoopThread | None = None
        self._is_closed = False

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> AsyncProducer:
        return await self._producer.__aenter__()

    async def __aexit__(self, *exc: object) -> None:
        await self._producer.__aexit__(*exc)

    @property
    def config(self) -> ProducerConfig:
        """The options, checked; `config.values` has them all by name."""
        return self._producer.config

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: GivenHeaders | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> DeliveryFuture:
        """As `AsyncProducer.send`, but waits while the buffer is full, at most max.block.ms."""
        if self._thread is None:
            self._loop_thread()
        producer = self._producer
        if not producer.has_room():
            producer.wait_for_room()
        return producer.send(topic, value, key, headers, partition, timestamp)

    def flush(self, timeout: float | None = None) -> None:
        """Send everything now and wait until all of it is delivered or has failed. TimeoutError after `timeout` s."""
        self._loop_thread().run(self._producer.flush(), timeout)

    def partitions_for(self, topic: str) -> list[int]:
        """The partitions of a topic; it is created if the broker creates topics by itself."""
        return self._loop_thread().run(self._producer.partitions_for(topic))

    def close(self, timeout: float | None = CLOSE_TIMEOUT_SECONDS) -> None:
        """Flush for at most `timeout` seconds, fail the rest, disconnect. May be called again."""
        with self._lock:
            self._is_closed = True
            thread, self._thread = self._thread, None
        if thread is not None:
            try:
                thread.run(self._producer.close(timeout))
            finally:
                thread.stop()

    def _loop_thread(self) -> LoopThread:
        with self._lock:
            if self._is_closed:
                raise ProducerClosedError("the producer is closed")
            if self._thread is None:
                thread = LoopThread("partita-producer")
                thread.run(self._producer.start())
                self._thread = thread
            return self._thread
