"""Workers over one share consumer: threads of the blocking face, tasks of the asyncio face.

One loop takes as many records as workers are free, no more: a record that waits for a worker would keep others from it.
The lock of a record is renewed while its handler works, up to the limit of time for one record. (Celery: a worker with
acks_late and a prefetch of 1.)
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias

from partita.consumer.errors import WakeupError
from partita.consumer.sharing.core import ShareCore
from partita.consumer.sharing.holding import Hold, Stage, Verdict
from partita.consumer.shell.client_driver import LOG, ClientDriver
from partita.consumer.shell.sharing.delivery import ShareDelivery
from partita.consumer.shell.sharing.records import ShareRecord
from partita.wording import Note

LOOK_S = 1.0
Rejected: TypeAlias = tuple[type[Exception], ...]


@dataclass(frozen=True, slots=True)
class Terms:
    """How many workers, how long one record may take (in ms), and which exceptions reject it."""

    workers: int
    limit_ms: int | None
    rejected: Rejected

    @classmethod
    def of(cls, workers: int, time_limit: float | None, rejected: Rejected | type[Exception]) -> Terms:
        """Check what the application gave. Raises ValueError and TypeError."""
        classes = rejected if isinstance(rejected, tuple) else (rejected,)
        if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
            raise ValueError(f"workers is a whole number from 1 on, not {workers!r}")
        if time_limit is not None and not (isinstance(time_limit, int | float) and time_limit > 0):
            raise ValueError(f"time_limit is a number of seconds above 0, or None for no limit, not {time_limit!r}")
        if not all(isinstance(one, type) and issubclass(one, Exception) for one in classes):
            raise TypeError(f"rejected takes classes of exceptions such as (ValueError,), not {rejected!r}")
        return cls(workers, None if time_limit is None else int(time_limit * 1000), classes)


class Pool:
    """The loop that hands records to workers; each face adds how one worker runs."""

    def __init__(self, driver: ClientDriver[ShareCore], delivery: ShareDelivery, terms: Terms) -> None:
        self._driver = driver
        self._core = driver.core
        self._delivery = delivery
        self._terms = terms
        self._running: dict[Hold, int] = {}
        """Records in work, and when their time is over; 0: it was over, and its worker has not come back."""
        self._failure: BaseException | None = None

    def start(self, record: ShareRecord[Any, Any]) -> None:
        """Have a worker begin."""
        raise NotImplementedError

    async def drain(self, *, is_cut: bool) -> None:
        """Wait for the workers; `is_cut`: have them stop if that is possible."""
        raise NotImplementedError

    def overdue(self, hold: Hold) -> None:
        """The time for one record is over, and it was released."""

    async def run(self) -> None:
        """Hand out records until wakeup() is called; then the records in work are finished. Other errors are raised."""
        driver, core, fetching = self._driver, self._core, self._core.fetching
        is_cut = True
        with driver.owned(exclusive=True):
            self._delivery.is_pooled = True
            try:
                with driver.io.lock:
                    core.begin_poll(driver.now())
                while True:
                    await self._turn()
            except WakeupError:
                is_cut = False
            finally:
                with driver.io.lock:
                    fetching.demand = 0
                    fetching.release_waiting()
                    driver.step()
                await self.drain(is_cut=is_cut)
                with driver.io.lock:
                    fetching.demand, self._delivery.is_pooled = None, False
                    core.end_poll(driver.now())
                    driver.step()

    async def _turn(self) -> None:
        driver, core, fetching = self._driver, self._core, self._core.fetching
        with driver.io.lock:
            now, seen = driver.now(), driver.io.activity
            fetching.polled_at_ms = now.mono_ms
            self._release_overdue(now.mono_ms)
            fetching.demand = self._terms.workers - len(self._running)
            error = self._failure or core.next_error()
            holds = core.take(fetching.demand, now) if fetching.demand and error is None else []
            for hold in holds:
                hold.is_worked_on = True
                self._running[hold] = now.mono_ms + (self._terms.limit_ms or 1 << 40)
            fetching.demand -= len(holds)
            driver.step()
        if error is not None:
            raise driver.named(error)
        try:
            records = await self._delivery.records_of(holds)
        finally:
            with driver.io.lock:
                for hold in holds:
                    if hold.stage is not Stage.GIVEN:  # it could not be read, and was given back or rejected
                        self._running.pop(hold, None)
        for record in records:
            self.start(record)
        await driver.dispatch()
        driver.check()
        if not holds:
            await driver.waiter.wait(driver.io, seen, self._look_again_s())

    def _look_again_s(self) -> float:
        due = [until for until in self._running.values() if until]
        left_ms = min(due, default=1 << 40) - self._driver.mono_ms()
        return max(0.0, min(LOOK_S, left_ms / 1000))

    def _release_overdue(self, now_ms: int) -> None:
        for hold, until in self._running.items():
            if 0 < until <= now_ms:
                self._running[hold] = 0
                hold.is_worked_on = False
                if hold.stage is Stage.GIVEN and hold.verdict is None:
                    self._core.fetching.holdings.say(hold, Verdict.RELEASE)
                text = f"{hold} took longer than {self._terms.limit_ms} ms and is released"
                self._core.events.append(Note("time_limit", text))
                self.overdue(hold)
        self._core.fetching.send_said()

    def ended(self, hold: Hold, error: BaseException | None) -> None:
        """A worker has come back."""
        with self._driver.io.lock:
            was_overdue = self._running.pop(hold, 0) == 0
            if isinstance(error, Exception) and not was_overdue and not isinstance(error, self._terms.rejected):
                text = f"the handler of {hold} failed, so the record is released: {error!r}"
                self._core.events.append(Note("handler_failed", text))
            elif error is not None and not isinstance(error, Exception | asyncio.CancelledError):
                self._failure = self._failure or error
            self._driver.io.notify()


class ThreadPool(Pool):
    """Workers in threads. A thread cannot be stopped: at the end each record in work is finished."""

    def __init__(
        self, driver: ClientDriver[ShareCore], delivery: ShareDelivery, terms: Terms, handler: Callable[[Any], Any]
    ) -> None:
        super().__init__(driver, delivery, terms)
        self._handler = handler
        self._threads = ThreadPoolExecutor(terms.workers, thread_name_prefix="partita-share-worker")

    def start(self, record: ShareRecord[Any, Any]) -> None:
        """Have a thread begin."""
        self._threads.submit(self._work, record)

    def _work(self, record: ShareRecord[Any, Any]) -> None:
        error: BaseException | None = None
        try:
            self._handler(record)
        except BaseException as raised:
            error = raised
        try:
            self._delivery.acknowledging.end_here(record._hold, error, self._terms.rejected)
        except BaseException as raised:
            LOG.exception("%s is released", record._hold)
            error = raised
        self.ended(record._hold, error)

    async def drain(self, *, is_cut: bool) -> None:
        """Wait for the threads."""
        self._threads.shutdown(wait=True)


class TaskPool(Pool):
    """Workers in tasks of one event loop."""

    def __init__(
        self,
        driver: ClientDriver[ShareCore],
        delivery: ShareDelivery,
        terms: Terms,
        handler: Callable[[Any], Awaitable[Any]],
    ) -> None:
        super().__init__(driver, delivery, terms)
        self._handler = handler
        self._tasks: dict[Hold, asyncio.Task[None]] = {}

    def start(self, record: ShareRecord[Any, Any]) -> None:
        """Have a task begin."""
        hold = record._hold
        task = asyncio.get_running_loop().create_task(self._work(record))
        self._tasks[hold] = task
        task.add_done_callback(lambda _: self._left(hold))

    async def _work(self, record: ShareRecord[Any, Any]) -> None:
        hold = record._hold
        error: BaseException | None = None
        try:
            await self._handler(record)
        except BaseException as raised:
            error = raised
        try:
            await self._delivery.acknowledging.end(hold, error, self._terms.rejected)
        except BaseException as raised:
            LOG.exception("%s is released", hold)
            error = raised
        del self._tasks[hold]
        self.ended(hold, error)

    def _left(self, hold: Hold) -> None:
        """A task that was cancelled before its first step has done nothing, so its record is released here."""
        if self._tasks.pop(hold, None) is not None:
            self._delivery.acknowledging.finish(hold, asyncio.CancelledError())
            self.ended(hold, None)

    def overdue(self, hold: Hold) -> None:
        """Cancel its task, if it has begun."""
        if hold in self._tasks:
            self._tasks[hold].cancel()

    async def drain(self, *, is_cut: bool) -> None:
        """Wait for the tasks; `is_cut` cancels them, so that their records are released."""
        tasks = list(self._tasks.values())
        for task in tasks if is_cut else ():
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
