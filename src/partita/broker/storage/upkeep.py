"""Keeps the logs: syncs them when due, deletes and compacts what is old, forgets silent producers.

Syncs and compactions run on another thread, so that a slow disk does not hold up requests; everything else is done on
the loop. Under `sync` all appends of a window share one sync. (Kafka: LogManager's tasks, LogCleaner.)
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from partita.broker.config import BrokerConfig
from partita.broker.storage.store import Store
from partita.log.durability import Durability
from partita.log.storage import StorageError
from partita.now import Clock
from partita.records.header import InvalidBatch

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from partita.log.partition_log import PartitionLog, SyncTicket

log = logging.getLogger("partita.broker")


class Upkeep:
    """One per process. `start` and `stop` on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, store: Store, config: BrokerConfig) -> None:
        self._loop = loop
        self._clock = clock
        self._store = store
        self._config = config
        self._unsynced: dict[PartitionLog, None] = {}
        self._sync_timer: asyncio.TimerHandle | None = None
        self._sync_due_ms = 0
        self._syncing: asyncio.Future[None] | None = None
        self._retention_timer: asyncio.TimerHandle | None = None
        self._cleaner_timer: asyncio.TimerHandle | None = None
        self._cleaning: asyncio.Future[None] | None = None
        self._threads: ThreadPoolExecutor | None = None

    def start(self) -> None:
        """Begin; logs opened from now on are kept too."""
        if self._store.durability is not Durability.MEMORY:
            for opened in self._store.logs.values():
                self._keep(opened)
            self._store.on_opened = self._keep
        self._retention_timer = self._loop.call_later(self._seconds("log.retention.check.interval.ms"), self._retain)
        self._cleaner_timer = self._loop.call_later(self._seconds("log.cleaner.backoff.ms"), self._clean)

    async def stop(self) -> None:
        """Let what is under way end. Closing the logs syncs the rest."""
        for timer in (self._sync_timer, self._retention_timer, self._cleaner_timer):
            if timer is not None:
                timer.cancel()
        self._store.on_opened = None
        under_way = [future for future in (self._syncing, self._cleaning) if future is not None]
        if under_way:
            await asyncio.wait(under_way)
        for kept in self._store.logs.values():
            kept.on_unsynced = None
        if self._threads is not None:
            self._threads.shutdown()
            self._threads = None

    def _seconds(self, name: str) -> float:
        return self._config.int(name) / 1000

    def _in_thread(self) -> ThreadPoolExecutor:
        if self._threads is None:
            from concurrent.futures import ThreadPoolExecutor

            self._threads = ThreadPoolExecutor(2, "partita-upkeep")
        return self._threads

    # -- syncs -----------------------------------------------------------------------------------------------------

    def _keep(self, opened: PartitionLog) -> None:
        opened.on_unsynced = self._became_unsynced
        if opened.unsynced_bytes:
            self._became_unsynced(opened)

    def _became_unsynced(self, changed: PartitionLog) -> None:
        self._unsynced[changed] = None
        if self._syncing is None:
            self._arm(changed.next_sync_ms())

    def _arm(self, due_ms: int | None) -> None:
        if due_ms is None or (self._sync_timer is not None and self._sync_due_ms <= due_ms):
            return
        if self._sync_timer is not None:
            self._sync_timer.cancel()
        self._sync_due_ms = due_ms
        delay_ms = max(0, due_ms - self._clock.now().mono_ms)
        self._sync_timer = self._loop.call_later(delay_ms / 1000, self._sync)

    def _sync(self) -> None:
        """Sync, together, every log that is due."""
        self._sync_timer = None
        now = self._clock.now()
        begun: list[tuple[PartitionLog, SyncTicket]] = []
        for unsynced in tuple(self._unsynced):
            due_ms = unsynced.next_sync_ms()
            if due_ms is None:
                del self._unsynced[unsynced]
            elif due_ms <= now.mono_ms:
                ticket = unsynced.begin_sync(now)
                if ticket is not None:
                    begun.append((unsynced, ticket))
        if begun:
            self._syncing = self._loop.create_task(self._run(begun))
        else:
            self._arm_for_all()

    async def _run(self, begun: list[tuple[PartitionLog, SyncTicket]]) -> None:
        def run_all() -> None:
            for _, ticket in begun:
                ticket.run()

        await self._loop.run_in_executor(self._in_thread(), run_all)
        for synced, ticket in begun:
            synced.finish_sync(ticket)
            if ticket.error is not None:
                log.error("%s takes no appends any more, its sync failed: %s", synced.directory, ticket.error)
        self._syncing = None
        self._arm_for_all()

    def _arm_for_all(self) -> None:
        dues = [due_ms for unsynced in self._unsynced if (due_ms := unsynced.next_sync_ms()) is not None]
        self._arm(min(dues, default=None))

    # -- retention and compaction ----------------------------------------------------------------------------------

    def _retain(self) -> None:
        self._retention_timer = self._loop.call_later(self._seconds("log.retention.check.interval.ms"), self._retain)
        self.retain_now()

    def retain_now(self) -> int:
        """Apply retention to every open log; return how many segments went."""
        self._store.refresh_configs()
        now, count = self._clock.now(), 0
        expiration_ms = self._config.int("producer.id.expiration.ms")
        for kept in tuple(self._store.logs.values()):
            kept.producers.expire(now.wall_ms, expiration_ms)
            try:
                count += kept.delete_old_segments(now)
            except StorageError as error:
                log.warning("retention of %s: %s", kept.directory, error)
        return count

    def _clean(self) -> None:
        if self._cleaning is None:
            self._cleaning = self._loop.create_task(self._clean_and_go_on())

    async def _clean_and_go_on(self) -> None:
        try:
            await self.compact_now()
        finally:
            self._cleaning = None
            self._cleaner_timer = self._loop.call_later(self._seconds("log.cleaner.backoff.ms"), self._clean)

    async def compact_now(self, *, force: bool = False) -> int:
        """Compact every open log that is due, or with `force` every compacted one; return how many were."""
        from partita.log.compaction import install_compacted, plan_compaction

        self._store.refresh_configs()
        count = 0
        for kept in tuple(self._store.logs.values()):
            plan = plan_compaction(kept, self._clock.now(), force=force) if kept.config.compact else None
            if plan is None:
                continue
            try:
                await self._loop.run_in_executor(self._in_thread(), plan.run)
                install_compacted(kept, plan)
                count += 1
            except (StorageError, InvalidBatch) as error:
                log.warning("compaction of %s: %s", kept.directory, error)
        return count
