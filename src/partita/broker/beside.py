"""Work beside the event loop: straight-line code in slices, long work on records, and requests that are served alone.

Generated codecs are plain functions and cannot yield. A large message is therefore read or written on a thread of its
own, in slices that take turns with all other work (`partita.broker.wire.turns`). The event loop waits for each slice to
end, so at no time do two threads work: what runs in slices may touch whatever a handler may. What `Workers` run beside
the loop (inflating, walking, compressing) may not. Very large requests are served one after the other, since each takes
some hundred bytes of memory for each element.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock, Thread
from typing import Any, TypeVar

from partita.broker.wire.turns import SLICE_SECONDS, Turns

T = TypeVar("T")
Pause = Callable[[], None]
"""Called often by code that runs in slices; comes back at once, or in the next slice."""
Work = Callable[[Pause], Any]


class SlicedThread:
    """One thread, started at the first use. First come, first served: a connection has one such request at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, turns: Turns) -> None:
        self._loop = loop
        self._turns = turns
        self._in_line: deque[tuple[Work, asyncio.Future[Any]]] = deque()
        self._thread: Thread | None = None
        self._begin, self._ended = Lock(), Lock()
        """Held while the thread may not work, and while the loop must wait."""
        self._begin.acquire()
        self._ended.acquire()
        self._slice_end = 0.0
        self._done: Callable[[], None] | None = None
        self._is_stopped = False

    def run(self, work: Callable[[Pause], T]) -> asyncio.Future[T]:
        """Run `work` in slices; return a future of its result."""
        result: asyncio.Future[T] = self._loop.create_future()
        self._in_line.append((work, result))
        if len(self._in_line) == 1:
            self._turns.wait(self._run_slice)
        return result

    def stop(self) -> None:
        """Begin nothing more. Unfinished work is cancelled."""
        self._is_stopped = True
        for _, result in self._in_line:
            result.cancel()
        if self._thread is not None:
            self._begin.release()

    def _run_slice(self) -> None:
        """Let the thread work for a slice while the loop waits; afterwards get in line again if there is more."""
        if self._is_stopped:
            return
        if self._thread is None:
            self._thread = Thread(target=self._live, name="partita-slices", daemon=True)
            self._thread.start()
        self._begin.release()
        self._ended.acquire()
        done, self._done = self._done, None
        if done is not None:
            self._in_line.popleft()
            done()
        if self._in_line:
            self._turns.wait(self._run_slice)

    # -- on the thread -------------------------------------------------------------------------------------------------

    def _live(self) -> None:
        while True:
            self._await_slice()
            if self._is_stopped:
                return
            work, result = self._in_line[0]
            try:
                value = work(self._pause)
            except _Stopped:
                return
            except Exception as error:
                self._done = _unless_done(result, result.set_exception, error)
            else:
                self._done = _unless_done(result, result.set_result, value)
            self._ended.release()

    def _pause(self) -> None:
        if time.perf_counter() < self._slice_end:
            return
        self._ended.release()
        self._await_slice()
        if self._is_stopped:
            raise _Stopped

    def _await_slice(self) -> None:
        self._begin.acquire()
        self._slice_end = time.perf_counter() + SLICE_SECONDS


class _Stopped(BaseException):
    """Unwinds what runs on the thread when there will be no further slice."""


def _unless_done(result: asyncio.Future[Any], settle: Callable[[Any], None], outcome: Any) -> Callable[[], None]:
    """Return the loop's callback for the outcome: it does nothing if the result is no longer awaited."""
    return lambda: None if result.done() else settle(outcome)


THREADS = 2


class Workers:
    """The threads of one broker, started at the first use."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pool: ThreadPoolExecutor | None = None

    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Run `work` on one of the threads; first come, first served."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(THREADS, "partita-records")
        return self._loop.run_in_executor(self._pool, work)

    def stop(self) -> None:
        """Begin no more work; running work ends by itself."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


Begin = Callable[[Callable[[], None]], None]
"""Called at a request's turn, with a function to call once when the request has ended."""


class OneAtATime:
    """The line of the requests that wait. First come, first served."""

    def __init__(self) -> None:
        self._in_line: deque[Begin] = deque()

    def run(self, begin: Begin) -> None:
        """Call `begin` when all that came before have ended; at once when there are none."""
        self._in_line.append(begin)
        if len(self._in_line) == 1:
            begin(self._end)

    def _end(self) -> None:
        self._in_line.popleft()
        if self._in_line:
            self._in_line[0](self._end)
