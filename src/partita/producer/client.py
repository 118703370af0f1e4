"""The producer people use: `with Producer(...)` blocks, `async with Producer(...)` awaits; `send` is the same in both.

    with Producer(bootstrap_servers="localhost:9092") as producer:
        producer.send("flights", b"value", key=b"N12345")

`send` returns at once with a future: `.result()` waits for it, `await` does in asyncio. Leaving the block sends what is
left. Must not know rules or connections: those are the core's and the shell's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Mapping
from types import TracebackType
from typing import Any

from partita.net.loop_thread import LoopThread
from partita.producer.batch import Delivery, NewRecord, RecordMetadata
from partita.producer.config import ProducerConfig
from partita.producer.serializing import GivenHeaders, to_bytes, to_headers
from partita.producer.shell import ProducerShell

CLOSE_TIMEOUT_SECONDS = 30.0

__all__ = ["BlockingProducer", "DeliveryFuture", "Producer", "RecordMetadata"]


class DeliveryFuture(Delivery):
    """The outcome of one `send`: RecordMetadata, or what went wrong. Awaitable, and waitable from any thread."""

    __slots__ = ("_shell",)

    def __init__(self, record: NewRecord, shell: ProducerShell) -> None:
        super().__init__(record)
        self._shell = shell

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
        with self._shell.changed:
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
        if self._shell.is_own_thread():
            raise RuntimeError("result() would block the loop that delivers the record; use `await` here")
        with self._shell.changed:
            if not self._shell.changed.wait_for(self.done, timeout):
                raise TimeoutError(f"the record is not delivered after {timeout} s")


class Producer:
    """Sends records to topics. Options are Kafka's, with underscores; `config` takes a dict in Kafka's own spelling."""

    def __init__(self, config: Mapping[str, Any] | None = None, /, **options: Any) -> None:
        self.config = ProducerConfig.of(config, **options)
        self._shell = ProducerShell(self.config)
        self._key_serializer = self.config.values["key_serializer"]
        self._value_serializer = self.config.values["value_serializer"]
        self._interceptors = self.config.values["interceptor_classes"]
        self._blocking: BlockingProducer | None = None

    # The blocking face

    def __enter__(self) -> BlockingProducer:
        self._blocking = BlockingProducer(self)
        return self._blocking

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._blocking is not None:
            self._blocking.close()

    # The asyncio face

    async def __aenter__(self) -> Producer:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self) -> Producer:
        """Belong to the running loop; `async with` does this."""
        self._shell.start()
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
        delivery = DeliveryFuture(record, self._shell)
        self._shell.add(delivery)
        if self._interceptors:
            delivery.add_done_callback(self._tell_interceptors)
        return delivery

    async def room(self) -> None:
        """Wait while the buffer is full; `await` this between sends when records come faster than they can go."""
        await self._shell.room()

    async def flush(self) -> None:
        """Send everything now and wait until all of it is delivered or has failed."""
        await self._shell.flush()

    async def close(self, timeout: float | None = CLOSE_TIMEOUT_SECONDS) -> None:
        """Flush for at most `timeout` seconds, fail the rest, disconnect. May be called again."""
        await self._shell.close(timeout)

    async def partitions_for(self, topic: str) -> list[int]:
        """The partitions of a topic; it is created if the broker creates topics by itself."""
        topics = await self._shell.cluster.topics([topic], create=True)
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
            to_bytes(key, self._key_serializer, "key"),
            to_bytes(value, self._value_serializer, "value"),
            to_headers(headers),
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


class BlockingProducer:
    """The blocking face: a `Producer` whose loop runs in a thread of its own. May be shared by threads."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._thread: LoopThread | None = LoopThread("partita-producer")
        self._thread.run(producer.start())

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: GivenHeaders | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> DeliveryFuture:
        """As `Producer.send`, but waits while the buffer is full, at most max.block.ms."""
        self._producer._shell.wait_for_room()
        return self._producer.send(topic, value, key, headers, partition, timestamp)

    def flush(self, timeout: float | None = None) -> None:
        """Send everything now and wait until all of it is delivered or has failed. TimeoutError after `timeout` s."""
        self._loop_thread().run(self._producer.flush(), timeout)

    def partitions_for(self, topic: str) -> list[int]:
        """The partitions of a topic; it is created if the broker creates topics by itself."""
        return self._loop_thread().run(self._producer.partitions_for(topic))

    def close(self, timeout: float | None = CLOSE_TIMEOUT_SECONDS) -> None:
        """Flush for at most `timeout` seconds, fail the rest, disconnect. May be called again."""
        thread, self._thread = self._thread, None
        if thread is not None:
            try:
                thread.run(self._producer.close(timeout))
            finally:
                thread.stop()

    def __enter__(self) -> BlockingProducer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _loop_thread(self) -> LoopThread:
        if self._thread is None:
            raise RuntimeError("the producer is closed")
        return self._thread
