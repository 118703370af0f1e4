"""Upkeep of the logs: sync them when due, delete and compact old records, forget silent producers.

Anything that waits for the disk runs on another thread, so that a slow one does not hold up requests: syncs, the chores
of logs and of the catalogue, and the files of compactions. Under `sync` all appends of a window share one sync. (Kafka:
LogManager's tasks, LogCleaner.)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from partita.broker.config import BrokerConfig
from partita.broker.storage.side_by_side import AT_ONCE, side_by_side
from partita.broker.storage.store import Store
from partita.lazy import Lazy, later
from partita.log.log_config import Durability
from partita.log.storage import StorageError, StorageFull
from partita.now import Clock
from partita.records.header import InvalidBatch

if TYPE_CHECKING:
    from concurrent import futures

    from partita.broker.storage import cut
    from partita.log import compaction
    from partita.log.partition_log import PartitionLog
    from partita.log.sync_ticket import SyncTicket
else:
    compaction = later("partita.log.compaction")
    cut = later("partita.broker.storage.cut")
    futures = later("concurrent.futures")

log = logging.getLogger("partita.broker")

CHECK_SECONDS = 1.0
"""Time between looks at the data directory, and between retries of chores that found the disk full."""
OPENED_AT_ONCE = 20
"""Partitions that a walk visits, and whose logs it opens, between two turns of the loop."""
LOOKED_AT_ONCE = 100
"""Open logs that a sync, retention or compaction looks at between two turns of the loop."""


class SyncRound:
    """One sync of everything that is due: the store's chores first, then the logs."""

    def __init__(self, chores: list[Callable[[], None]], logs: list[tuple[PartitionLog, SyncTicket]]) -> None:
        self.chores = chores
        self.logs = logs
        self.postponed: list[Callable[[], None]] = []
        self.error: Exception | None = None

    def run(self) -> None:
        """Run the sync, on any thread; many logs side by side. A failure is kept for the callers that wait."""
        try:
            for chore in self.chores:
                try:
                    chore()
                except StorageFull:
                    self.postponed.append(chore)
            syncs = [ticket.run for _, ticket in self.logs]
            side_by_side(syncs, "syncing logs", at_once=AT_ONCE if len(syncs) > AT_ONCE else 1)
        except Exception as error:
            self.error = error

    def finish(self, store: Store) -> Iterator[None]:
        """Record the outcome on the thread that uses logs and store, in steps: one for each log, then the rest.

        A failure takes the log directory offline (D7).
        """
        if self.error is not None:  # first: logs whose sync did not take place would give that as the reason
            if not isinstance(self.error, StorageError):
                log.error("a sync failed in an unexpected way", exc_info=self.error)
            store.fail(str(self.error) or repr(self.error))
        for synced, ticket in self.logs:
            synced.finish_sync(ticket)
            yield None
        store.chores = self.postponed + store.chores
        store.settle()


class Upkeep:
    """The upkeep of a process's logs. Call `start` and `stop` on the loop.

    `every_log` visits all partitions, one by one, and opens every log that is not empty: retention and compaction also
    reach logs that no client has touched since the start.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        store: Store,
        config: BrokerConfig,
        every_log: Callable[[], Iterable[PartitionLog | None]] = lambda: (),
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._store = store
        self._config = config
        self._every_log = every_log
        self._unsynced: dict[PartitionLog, None] = {}
        self._waiting: list[asyncio.Future[None]] = []
        self._sync_timer: asyncio.TimerHandle | None = None
        self._sync_due_ms = 0
        self._syncing: asyncio.Task[None] | None = None
        self._check_timer: asyncio.TimerHandle | None = None
        self._retention_timer: asyncio.TimerHandle | None = None
        self._retaining: asyncio.Task[int] | None = None
        self._cleaner_timer: asyncio.TimerHandle | None = None
        self._cleaning: asyncio.Task[int] | None = None
        self._cuts = Lazy(lambda: cut.CutsForCopies(store, clock))
        self._threads: futures.ThreadPoolExecutor | None = None
        self._is_stopped = False

    def start(self) -> None:
        """Begin; logs opened from now on are kept too."""
        if self._store.durability is not Durability.MEMORY:
            for opened in self._store.logs.values():
                self._keep(opened)
            self._store.on_opened = self._keep
            self._store.on_chore = self._chore_came
            self._check_timer = self._loop.call_later(CHECK_SECONDS, self._check)
            if self._store.chores:
                self._chore_came()
        self._retention_timer = self._loop.call_later(self._seconds("log.retention.check.interval.ms"), self._retain)
        self._cleaner_timer = self._loop.call_later(self._seconds("log.cleaner.backoff.ms"), self._clean)

    async def stop(self) -> None:
        """Let the running work end, and do the chores of the store. Closing the logs syncs the rest."""
        self._is_stopped = True
        for timer in (self._sync_timer, self._check_timer, self._retention_timer, self._cleaner_timer):
            if timer is not None:
                timer.cancel()
        self._store.on_opened = self._store.on_chore = None
        under_way = [task for task in (self._syncing, self._retaining, self._cleaning) if task is not None]
        if under_way:
            await asyncio.wait(under_way)
        for kept in self._store.logs.values():
            kept.on_unsynced = None
        if self._store.chores and self._store.failure is None:
            await self._run(SyncRound(self._take_chores(), []))
        if self._threads is not None:
            self._threads.shutdown()
            self._threads = None
        for waiting in self._waiting:
            waiting.cancel()

    def durable(self) -> asyncio.Future[None] | None:
        """Return a future that ends once everything written so far is durable; None if it is already, as in memory.

        Raises StorageError, at once or later, when the log directory is offline.
        """
        if self._store.failure is not None:
            raise StorageError(f"the log directory is offline: {self._store.failure}")
        # Appended bytes do not count here: what they promise is said by `Durability`, and each append waits for its
        # own.
        has_something = self._store.chores or any(kept.has_chores for kept in self._unsynced)
        if self._is_stopped or not (has_something or self._syncing is not None):
            return None
        waiting: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(waiting)
        if self._syncing is None:
            self._arm(self._clock.now().mono_ms)
        return waiting

    def _seconds(self, name: str) -> float:
        return self._config.int(name) / 1000

    def _in_thread(self) -> futures.ThreadPoolExecutor:
        if self._threads is None:
            self._threads = futures.ThreadPoolExecutor(2, "partita-upkeep")
        return self._threads

    def _check(self) -> None:
        self._check_timer = self._loop.call_later(CHECK_SECONDS, self._check)
        self._store.check()
        self._store.settle()
        self._cuts().look()
        if self._store.chores and self._store.failure is None:
            self._chore_came()

    # -- syncs -----------------------------------------------------------------------------------------------------

    def _keep(self, opened: PartitionLog) -> None:
        opened.on_unsynced = self._became_unsynced
        if opened.unsynced_bytes or opened.has_chores:
            self._became_unsynced(opened)

    def _became_unsynced(self, changed: PartitionLog) -> None:
        self._unsynced[changed] = None
        if self._syncing is None:
            self._arm(changed.next_sync_ms())

    def _chore_came(self) -> None:
        if self._syncing is None:
            self._arm(self._clock.now().mono_ms)

    def _arm(self, due_ms: int | None) -> None:
        if due_ms is None or (self._sync_timer is not None and self._sync_due_ms <= due_ms):
            return
        if self._sync_timer is not None:
            self._sync_timer.cancel()
        # One timer for all logs, at the earliest of their times: ten thousand logs would be as many timers.
        self._sync_due_ms = due_ms
        delay_ms = max(0, due_ms - self._clock.now().mono_ms)
        self._sync_timer = self._loop.call_later(delay_ms / 1000, self._sync)

    def _take_chores(self) -> list[Callable[[], None]]:
        chores, self._store.chores = self._store.chores, []
        return chores

    def _sync(self) -> None:
        self._sync_timer = None
        if self._store.failure is not None:
            self._tell_waiting(self._waiting)
        elif self._syncing is None:  # else its end arms the timer again
            self._syncing = self._loop.create_task(self._sync_round())

    async def _sync_round(self) -> None:
        """Sync, together, every log that is due; or all that have chores, if a caller waits for those."""
        # Callers that come during the round wait for the next one: what they have written may not be in this one.
        waiting, self._waiting = self._waiting, []
        try:
            begun: list[tuple[PartitionLog, SyncTicket]] = []
            await self._in_portions(self._begin(begun, for_chores=bool(waiting)))
            if begun or self._store.chores or waiting:
                await self._run(SyncRound(self._take_chores(), begun))
        finally:
            # Before the answers are given: a caller that goes on at once may ask for another sync.
            self._syncing = None
            self._tell_waiting(waiting)
            if not self._is_stopped:
                self._arm_for_all()

    def _begin(self, begun: list[tuple[PartitionLog, SyncTicket]], *, for_chores: bool) -> Iterator[None]:
        now = self._clock.now()
        for unsynced in tuple(self._unsynced):
            yield None
            due_ms = unsynced.next_sync_ms()
            if due_ms is None:
                self._unsynced.pop(unsynced, None)
            # Logs that are due leave together, so the device is flushed for all of them at once.
            elif due_ms <= now.mono_ms or (for_chores and unsynced.has_chores):
                ticket = unsynced.begin_sync(now)
                if ticket is not None:
                    begun.append((unsynced, ticket))

    async def _run(self, work: SyncRound) -> None:
        await self._loop.run_in_executor(self._in_thread(), work.run)
        await self._in_portions(work.finish(self._store))

    async def _in_portions(self, steps: Iterator[object]) -> None:
        """Take these steps, some between two turns of the loop; few of them at once."""
        for done, _ in enumerate(steps, 1):
            if done % LOOKED_AT_ONCE == 0:
                await asyncio.sleep(0)

    def _tell_waiting(self, waiting: list[asyncio.Future[None]]) -> None:
        failure: StorageError | None = None
        if self._store.failure is not None:
            failure = StorageError(f"the log directory is offline: {self._store.failure}")
        for future in waiting:
            if future.done():
                continue
            if failure is None:
                future.set_result(None)
            else:
                future.set_exception(failure)
        if waiting is self._waiting:
            self._waiting = []

    def _arm_for_all(self) -> None:
        if self._waiting:
            self._arm(self._clock.now().mono_ms)
        dues = [due_ms for unsynced in self._unsynced if (due_ms := unsynced.next_sync_ms()) is not None]
        self._arm(min(dues, default=None))

    # -- retention and compaction ----------------------------------------------------------------------------------

    def _retain(self) -> None:
        self._retention_timer = self._loop.call_later(self._seconds("log.retention.check.interval.ms"), self._retain)
        if self._retaining is None and self._store.failure is None:
            self._retaining = self._loop.create_task(self._retain_everywhere())

    async def _retain_everywhere(self) -> int:
        try:
            await self.open_all()
            count = 0
            for portion in self._portions():
                count += self._retain_some(portion)
                await asyncio.sleep(0)
            return count
        finally:
            self._retaining = None

    async def open_all(self) -> None:
        """Open every log that has anything in it, a few at a time between other work."""
        for visited, _ in enumerate(self._every_log(), 1):
            if visited % OPENED_AT_ONCE == 0:
                await asyncio.sleep(0)
            if self._is_stopped or self._store.failure is not None:
                return

    def retain_now(self) -> int:
        """Apply retention to every open log at once; return how many segments went.

        None does while a copy is being made. Holds the loop for some 10 µs per log.
        """
        return sum(map(self._retain_some, self._portions()))

    def _portions(self) -> Iterator[list[PartitionLog]]:
        """All logs that are open now, some at a time, with their settings of then; without those that go meanwhile."""
        directories = list(self._store.logs)
        for start in range(0, len(directories), LOOKED_AT_ONCE):
            if self._is_stopped or self._store.failure is not None:
                return
            found = map(self._store.logs.get, directories[start : start + LOOKED_AT_ONCE])
            portion = [kept for kept in found if kept is not None]
            self._store.refresh_configs(portion)
            yield portion

    def _retain_some(self, portion: list[PartitionLog]) -> int:
        now, count = self._clock.now(), 0
        expiration_ms = self._config.int("producer.id.expiration.ms")
        for kept in portion:
            # Here and not at each append: a producer that is gone costs memory, not correctness.
            kept.producers.expire(now.wall_ms, expiration_ms)
            try:
                count += 0 if self._cuts().is_held else kept.delete_old_segments(now)
            except StorageError as error:
                log.warning("retention of %s: %s", kept.directory, error)
                self._store.note_error(error)
        return count

    def _clean(self) -> None:
        if self._cleaning is None and self._store.failure is None:
            self._cleaning = self._loop.create_task(self._clean_and_go_on())

    async def _clean_and_go_on(self) -> int:
        try:
            await self.open_all()
            return await self.compact_now()
        finally:
            self._cleaning = None
            if not self._is_stopped:
                self._cleaner_timer = self._loop.call_later(self._seconds("log.cleaner.backoff.ms"), self._clean)

    async def compact_now(self, *, force: bool = False) -> int:
        """Compact every open log that is due, or with `force` every compacted one; return how many were.

        None is while a copy of the data directory is being made.
        """
        count = 0
        for portion in self._portions():
            count += await self._compact_some(portion, force=force)
            await asyncio.sleep(0)
        return count

    async def _compact_some(self, portion: list[PartitionLog], *, force: bool) -> int:
        count = 0
        for kept in portion:
            if self._cuts().is_held:
                break
            if kept.is_being_compacted or kept.failure is not None:
                continue
            if not kept.config.compact and kept.half_swapped is None:
                continue
            kept.is_being_compacted = True
            try:
                count += await self._compact(kept, force=force)
            except (StorageError, InvalidBatch) as error:
                # A log that has failed has been dealt with, or its topic was deleted and took the files along.
                if kept.failure is None:
                    log.warning("compaction of %s: %s", kept.directory, error)
                    if isinstance(error, StorageError):
                        self._store.note_error(error)
            except Exception:  # whatever it is, the other logs are compacted
                log.exception("compaction of %s failed in an unexpected way", kept.directory)
            finally:
                kept.is_being_compacted = False
        return count

    async def _compact(self, kept: PartitionLog, *, force: bool) -> bool:
        plan = compaction.plan_compaction(kept, self._clock.now(), force=force)
        if plan is None:
            return False
        await self._sync_one(kept)
        await self._loop.run_in_executor(self._in_thread(), plan.run)
        for group in plan.groups:
            new = await self._loop.run_in_executor(self._in_thread(), compaction.swap_group, kept, group)
            if kept.failure is not None:
                return False
            kept.replace_segments(group.segments, new, group.dropped_markers)
        kept.cleaned_to(plan.cleaned_to)
        return True

    async def _sync_one(self, kept: PartitionLog) -> None:
        """Sync one log now; what another sync took on is done first."""
        while self._syncing is not None:
            await asyncio.wait([self._syncing])
        ticket = kept.begin_sync(self._clock.now())
        if ticket is not None:
            self._syncing = self._loop.create_task(self._sync_alone(kept, ticket))
            await self._syncing
            if ticket.error is not None:
                raise ticket.error

    async def _sync_alone(self, kept: PartitionLog, ticket: SyncTicket) -> None:
        # No round may begin beside it. The next ticket of this log would not have the chores of this one, such as the
        # sync of a segment that was just sealed, and what comes behind that segment would count as durable too early.
        try:
            await self._run(SyncRound([], [(kept, ticket)]))
        finally:
            self._syncing = None
            if not self._is_stopped:
                self._arm_for_all()
