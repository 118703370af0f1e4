"""The producer's asyncio driver: sends the core's requests, feeds answers back, wakes it in time.

Records come in from any thread under one lock; everything else happens on the loop that `start` ran on.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import threading
import time
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar, cast
from weakref import WeakSet

from partita.errors import AuthenticationError, KafkaError, error_for
from partita.net.broker_news import WARNINGS
from partita.net.cluster import Cluster
from partita.net.config import ClientConfig
from partita.net.connection import Connection
from partita.net.errors import Disconnected, NoAnswerYet, words_of
from partita.net.faces import check_closing
from partita.net.loop_thread import AFTER_FORK, is_ours
from partita.producer.batch import Failure
from partita.producer.bulk import RowsIn
from partita.producer.config import ProducerConfig
from partita.producer.core import ProducerCore, Sending
from partita.producer.delivery import Delivery
from partita.producer.direct import DirectSend
from partita.producer.errors import BufferExhaustedError, ProducerClosedError, UndeliveredError
from partita.producer.shell.metrics import OWN, ProducerMetrics
from partita.producer.shell.transacting import TransactionCalls
from partita.producer.transactions.calls import Ask, State
from partita.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from partita.wording import Note, count

_TRANSACTION_TIMEOUT_UNUSED_MS = 2_147_483_647
_LOG = logging.getLogger("partita.producer")
NOT_DELIVERED = {"kind": "not_delivered"}
"""Extra fields of log records about lost records, so that code that reports the loss itself can leave them out."""
D = TypeVar("D", bound=Delivery)
DRIVERS: WeakSet[ProducerDriver] = WeakSet()
"""Every producer of this process that is started and not closed."""


class ProducerDriver:
    """One producer on one loop. `changed` is notified whenever deliveries may have come to their end."""

    def __init__(self, config: ProducerConfig) -> None:
        self.config = config
        self._lock = threading.RLock()
        self.changed = threading.Condition(self._lock)
        options = ClientConfig.of(config.values, config.values["client_id"] or "producer-1")
        self.cluster = Cluster(config.values["bootstrap_servers"], options)
        self.cluster.on_trouble = self._reachability_changed
        self.cluster.pool.news.heard = self._note
        self.on_note: Callable[[Note], object] | None = None
        values = config.values
        window_ms, samples = values["metrics_sample_window_ms"], values["metrics_num_samples"]
        pool = self.cluster.pool
        self.measured = ProducerMetrics(self.cluster.config.client_id, window_ms, samples, lambda: pool.open_count)
        pool.metrics = self.measured.network
        self.waiting_threads = 0
        self.is_forked = False
        self.lost: UndeliveredError | None = None
        """The error that `close` raises after `died`."""
        self.core = ProducerCore(config, self.cluster.view, random.randrange)
        self.calls = TransactionCalls(self.core, self.cluster, self.changed, self.wake, self.measured)
        """The calls of transactions."""
        self.loop: asyncio.AbstractEventLoop | None = None
        self.rows_in = RowsIn(self.core, self._lock, time.time_ns, lambda: self._running_loop().time())
        self._thread_id = 0
        self._pump_is_scheduled = False
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._waiting: dict[int, list[Sending]] = {}
        """Requests for nodes that are being connected to, in order."""
        self._connecting: set[asyncio.Task[None]] = set()
        self._wanted: set[str] = set()
        self._asked_at = 0.0
        self._is_reachable = asyncio.Event()
        self._is_unreachable = asyncio.Event()
        self._has_outage = False
        self._register_gauges()

    def _register_gauges(self) -> None:
        core, gauge = self.core, self.measured.gauge
        gauge("buffer-total-bytes", "bytes of records that may wait", lambda: self.config.buffer_memory)
        gauge("buffer-available-bytes", "bytes of that which are free", self._free_bytes)
        gauge("metadata-age", "seconds since metadata was asked for", self._metadata_age)
        gauge("requests-in-flight", "requests that wait for an answer", lambda: sum(core.in_flight.values()))
        gauge("waiting-threads", "threads that wait for room", lambda: self.waiting_threads)
        gauge("records-unfinished", "records neither delivered nor failed", core.count_unfinished, OWN)

    def _free_bytes(self) -> int:
        return max(0, self.config.buffer_memory - self.core.accumulator.used_bytes - self.core.intake.waiting_bytes)

    def _metadata_age(self) -> float:
        return max(0.0, self._running_loop().time() - self._asked_at) if self._asked_at else -1.0

    def start(self) -> None:
        """Belong to the running loop from now on. Nothing is sent before the first record."""
        self.loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self.measured.network.runs_on(self._thread_id)
        DRIVERS.add(self)

    def add(self, delivery: Delivery) -> None:
        """Take a record in, from any thread, without waiting."""
        loop, look = self.loop or self._running_loop(), True
        try:
            with self._lock:
                look = self.core.add(delivery, int(loop.time() * 1000))
        except Exception:
            look = False  # it was refused, and the loop may have ended
            raise
        finally:
            if look and not self._pump_is_scheduled:
                self.wake()

    def direct(self, make: Callable[[None, object], D]) -> Callable[[str, object, object], D | None]:
        """The short way of plain records, from any thread: `DirectSend.add`, which makes deliveries of this class."""
        way = DirectSend(self.core, self._lock, make, self, time.time_ns, self.wake)
        return cast("Callable[[str, object, object], D | None]", way.add)

    def purge(self, *, in_queue: bool, in_flight: bool) -> int:
        """Fail unfinished records, from any thread; callbacks are called on the loop."""
        with self._lock:
            purged = self.core.purge(in_queue=in_queue, in_flight=in_flight)
        if purged:
            self.wake()
        return purged

    def takes(self, topic: str) -> bool:
        """False while the buffer is full, or records of the topic wait to be placed."""
        return self.core.has_room() and topic not in self.core.intake.blocked

    def refuse(self, topic: str, error: Exception) -> Exception:
        """Count a record that cannot be sent, from any thread; return the error."""
        with self._lock:
            return self.core.refuse(topic, error)

    def wait_for_room(self, topic: str = "") -> None:
        """Block until the buffer has room for the topic. Raises BufferExhaustedError after max.block.ms."""
        if self.takes(topic) or self.is_own_thread():  # a callback runs on the loop that makes room
            return
        started = time.monotonic()
        with self._lock:  # Ctrl-C inside of `Condition.__enter__` would leave it taken
            self.waiting_threads += 1
            try:
                found = self.changed.wait_for(
                    lambda: self.takes(topic) or self.core.is_closed, self.config.max_block_ms / 1000
                )
            finally:
                self.waiting_threads -= 1
        self._waited(time.monotonic() - started)
        if not found:
            raise self._exhausted()

    def _waited(self, seconds: float) -> None:
        self.measured.record("bufferpool-wait", seconds * 1e3, self._now_ms())
        self.measured.record("bufferpool-wait-ns", seconds * 1e9, self._now_ms())

    def _exhausted(self) -> BufferExhaustedError:
        self.measured.record("buffer-exhausted", 1, self._now_ms())
        trouble = f"; {self.cluster.trouble}" if self.cluster.trouble is not None else ""
        room, limit_ms = self.config.buffer_memory, self.config.max_block_ms
        return BufferExhaustedError(f"no room in buffer_memory {room} within max_block_ms {limit_ms}{trouble}")

    def forked(self) -> None:
        """Refuse everything in the child of a fork, and say why. The parent's producer is unaffected."""
        self._lock = threading.RLock()
        self.changed = threading.Condition(self._lock)
        self.is_forked = self.core.is_closed = True
        self.core.closed_because = f"this producer was made before the process forked; {AFTER_FORK}"

    def is_own_thread(self) -> bool:
        """True on the thread whose loop delivers the records."""
        return threading.get_ident() == self._thread_id

    def wake(self) -> None:
        """Wake the loop for pending work, from any thread."""
        if not self._pump_is_scheduled:
            loop = self._running_loop()
            try:
                self._pump_is_scheduled = True
                (loop.call_soon if self.is_own_thread() else loop.call_soon_threadsafe)(self._pump)
            except BaseException:  # Ctrl-C may come at any line; two rounds are none too many
                loop.call_soon_threadsafe(self._pump)
                raise

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self.loop is None:
            raise RuntimeError("the producer is not started; use `with Producer(...)` or `async with Producer(...)`")
        return self.loop

    # On the loop

    def _pump(self) -> None:
        """One round: let the core decide, carry it out, come back in time."""
        self._pump_is_scheduled = False
        try:
            callbacks, failures = self._round()
        except Exception as error:
            _LOG.exception("the producer met an error that it cannot go on from")
            self.died(error)
            self.cluster.close()
        else:
            self._tell(callbacks, failures)

    def _round(self) -> tuple[list[Callable[[], object]], list[Failure]]:
        loop = self._running_loop()
        self.measured.network.count("select", loop.time() * 1000)
        with self.changed:
            poll = self.core.poll(int(loop.time() * 1000))
            callbacks, failures = self._finished()
        for sending in poll.sendings:
            self._send(sending)
        if poll.topics_wanted:
            self._wanted |= poll.topics_wanted
            self._run("metadata", self._refresh)
        elif (loop.time() - self._asked_at) * 1000 > self.cluster.config.metadata_max_age_ms and self._asked_at:
            self._run("metadata", self._refresh)
        if poll.wants_producer_id:
            self._run("producer id", self._ask_producer_id)
        if poll.ask is not None:
            self._carry_out(poll.ask)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_later(poll.wait_ms / 1000, self.wake)
        return callbacks, failures

    def _finished(self) -> tuple[list[Callable[[], object]], list[Failure]]:
        """Callbacks of delivered and failed records; waiting threads are woken. The lock is held."""
        self.changed.notify_all()
        return self.core.take_callbacks(), self.core.take_failures()

    def _tell(self, callbacks: Iterable[Callable[[], object]], failures: Iterable[Failure]) -> None:
        """Log and count failures, then call the waiting callbacks; one that raises stops no other."""
        by_reason: dict[tuple[str, str], int] = {}
        for failure in failures:
            reason = (failure.topic, str(failure.error))
            by_reason[reason] = by_reason.get(reason, 0) + failure.records_count
            self.measured.counted("record-error", failure.records_count, failure.topic, self._now_ms())
        for (topic, text), records_count in by_reason.items():
            told = f"{count(records_count, 'record')} for topic {topic} not delivered: {text}"
            _LOG.error("%s", told, extra=NOT_DELIVERED)
        ending: BaseException | None = None
        for call in callbacks:
            try:
                call_safely(call)
            except (SystemExit, KeyboardInterrupt) as error:
                ending = error
        if ending is not None:
            raise ending

    def _reachability_changed(self, trouble: Disconnected | None) -> None:
        self.core.intake.trouble = "" if trouble is None else words_of(trouble)
        if trouble is None:
            self._has_outage = False
            self._is_unreachable.clear()
            self._is_reachable.set()
            self._note("broker_again", "a broker answers again", {})
            return
        if not isinstance(trouble, NoAnswerYet):  # `close` gives a slow broker the time that it has always had
            self._is_reachable.clear()
            self._is_unreachable.set()
        if not self._has_outage:
            self._has_outage = True
            text = f"no broker can be reached; records wait until one answers. Tried: {words_of(trouble)}"
            self._note("no_broker", text, {"tried": words_of(trouble)})

    def _note(self, kind: str, text: str, fields: dict[str, Any]) -> None:
        _LOG.log(logging.WARNING if kind in WARNINGS else logging.INFO, "%s", text, extra={"kind": kind})
        if self.on_note is not None:
            call_safely(self.on_note, Note(kind, text, fields))

    def _send(self, sending: Sending) -> None:
        """Post the request, behind those that wait for this node's connection: a partition's batches keep order."""
        node_id = sending.node_id
        connection = self.cluster.pool.open_connection(node_id)
        if node_id in self._waiting:
            self._waiting[node_id].append(sending)
        elif connection is not None:
            self._post(connection, sending)
        else:
            self._waiting[node_id] = [sending]
            task = self._running_loop().create_task(self._connect_and_send(node_id), name="producer connect")
            self._connecting.add(task)
            task.add_done_callback(self._connecting.discard)

    def _carry_out(self, ask: Ask) -> None:
        task = self._running_loop().create_task(self.calls.carry_out(ask), name=f"producer {ask.api}")
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connect_and_send(self, node_id: int) -> None:
        try:
            connection = await self.cluster.connection(node_id)
            if self.config.acks == 0:  # where nothing is answered, a refusal has ended the connection before
                await self.cluster.refresh(create=True)
        except KafkaError as error:
            for sending in self._waiting.pop(node_id):
                self._failed(sending, error)
            return
        for sending in self._waiting.pop(node_id):
            self._post(connection, sending)

    def _post(self, connection: Connection, sending: Sending) -> None:
        try:
            request = self.core.request_for(sending)
            version = connection.version_for(request, sending.max_version)
            self.measured.sent(sending, request, self._now_ms())
            if self.config.acks == 0:
                connection.tell(request, version)
                self._answered(sending, None)
                return
            answer = connection.post(request, version)
        except KafkaError as error:
            self._failed(sending, error)
            return
        answer.add_done_callback(lambda done: self._arrived(sending, done))

    def metrics(self) -> dict[str, float]:
        """Every number by Kafka's name, as of now."""
        return self.measured.snapshot(self._metrics_ms())

    def metrics_text(self) -> str:
        """The same in Prometheus' text format."""
        return self.measured.prometheus(self._metrics_ms())

    def _metrics_ms(self) -> int:
        return self._now_ms() if self.loop is not None else 0

    def _arrived(self, sending: Sending, done: asyncio.Future[Any]) -> None:
        if done.cancelled():
            self._failed(sending, Disconnected("the request was given up"))
            return
        failure = done.exception()
        if failure is None:
            self._answered(sending, done.result())
        else:
            self._failed(sending, failure if isinstance(failure, KafkaError) else Disconnected(str(failure)))

    def _answered(self, sending: Sending, answer: Any) -> None:
        if answer is not None:
            self.measured.record("produce-throttle", answer.throttle_time_ms, self._now_ms())
        with self.changed:
            split = self.core.split_count
            self.core.on_response(sending, answer, self._now_ms())
            split = self.core.split_count - split
        if split:
            self.measured.record("batch-split", split, self._now_ms())
        self.wake()

    def _failed(self, sending: Sending, error: KafkaError) -> None:
        with self.changed:
            self.core.on_failure(sending, error, self._now_ms())
        self.wake()

    def _now_ms(self) -> int:
        return int(self._running_loop().time() * 1000)

    def _run(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run `work` as a task, unless one of this name runs already."""
        if name in self._tasks:
            return
        task = self._running_loop().create_task(work(), name=f"producer {name}")
        self._tasks[name] = task
        task.add_done_callback(lambda _: self._tasks.pop(name, None))

    async def _refresh(self) -> None:
        wanted, self._wanted = self._wanted, set()
        loop = self._running_loop()
        pause = self._asked_at + self.config.retry_backoff_ms / 1000 - loop.time()
        if pause > 0:
            await asyncio.sleep(pause)
        try:
            await self.cluster.refresh(wanted, create=True)
        except AuthenticationError as error:
            with self.changed:
                self.core.abandon(error)
        except KafkaError:
            self._wanted |= wanted
        self._asked_at = loop.time()
        self._running_loop().call_soon(self.wake)

    async def _ask_producer_id(self) -> None:
        async def once() -> InitProducerIdResponse:
            request = InitProducerIdRequest(
                transactional_id=None, transaction_timeout_ms=_TRANSACTION_TIMEOUT_UNUSED_MS
            )
            answer = await self.cluster.request(None, request)
            if answer.error_code:
                told, user = "asking for a producer id", self.config.user
                raise error_for(answer.error_code, told, operation="IDEMPOTENT_WRITE", user=user)
            return answer

        try:
            answer = await self.cluster.retry(once)
        except KafkaError as error:
            if not error.retriable:
                with self.changed:
                    self.core.abandon(error)
        else:
            with self.changed:
                self.core.on_producer_id(answer.producer_id, answer.producer_epoch)
        self._running_loop().call_soon(self.wake)

    async def room(self, topic: str = "") -> None:
        """Wait for room in the buffer for the topic. Raises BufferExhaustedError after max.block.ms."""
        started = time.monotonic()
        try:
            async with asyncio.timeout(self.config.max_block_ms / 1000):
                while not self.takes(topic) and not self.core.is_closed:
                    await self._one_done()
        except TimeoutError:
            raise self._exhausted() from None
        finally:
            self._waited(time.monotonic() - started)

    async def _one_done(self) -> None:
        one_done = asyncio.Event()
        with self.changed:
            watched = self.core.watch_unfinished(one_done.set)
        if watched:
            await one_done.wait()

    async def flush(self) -> None:
        """Send everything added so far without lingering, and wait until all of it is done."""
        started = time.monotonic()
        try:
            await self._flush()
        finally:
            self.measured.record("flush", (time.monotonic() - started) * 1e9, self._now_ms())

    async def _flush(self) -> None:
        all_done = self._running_loop().create_future()
        left = 0

        def one_is_done() -> None:
            nonlocal left
            left -= 1
            if not left and not all_done.done():
                all_done.set_result(None)

        with self.changed:
            left = self.core.watch_unfinished(one_is_done)
            if not left:
                return
            self.core.accumulator.flushes += 1
        self.wake()
        try:
            await all_done
        finally:
            with self.changed:
                self.core.accumulator.flushes -= 1

    async def close(self, timeout: float | None, without_broker: float) -> None:
        """Flush for at most `timeout` seconds, and `without_broker` while none can be reached; fail what is left.

        A transaction that is open is aborted instead. Raises UndeliveredError. Calling it again has no effect.
        """
        check_closing(timeout, without_broker)
        if self.loop is None or self.core.is_closed:
            self.complain()
            return
        transactions = self.core.transactions
        was_open = transactions is not None and transactions.state is State.IN_TRANSACTION
        last_work = self.flush() if transactions is None else self._leave_transaction()
        flushing = self.loop.create_task(last_work, name="producer flush")
        patience = self.loop.create_task(self._without_broker_for(without_broker), name="producer patience")
        try:
            await asyncio.wait({flushing, patience}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            flushing.cancel()
            patience.cancel()
            undelivered = self._shut_down()
        if was_open:
            text = (
                "a transaction was open when the producer was closed; it is aborted, and nothing of it will be visible"
            )
            undelivered = UndeliveredError(text)
        if undelivered is not None:
            raise undelivered

    def complain(self) -> None:
        """Raise UndeliveredError, once, if records were lost when the producer died."""
        lost, self.lost = self.lost, None
        if lost is not None:
            raise lost

    def complain_of_lost(self) -> None:
        """Log how many records are lost with a producer that nothing can close any more."""
        lost = self.core.count_unfinished()
        if lost:
            _LOG.error(
                "a producer was not closed before its event loop or the program ended; lost: %s", count(lost, "record")
            )

    async def _leave_transaction(self) -> None:
        """Abort an open transaction, or wait for the call under way."""
        with self.changed:
            call = None if self.core.transactions is None else self.core.transactions.leave()
        if call is not None:
            await self.calls.ended(call)

    async def _without_broker_for(self, seconds: float) -> None:
        """Return once no broker could be reached for that long."""
        while True:
            await self._is_unreachable.wait()
            try:
                async with asyncio.timeout(seconds):
                    await self._is_reachable.wait()
            except TimeoutError:
                return

    def _shut_down(self) -> UndeliveredError | None:
        """Fail remaining records, close the connections; return the complaint, if any."""
        with self.changed:
            left, unheard = self.core.count_unfinished(), self.core.unheard_count
            if self.core.transactions is not None:  # the end of the transaction told of its records
                left = unheard = 0
            trouble = f"; {self.cluster.trouble}" if self.cluster.trouble is not None else ""
            self.core.is_closed = True
            self.core.abandon(ProducerClosedError(f"the producer was closed before the record was delivered{trouble}"))
            if self.core.transactions is not None:
                self.core.transactions.give_up(ProducerClosedError(f"the producer was closed{trouble}"))
            callbacks, failures = self._finished()
        for task in [*self._tasks.values(), *self._connecting]:
            task.cancel()
        if self._timer is not None:
            self._timer.cancel()
        self._pump_is_scheduled = True
        self.cluster.close()
        DRIVERS.discard(self)
        self._tell(callbacks, failures)
        return self._undelivered(left, unheard, trouble)

    def died(self, cause: BaseException) -> None:
        """Fail remaining records after the loop died, wake waiting callers, name the cause in every later call."""
        text = f"the producer cannot go on: {cause}; make a new one"
        failure = ProducerClosedError(text)
        failure.__cause__ = cause
        with self.changed:
            if self.core.is_closed:
                return
            left = self.core.count_unfinished()
            self.core.is_closed, self.core.closed_because = True, text
            self.core.abandon(failure)
            if self.core.transactions is not None:
                self.core.transactions.give_up(failure)
            callbacks, failures = self._finished()
            self.lost = self._undelivered(left, 0, f"; {cause}")
        DRIVERS.discard(self)
        self._tell(callbacks, failures)

    def _undelivered(self, left: int, unheard: int, trouble: str) -> UndeliveredError | None:
        parts = []
        if left:
            parts.append(f"{count(left, 'record')} still waiting when close gave up{trouble}")
        if unheard:
            parts.append(f"{count(unheard, 'record')} failed earlier, and nobody looked at the futures")
        if not parts:
            return None
        cause = self.core.last_failure
        last = f"; the last failure: {cause}" if unheard and cause is not None else ""
        return UndeliveredError(f"not everything was delivered: {' and '.join(parts)}{last}", left + unheard, cause)


def call_safely(call: Callable[..., object], *arguments: object) -> None:
    """Call a user's function; its errors are logged, so that nothing else is lost.

    SystemExit and KeyboardInterrupt are raised in a thread of the user's, where they end the program; in ours they
    would only end the thread.
    """
    try:
        call(*arguments)
    except BaseException as error:
        if isinstance(error, SystemExit | KeyboardInterrupt) and not is_ours():
            raise
        _LOG.exception("a callback of the producer raised; the delivery itself is not affected")


def _after_fork() -> None:
    for driver in list(DRIVERS):
        driver.forked()
    DRIVERS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
