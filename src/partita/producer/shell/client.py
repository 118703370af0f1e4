"""The producer people use: `Producer` blocks, `async with Producer(...)` gives an AsyncProducer.

    with Producer(bootstrap_servers="localhost:9092") as producer:
        producer.send("flights", b"value", key=b"N12345")

`send` is the same in both and returns at once with a future: `.result()` waits for it, `await` does in asyncio. Leaving
the block sends what is left.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import threading
import time
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from partita.consumer.shell import arguments
from partita.consumer.shell.arguments import Committable
from partita.consumer.topic_partition import GroupMetadata
from partita.net.loop_thread import LoopThread, OneFace, not_pickled
from partita.plurals import count
from partita.producer.batch import NewRecord, RecordMetadata
from partita.producer.config import ProducerConfig
from partita.producer.delivery import Delivery
from partita.producer.errors import ProducerClosedError, UndeliveredError
from partita.producer.serializing import GivenHeaders, Headers, check_number, serializer, to_bytes, to_headers
from partita.producer.shell.driver import DRIVERS, NOT_DELIVERED, ProducerDriver, call_safely
from partita.producer.shell.transaction_blocks import AsyncTransactionBlock, TransactionBlock
from partita.producer.transactions.calls import Member, Offsets, TxnOffset
from partita.producer.transactions.core import Transactions
from partita.producer.transactions.states import State
from partita.protocol.primitives import Buffer
from partita.references import resolve_options

if TYPE_CHECKING:
    from partita.producer.option_types import ProducerOptions

CLOSE_TIMEOUT_SECONDS = 30.0
WITHOUT_BROKER_SECONDS = 3.0
"""How long `close` goes on trying while no broker can be reached."""
EXIT_SECONDS = 10.0
"""How long the end of the interpreter waits for the records of producers that were not closed."""
NOT_CLOSED = "a producer was not closed; use `with`, or close()"
_LOG = logging.getLogger("partita.producer")
_OPEN: dict[AsyncProducer, LoopThread] = {}
"""Producers with a thread of their own that are not closed; the end of the interpreter flushes them."""

__all__ = ["AsyncProducer", "DeliveryFuture", "Producer", "RecordMetadata"]


class DeliveryFuture(Delivery):
    """The outcome of one `send`: RecordMetadata, or what went wrong. Awaitable, and waitable from any thread.

    `done()` does not wait: it is true once the record was delivered or has failed.
    """

    __slots__ = ()
    owner: ProducerDriver

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Where the record is. Blocks; raises the delivery's error, or TimeoutError after `timeout` seconds."""
        self._wait(timeout)
        self._hear()
        failure = self.failure()
        if failure is not None:
            raise failure
        return self.metadata()

    def exception(self, timeout: float | None = None) -> Exception | None:
        """The delivery's error, or None. Blocks as `result` does."""
        self._wait(timeout)
        self._hear()
        return self.failure()

    def add_done_callback(self, call: Callable[[DeliveryFuture], object]) -> None:
        """Call `call(future)` on the producer's loop when done; at once if it is.

        What it raises is logged. After the call a failure counts as noticed.
        """

        def tell() -> None:
            self._hear()
            call(self)

        self._when_done(tell)

    def _when_done(self, call: Callable[[], object]) -> None:
        with self.owner.changed:
            if not self.done():
                self.callbacks.append(call)
                return
        call_safely(call)

    def _hear(self) -> None:
        """Somebody looks at the outcome: `close` need not tell of it."""
        if not self.is_heard and self.failure() is not None:
            with self.owner.changed:
                self.is_heard = True
                self.owner.core.unheard_count -= 1

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        if not self.done():
            loop = asyncio.get_running_loop()
            arrived = loop.create_future()

            def wake() -> None:
                if not arrived.done():
                    arrived.set_result(None)

            self._when_done(lambda: loop.call_soon_threadsafe(wake))
            yield from arrived
        return self.result(0)

    def _wait(self, timeout: float | None) -> None:
        if self.done():
            return
        if self.owner.is_own_thread():
            raise RuntimeError("result() would block the loop that delivers the record; use `await` here")
        if self.owner.is_forked:
            raise ProducerClosedError(self.owner.core.closed_because)
        with self.owner.changed:
            if not self.owner.changed.wait_for(self.done, timeout):
                raise TimeoutError(f"the record is not delivered after {timeout} s")


class AsyncProducer:
    """Sends records to topics, in asyncio. `async with AsyncProducer(...)` or `async with Producer(...)`."""

    __reduce__ = not_pickled

    def __init__(self, config: Mapping[str, Any] | None = None, /, **options: Unpack[ProducerOptions]) -> None:
        self.config = ProducerConfig.of(resolve_options(config), **resolve_options(options))
        self._driver = ProducerDriver(self.config)
        self._key_serializer = serializer(self.config.values["key_serializer"], "key_serializer")
        self._value_serializer = serializer(self.config.values["value_serializer"], "value_serializer")
        self._interceptors = self.config.values["interceptor_classes"]
        is_plain = self._key_serializer is None and self._value_serializer is None and not self._interceptors
        self.add_plain = self._driver.direct(DeliveryFuture) if is_plain else _not_plain
        """As `send`, for records of key and value alone; None for a record that only `send` can take."""

    async def __aenter__(self) -> AsyncProducer:
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
        driver = getattr(self, "_driver", None)
        if driver is not None and driver.loop is not None and not driver.core.is_closed:
            warnings.warn(NOT_CLOSED, ResourceWarning, stacklevel=2, source=self)

    async def start(self) -> AsyncProducer:
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
        """Add a record to a batch; the future tells where it went.

        Without `partition` the key's hash decides, without a key the load does. `timestamp` is in ms, now by default.
        This call never blocks: while the buffer is full, or the topic is not known yet, the record waits for at most
        max.block.ms, and so does whoever awaits the future. Raises RecordTooLargeError, ProducerClosedError, and
        BufferExhaustedError when twice buffer.memory is taken: await each send, or `room` between sends.
        """
        if headers is None and partition is None and timestamp is None:
            plain = self.add_plain(topic, value, key)
            if plain is not None:
                return plain
        record = self._record(topic, value, key, headers, partition, timestamp)
        delivery = DeliveryFuture(record, self._driver)
        self._driver.add(delivery)
        if self._interceptors:
            delivery._when_done(lambda: self._tell_interceptors(delivery))
        return delivery

    async def room(self) -> None:
        """Wait while the buffer is full; `await` this between sends when records come faster than they can go.

        Raises BufferExhaustedError after max.block.ms.
        """
        await self._driver.room()

    async def flush(self) -> None:
        """Send everything now and wait until all of it is delivered or has failed. Raises nothing: ask the futures."""
        await self._driver.flush()

    # Transactions

    @property
    def transaction_state(self) -> State:
        """Where a producer with transactional_id stands. Raises TransactionMisuseError for one without."""
        return self._driver.calls.transactions.state

    def transaction(self) -> AsyncTransactionBlock[AsyncProducer]:
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

    def begin(self) -> None:
        """Open a transaction; records are sent inside one only. Raises TransactionMisuseError."""
        self._driver.calls.begin()

    async def send_offsets(self, offsets: Committable, group_metadata: GroupMetadata) -> None:
        """Commit a group's offsets with the transaction: a dict, a record, or what a poll returned.

        `group_metadata` is `consumer.group_metadata()`: it keeps out a consumer that was replaced meanwhile, which gets
        an AbortableTransactionError. The consumer must not commit by itself: enable_auto_commit=False.
        """
        self._running()
        wanted, member = _offsets(offsets), _member(group_metadata)
        await self._driver.calls.call(lambda transactions: transactions.send_offsets(wanted, member))

    async def commit(self) -> None:
        """Send the remaining records, wait for them, and commit. They become visible to read_committed consumers.

        Raises AbortableTransactionError (call `abort`), FatalTransactionError (close the producer), and
        TransactionTimeoutError after max.block.ms: the outcome is unknown; call `commit` again to learn it.
        """
        self._running()
        await self._driver.calls.call(Transactions.commit)

    async def abort(self) -> None:
        """Abort the transaction: records that were not sent fail with TransactionAbortedError, none becomes visible."""
        self._running()
        await self._driver.calls.call(Transactions.abort)

    begin_transaction, commit_transaction, abort_transaction = begin, commit, abort
    send_offsets_to_transaction = send_offsets

    def _running(self) -> None:
        if self._driver.loop is None:
            raise RuntimeError("the producer is not started; use `async with Producer(...)`")

    async def close(
        self,
        timeout: float | None = CLOSE_TIMEOUT_SECONDS,
        *,
        without_broker: float = WITHOUT_BROKER_SECONDS,
    ) -> None:
        """Flush, fail the rest, disconnect. Calling it again has no effect.

        A transaction that is open is aborted instead, and UndeliveredError says so; if no broker can be reached, the
        cluster aborts it after transaction.timeout.ms.

        Waits at most `timeout` seconds, and at most `without_broker` seconds in a row in which no broker can be
        reached. Raises UndeliveredError for records that were given up, and for those that failed earlier if
        nobody looked at their futures.
        """
        await self._driver.close(timeout, without_broker)

    def metrics(self) -> dict[str, float]:
        """Every number by Kafka's name, such as `record-send-total`; those of a topic carry it in braces."""
        return self._driver.metrics()

    def metrics_text(self) -> str:
        """The metrics in Prometheus' text format."""
        return self._driver.metrics_text()

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
        if partition is not None:
            check_number(partition, "partition", "a whole number")
        if timestamp is not None:
            check_number(timestamp, "timestamp", "a whole number of ms")
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


class Producer:
    """Sends records to topics. Options are Kafka's, with underscores; `config` takes a dict in Kafka's own spelling.

    Calls block; `async with Producer(...) as producer` is an AsyncProducer. The loop behind the blocking calls runs in
    a thread of its own. Threads may share a producer.
    """

    __reduce__ = not_pickled

    def __init__(self, config: Mapping[str, Any] | None = None, /, **options: Unpack[ProducerOptions]) -> None:
        self._producer = AsyncProducer(config, **options)
        self._lock = threading.Lock()
        self._thread: LoopThread | None = None
        self._is_closed = False
        self._face = OneFace("Producer")

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self.close()
        except UndeliveredError as error:
            if kind is None:
                raise
            _LOG.error("%s", error, extra=NOT_DELIVERED)

    def __del__(self) -> None:
        if getattr(self, "_thread", None) is not None:
            warnings.warn(NOT_CLOSED, ResourceWarning, stacklevel=2, source=self)

    async def __aenter__(self) -> AsyncProducer:
        self._face.enter_async(is_used=self._thread is not None)
        return await self._producer.__aenter__()

    async def __aexit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        await self._producer.__aexit__(kind, *exc)

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
        if headers is None and partition is None and timestamp is None:
            plain = producer.add_plain(topic, value, key)
            if plain is not None:
                return plain
        producer._driver.wait_for_room()
        return producer.send(topic, value, key, headers, partition, timestamp)

    def flush(self, timeout: float | None = None) -> None:
        """Send everything now and wait until all of it is delivered or has failed. TimeoutError after `timeout` s."""
        if timeout is not None and not isinstance(timeout, int | float):
            raise TypeError(f"a timeout is a number of seconds, not {timeout!r}")
        self._loop_thread().run(self._producer.flush(), timeout)

    # Transactions

    @property
    def transaction_state(self) -> State:
        """As `AsyncProducer.transaction_state`."""
        return self._producer.transaction_state

    def transaction(self) -> TransactionBlock[Producer]:
        """`with producer.transaction():` begins a transaction, commits at the end, aborts when the block raises.

        A commit that fails with an AbortableTransactionError is aborted, and the error is raised.
        """
        return TransactionBlock(self)

    def init_transactions(self) -> None:
        """As `AsyncProducer.init_transactions`."""
        self._loop_thread().run(self._producer.init_transactions())

    def begin(self) -> None:
        """As `AsyncProducer.begin`."""
        self._producer.begin()

    def send_offsets(self, offsets: Committable, group_metadata: GroupMetadata) -> None:
        """As `AsyncProducer.send_offsets`."""
        self._loop_thread().run(self._producer.send_offsets(offsets, group_metadata))

    def commit(self) -> None:
        """As `AsyncProducer.commit`."""
        self._loop_thread().run(self._producer.commit())

    def abort(self) -> None:
        """As `AsyncProducer.abort`."""
        self._loop_thread().run(self._producer.abort())

    begin_transaction, commit_transaction, abort_transaction = begin, commit, abort
    send_offsets_to_transaction = send_offsets

    def partitions_for(self, topic: str) -> list[int]:
        """The partitions of a topic; it is created if the broker creates topics by itself."""
        return self._loop_thread().run(self._producer.partitions_for(topic))

    def close(
        self,
        timeout: float | None = CLOSE_TIMEOUT_SECONDS,
        *,
        without_broker: float = WITHOUT_BROKER_SECONDS,
    ) -> None:
        """As `AsyncProducer.close`. Raises UndeliveredError."""
        self._face.check_blocking()
        with self._lock:
            self._is_closed = True
            thread, self._thread = self._thread, None
        _OPEN.pop(self._producer, None)
        if thread is not None and not self._producer._driver.is_forked:
            try:
                thread.run(self._producer.close(timeout, without_broker=without_broker))
            finally:
                thread.stop()

    def metrics(self) -> dict[str, float]:
        """As `AsyncProducer.metrics`."""
        return self._producer.metrics()

    def metrics_text(self) -> str:
        """As `AsyncProducer.metrics_text`."""
        return self._producer.metrics_text()

    def _loop_thread(self) -> LoopThread:
        self._face.check_blocking()
        with self._lock:
            if self._is_closed:
                raise ProducerClosedError("the producer is closed")
            if self._thread is None:
                thread = LoopThread("partita-producer")
                thread.run(self._producer.start())
                self._thread = _OPEN[self._producer] = thread
            return self._thread


def _not_plain(topic: str, value: object, key: object) -> DeliveryFuture | None:
    """Takes no record: serializers or interceptors have to see each of them."""
    return None


def _offsets(given: Committable) -> Offsets:
    """What is to be committed by partition. Raises TypeError and ValueError."""
    wanted = arguments.offsets(given)
    if wanted is None:
        raise TypeError("send_offsets takes a dict such as {('orders', 0): 42}, a record, or what a poll returned")
    return {tp: TxnOffset(at.offset, at.leader_epoch, at.metadata) for tp, at in wanted.items()}


def _member(given: GroupMetadata) -> Member:
    """Who consumed. Raises TypeError."""
    if not isinstance(given, GroupMetadata):
        raise TypeError(f"send_offsets takes the group's metadata from consumer.group_metadata(), not {given!r}")
    return Member(given.group_id, given.generation_id, given.member_id, given.group_instance_id)


def _flush_at_exit() -> None:
    """Deliver what unclosed producers still hold, and tell how many records are lost."""
    for producer, thread in list(_OPEN.items()):
        if producer._driver.is_forked:
            continue
        try:
            thread.run(producer.close(EXIT_SECONDS), EXIT_SECONDS + 1)
        except (UndeliveredError, TimeoutError) as error:
            _LOG.error("the program ends with a producer that was not closed: %s", error)
    for driver in list(DRIVERS):
        lost = driver.core.count_unfinished()
        if lost:
            _LOG.error("the program ends with a producer that was not closed: lost: %s", count(lost, "record"))


atexit.register(_flush_at_exit)
