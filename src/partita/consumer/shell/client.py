"""The consumer's calls for asyncio: what `async with Consumer(...) as consumer` gives.

Each call is a coroutine over the core; the I/O happens in a thread of its own, so a callback or handler that blocks
the application's loop costs no heartbeat. `blocking.Consumer` runs these same coroutines. (Kafka: Consumer,
ClassicKafkaConsumer; consumer.md 2.)
"""

from __future__ import annotations

import re
from asyncio import CancelledError
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, Unpack, overload

from partita.consumer.arrow import Decode, DecodeAs
from partita.consumer.config import ConsumerConfig
from partita.consumer.deserializers import AsBytes, AsText, From, given_deserializers
from partita.consumer.errors import ApiTimeoutError, ProcessingError
from partita.consumer.group.commits import Kind
from partita.consumer.listener import RebalanceListener
from partita.consumer.partition_state import EARLIEST, LATEST, Position, Reset
from partita.consumer.reading.partition_ends import ReadToEnd
from partita.consumer.records import ConsumerRecord, ConsumerRecords, K, V
from partita.consumer.request import Failed, Note
from partita.consumer.shell import arguments, subscribing
from partita.consumer.shell.arguments import Committable, Partitions
from partita.consumer.shell.closing import close_consumer, leave_group
from partita.consumer.shell.delivery import Delivery
from partita.consumer.shell.driver import ConsumerDriver
from partita.consumer.shell.records_in_hand import Hold
from partita.consumer.shell.waiting import AsyncWaiter
from partita.consumer.subscription import SubscriptionPattern
from partita.consumer.topic_partition import GroupMetadata, OffsetAndMetadata, OffsetAndTimestamp, TopicPartition
from partita.errors import InvalidTopicError, error_for
from partita.net.loop_thread import not_pickled
from partita.now import Clock
from partita.protocol.error_codes import ErrorCode
from partita.protocol.metadata_view import TopicView
from partita.references import resolve_options

if TYPE_CHECKING:
    import pyarrow as pa

    from partita.consumer.option_types import ConsumerOptions

Config: TypeAlias = Mapping[str, Any] | None
_LEGAL_ERRORS = (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE)


class AsyncConsumer(Generic[K, V]):
    """Reads topics as a member of a group, or given partitions on its own. Timeouts are in seconds.

    Options are keyword arguments in Kafka's names with underscores, or a dict in Kafka's own spelling.
    """

    __reduce__ = not_pickled

    # fmt: off
    @overload
    def __init__(
        self: AsyncConsumer[bytes, bytes], config: Config = None, /, *, key_deserializer: AsBytes = None,
        value_deserializer: AsBytes = None, clock: Clock | None = None, **options: Unpack[ConsumerOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: AsyncConsumer[bytes, str], config: Config = None, /, *, key_deserializer: AsBytes = None,
        value_deserializer: AsText, clock: Clock | None = None, **options: Unpack[ConsumerOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: AsyncConsumer[bytes, V], config: Config = None, /, *, key_deserializer: AsBytes = None,
        value_deserializer: From[V], clock: Clock | None = None, **options: Unpack[ConsumerOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: AsyncConsumer[str, bytes], config: Config = None, /, *, key_deserializer: AsText,
        value_deserializer: AsBytes = None, clock: Clock | None = None, **options: Unpack[ConsumerOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: AsyncConsumer[str, str], config: Config = None, /, *, key_deserializer: AsText,
        value_deserializer: AsText, clock: Clock | None = None, **options: Unpack[ConsumerOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: AsyncConsumer[str, V], config: Config = None, /, *, key_deserializer: AsText,
        value_deserializer: From[V], clock: Clock | None = None, **options: Unpack[ConsumerOptions],
    ) -> None: ...
    @overload
    def __init__(
        self, config: Config = None, /, *, key_deserializer: From[K],
        value_deserializer: From[V], clock: Clock | None = None, **options: Unpack[ConsumerOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: AsyncConsumer[Any, Any], config: Config = None, /, *, key_deserializer: object = None,
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
        self._start(ConsumerDriver(checked, AsyncWaiter(), strict=False, clock=clock))

    @classmethod
    def _over(cls, driver: ConsumerDriver) -> AsyncConsumer[K, V]:
        """A consumer over a driver made elsewhere (with another clock, or without sockets)."""
        consumer = cls.__new__(cls)
        consumer._start(driver)
        return consumer

    def _start(self, driver: ConsumerDriver) -> None:
        self._driver = driver
        self._core = driver.core
        self._delivery = Delivery(driver)

    async def __aenter__(self) -> AsyncConsumer[K, V]:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close. If an exception leaves the block, no automatic commit covers what the last poll gave."""
        if kind is not None:
            self._delivery.take_back()
        await self.close()

    # What to read

    def subscribe(
        self,
        topics: Iterable[str] | str | None = None,
        listener: RebalanceListener | None = None,
        *,
        pattern: str | re.Pattern[str] | SubscriptionPattern | None = None,
        on_assigned: Callable[[list[TopicPartition]], Any] | None = None,
        on_revoked: Callable[[list[TopicPartition]], Any] | None = None,
        on_lost: Callable[[list[TopicPartition]], Any] | None = None,
    ) -> None:
        """Read these topics, or all whose whole name matches `pattern`, sharing their partitions with the group.

        With group_protocol consumer the broker can match the names itself: `pattern=SubscriptionPattern(...)`. Replaces
        an earlier subscription; no topics at all unsubscribes. Joining happens in `poll`.
        """
        heard = arguments.listener_of(listener, on_assigned, on_revoked, on_lost)
        subscribing.subscribe(self._driver, topics, pattern, heard)

    def assign(self, partitions: Partitions) -> None:
        """Read exactly these partitions, outside any group's sharing. Replaces an earlier assignment."""
        subscribing.assign(self._driver, partitions)

    async def unsubscribe(self) -> None:
        """End the subscription or assignment; a group member leaves its group. Commits nothing."""
        with self._driver.owned(exclusive=True):
            await leave_group(self._driver, subscribing.UNSUBSCRIBED)

    def assignment(self) -> set[TopicPartition]:
        """The partitions held now, by the group's sharing or by `assign`."""
        with self._driver.owned(), self._driver.io.lock:
            return set(self._core.subscription.assignment)

    def subscription(self) -> set[str]:
        """The topics asked for; with a pattern those that match so far. Empty after `assign`."""
        with self._driver.owned(), self._driver.io.lock:
            return set(self._core.subscription.topics)

    # Reading

    async def poll(self, timeout: float = 0.0, *, max_records: int | None = None) -> ConsumerRecords[K, V]:
        """Records, as soon as there are some; empty at the timeout, or when only positions moved.

        `timeout` is in seconds; 0 returns what is there. At most `max_records`, else max_poll_records; with 0 it only
        takes part in the group. Records that a loop left in hand come first. With enable_partition_eof it also returns
        when the end of a partition is reached, without records if need be: see `ends` of the result. Rebalance
        callbacks run in here. Raises IllegalStateError before subscribe or assign, WakeupError, the errors of rebalance
        callbacks and of the cluster, and RecordDeserializationError (see poison_policy).
        """
        if max_records is not None and arguments.whole_number(max_records, "max_records") == 0:
            await self._delivery.poll(timeout, None)
            return ConsumerRecords()
        limit = max_records or self._driver.config.max_poll_records
        return await self._delivery.poll_records(timeout, limit)

    async def poll_arrow(
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
        `key` and `value` are left as bytes or become str or json (a struct column). Deserializers, interceptors and
        max_poll_records are not applied. `timeout` is in seconds. Raises as `poll` does, and ConsumerError when a
        column is no valid str or json; needs `pip install 'partita[arrow]'`.
        """
        decode = DecodeAs(key, value, binary_view, headers, timestamp_unit, json_schema)
        return await self._delivery.poll_arrow(timeout, decode)

    def __aiter__(self) -> AsyncIterator[ConsumerRecord[K, V]]:
        """Records one by one; each counts as passed, for commits and for a new loop, once the next is asked for.

        A loop polls when it needs records, when the group rebalances, and about once a second, so that only a single
        record has to be processed within max_poll_interval_ms. It ends when the consumer is closed.
        """
        return self._loop(None)

    def until_end(self) -> AsyncIterator[ConsumerRecord[K, V]]:
        """The records up to the ends of the assigned partitions, one by one as a loop over the consumer gives them.

        `async for record in consumer.until_end():` stops behind the last record there was when the loop first saw
        the partition's end; partitions that come later are read to their ends, too. It waits for an assignment, and
        stops if the group gave this member no partition. Afterwards every record counts as passed.
        """
        with self._driver.io.lock:
            goal = ReadToEnd(self._core.ends, self._core.member, self._core.subscription)
        return self._loop(goal.is_over)

    async def _loop(self, is_over: Callable[[], bool | None] | None) -> AsyncIterator[ConsumerRecord[K, V]]:
        in_hand = self._delivery.in_hand
        in_hand.begin_again()
        while not self._driver.is_closed:
            record = in_hand.next()
            if record is not None:
                yield record
                for following in in_hand.burst():
                    yield following
                continue
            if is_over is not None:
                with self._driver.io.lock:
                    if is_over():
                        return
            await self._delivery.refill(is_over)

    def at_end(self) -> bool:
        """Has the application read everything in every assigned partition, as far as the consumer knows?

        False before the first answer of the brokers, and while nothing is assigned. Asks nobody.
        """
        with self._driver.owned(), self._driver.io.lock:
            return self._core.ends.are_reached(self._core.ends.known())

    async def __anext__(self) -> ConsumerRecord[K, V]:
        """Pass the record before and wait for the next one: `record = await anext(consumer)`."""
        while not self._driver.is_closed:
            record = self._delivery.in_hand.next()
            if record is not None:
                return record
            await self._delivery.refill()
        raise StopAsyncIteration

    def hold(self, records: ConsumerRecords[K, V]) -> Hold:
        """Work on what a poll returned while no rebalance takes partitions away.

        `with consumer.hold(consumer.poll(1.0)) as held:`, then `for record in held:`. The group waits for this member
        until the block ends, at most max_poll_interval_ms. What the loop does not pass is not lost: the next poll
        returns it, or the next owner of its partition reads it.
        """
        taken = arguments.records(records)
        return Hold(self._driver, self._delivery.in_hand, lambda: self._delivery.poll(0, None), taken)

    def done(self, record: ConsumerRecord[Any, Any], *, after: Any = None) -> bool:
        """This record is processed (commit_done_only): commits cover what is done without gaps. Any thread may call.

        With `after`, a future or task of the work on it, that counts when the work has succeeded; if it failed, the
        next poll raises ProcessingError and the record stays open. False if it was not open: done before, or its
        partition has gone to another member.
        """
        arguments.record(record)
        if after is not None:
            after.add_done_callback(lambda ended: self._worked(record, ended))
            return True
        with self._driver.io.lock:
            return self._core.done.done(TopicPartition(record.topic, record.partition), record.offset)

    def _worked(self, record: ConsumerRecord[Any, Any], ended: Any) -> None:
        failure = CancelledError("the work was cancelled") if ended.cancelled() else ended.exception()
        if failure is None:
            self.done(record)
            return
        tp = TopicPartition(record.topic, record.partition)
        with self._driver.io.lock:
            self._core.member.events.append(Failed(ProcessingError(tp, record.offset, failure)))
            self._driver.io.notify()

    # Committed offsets

    async def commit(self, offsets: Committable | None = None, *, timeout: float | None = None) -> None:
        """Commit offsets: given, behind a record, behind the records of a poll, or all positions.

        `offsets` is a dict from partition to the next offset to read, a record, or what a poll returned. In a loop over
        the consumer the record in the body is not part of its position yet: `commit(record)` says that it is done.
        Returns when the group has the offsets. What may be temporary is retried for `timeout` seconds
        (default_api_timeout_ms), then ApiTimeoutError is raised. Raises CommitFailedError when the group has moved on,
        RebalanceRunningError when a poll has to come first.
        """
        driver = self._driver
        wanted = arguments.offsets(offsets)
        with driver.owned():
            self._driver.need_group("commit")
            deadline_ms = driver.deadline_ms(timeout)
            with driver.io.lock:
                self._delivery.in_hand.pass_committed(wanted)
                operation = self._core.commits.commit(Kind.SYNC, wanted)
            started_ms = driver.now().mono_ms
            try:
                await driver.result(operation, deadline_ms, "the commit", self._core.commits.cancel)
            finally:
                driver.metrics.took("commit-sync", driver.now().mono_ms - started_ms)
            if not operation.value:  # nothing was sent behind which the earlier commits would have been answered
                sent = self._core.commits.async_sent
                await driver.until(lambda: self._core.commits.async_done >= sent, deadline_ms)
            await driver.dispatch()

    def commit_async(
        self,
        offsets: Committable | None = None,
        callback: Callable[[dict[TopicPartition, Any], Any], Any] | None = None,
    ) -> None:
        """Commit without waiting and without retries; `callback(offsets, error)` runs in a later poll or commit.

        `offsets` are as in `commit`.
        """
        wanted = arguments.offsets(offsets)
        with self._driver.owned():
            self._driver.need_group("commit_async")
            with self._driver.io.lock:
                if self._core.member.fenced is not None:
                    raise self._core.member.fenced
                self._delivery.in_hand.pass_committed(wanted)
                self._core.commits.commit(Kind.ASYNC, wanted, callback)
                self._driver.step()

    async def committed(
        self, partitions: Partitions, *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed for these partitions; None where nothing is. Raises ApiTimeoutError."""
        with self._driver.owned():
            self._driver.need_group("committed")
            deadline_ms = self._driver.deadline_ms(timeout)
            wanted = arguments.partitions(partitions, "committed")
            if not wanted:
                return {}
            started_ms = self._driver.now().mono_ms
            with self._driver.io.lock:
                operation = self._core.committed.ask(wanted)
            found: dict[TopicPartition, OffsetAndMetadata | None] = await self._driver.result(
                operation, deadline_ms, "fetching committed offsets", self._core.committed.cancel
            )
            self._driver.metrics.took("committed", self._driver.now().mono_ms - started_ms)
            return found

    # Positions

    def seek(self, partition: tuple[str, int], offset: int | OffsetAndMetadata) -> None:
        """Continue reading at this offset. Sends no request; records buffered from elsewhere are dropped.

        Raises IllegalStateError if the partition is not assigned, ValueError for an offset below 0.
        """
        target = offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
        arguments.whole_number(target.offset, "an offset")
        tp = arguments.partition(partition, "seek")
        with self._driver.owned(), self._driver.io.lock:
            state = self._core.subscription.state(tp)
            state.in_hand = None
            if target.leader_epoch >= 0:
                self._core.positions.seek_to_committed(tp, state, target)
            else:
                state.seek(Position(target.offset))
            self._core.done.forget(tp)

    def seek_to_beginning(self, partitions: Partitions = ()) -> None:
        """Go to the first kept offset of these partitions (none given: all), at the next poll."""
        self._reset(partitions, EARLIEST, "seek_to_beginning")

    def seek_to_end(self, partitions: Partitions = ()) -> None:
        """Go to the end of these partitions (none given: all), at the next poll."""
        self._reset(partitions, LATEST, "seek_to_end")

    def _reset(self, partitions: Partitions, reset: Reset, call: str) -> None:
        with self._driver.owned(), self._driver.io.lock:
            wanted = arguments.partitions(partitions, call) or list(self._core.subscription.assignment)
            for tp in wanted:
                self._core.subscription.state(tp)
            for tp in wanted:
                self._core.subscription.state(tp).in_hand = None
                self._core.positions.reset(tp, reset)
                self._core.done.forget(tp)

    async def position(self, partition: tuple[str, int], *, timeout: float | None = None) -> int:
        """The next offset to be handed out; waits until it is known and valid.

        Raises IllegalStateError if the partition is not assigned, NoOffsetForPartitionError, ApiTimeoutError.
        """
        driver, tp = self._driver, arguments.partition(partition, "position")
        with driver.owned():
            deadline_ms = driver.deadline_ms(timeout)
            while True:
                with driver.io.lock:
                    self._core.positions.ask_for(tp)
                    consumed = self._core.subscription.state(tp).consumed
                    if consumed is not None:
                        return consumed[0]
                    seen = driver.io.activity
                    driver.step()
                    error = self._core.validation.errors.pop(0) if self._core.validation.errors else None
                    error = error or self._core.positions.error()
                if error is not None:
                    raise self._driver.named(error)
                driver.check()
                left_ms = deadline_ms - driver.now().mono_ms
                if left_ms <= 0:
                    raise ApiTimeoutError(f"the position of {tp} is not known in time")
                await driver.waiter.wait(driver.io, seen, left_ms / 1000)

    def pause(self, partitions: Partitions | None = None) -> None:
        """Return nothing from these partitions until `resume`; what is buffered is kept.

        Without partitions everything is paused, also partitions that a rebalance brings later: polls return nothing and
        still count as polls. For named partitions an eager rebalance ends the pause, a cooperative one does not. Raises
        IllegalStateError if one is not assigned.
        """
        self._set_paused(partitions, is_paused=True)

    def resume(self, partitions: Partitions | None = None) -> None:
        """Return records from these partitions again, or from all. Raises IllegalStateError for one not assigned."""
        self._set_paused(partitions, is_paused=False)

    def _set_paused(self, partitions: Partitions | None, *, is_paused: bool) -> None:
        with self._driver.owned(), self._driver.io.lock:
            subscription = self._core.subscription
            if partitions is None:
                subscription.pauses_all = is_paused
                partitions = list(subscription.assignment)
            wanted = arguments.partitions(partitions, "pause" if is_paused else "resume")
            states = [subscription.state(tp) for tp in wanted]
            for state in states:
                state.is_paused = is_paused
            self._driver.step()

    def paused(self) -> set[TopicPartition]:
        """The assigned partitions that are paused."""
        with self._driver.owned(), self._driver.io.lock:
            return {tp for tp, state in self._core.subscription.assignment.items() if state.is_paused}

    # Lag

    def current_lag(self, partition: tuple[str, int]) -> int | None:
        """Records between the position and the end, as far as known now; asks for the end once if it is not."""
        with self._driver.owned(), self._driver.io.lock:
            lag = self._core.current_lag(arguments.partition(partition, "current_lag"))
            self._driver.step()
            return lag

    def lag(self) -> dict[TopicPartition, int]:
        """`current_lag` of every assigned partition for which it is known."""
        with self._driver.owned(), self._driver.io.lock:
            committed = self._driver.config.read_committed
            lags = {tp: s.lag(read_committed=committed) for tp, s in self._core.subscription.assignment.items()}
            return {tp: lag for tp, lag in lags.items() if lag is not None}

    # Offsets and topics of the cluster

    async def offsets_for_times(
        self, timestamps: Mapping[tuple[str, int], int], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """For each partition the first offset whose timestamp is at least this one, in ms; None if there is none."""
        wanted = arguments.by_partition(timestamps, "offsets_for_times", "timestamps in ms")
        if any(timestamp < 0 for timestamp in wanted.values()):
            raise ValueError("timestamps are 0 or more; beginning_offsets and end_offsets give the ends")
        return await self._look_up(wanted, timeout)

    async def beginning_offsets(
        self, partitions: Partitions, *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first kept offset of each partition, assigned or not. Raises ApiTimeoutError."""
        found = await self._look_up(dict.fromkeys(arguments.partitions(partitions, "beginning_offsets"), -2), timeout)
        return {tp: at.offset for tp, at in found.items() if at is not None}

    async def end_offsets(self, partitions: Partitions, *, timeout: float | None = None) -> dict[TopicPartition, int]:
        """The high watermark of each partition; under read_committed the last stable offset. Raises ApiTimeoutError."""
        found = await self._look_up(dict.fromkeys(arguments.partitions(partitions, "end_offsets"), -1), timeout)
        ends = {tp: at.offset for tp, at in found.items() if at is not None}
        with self._driver.io.lock:
            for tp, offset in ends.items():
                self._core.learn_end(tp, offset)
        return ends

    async def _look_up(
        self, targets: dict[TopicPartition, int], timeout: float | None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        with self._driver.owned():
            deadline_ms = self._driver.deadline_ms(timeout)
            with self._driver.io.lock:
                operation = self._core.lookups.ask(targets)
            found: dict[TopicPartition, OffsetAndTimestamp | None] = await self._driver.result(
                operation, deadline_ms, "looking up offsets", self._core.lookups.cancel
            )
            return {tp: found[tp] for tp in targets if tp in found}

    async def partitions_for(self, topic: str, *, timeout: float | None = None) -> list[int]:
        """The topic's partition numbers; empty if there is no such topic."""
        with self._driver.owned():
            with self._driver.io.lock:
                known = self._core.metadata.view.topics.get(topic)
            if known is None or known.error_code:
                known = (await self._topics(frozenset({topic}), timeout)).get(topic)
            if known is None:
                return []
            if known.error_code not in _LEGAL_ERRORS:
                raise error_for(known.error_code, topic)
            return [p.partition for p in known.partitions]

    async def list_topics(self, *, timeout: float | None = None) -> dict[str, TopicView]:
        """Every topic this client may see."""
        with self._driver.owned():
            return await self._topics(None, timeout)

    async def _topics(self, names: frozenset[str] | None, timeout: float | None) -> dict[str, TopicView]:
        deadline_ms = self._driver.deadline_ms(timeout)
        with self._driver.io.lock:
            operation = self._core.metadata.look_up(names)
        found: dict[str, TopicView] = await self._driver.result(
            operation, deadline_ms, "asking for topics", self._core.metadata.cancel
        )
        for topic in found.values():
            if names is not None and topic.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION:
                raise InvalidTopicError(topic.name)
        return found

    # The group

    def group_metadata(self) -> GroupMetadata:
        """Generation and member id of the last completed join."""
        with self._driver.owned(), self._driver.io.lock:
            self._driver.need_group("group_metadata")
            return self._core.group_metadata()

    def is_settled(self) -> bool:
        """Whether this member has its whole assignment: no rebalance is under way, and none is due at the next poll."""
        with self._driver.owned(), self._driver.io.lock:
            return self._core.membership.is_settled

    def enforce_rebalance(self, reason: str = "") -> None:
        """Join the group again at the next poll."""
        with self._driver.owned(), self._driver.io.lock:
            self._driver.need_group("enforce_rebalance")
            self._core.membership.enforce_rebalance(reason or "rebalance enforced by user")
            self._driver.mark_stale()

    def wakeup(self) -> None:
        """Make the current or next waiting call raise WakeupError, once. Any thread and signal handler may call it."""
        self._driver.wakeup()

    def on_note(self, heard: Callable[[Note], Any] | None) -> None:
        """Call this with every Note: rebalances with causes and durations, standstill, poison records."""
        self._driver.on_note = heard

    def stalled(self) -> dict[TopicPartition, int]:
        """Partitions that have not moved for progress_timeout_ms though there is more, with the time since, in ms."""
        with self._driver.io.lock:
            return self._core.watchdog.stalled(self._driver.now())

    def metrics(self) -> dict[str, float]:
        """Every metric by Kafka's name, now; times are in ms, rates per second."""
        with self._driver.io.lock:
            return self._driver.metrics.snapshot()

    def metrics_text(self) -> str:
        """The metrics in Prometheus' text format."""
        with self._driver.io.lock:
            return self._driver.metrics.prometheus()

    async def close(
        self, timeout: float = 30.0, *, membership: Literal["default", "leave_group", "remain_in_group"] = "default"
    ) -> None:
        """Commit if auto-commit is on, leave the group, close everything, all within the timeout.

        Calling it again has no effect.
        """
        if timeout < 0:
            raise ValueError(f"a timeout is 0 s or more, not {timeout}")
        await close_consumer(self._driver, self._delivery, timeout, membership)
