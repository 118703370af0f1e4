"""From fetched data to the application: objects, Arrow batches, and unreadable records.

Theory of operation. Fetched batches wait in the core's buffer as bytes. A poll takes some of them out, decodes them and
returns them. The position, which is what commits go by, moves in the very step that takes records, under the lock of
the I/O thread: it is always true that every record is either in front of the position, in the buffer, or handed out.
Whatever then cannot be delivered is put back, and the position with it.

*Why at once.* A rebalance may ask for the position at any moment, from another thread. If it moved only after decoding,
a commit in between would say too little, and a partition that is taken away meanwhile would be read twice.

*What can come between* taking and returning, in the order in which it is handled:

- a record that cannot be read: the poll ends before it, or it is passed over, as `poison_policy` says;
- an outage, such as a schema registry that is away: nothing is wrong with the record, all of it is put back, and later
  polls wait longer and longer;
- a batch that is broken as a whole: it is passed over as a whole or not at all, since no checksum covers a part of it;
- a cancelled task or KeyboardInterrupt: as if the poll had never been;
- a rebalance that took the partition: putting back does nothing, since its state is another one.

Records that an application took and did not iterate over are "in hand" (`RecordsInHand`); they are returned before new
ones are taken, and they count as not delivered when it comes to commits.

*The lock* is held for each step and never across an await or a call of user code: deserializers, interceptors and
callbacks run without it, or a heartbeat would wait for them.

What must not be done: move a position without taking records, or take them without moving it; call user code with the
lock held; look at `assignment` twice and expect the same state.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Iterable, Sequence
from logging import DEBUG
from typing import TYPE_CHECKING, Any, TypeVar

from partita.consumer.arrow import DecodeAs, decode_columns
from partita.consumer.deserializers import Deserializer, deserialized, deserializer
from partita.consumer.errors import (
    ConsumerError,
    CorruptRecordError,
    IllegalStateError,
    RecordDeserializationError,
    is_outage,
)
from partita.consumer.partition_state import UNKNOWN, Position
from partita.consumer.reading.completed_fetch import CompletedFetch, end_of_batch, end_of_data, no_progress
from partita.consumer.records import ConsumerRecords
from partita.consumer.request import Backoff
from partita.consumer.shell.client_driver import LOG
from partita.consumer.shell.dead_letters import DeadLetters
from partita.consumer.shell.driver import ConsumerDriver
from partita.consumer.shell.nothing_came import why_nothing_came
from partita.consumer.shell.records_in_hand import RecordsInHand
from partita.consumer.shell.waiting import AsyncWaiter
from partita.consumer.subscription import SubscriptionType
from partita.lazy import later
from partita.offsets.topic_partition import OffsetAndMetadata, TopicPartition
from partita.records.batch import Record
from partita.wording import Note

if TYPE_CHECKING:
    import pyarrow as pa

    from partita.records import to_arrow as arrow_reader
else:
    arrow_reader = later("partita.records.to_arrow")


T = TypeVar("T")


class Delivery:
    """`take_records` and `take_arrow` return None while there is nothing to hand out."""

    def __init__(self, driver: ConsumerDriver) -> None:
        values = driver.config.values
        self._driver = driver
        self._core = driver.core
        self._key: Deserializer | None = deserializer(values["key_deserializer"])
        self._value: Deserializer | None = deserializer(values["value_deserializer"])
        # Looked up once: a getattr for each record would cost more than most deserializers.
        self._has_to_ask = [
            (name, asks)
            for name, function in (("key", self._key), ("value", self._value))
            if (asks := getattr(getattr(function, "__self__", None), "has_to_ask", None)) is not None
        ]
        """Of key and value those whose deserializer knows when it has to ask a schema registry."""
        self._outage = _Outage(driver)
        self._policy: str = values["poison_policy"]
        self.in_hand = RecordsInHand(driver)
        self._has_warned = False
        self._tells_ends: bool = values["enable_partition_eof"]
        self._dead_letters = DeadLetters(values["dead_letter_topic"], driver) if self._policy == "dead_letter" else None
        self._letters_once: bool = values["dead_letter_exactly_once"] and self._dead_letters is not None

    # Polling

    async def refill(self, is_over: Callable[[], Any] | None = None) -> None:
        """The poll of a loop: for the group alone while there are records in hand, else for new records.

        It ends early when the loop `is_over`.
        """
        # Time 0: the group needs its poll, but a loop that has records must not wait for more of them.
        if self.in_hand.has_deliverable:
            await self.poll(0, None)
        else:
            await self.poll(1.0, self.take_in_hand, is_over)

    async def poll_records(self, timeout: float, limit: int) -> ConsumerRecords[Any, Any]:
        """Poll for at most `limit` records, those in hand first, and for ends of partitions if they are wanted."""
        found = await self.poll(timeout, lambda: self.take_records(limit), self._new_ends if self._tells_ends else None)
        try:
            records: ConsumerRecords[Any, Any] = ConsumerRecords() if found is None else found
            if self._tells_ends and len(records):
                with self._driver.io.lock:
                    records.ends = self._core.ends.take_news()
            return records
        except BaseException:
            self.in_hand.step_back()
            raise

    async def poll_arrow(self, timeout: float, decode: DecodeAs) -> pa.RecordBatch | None:
        """Poll for everything fetched; None at the timeout, and for ends of partitions if they are wanted."""
        found = await self.poll(timeout, lambda: self.take_arrow(decode), self._new_ends if self._tells_ends else None)
        try:
            return None if isinstance(found, ConsumerRecords) else found
        except BaseException:
            self.in_hand.step_back()
            raise

    def _new_ends(self) -> ConsumerRecords[Any, Any] | None:
        """No records, but ends of partitions that were reached without any; None without such news."""
        news = self._core.ends.take_news()
        return ConsumerRecords(ends=news) if news else None

    async def poll(self, timeout: float, take: Callable[[], Any] | None, ended: Callable[[], Any] | None = None) -> Any:
        """Poll until `take` finds something, or `ended`, asked with the lock held; None after `timeout` seconds.

        Callbacks run in here. An interruption, at whatever line, takes the application back to where it stood.
        """
        self.in_hand.stand(None)
        try:
            return await self._poll(timeout, take, ended)
        except BaseException as error:
            # These two come where records are put back, or where none have been taken.
            if not isinstance(error, Exception | CancelledError):
                self.in_hand.step_back()
            raise

    async def _poll(self, timeout: float, take: Callable[[], Any] | None, ended: Callable[[], Any] | None) -> Any:
        driver, core = self._driver, self._core
        self._check_seconds(timeout)
        # Two polls at once would share positions, and neither would know what the other took.
        with driver.owned(exclusive=True):
            deadline_ms = driver.deadline_ms(timeout)
            if core.subscription.type is SubscriptionType.NONE:
                raise IllegalStateError("nothing is subscribed or assigned; call subscribe() or assign() first")
            # A callback of a rebalance that is still running decides what is assigned: polling around it would read
            # what it is about to give up.
            await driver.waiter.callbacks_ended(max(0.0, timeout))
            driver.metrics.poll_started()
            self.in_hand.begin_poll()
            if take is not None:
                self.in_hand.ask_for_more()
            with driver.io.lock:
                driver.begin_poll()
            try:
                return await self._poll_until(deadline_ms, take, ended)
            finally:
                with driver.io.lock:
                    core.end_poll(driver.now())
                driver.metrics.poll_ended()
                self.in_hand.polled()

    def _check_seconds(self, timeout: float) -> None:
        """Refuse a timeout that is no number; warn once if it looks like milliseconds (issue 11.8)."""
        if isinstance(timeout, bool) or not isinstance(timeout, int | float):
            raise TypeError(f"poll takes a number of seconds, not {timeout!r}; poll() returns what is there at once")
        if _LOOKS_LIKE_MS <= timeout < float("inf") and not self._has_warned:
            self._has_warned = True
            told = "%s: poll(%s) waits up to %s seconds; the time is in seconds, not milliseconds"
            LOG.warning(told, self._driver.config.client_id, timeout, timeout)

    async def _poll_until(
        self, deadline_ms: int, take: Callable[[], Any] | None, ended: Callable[[], Any] | None
    ) -> Any:
        driver, core, seen = self._driver, self._core, -1
        while True:
            driver.check()
            with driver.io.lock:
                # Then the thread has walked the rules already.
                has_turned = 0 <= seen != driver.io.activity and core.membership.app_polling
                core.go_on_polling()
                # Read before the look: an answer that comes between the look and the wait ends the wait at once.
                seen = driver.io.activity
                error = core.next_error()
                if error is None and not has_turned:
                    # With records in the buffer a poll takes microseconds: the rules are walked only when they are due.
                    driver.step_if_stale() if core.buffer else driver.step()
            # Callbacks run without the lock, and may have produced an error of their own.
            if error is None:
                await driver.dispatch()
                with driver.io.lock:
                    error = core.next_error()
            if error is not None:
                raise driver.named(error)
            pause_ms = self._outage.pause_ms()
            # During an outage fetched records wait, but those in hand were decoded before it and need nothing.
            if take is not None and (self.in_hand or (core.buffer and not pause_ms)):
                found = await take()
                if found is not None:
                    return found
                self.in_hand.stand(None)
            if ended is not None:
                with driver.io.lock:
                    found = ended()
                if found is not None:
                    return found
            left_ms = deadline_ms - driver.mono_ms()
            if left_ms <= 0:
                self._tell_why_nothing_came()
                return None
            # Woken by news, or by any turn where `ended` looks at more, and at the end of the outage's pause.
            left_ms = min(left_ms, pause_ms or left_ms)
            await driver.waiter.wait(driver.io, seen, left_ms / 1000, for_news=ended is None)

    def _tell_why_nothing_came(self) -> None:
        if LOG.isEnabledFor(DEBUG):
            with self._driver.io.lock:
                reason = why_nothing_came(self._core)
            LOG.debug("%s: poll returns nothing: %s", self._driver.config.client_id, reason)

    def take_back(self) -> None:
        """An exception leaves the application's block: no automatic commit covers what the last poll gave."""
        with self._driver.io.lock:
            self.in_hand.take_back()

    # Records

    async def take_records(self, limit: int) -> ConsumerRecords[Any, Any] | None:
        """The next records, at most `limit`, those in hand first; None while there is nothing to hand out."""
        with self._driver.io.lock:
            self.in_hand.stand(())
            in_hand = self.in_hand.take(limit)
            if in_hand:
                self._core.hand_out()
                # Where the records of this poll began: an exception in the application's block takes the positions back
                # to there.
                self.in_hand.gave(_starts(in_hand.items()))
        return in_hand or await self._take_fetched(limit)

    async def take_in_hand(self) -> bool | None:
        """Take the records of one poll in hand; None while there are none."""
        found = await self._take_fetched(self._driver.config.max_poll_records)
        if found is None:
            return None
        with self._driver.io.lock:
            self.in_hand.fill(found)
        return True

    async def _take_fetched(self, limit: int) -> ConsumerRecords[Any, Any] | None:
        driver, core = self._driver, self._core
        with driver.io.lock:
            buffered = len(core.buffer)
            self.in_hand.stand(fetch.tp for fetch in core.buffer)
            try:
                collected = core.collect(limit)
            except CorruptRecordError as error:
                collected = None
                corrupt = error
            if collected is not None:
                if collected.records:
                    core.hand_out()
                # The buffer has been emptied a little: the broker that was left out of fetching may be asked now,
                # before decoding.
                if len(core.buffer) < buffered:
                    driver.step()
                # Under the same lock as the take, before a rebalance can change what is assigned.
                offsets = self._next_offsets(collected.records)
        if collected is None:
            await self._corrupt(corrupt)
            return None
        if not collected.records:
            # No records, yet news: the position passed over markers or compacted batches. The poll ends, so that
            # commits follow.
            return ConsumerRecords() if collected.has_moved else None
        by_partition = collected.records
        if self._key is not None or self._value is not None:
            try:
                by_partition, offsets = await self._deserialized(by_partition, offsets)
            except RecordDeserializationError as error:
                if error.is_outage or not self._letters_once:
                    raise
                return ConsumerRecords() if await self._passed_over_once(error, error.offset + 1) else None
        self._note_handed_out(by_partition, offsets)
        with driver.io.lock:
            self.in_hand.gave(_starts(by_partition.items()))
        found = ConsumerRecords(by_partition, offsets)
        if len(found):
            driver.metrics.consumed(len(found), found.counts())
        return driver.interceptors.on_consume(found)

    def _next_offsets(self, records: dict[TopicPartition, list[Record]]) -> dict[TopicPartition, OffsetAndMetadata]:
        found = {}
        for tp in records:
            position = self._core.subscription.assignment[tp].position
            if position is not None:
                found[tp] = OffsetAndMetadata(position.offset, position.offset_epoch)
        return found

    def _note_handed_out(
        self, records: dict[TopicPartition, list[Record]], offsets: dict[TopicPartition, OffsetAndMetadata]
    ) -> None:
        if self._driver.config.commit_done_only:
            with self._driver.io.lock:
                for tp, some in records.items():
                    if tp in offsets:
                        end = offsets[tp]
                        self._core.done.handed_out(tp, (r.offset for r in some), end.offset, end.leader_epoch)

    async def _deserialized(
        self, records: dict[TopicPartition, list[Record]], offsets: dict[TopicPartition, OffsetAndMetadata]
    ) -> tuple[dict[TopicPartition, list[Record]], dict[TopicPartition, OffsetAndMetadata]]:
        """Turn bytes into objects. A failure ends the poll before that record, unless the policy passes over it.

        Whatever ends this early, a cancelled task included, what is not delivered is put back.
        """
        good: dict[TopicPartition, list[Record]] = {}
        partitions = list(records.items())
        rest = records
        try:
            for p, (tp, some) in enumerate(partitions):
                for i, record in enumerate(some):
                    try:
                        readable = await self._readable(record)
                    except RecordDeserializationError as error:
                        # The record itself and all behind it; what `_pass_over` passes over is cut from it by not
                        # raising.
                        rest = {tp: some[i:], **dict(partitions[p + 1 :])}
                        if good and self._dead_letters is not None:
                            raise  # its topic may make a letter wait for long, and records that are well never wait
                        await self._pass_over(error)
                    else:
                        good.setdefault(tp, []).append(readable)
        # Ours, and foreseen: what was read before it is delivered now, and the error is met again by the next poll.
        except ConsumerError:
            with self._driver.io.lock:
                self._core.buffer.put_back(rest)
            if not good:
                raise
            return good, self._cut(offsets, good, rest)
        # A cancelled task, KeyboardInterrupt, a defect: nothing of this poll was delivered, so all of it goes back.
        except BaseException:
            with self._driver.io.lock:
                self._core.buffer.put_back(records)
            raise
        self._outage.is_over()
        return good, offsets

    async def _readable(self, record: Record) -> Record:
        """The record with objects. A schema registry is asked beside the event loop, where there is one."""
        # The blocking face has a thread of its own to block; on an event loop a question to the registry would stop
        # everything.
        if not isinstance(self._driver.waiter, AsyncWaiter) or not any(
            asks(getattr(record, name)) for name, asks in self._has_to_ask
        ):
            return self._read(record)
        return await self._beside_the_loop(lambda: self._read(record))

    async def _beside_the_loop(self, work: Callable[[], T]) -> T:
        found: list[T] = []
        await self._driver.waiter.offload(lambda: found.append(work()))
        return found[0]

    def _cut(
        self,
        offsets: dict[TopicPartition, OffsetAndMetadata],
        good: dict[TopicPartition, list[Record]],
        rest: dict[TopicPartition, list[Record]],
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        ends = {tp: offsets[tp] for tp in good if tp in offsets}
        for tp, some in rest.items():
            if tp in ends:
                # A commit of this poll must not cover the record that could not be read, nor anything behind it.
                ends[tp] = OffsetAndMetadata(some[0].offset, good[tp][-1].leader_epoch)
        return ends

    def _read(self, record: Record) -> Record:
        tp = TopicPartition(record.topic, record.partition)
        key = deserialized(self._key, "KEY", tp, record, record.key)
        value = deserialized(self._value, "VALUE", tp, record, record.value)
        return Record(
            record.topic,
            record.partition,
            record.offset,
            record.timestamp,
            record.timestamp_type,
            key,
            value,
            record.headers,
            record.leader_epoch,
            record.serialized_key_size,
            record.serialized_value_size,
        )

    # Unreadable records

    async def _pass_over(self, error: RecordDeserializationError) -> None:
        """Handle an unreadable record by poison_policy; raises when the poll has to end before it."""
        if error.is_outage:
            self._outage.failed()
        if self._policy == "raise" or error.is_outage or self._letters_once:
            raise error
        if self._dead_letters is not None:
            await self._dead_letters.send(error)
        self._note_poison(error.topic_partition, error.offset, str(error))

    async def _corrupt(self, error: CorruptRecordError) -> None:
        """A batch that is broken as a whole: skipped as a whole, if the policy says so."""
        if self._policy == "raise":
            raise error
        core, tp = self._core, error.topic_partition
        with self._driver.io.lock:
            # Nothing in a broken batch can be trusted but where it ends, and that only if its header reads.
            end = end_of_batch(next((f for f in core.buffer if f.tp == tp), None), error.offset)
        if self._letters_once:
            await self._passed_over_once(error, end)
            return
        if self._dead_letters is not None:
            await self._dead_letters.send_corrupt(error, end)
        with self._driver.io.lock:
            state = core.subscription.assignment.get(tp)
            position = None if state is None else state.position
            # The application may have sought elsewhere while the letter was sent; then there is nothing to pass over.
            if state is not None and position is not None and position.offset == error.offset:
                state.seek(Position(end, position.offset_epoch, position.leader, position.leader_epoch))
        self._note_poison(tp, error.offset, f"{error}; skipped to {end}")

    async def _passed_over_once(self, error: RecordDeserializationError | CorruptRecordError, end: int) -> bool:
        """Pass over the record that this poll begins with, in one transaction with its letter; false: not now."""
        assert self._dead_letters is not None, "there is a topic for letters"
        if not await self._dead_letters.pass_over(error, end):
            return False
        with self._driver.io.lock:
            self.in_hand.stand(None)
            self._core.buffer.pass_over(error.topic_partition, error.offset, end)
            if (state := self._core.subscription.assignment.get(error.topic_partition)) is not None:
                state.unsettled_at = UNKNOWN
        self._note_poison(error.topic_partition, error.offset, str(error))
        return True

    def _note_poison(self, tp: TopicPartition, offset: int, text: str) -> None:
        note = Note("poison", text, {"topic": tp.topic, "partition": tp.partition, "offset": offset})
        with self._driver.io.lock:
            self._core.events.append(note)

    # Arrow

    async def take_arrow(self, decode: DecodeAs) -> pa.RecordBatch | None:
        """Everything fetched so far as one RecordBatch; the next fetch runs while this one is decoded."""
        driver, core = self._driver, self._core
        with driver.io.lock:
            # Objects and Arrow batches must not be given out of order: what is in hand goes back to its place in the
            # buffer first.
            self.in_hand.put_back()
            self.in_hand.stand(fetch.tp for fetch in core.buffer)
            fetches = core.buffer.take_fetches()
            if not fetches:
                return None
            starts = [fetch.next_offset for fetch in fetches]
            # Positions move by the headers, before anything is decoded; `_settle` takes them back where decoding ended
            # early.
            ends = [end_of_data(fetch) for fetch in fetches]
            for fetch, (end, epoch) in zip(fetches, ends, strict=True):
                core.buffer.handed_out(fetch, end, epoch)
            core.hand_out()
            # The next fetch leaves now, so that the network works while this thread decodes.
            driver.step()
        parts = [
            arrow_reader.FetchedPart(f.tp.topic, f.tp.partition, f.data, fetch_offset=start, aborted=f.aborted)
            for f, start in zip(fetches, starts, strict=True)
        ]
        expected = [end for end, _ in ends]
        try:
            read = arrow_reader.to_arrow(
                parts,
                timestamp_unit=decode.timestamp_unit,
                headers=decode.headers,
                check_crcs=driver.config.check_crcs,
            )
            decoded = None
            if read.batch.num_rows:
                decoded = await self._decoded(read.batch, decode)
        except BaseException as error:
            if is_outage(error):
                self._outage.failed()
            with driver.io.lock:
                # Backwards: several fetches may be of one partition, and the last to be given back must be the first to
                # be read.
                for fetch, start, end in reversed(list(zip(fetches, starts, expected, strict=True))):
                    self._go_back(fetch.tp, end, start)
                    core.buffer.give_back(fetch)
            raise
        self._outage.is_over()
        self._settle(fetches, starts, expected, read)
        with driver.io.lock:
            self.in_hand.gave({f.tp: start for f, start in reversed(list(zip(fetches, starts, strict=True)))})
        self._note_arrow(parts, read)
        return decoded

    async def _decoded(self, batch: pa.RecordBatch, decode: DecodeAs) -> pa.RecordBatch:
        """The batch with decoded columns. A decoder that may ask a schema registry runs beside the event loop."""
        if all(isinstance(kind, str) for kind in (decode.key, decode.value)):
            return decode_columns(batch, decode)
        return await self._beside_the_loop(lambda: decode_columns(batch, decode))

    def _settle(
        self,
        fetches: Sequence[CompletedFetch],
        starts: Sequence[int],
        expected: Sequence[int],
        read: arrow_reader.ArrowRead,
    ) -> None:
        """Where decoding ended early, the position goes back there; what stopped it is raised when nothing precedes."""
        raised: CorruptRecordError | None = None
        for fetch, start, there, end, fault in zip(
            fetches, starts, expected, read.next_offsets, read.faults, strict=True
        ):
            # Decoding ended early: at a broken batch, or at a transaction whose end is not known yet.
            if end != there:
                self._go_back(fetch.tp, there, end)
            if fault is not None:
                raised = raised or CorruptRecordError(fetch.tp, end, fault.reason)
            # Bytes and no progress: asked again from the same offset the broker would answer the same for ever.
            elif end == start and fetch.size:
                raised = raised or CorruptRecordError(fetch.tp, start, no_progress(fetch.size))
        # With rows in front of it the fault waits: those are delivered first, and the next poll meets it at once.
        if raised is not None and read.batch.num_rows == 0:
            raise raised

    def _go_back(self, tp: TopicPartition, expected: int, end: int) -> None:
        with self._driver.io.lock:
            state = self._core.subscription.assignment.get(tp)
            position = None if state is None else state.position
            if state is not None and position is not None and position.offset == expected:
                state.advance(Position(end, position.offset_epoch, position.leader, position.leader_epoch))

    def _note_arrow(self, parts: Sequence[arrow_reader.FetchedPart], read: Any) -> None:
        rows = read.batch.num_rows
        topics = {part.topic for part in parts}
        self._driver.metrics.consumed(rows, {topic: rows for topic in topics if len(topics) == 1})
        if not self._driver.config.commit_done_only:
            return
        offsets, partitions = read.batch.column("offset").to_pylist(), read.batch.column("partition").to_pylist()
        names = read.batch.column("topic").to_pylist()
        by_partition: dict[TopicPartition, list[int]] = {}
        for topic, partition, offset in zip(names, partitions, offsets, strict=True):
            by_partition.setdefault(TopicPartition(topic, partition), []).append(offset)
        with self._driver.io.lock:
            for part, end in zip(parts, read.next_offsets, strict=True):
                tp = TopicPartition(part.topic, part.partition)
                self._core.done.handed_out(tp, by_partition.get(tp, ()), end, -1)

    def close(self) -> None:
        """Close the producer of the dead letters, if one was opened."""
        if self._dead_letters is not None:
            self._dead_letters.close()


def _starts(records: Iterable[tuple[TopicPartition, Sequence[Record]]]) -> dict[TopicPartition, int]:
    return {tp: some[0].offset for tp, some in records if some}


_LOOKS_LIKE_MS = 100


class _Outage:
    """Back-off after a deserializer has failed through no fault of the record."""

    def __init__(self, driver: ConsumerDriver) -> None:
        config = driver.config
        self._driver = driver
        # Without jitter: one consumer asks one registry, and a test can say when it does so.
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms, lambda low, high: 1.0)
        self._failures = 0
        self._until_ms = 0

    def failed(self) -> None:
        """Wait longer after each failure, from retry.backoff.ms to retry.backoff.max.ms."""
        self._until_ms = self._driver.mono_ms() + self._backoff.after(self._failures)
        self._failures += 1

    def is_over(self) -> None:
        """Begin with the shortest wait again."""
        self._failures = self._until_ms = 0

    def pause_ms(self) -> int:
        """Remaining time to wait; 0: not at all."""
        return max(0, self._until_ms - self._driver.mono_ms()) if self._failures else 0
