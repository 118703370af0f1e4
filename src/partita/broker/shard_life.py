"""The life of one coordinator shard on the node that leads its partition: replay of the log, failures, and the end.

Groups and transactions share it. A load that fails is tried again after a pause that doubles; a log that has failed is
not replayed. (Kafka: CoordinatorRuntime's states of a shard, TransactionStateManager.)
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from partita.log.partition_log import AppendRefused, PartitionLog
from partita.log.storage import StorageError
from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import MalformedRequest
from partita.records.header import BatchHeader, InvalidBatch, iter_batches

if TYPE_CHECKING:
    from partita.broker.nodes import Cluster
    from partita.broker.topics.catalogue import Partition

log = logging.getLogger("partita.broker")

EXPECTED = (StorageError, AppendRefused, InvalidBatch, MalformedRequest)
"""Errors that end a shard's life until the next replay without being a defect of ours: logged without a traceback."""
_RETRY_MS, RETRY_MS_MAX = 50, 5000
"""How long a shard waits that failed twice in a row, before its log is replayed again; doubled each time."""


class State(Enum):
    """LOADING answers COORDINATOR_LOAD_IN_PROGRESS, FAILED and CLOSED answer NOT_COORDINATOR."""

    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    CLOSED = "closed"


LOADING, ACTIVE, FAILED, CLOSED = State


class Wording(NamedTuple):
    """How the log and the notes call a shard, its callers, and the option with the size of a slice of its load."""

    shard: str
    callers: str
    note: str
    slice_option: str


class ShardLife(ABC):
    """One shard, for one leadership. A coordinator's runner derives from it and says what is replayed and dropped."""

    wording: ClassVar[Wording]

    def __init__(self, cluster: Cluster, partition: Partition) -> None:
        self._cluster = cluster
        self._loop = cluster.loop
        self.partition = partition
        self.node_id = partition.leader
        self.leader_epoch = partition.leader_epoch
        self.state = LOADING
        self._end_offset = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._load: asyncio.Task[None] | None = None
        self._is_held = False
        self._retry: asyncio.TimerHandle | None = None
        self._failed_in_a_row = 0

    # What a runner adds

    @abstractmethod
    def configure(self, settings: Any) -> None:
        """Go on with these settings, which are of the runner's own class."""

    @abstractmethod
    def on_timer(self) -> None:
        """Do what is due."""

    @abstractmethod
    def _replay_batch(self, header: BatchHeader, batch: memoryview) -> None:
        """Take one batch of the log into the coordinator."""

    def _look_back(self) -> Iterator[object]:
        """Do, in slices, what is to be done between the replay and its end."""
        return iter(())

    @abstractmethod
    def _loaded(self) -> None:
        """The log is replayed to its end."""

    @abstractmethod
    def _dropped(self, was: State) -> None:
        """Answer all who wait with NOT_COORDINATOR, and stop watching the log; `state` is new already."""

    @abstractmethod
    def _renew(self) -> None:
        """Put a new coordinator in place of the one that was dropped."""

    @property
    def error(self) -> ErrorCode:
        """The error code while the shard is loading, failed or gone; NONE while it serves."""
        if self.state is ACTIVE:
            return ErrorCode.NONE
        loading = self.state is LOADING
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if loading else ErrorCode.NOT_COORDINATOR

    # The load

    def begin(self) -> None:
        """Replay the partition's log. A short one is replayed at once, a long one in slices between other work."""
        self._retry = None
        self._is_held = False
        self._load = _load_in_slices(
            self._loop,
            self._replay(),
            is_wanted=lambda: self.state is LOADING,
            loaded=self._loaded,
            failed=self._load_failed,
        )

    def be_held(self) -> None:
        """Be loading, as after `begin`, and do not begin before `go_on`."""
        self._is_held = True

    def go_on(self) -> None:
        """Begin the load if it was held."""
        if self._is_held and self.state is LOADING:
            self.begin()

    async def settle(self) -> None:
        """Wait for a load that was under way to notice that it is over."""
        if self._load is not None:
            self._load.cancel()
            await asyncio.gather(self._load, return_exceptions=True)

    def _replay(self) -> Iterator[object]:
        """Replay the log from its start to its end, not only to the high watermark; yields between slices."""
        # A partition that was never opened has no files yet; opening its log would create them for each of 50 shards.
        if self.partition.is_untouched:
            return
        partition_log = self.partition.log
        slice_bytes = self._cluster.config.int(self.wording.slice_option)
        offset = partition_log.log_start_offset
        while offset < partition_log.log_end_offset:
            # Up to the end, beyond the high watermark: the records are in the log and will become durable. Answers wait
            # for that.
            view = partition_log.read(offset, slice_bytes, up_to=partition_log.log_end_offset)
            if not view:
                break
            for header, batch in iter_batches(view):
                self._replay_batch(header, batch)
                offset = header.next_offset
            # No yield behind the last slice, so a short log is loaded within the call that begins it.
            if offset < partition_log.log_end_offset:
                yield True
        self._end_offset = partition_log.log_end_offset
        yield from self._look_back()

    # Failures

    def fail(self, reason: str) -> None:
        """The log has failed: callers get NOT_COORDINATOR, and nothing is replayed."""
        if self.state in (FAILED, CLOSED):
            return
        # A store that failed as a whole has said so once; 50 shards need not repeat it.
        if self._cluster.store.failure is None:
            text = "%s %d: the log is lost, %s answer NOT_COORDINATOR: %s"
            log.error(text, self.wording.shard, self.partition.index, self.wording.callers, reason)
            self._cluster.notes.control(f"{self.wording.note}shard failed", shard=self.partition.index, reason=reason)
        self._drop(FAILED)

    def _failure(self) -> str | None:
        """Why the shard's log takes no appends any more; None while it does."""
        opened = self.partition.opened_log
        return self._cluster.store.failure or (None if opened is None else opened.failure)

    def _load_failed(self, error: Exception) -> None:
        """Answer no request. The load is tried again after a pause, unless the log itself has failed."""
        log.error(
            "%s %d: load failed, %s answer NOT_COORDINATOR: %s",
            self.wording.shard,
            self.partition.index,
            self.wording.callers,
            error,
            exc_info=None if isinstance(error, EXPECTED) else error,
        )
        self._cluster.notes.control(f"{self.wording.note}load failed", shard=self.partition.index, error=str(error))
        self._drop(FAILED)
        if self._failure() is None:
            self._renewed_later()

    def _restart(self, what: str, error: Exception) -> None:
        """Drop the shard and replay the log: to clients a coordinator failover.

        The first time at once; when it fails again before anything was appended, after a pause that doubles.
        """
        failure = self._failure()
        if failure is not None:
            self.fail(failure)
            return
        reason = f"{what}: {error}"
        traceback = None if isinstance(error, EXPECTED) else error
        log.warning("%s %d is replayed: %s", self.wording.shard, self.partition.index, reason, exc_info=traceback)
        self._cluster.notes.control(f"{self.wording.note}shard replayed", shard=self.partition.index, reason=reason)
        self._drop(LOADING)
        # Reset by the first append that succeeds, not by the load: a poisoned record loads well and fails at each
        # decision.
        if self._failed_in_a_row:
            self._renewed_later()
            return
        self._failed_in_a_row = 1
        self._start_over()
        self.begin()

    def _renewed_later(self) -> None:
        self._failed_in_a_row += 1
        self._start_over()
        # The exponent is bounded, since a shard may fail for days, and Python's integers would follow.
        delay_ms = min(_RETRY_MS * 2 ** min(self._failed_in_a_row, 16), RETRY_MS_MAX)
        self._retry = self._loop.call_later(delay_ms / 1000, self._load_again)

    def _start_over(self) -> None:
        self._end_offset = 0
        self._renew()

    def _load_again(self) -> None:
        self.state = LOADING
        self.begin()

    def _drop(self, state: State) -> None:
        """End this coordinator: timers stop, and the runner answers all who wait."""
        # First the state, then the answers: a caller that is refused may ask again from within its callback.
        was, self.state = self.state, state
        for timer in (self._timer, self._retry):
            if timer is not None:
                timer.cancel()
        self._timer = self._retry = None
        self._dropped(was)

    # The timer

    def _arm_at(self, due_ms: int, call: Callable[[], None]) -> None:
        """Keep one timer, at or before this time."""
        if self._timer is not None:
            # An early timer finds nothing due and is set again. A timer that is moved for each heartbeat would cost
            # more than that.
            if self._timer_ms <= due_ms:
                return
            self._timer.cancel()
        delay_ms = max(0, due_ms - self._cluster.clock.mono_ms())
        self._timer_ms = due_ms
        self._timer = self._loop.call_later(delay_ms / 1000, call)


def _load_in_slices(
    loop: asyncio.AbstractEventLoop,
    slices: Iterator[object],
    *,
    is_wanted: Callable[[], bool],
    loaded: Callable[[], None],
    failed: Callable[[Exception], None],
) -> asyncio.Task[None] | None:
    """Replay a log: a short one at once, a long one in a task, in slices between other work.

    Ends with `loaded()`, with `failed(error)`, or with nothing once it is no longer wanted. Returns the task, if any.
    """
    try:
        # The first slice runs here. Most shards have no more, and are active before the next request is read.
        if next(slices, None) is None:
            loaded()
            return None
    except Exception as error:
        failed(error)
        return None

    async def go_on() -> None:
        try:
            for _ in slices:
                # Between slices other shards load and requests are answered with COORDINATOR_LOAD_IN_PROGRESS.
                await asyncio.sleep(0)
                if not is_wanted():
                    return
            loaded()
        except Exception as error:
            failed(error)

    return loop.create_task(go_on())


def when_durable(loop: asyncio.AbstractEventLoop, log: PartitionLog, offset: int) -> asyncio.Future[ErrorCode]:
    """NONE once the high watermark has reached `offset`, KAFKA_STORAGE_ERROR if the log fails before."""
    durable: asyncio.Future[ErrorCode] = loop.create_future()

    def look() -> None:
        reached = log.high_watermark >= offset
        if reached or log.failure is not None:
            log.unwatch(look)
            if not durable.done():
                durable.set_result(ErrorCode.NONE if reached else ErrorCode.KAFKA_STORAGE_ERROR)

    if log.high_watermark >= offset:
        durable.set_result(ErrorCode.NONE)
    else:
        log.watch(look)
    return durable
