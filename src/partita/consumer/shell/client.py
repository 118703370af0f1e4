"""The consumer's calls for asyncio: what `async with Consumer(...) as consumer` gives.

Each call is a coroutine over the core; the I/O happens in a thread of its own, so a callback or handler that blocks
the application's loop costs no heartbeat. `blocking.Consumer` runs these same coroutines. (Kafka: Consumer,
ClassicKafkaConsumer; consumer.md 2.)
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from partita.consumer.arrow import Decode, DecodeAs
from partita.consumer.config import ConsumerConfig
from partita.consumer.errors import IllegalStateError
from partita.consumer.group.pending_commit import Kind
from partita.consumer.listener import CallbackListener, RebalanceListener
from partita.consumer.records import ConsumerRecord, ConsumerRecords
from partita.consumer.request import Note
from partita.consumer.shell.closing import close_consumer, leave_group
from partita.consumer.shell.committing import Committing
from partita.consumer.shell.delivery import Delivery
from partita.consumer.shell.driver import ConsumerShell
from partita.consumer.shell.hold import Hold
from partita.consumer.shell.look_ups import LookUps, Partitions
from partita.consumer.shell.positioning import Positioning
from partita.consumer.shell.waiting import AsyncWaiter, run_blocking
from partita.consumer.topic_partition import GroupMetadata, TopicPartition
from partita.now import Clock

if TYPE_CHECKING:
    import pyarrow as pa


class AsyncConsumer(Committing, Positioning, LookUps):
    """Reads topics as a member of a group, or given partitions on its own. Timeouts are in seconds.

    Options are keyword arguments in Kafka's names with underscores, or a dict in Kafka's own spelling.
    """

    def __init__(
        self, config: Mapping[str, Any] | None = None, /, *, clock: Clock | None = None, **options: Any
    ) -> None:
        checked = ConsumerConfig.of(config, **options)
        self._start(ConsumerShell(checked, AsyncWaiter(), strict=False, clock=clock))

    def _start(self, shell: ConsumerShell) -> None:
        self._shell = shell
        self._core = shell.core
        self._delivery = Delivery(shell)

    async def __aenter__(self) -> AsyncConsumer:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # What to read

    def subscribe(
        self,
        topics: Iterable[str] | str | None = None,
        *,
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
        on_assigned: Callable[[list[TopicPartition]], Any] | None = None,
        on_revoked: Callable[[list[TopicPartition]], Any] | None = None,
        on_lost: Callable[[list[TopicPartition]], Any] | None = None,
    ) -> None:
        """Read these topics, or all whose whole name matches `pattern`, sharing their partitions with the group.

        Replaces an earlier subscription; no topics at all unsubscribes. Joining happens in `poll`.
        """
        if (topics is None) == (pattern is None):
            raise ValueError("subscribe takes either topics or a pattern")
        names = [topics] if isinstance(topics, str) else list(topics) if topics is not None else []
        if any(not isinstance(name, str) or not name.strip() for name in names):
            raise ValueError(f"topic names must be text that is not blank, not {names!r}")
        if pattern is not None and not (pattern if isinstance(pattern, str) else pattern.pattern):
            raise ValueError("the pattern is empty; it has to match whole topic names")
        with self._shell.owned():
            self._need_group("subscribe")
            if pattern is None and not names:
                run_blocking(self._unsubscribe())
                return
            if not self._shell.config.assignors:
                raise IllegalStateError("partition_assignment_strategy is empty; subscribe needs an assignor")
            if listener is None and (on_assigned or on_revoked or on_lost):
                listener = CallbackListener(on_assigned, on_revoked, on_lost)
            with self._shell.io.lock:
                subscription = self._core.subscription
                if pattern is not None:
                    subscription.subscribe_pattern(re.compile(pattern))
                    self._core.metadata.want_topics(None)
                else:
                    subscription.subscribe_topics(names)
                    self._core.fetching.drop_topics_but(set(names))
                self._shell.listener = listener
                self._shell.mark_stale()

    def assign(self, partitions: Partitions) -> None:
        """Read exactly these partitions, outside any group's sharing. Replaces an earlier assignment."""
        wanted = [TopicPartition(*tp) for tp in partitions]
        if any(not isinstance(tp.topic, str) or not tp.topic.strip() for tp in wanted):
            raise ValueError(f"topic names must be text that is not blank, not {wanted!r}")
        with self._shell.owned():
            if not wanted:
                run_blocking(self._unsubscribe())
                return
            with self._shell.io.lock:
                if self._core.subscription.assignment and self._shell.config.enable_auto_commit:
                    self._core.commits.commit(Kind.AUTO, None)
                self._core.subscription.assign_by_user(wanted)
                self._core.positions.is_started = False

    async def unsubscribe(self) -> None:
        """Give up subscription or assignment; a group member leaves its group. Commits nothing."""
        with self._shell.owned(exclusive=True):
            await self._unsubscribe()

    async def _unsubscribe(self) -> None:
        await leave_group(self._shell, "the consumer unsubscribed from all topics")

    def assignment(self) -> set[TopicPartition]:
        """The partitions held now, by the group's sharing or by `assign`."""
        with self._shell.owned(), self._shell.io.lock:
            return set(self._core.subscription.assignment)

    def subscription(self) -> set[str]:
        """The topics asked for; with a pattern those that match so far. Empty after `assign`."""
        with self._shell.owned(), self._shell.io.lock:
            return set(self._core.subscription.topics)

    # Reading

    async def poll(self, timeout: float = 0.0, *, max_records: int | None = None) -> ConsumerRecords:
        """Records, as soon as there are some; empty at the timeout, or when only positions moved.

        `timeout` is in seconds; 0 returns what is there. At most `max_records`, else max_poll_records. Rebalance
        callbacks run in here. Raises IllegalStateError before subscribe or assign, WakeupError, what a rebalance
        callback or the cluster went wrong with, and RecordDeserializationError (see poison_policy).
        """
        limit = max_records or self._shell.config.max_poll_records
        found = await self._poll(timeout, lambda: self._delivery.take_records(limit))
        if found is None:
            return ConsumerRecords()
        if len(found):
            self._shell.metrics.consumed(len(found), found.counts())
        return self._shell.interceptors.on_consume(found)

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

        `key` and `value` are left as bytes or become str or json (a struct column). Deserializers, interceptors and
        max_poll_records are not applied. `timeout` is in seconds. Raises as `poll` does, and ConsumerError when a
        column is no valid str or json; needs `pip install 'partita[arrow]'`.
        """
        decode = DecodeAs(key, value, binary_view, headers, timestamp_unit, json_schema)
        found: pa.RecordBatch | None = await self._poll(timeout, lambda: self._delivery.take_arrow(decode))
        return found

    async def _poll(self, timeout: float, take: Callable[[], Any]) -> Any:
        shell, core = self._shell, self._core
        with shell.owned(exclusive=True):
            deadline_ms = shell.deadline_ms(timeout)
            if core.subscription.type.value == "none":
                raise IllegalStateError("nothing is subscribed or assigned; call subscribe() or assign() first")
            shell.metrics.poll_started()
            with shell.io.lock:
                core.begin_poll(shell.now())
            try:
                return await self._poll_until(deadline_ms, take)
            finally:
                with shell.io.lock:
                    core.end_poll(shell.now())
                shell.metrics.poll_ended()

    async def _poll_until(self, deadline_ms: int, take: Callable[[], Any]) -> Any:
        shell, core = self._shell, self._core
        while True:
            shell.check()
            with shell.io.lock:
                seen = shell.io.activity
                error = core.next_error()
                if error is None:
                    shell.step_if_stale() if core.fetching.buffer else shell.step()
            if error is None:
                await shell.dispatch()
                with shell.io.lock:
                    error = core.next_error()
            if error is not None:
                raise error
            if core.fetching.buffer:
                found = await take()
                if found is not None:
                    return found
            left_ms = deadline_ms - shell.now().mono_ms
            if left_ms <= 0:
                return None
            await shell.waiter.wait(shell.io, seen, left_ms / 1000)

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        while not self._shell.is_closed:
            for record in await self.poll(1.0):
                yield record

    def hold(self) -> Hold:
        """`with consumer.hold() as hold:` no rebalance takes partitions away inside, however often it polls."""
        return Hold(self._shell)

    def done(self, record: ConsumerRecord) -> bool:
        """This record is processed (commit_done_only): commits cover what is done without gaps. Any thread may call.

        False if it was not open: done before, or its partition has gone to another member.
        """
        with self._shell.io.lock:
            return self._core.done.done(TopicPartition(record.topic, record.partition), record.offset)

    # The group

    def group_metadata(self) -> GroupMetadata:
        """Generation and member id of the last completed join."""
        with self._shell.owned(), self._shell.io.lock:
            self._need_group("group_metadata")
            return self._core.group_metadata()

    def enforce_rebalance(self, reason: str = "") -> None:
        """Join the group again at the next poll."""
        with self._shell.owned(), self._shell.io.lock:
            self._need_group("enforce_rebalance")
            self._core.member.request_rejoin(reason or "rebalance enforced by user")
            self._shell.mark_stale()

    def wakeup(self) -> None:
        """Make the current or next waiting call raise WakeupError, once. Any thread and signal handler may call it."""
        self._shell.wakeup()

    def on_note(self, heard: Callable[[Note], Any] | None) -> None:
        """Call this with every Note: rebalances with causes and durations, standstill, poison records."""
        self._shell.on_note = heard

    def stalled(self) -> dict[TopicPartition, int]:
        """Partitions that have not moved for progress_timeout_ms though there is more, with the time since, in ms."""
        with self._shell.io.lock:
            return self._core.watchdog.stalled(self._shell.now())

    def metrics(self) -> dict[str, float]:
        """Every metric by Kafka's name, now; times are in ms, rates by the second."""
        with self._shell.io.lock:
            return self._shell.metrics.snapshot(self._core)

    def metrics_text(self) -> str:
        """The metrics in Prometheus' text format."""
        with self._shell.io.lock:
            return self._shell.metrics.prometheus(self._core)

    async def close(
        self, timeout: float = 30.0, *, membership: Literal["default", "leave_group", "remain_in_group"] = "default"
    ) -> None:
        """Commit if auto-commit is on, leave the group, close everything, all within the timeout. Twice is once."""
        if timeout < 0:
            raise ValueError(f"a timeout is 0 s or more, not {timeout}")
        await close_consumer(self._shell, self._delivery, timeout, membership)
