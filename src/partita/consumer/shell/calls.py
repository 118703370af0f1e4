"""The calls of a consumer that never wait: both faces, blocking and asyncio, derive from them.

They act on the core at once, with its lock held; whatever has to be sent goes out in the I/O thread. (Kafka: Consumer,
ClassicKafkaConsumer; consumer.md 2.)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias

from partita.consumer.errors import ProcessingError
from partita.consumer.partition_state import EARLIEST, LATEST, UNKNOWN, Position
from partita.consumer.records import ConsumerRecords, K, V
from partita.consumer.shell import arguments
from partita.lazy import later
from partita.net.faces import not_pickled
from partita.offsets import committable
from partita.offsets.topic_partition import GroupMetadata, OffsetAndMetadata, TopicPartition
from partita.references import resolve_options

if TYPE_CHECKING:
    import asyncio

    from partita.consumer import config as consumer_config
    from partita.consumer import request as requests
    from partita.consumer.group import commits
    from partita.consumer.listener import RebalanceListener
    from partita.consumer.partition_state import PartitionState, Reset
    from partita.consumer.reading import partition_ends
    from partita.consumer.records import ConsumerRecord
    from partita.consumer.shell import closing, records_in_hand, subscribing
    from partita.consumer.shell import delivery as deliveries
    from partita.consumer.shell.arguments import Partitions
    from partita.consumer.shell.driver import ConsumerDriver
    from partita.consumer.subscription import SubscriptionPattern
    from partita.offsets.committable import Committable
    from partita.wording import Note
else:  # a program that imports a consumer does not make one at once, or ever
    asyncio = later("asyncio")
    closing = later("partita.consumer.shell.closing")
    commits = later("partita.consumer.group.commits")
    consumer_config = later("partita.consumer.config")
    deliveries = later("partita.consumer.shell.delivery")
    partition_ends = later("partita.consumer.reading.partition_ends")
    records_in_hand = later("partita.consumer.shell.records_in_hand")
    requests = later("partita.consumer.request")
    subscribing = later("partita.consumer.shell.subscribing")

Config: TypeAlias = Mapping[str, Any] | None
LOOP_POLL_S = 1.0
"""Timeout of a loop for a `poll` that a subclass has overridden."""


def checked(config: Config, options: Mapping[str, Any], key: object, value: object) -> consumer_config.ConsumerConfig:
    """The options of a new consumer. Deserializers that are not given may still come from the config dict."""
    given = {"key_deserializer": key, "value_deserializer": value}
    chosen = {name: one for name, one in given.items() if one is not None}
    return consumer_config.ConsumerConfig.of(resolve_options(config), **resolve_options(options), **chosen)


def is_own(face: object, name: str, of_library: object) -> bool:
    """Has this object a call of its own in place of the library's, by a subclass or a patch?"""
    return name in vars(face) or getattr(type(face), name) is not of_library


class ConsumerCalls(Generic[K, V]):
    """Calls to subscribe, seek and commit; and to look at known state."""

    __reduce__ = not_pickled

    @classmethod
    def _over(cls, driver: ConsumerDriver, delivery: deliveries.Delivery | None = None) -> Self:
        """A consumer over a driver made elsewhere (with another clock, or without sockets)."""
        consumer = cls.__new__(cls)
        consumer._start(driver, delivery)
        return consumer

    def _start(self, driver: ConsumerDriver, delivery: deliveries.Delivery | None = None) -> None:
        self._driver = driver
        self._core = driver.core
        if delivery is None:
            delivery = deliveries.Delivery(driver)
            closing.opened(driver, delivery)
        self._delivery = delivery

    def _goal(self) -> partition_ends.ReadToEnd:
        with self._driver.io.lock:
            return partition_ends.ReadToEnd(self._core.ends, self._core.member, self._core.subscription)

    def _fill(self, records: ConsumerRecords[K, V]) -> None:
        """Take in hand the records of an overridden `poll`."""
        with self._driver.io.lock:
            self._delivery.in_hand.fill(records)

    # What to read

    def subscribe(
        self,
        topics: Iterable[str] | str | None = None,
        listener: RebalanceListener | object = None,
        *,
        pattern: str | re.Pattern[str] | SubscriptionPattern | None = None,
        on_assigned: Callable[[list[TopicPartition]], Any] | None = None,
        on_revoked: Callable[[list[TopicPartition]], Any] | None = None,
        on_lost: Callable[[list[TopicPartition]], Any] | None = None,
    ) -> None:
        """Read these topics, or all whose whole name matches `pattern`, sharing their partitions with the group.

        With group_protocol consumer the broker can match the names itself: `pattern=SubscriptionPattern(...)`. Replaces
        an earlier subscription; no topics at all unsubscribes. Joining happens in `poll`. A listener is any object with
        methods of a RebalanceListener.
        """
        heard = arguments.listener_of(listener, on_assigned, on_revoked, on_lost)
        subscribing.subscribe(self._driver, topics, pattern, heard)

    def assign(self, partitions: Partitions) -> None:
        """Read exactly these partitions, outside any group's sharing. Replaces an earlier assignment."""
        subscribing.assign(self._driver, partitions)

    def incremental_assign(self, partitions: Partitions) -> None:
        """Read these partitions besides those that were given to `assign`, whose positions stay as they are."""
        subscribing.change(self._driver, partitions, "incremental_assign")

    def incremental_unassign(self, partitions: Partitions) -> None:
        """Stop reading these partitions of those that were given to `assign`. Raises IllegalStateError for another."""
        subscribing.change(self._driver, partitions, "incremental_unassign")

    def assignment(self) -> set[TopicPartition]:
        """The partitions held now, by the group's sharing or by `assign`."""
        with self._driver.owned(), self._driver.io.lock:
            return set(self._core.subscription.assignment)

    def subscription(self) -> set[str]:
        """The topics asked for; with a pattern those that match so far. Empty after `assign`.

        Of a `SubscriptionPattern` only the broker knows all that match: these are the ones that this member reads.
        """
        with self._driver.owned(), self._driver.io.lock:
            subscription = self._core.subscription
            if subscription.server_pattern is not None:
                return {tp.topic for tp in subscription.assignment}
            return set(subscription.topics)

    # Reading

    def at_end(self) -> bool:
        """Whether the application has read every assigned partition to its end, as of the brokers' last answers.

        False before the first answer of the brokers, and while nothing is assigned. Sends no request.
        """
        with self._driver.owned(), self._driver.io.lock:
            return self._core.ends.are_reached(self._core.ends.known())

    def hold(self, records: ConsumerRecords[K, V]) -> records_in_hand.Hold:
        """Process the records of a poll while no rebalance revokes partitions.

        `with consumer.hold(consumer.poll(1.0)) as held:`, then `for record in held:`. A rebalance under way ends before
        the first record; then the group waits for this member until the block ends, at most max_poll_interval_ms.
        Unpassed records are not lost: the next poll returns it, or the next owner of its partition reads it.
        """
        taken = arguments.records(records)
        return records_in_hand.Hold(self._driver, self._delivery.in_hand, self._delivery.poll, taken)

    def done(self, record: ConsumerRecord[Any, Any], *, after: Any = None) -> bool:
        """Mark this record as processed (commit_done_only): commits cover records done without gaps. Any thread may
        call.

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
        failure = asyncio.CancelledError("the work was cancelled") if ended.cancelled() else ended.exception()
        if failure is None:
            self.done(record)
            return
        tp = TopicPartition(record.topic, record.partition)
        with self._driver.io.lock:
            self._core.events.append(requests.Failed(ProcessingError(tp, record.offset, failure)))
            self._driver.io.notify()

    # Committed offsets

    def commit_async(
        self,
        offsets: Committable | None = None,
        callback: Callable[[dict[TopicPartition, Any], Any], Any] | None = None,
    ) -> None:
        """Commit without waiting and without retries; `callback(offsets, error)` runs in a later poll or commit.

        `offsets` are as in `commit`.
        """
        wanted = committable.offsets(offsets)
        with self._driver.owned():
            self._driver.need_group("commit_async")
            with self._driver.io.lock:
                if self._core.member.fenced is not None:
                    raise self._core.member.fenced
                self._delivery.in_hand.pass_committed(wanted)
                self._core.commits.commit(commits.Kind.ASYNC, wanted, callback)
                self._driver.step()

    # Positions

    def seek(self, partition: tuple[str, int], offset: int | OffsetAndMetadata) -> None:
        """Continue reading at this offset. Sends no request; records buffered from elsewhere are dropped.

        Raises IllegalStateError if the partition is not assigned, ValueError for an offset below 0.
        """
        target = offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
        arguments.whole_number(target.offset, "an offset")
        tp = committable.partition(partition, "seek")
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

    def pause(self, partitions: Partitions | None = None) -> None:
        """Return nothing from these partitions until `resume`; buffered records are kept.

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
            lag = self._core.current_lag(committable.partition(partition, "current_lag"))
            self._driver.step()
            return lag

    def lag(self) -> dict[TopicPartition, int]:
        """`current_lag` of every assigned partition for which it is known."""
        with self._driver.owned(), self._driver.io.lock:
            committed = self._driver.config.read_committed
            lags = {tp: s.lag(read_committed=committed) for tp, s in self._core.subscription.assignment.items()}
            return {tp: lag for tp, lag in lags.items() if lag is not None}

    def highwater(self, partition: tuple[str, int]) -> int | None:
        """The high watermark by the last answer, without a request; None before there was one.

        Raises IllegalStateError if the partition is not assigned. `end_offsets` asks the brokers.
        """
        return _known(self._state(partition, "highwater").high_watermark)

    def last_stable_offset(self, partition: tuple[str, int]) -> int | None:
        """The last stable offset by the last answer, as `highwater`: behind it there may be open transactions."""
        return _known(self._state(partition, "last_stable_offset").last_stable_offset)

    def _state(self, partition: tuple[str, int], call: str) -> PartitionState:
        with self._driver.owned(), self._driver.io.lock:
            return self._core.subscription.state(committable.partition(partition, call))

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

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Log in as this user at new connections and when a login is renewed (PLAIN, SCRAM). From any thread."""
        self._driver.config.values["security"].set_login(username, password)

    def on_note(self, heard: Callable[[Note], Any] | None) -> None:
        """Call this with every Note: rebalances with causes and durations, standstills, poison records."""
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


def _known(offset: int) -> int | None:
    return None if offset == UNKNOWN else offset
