"""The producer people use: `Producer` blocks, `AsyncProducer` is for asyncio.

    with Producer(bootstrap_servers="localhost:9092") as producer:
        producer.send("flights", b"value", key=b"N12345")

`send` is the same in both and returns at once with a future: `.result()` waits for it, `await` does in asyncio. Leaving
the block sends what is left.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, Self, Unpack

from partita.net.at_exit import PRODUCERS, at_exit
from partita.net.faces import OneFace, check_closing, check_seconds, not_pickled
from partita.net.loop_thread import LoopThread
from partita.offsets.committable import PARTITION_MAX, Committable
from partita.offsets.topic_partition import GroupMetadata
from partita.producer.batch import NewRecord, RecordMetadata
from partita.producer.columns import columns_of_table
from partita.producer.config import ProducerConfig
from partita.producer.errors import ProducerClosedError, UndeliveredError
from partita.producer.serializing import (
    TIMESTAMP_MAX,
    GivenHeaders,
    Headers,
    check_number,
    check_topic,
    serializer,
    to_bytes,
    to_headers,
)
from partita.producer.shell.driver import DRIVERS, NOT_DELIVERED, ProducerDriver, call_safely
from partita.producer.shell.filling import Many, check_many, fill_many, fill_rows, know
from partita.producer.shell.outcomes import DeliveryFuture, SentRecords
from partita.producer.shell.transaction_blocks import AsyncTransactionBlock, TransactionBlock
from partita.producer.transactions.calls import State
from partita.producer.transactions.core import Transactions
from partita.protocol.primitives import Buffer
from partita.references import resolve_options
from partita.wording import Note

if TYPE_CHECKING:
    import pyarrow as pa

    from partita.option_types import ProducerOptions

CLOSE_TIMEOUT_SECONDS = 30.0
WITHOUT_BROKER_SECONDS = 3.0
"""Time that `close` keeps trying while no broker can be reached."""
EXIT_SECONDS = 10.0
"""Time that the end of the interpreter waits for records of unclosed producers."""
NOT_CLOSED = "a producer was not closed; use `with`, or close()"
_LOG = logging.getLogger("partita.producer")
_CLOSING: set[asyncio.Task[None]] = set()
"""The ends of producers that were collected."""

__all__ = ["AsyncProducer", "DeliveryFuture", "Producer", "RecordMetadata", "SentRecords"]


class ProducerCalls:
    """The calls of a producer that never wait: both faces derive from them."""

    __reduce__ = not_pickled
    _driver: ProducerDriver

    @property
    def config(self) -> ProducerConfig:
        """The options, checked; `config.values` has them all by name."""
        return self._driver.core.config

    @property
    def transaction_state(self) -> State | None:
        """State of a producer with transactional_id; None without one."""
        transactions = self._driver.core.transactions
        return None if transactions is None else transactions.state

    def begin_transaction(self) -> None:
        """Open a transaction; records are sent inside one only. Raises TransactionMisuseError."""
        self._driver.calls.begin()

    def purge(self, *, in_queue: bool = True, in_flight: bool = True) -> int:
        """Fail every record that is not delivered yet with PurgedError; return how many. Does not wait.

        `in_queue=False` spares waiting records, `in_flight=False` those under way: such a record may be in the log all
        the same. `close` does not count purged records. A transaction can only be aborted afterwards; what it has under
        way is not purged.
        """
        return self._driver.purge(in_queue=in_queue, in_flight=in_flight)

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Log in as this user at new connections and when a login is renewed (PLAIN, SCRAM). From any thread."""
        self.config.values["security"].set_login(username, password)

    def on_note(self, heard: Callable[[Note], object] | None) -> None:
        """Call this with every Note, on the producer's loop: brokers that are unreachable, go, return or throttle."""
        self._driver.on_note = heard

    def metrics(self) -> dict[str, float]:
        """Every metric by Kafka's name, such as `record-send-total`; those of a topic have it in braces."""
        return self._driver.metrics()

    def metrics_text(self) -> str:
        """The metrics in Prometheus' text format."""
        return self._driver.metrics_text()


class AsyncProducer(ProducerCalls):
    """Sends records to topics, in asyncio: `async with AsyncProducer(...) as producer`. `Producer` blocks."""

    def __init__(self, config: Mapping[str, Any] | None = None, /, **options: Unpack[ProducerOptions]) -> None:
        self._driver = ProducerDriver(ProducerConfig.of(resolve_options(config), **resolve_options(options)))
        self._thread: LoopThread | None = None
        """The thread of the loop, if it is not the application's."""
        values = self.config.values
        self._key_serializer = serializer(values["key_serializer"], "key_serializer")
        self._value_serializer = serializer(values["value_serializer"], "value_serializer")
        self._interceptors = values["interceptor_classes"]
        is_plain = self._key_serializer is None and self._value_serializer is None and not self._interceptors
        self._is_plain = is_plain
        self._add_plain = self._driver.direct(DeliveryFuture) if is_plain else _not_plain
        """As `send`, for records of key and value alone; None for a record that only `send` can take."""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            await self.close()
        except UndeliveredError as error:
            if kind is None:
                raise
            _LOG.error("%s", error, extra=NOT_DELIVERED)

    def __del__(self) -> None:
        if hasattr(self, "_thread"):
            _close_behind(self._driver, self._thread)

    async def start(self) -> Self:
        """Start on the running loop; `async with` does this."""
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
        """Add a record to a batch; the future gives its place in the log.

        Without `partition` the key's hash decides, without a key the load does. `timestamp` is in ms, now by default.
        This call never blocks: while the buffer is full, or the topic is not known yet, the record waits for at most
        max.block.ms, and so does an await of the future. Raises RecordTooLargeError, ProducerClosedError, and
        BufferExhaustedError when twice buffer.memory is taken: await each send, or `room` between sends.
        """
        if headers is None and partition is None and timestamp is None:
            plain = self._add_plain(topic, value, key)
            if plain is not None:
                return plain
        record = self._record(topic, value, key, headers, partition, timestamp)
        delivery = DeliveryFuture(record, self._driver)
        self._driver.add(delivery)
        if self._interceptors:
            delivery._when_done(lambda: self._tell_interceptors(delivery))
        return delivery

    async def send_many(
        self,
        topic: str,
        values: Iterable[Any],
        keys: Iterable[Any] | None = None,
        *,
        headers: Iterable[GivenHeaders | None] | None = None,
        partition: int | None = None,
        timestamps: Iterable[int] | None = None,
    ) -> SentRecords:
        """Add many records of one topic to batches, several times as fast as one by one; the result has their outcomes.

        Keys, headers and timestamps are as many as the values; the partition is the same for all. Reads only as fast
        as the buffer has room. A record that cannot be sent fails alone. Records of bytes and
        text that come together share batches of up to 256 KiB, even if batch.size is less. Raises NoMetadataError and
        BufferExhaustedError after max.block.ms, with the records before it on their way.
        """
        many = Many(values, keys, headers, partition, timestamps)
        check_many(topic, many)
        sent = SentRecords(self._driver)
        return await self._filled(topic, self._many(topic, many, sent), sent)

    async def send_table(self, topic: str, table: pa.Table | pa.RecordBatch) -> SentRecords:
        """As `send_many`, for the rows of an Arrow table, without Python objects.

        The columns are `value` and, if wanted, `key`, `headers`, `partition` and `timestamp`.

        Keys and values are binary or text, headers lists of key and value, timestamps instants or ms. A row whose
        partition is null goes where its key or the load says. Raises ValueError for other columns, and for producers
        with serializers, interceptors or a partitioner of their own, which would not be asked.
        """
        sent = SentRecords(self._driver)
        return await self._filled(topic, self._table(topic, table, sent), sent)

    async def _filled(self, topic: str, filling: Iterator[None], sent: SentRecords) -> SentRecords:
        self._running()
        await know(self._driver, topic)
        for _ in filling:
            await self._driver.room(topic)
            await asyncio.sleep(0)
        return sent

    def _many(self, topic: str, many: Many, sent: SentRecords) -> Iterator[None]:
        is_plain = self._is_plain and self.config.partitioner is None
        return fill_many(self._driver, topic, many, self.send, sent, is_plain=is_plain)

    def _table(self, topic: str, table: pa.Table | pa.RecordBatch, sent: SentRecords) -> Iterator[None]:
        if not self._is_plain or self.config.partitioner is not None:
            raise ValueError(
                "send_table sends columns as they are, but this producer has serializers, interceptors or a "
                "partitioner of its own; make one without, or use send_many"
            )
        return fill_rows(self._driver, topic, columns_of_table(table), sent)

    async def room(self) -> None:
        """Wait while the buffer is full; `await` this between sends when records come faster than they can go.

        Raises BufferExhaustedError after max.block.ms.
        """
        await self._driver.room()

    async def flush(self) -> None:
        """Send everything now and wait until all of it is delivered or has failed. Raises nothing: ask the futures."""
        await self._driver.flush()

    # Transactions

    def transaction(self) -> AsyncTransactionBlock[Self]:
        """`async with producer.transaction():` begins a transaction, commits at the end, aborts when the block raises.

        A commit that fails with an AbortableTransactionError is aborted, and the error is raised.
        """
        return AsyncTransactionBlock(self)

    async def init_transactions(self) -> None:
        """Take over the transactional id; call it once, before the first transaction.

        An earlier producer with this id is fenced, and its open transaction is aborted. Raises TransactionTimeoutError
        after max.block.ms; then call it again.
        """
        self._running()
        await self._driver.calls.call(Transactions.init)

    async def send_offsets_to_transaction(self, offsets: Committable, group_metadata: GroupMetadata) -> None:
        """Commit a group's offsets with the transaction: a dict, a record, or the result of a poll.

        `group_metadata` is `consumer.group_metadata()`: it keeps out a consumer that was replaced meanwhile, which gets
        an AbortableTransactionError. The consumer must not commit by itself: enable_auto_commit=False.
        """
        self._running()
        await self._driver.calls.send_offsets(offsets, group_metadata)

    async def commit_transaction(self) -> None:
        """Send the remaining records, wait for them, and commit. They become visible to read_committed consumers.

        Raises AbortableTransactionError (call `abort_transaction`), FatalTransactionError (close the producer), and
        TransactionTimeoutError after max.block.ms: the outcome is unknown; call
        `commit_transaction` again to learn it.
        """
        self._running()
        await self._driver.calls.call(Transactions.commit)

    async def abort_transaction(self) -> None:
        """Abort the transaction: unsent records fail with TransactionAbortedError, none becomes visible."""
        self._running()
        await self._driver.calls.call(Transactions.abort)

    def _running(self) -> None:
        if self._driver.loop is None:
            raise RuntimeError("the producer is not started; use `async with AsyncProducer(...)`")

    async def close(
        self,
        timeout: float | None = CLOSE_TIMEOUT_SECONDS,
        *,
        without_broker: float = WITHOUT_BROKER_SECONDS,
    ) -> None:
        """Flush, fail the rest, disconnect. Calling it again has no effect.

        An open transaction is aborted instead, and UndeliveredError says so; if no broker can be reached, the
        cluster aborts it after transaction.timeout.ms.

        Waits at most `timeout` seconds, and at most `without_broker` seconds in a row in which no broker can be
        reached. Raises UndeliveredError for records that were given up, and for those that failed earlier if
        their futures were never read.
        """
        await self._driver.close(timeout, without_broker)

    async def partitions_for(self, topic: str) -> list[int]:
        """The partition numbers of a topic; it is created if the broker creates topics by itself, else empty."""
        check_topic(topic)
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
        check_topic(topic)
        if partition is not None:
            check_number(partition, "partition", "a whole number", PARTITION_MAX)
        if timestamp is not None:
            check_number(timestamp, "timestamp", "a whole number of ms", TIMESTAMP_MAX)
        pairs = to_headers(headers) if headers else ()
        if self._key_serializer is not None or self._value_serializer is not None:
            key, value, pairs = self._serialized(topic, key, value, list(pairs))
        record = NewRecord(
            topic,
            None if key is None else to_bytes(key, "key"),
            to_bytes(value, "value"),
            pairs,
            time.time_ns() // 1_000_000 if timestamp is None else timestamp,
            partition,
        )
        for interceptor in self._interceptors:
            try:
                record = interceptor.on_send(record)
            except Exception:
                _LOG.exception("on_send of %r raised; the record goes on as it was", interceptor)
        return record

    def _serialized(
        self, topic: str, key: Any, value: Any, headers: Headers
    ) -> tuple[Buffer | None, Buffer | None, Sequence[tuple[str, Buffer | None]]]:
        """Key and value by their serializers, which may add headers."""
        if self._key_serializer is not None:
            key = to_bytes(self._key_serializer(topic, headers, key), "key", "returned")
        if self._value_serializer is not None:
            value = to_bytes(self._value_serializer(topic, headers, value), "value", "returned")
        return key, value, tuple(headers)

    def _tell_interceptors(self, future: DeliveryFuture) -> None:
        failure = future.failure()
        metadata = None if failure is not None else future.metadata()
        for interceptor in self._interceptors:
            call_safely(interceptor.on_acknowledgement, metadata, failure)


class Producer(ProducerCalls):
    """Sends records to topics. Options are Kafka's, with underscores; `config` takes a dict in Kafka's own spelling.

    Calls block; their loop runs in a separate thread. `AsyncProducer` is for asyncio. Threads may share a producer.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, /, **options: Unpack[ProducerOptions]) -> None:
        self._producer = AsyncProducer(config, **options)
        self._driver = self._producer._driver
        self._lock = threading.Lock()
        self._thread: LoopThread | None = None
        self._is_closed = False
        self._face = OneFace("Producer")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self.close()
        except UndeliveredError as error:
            if kind is None:
                raise
            _LOG.error("%s", error, extra=NOT_DELIVERED)

    async def __aenter__(self) -> AsyncProducer:
        self._face.enter_async(is_used=self._thread is not None)
        return await self._producer.__aenter__()

    async def __aexit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        await self._producer.__aexit__(kind, *exc)

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: GivenHeaders | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> DeliveryFuture:
        """Add a record to a batch; the future gives its place in the log.

        As `AsyncProducer.send`, but waits while the buffer is full, at most max.block.ms. Callbacks do not wait.
        """
        if self._thread is None:
            self._loop_thread()
        producer = self._producer
        if headers is None and partition is None and timestamp is None:
            plain = producer._add_plain(topic, value, key)
            if plain is not None:
                return plain
        producer._driver.wait_for_room()
        return producer.send(topic, value, key, headers, partition, timestamp)

    def send_many(
        self,
        topic: str,
        values: Iterable[Any],
        keys: Iterable[Any] | None = None,
        *,
        headers: Iterable[GivenHeaders | None] | None = None,
        partition: int | None = None,
        timestamps: Iterable[int] | None = None,
    ) -> SentRecords:
        """Add many records of one topic to batches, several times as fast as one by one.

        As `AsyncProducer.send_many`: waits while the buffer is full, but not for deliveries.
        """
        many = Many(values, keys, headers, partition, timestamps)
        check_many(topic, many)
        sent = SentRecords(self._producer._driver)
        return self._filled(topic, self._producer._many(topic, many, sent), sent)

    def send_table(self, topic: str, table: pa.Table | pa.RecordBatch) -> SentRecords:
        """As `send_many`, for the rows of an Arrow table, without Python objects. See `AsyncProducer.send_table`."""
        sent = SentRecords(self._producer._driver)
        return self._filled(topic, self._producer._table(topic, table, sent), sent)

    def _filled(self, topic: str, filling: Iterator[None], sent: SentRecords) -> SentRecords:
        driver = self._producer._driver
        self._loop_thread().run(know(driver, topic))
        for _ in filling:
            driver.wait_for_room(topic)
        return sent

    def flush(self, timeout: float | None = None) -> None:
        """Send everything now and wait until all of it is delivered or has failed. TimeoutError after `timeout` s."""
        limit = None if timeout is None else check_seconds(timeout)
        self._loop_thread().run(self._producer.flush(), limit)

    # Transactions

    def transaction(self) -> TransactionBlock[Self]:
        """`with producer.transaction():` begins a transaction, commits at the end, aborts when the block raises.

        A commit that fails with an AbortableTransactionError is aborted, and the error is raised.
        """
        return TransactionBlock(self)

    def init_transactions(self) -> None:
        """Take over the transactional id, once, before the first transaction. See `AsyncProducer.init_transactions`."""
        self._loop_thread().run(self._producer.init_transactions())

    def send_offsets_to_transaction(self, offsets: Committable, group_metadata: GroupMetadata) -> None:
        """Commit a group's offsets with the transaction: a dict, a record, or the result of a poll.

        See `AsyncProducer.send_offsets_to_transaction`.
        """
        self._loop_thread().run(self._producer.send_offsets_to_transaction(offsets, group_metadata))

    def commit_transaction(self) -> None:
        """Send the remaining records, wait for them, and commit; for errors see `AsyncProducer.commit_transaction`."""
        self._loop_thread().run(self._producer.commit_transaction())

    def abort_transaction(self) -> None:
        """Abort the transaction: unsent records fail with TransactionAbortedError, none becomes visible."""
        self._loop_thread().run(self._producer.abort_transaction())

    def partitions_for(self, topic: str) -> list[int]:
        """The partitions of a topic; it is created if the broker creates topics by itself."""
        return self._loop_thread().run(self._producer.partitions_for(topic))

    def close(
        self,
        timeout: float | None = CLOSE_TIMEOUT_SECONDS,
        *,
        without_broker: float = WITHOUT_BROKER_SECONDS,
    ) -> None:
        """Flush, fail the rest, disconnect, as `AsyncProducer.close` does. Raises UndeliveredError."""
        self._face.check_blocking()
        check_closing(timeout, without_broker)
        with self._lock:
            self._is_closed = True
            thread, self._thread = self._thread, None
        driver = self._producer._driver
        if thread is None or driver.is_forked:
            return
        if thread.failure is not None:
            driver.complain()
            return
        try:
            thread.run(self._producer.close(timeout, without_broker=without_broker))
        finally:
            thread.stop()

    def _loop_thread(self) -> LoopThread:
        self._face.check_blocking()
        with self._lock:
            if self._is_closed:
                raise ProducerClosedError("the producer is closed")
            if self._thread is None:
                thread = LoopThread("partita-producer")
                thread.on_failure = self._producer._driver.died
                thread.run(self._producer.start())
                self._thread = self._producer._thread = thread
            return self._thread


def _not_plain(topic: str, value: object, key: object) -> DeliveryFuture | None:
    """Takes no record: serializers or interceptors have to see each of them."""
    return None


def _close_behind(driver: ProducerDriver, thread: LoopThread | None) -> None:
    """Deliver the records of a producer that was collected without close, in the background, then release everything.

    Called by a finalizer, which may run in any thread and inside any other code: it takes no lock and does not wait.
    """
    loop = driver.loop
    if loop is None or driver.is_forked or (driver.core.is_closed and thread is None):
        return
    if not driver.core.is_closed:
        warnings.warn(NOT_CLOSED, ResourceWarning, stacklevel=3)
    if not loop.is_closed():
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_begin_last_close, driver, thread)
            return
    driver.complain_of_lost()


def _begin_last_close(driver: ProducerDriver, thread: LoopThread | None) -> None:
    task = asyncio.get_running_loop().create_task(_last_close(driver, thread), name="producer collected")
    _CLOSING.add(task)
    task.add_done_callback(_CLOSING.discard)


async def _last_close(driver: ProducerDriver, thread: LoopThread | None) -> None:
    try:
        await driver.close(CLOSE_TIMEOUT_SECONDS, WITHOUT_BROKER_SECONDS)
    except UndeliveredError as error:
        _LOG.error("%s: %s", NOT_CLOSED, error, extra=NOT_DELIVERED)
    finally:
        if thread is not None:
            thread.stop()


def _flush_at_exit() -> None:
    """Deliver the records of unclosed producers whose loops run, and log how many are lost."""
    until = time.monotonic() + EXIT_SECONDS
    drivers = [driver for driver in DRIVERS if not driver.is_forked]
    closing = [
        asyncio.run_coroutine_threadsafe(driver.close(EXIT_SECONDS, WITHOUT_BROKER_SECONDS), driver.loop)
        for driver in drivers
        if driver.loop is not None and driver.loop.is_running()
    ]
    for future in closing:
        try:
            future.result(max(0.0, until + 1 - time.monotonic()))
        except (Exception, CancelledError) as error:
            _LOG.error("the program ends with a producer that was not closed: %s", error)
    for driver in list(DRIVERS):
        driver.complain_of_lost()


at_exit(PRODUCERS, _flush_at_exit)
