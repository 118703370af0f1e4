"""Waiting of the two faces: the blocking one on a condition, the asyncio one on a future of its own loop.

The consumer's calls are written once, as coroutines. With `BlockingWaiter` such a coroutine never suspends, and
`run_blocking` simply runs it to its end.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from partita.consumer.errors import IllegalStateError
from partita.lazy import later
from partita.net.faces import one_face_only

if TYPE_CHECKING:
    import asyncio

    from partita.consumer.shell.io_thread import IoThread
else:
    asyncio = later("asyncio")

T = TypeVar("T")
_CALLER: ContextVar[object] = ContextVar("partita_consumer_caller", default=None)
_JOIN_WITHIN_S = 5


class Waiter(Protocol):
    """Waiting, callbacks and caller identity of one face."""

    async def wait(self, io: IoThread, seen: int, seconds: float, *, for_news: bool = False) -> None:
        """Return at once if the activity is no longer `seen`, else with the next one, or news, or after `seconds`."""

    async def call(self, function: Any, *arguments: Any) -> Any:
        """Call back into the application."""

    async def shielded(self, callback: Coroutine[Any, Any, None]) -> None:
        """Run a callback to its end, even if the waiting call is cancelled."""

    async def callbacks_ended(self, seconds: float) -> None:
        """Return when no callback runs any more, or after `seconds`. Inside a callback it returns at once."""

    async def joined(self, thread: threading.Thread | None) -> None:
        """Wait until the I/O thread has ended."""

    async def offload(self, work: Callable[[], None]) -> None:
        """Run `work`, which may block: beside the event loop, if there is one."""

    def identity(self) -> object:
        """The calling thread or task."""


class BlockingWaiter:
    """Blocks the calling thread."""

    async def wait(self, io: IoThread, seen: int, seconds: float, *, for_news: bool = False) -> None:
        """Block until the activity is no longer `seen`, at most `seconds`."""
        try:
            with io.lock:  # Ctrl-C inside of `Condition.__enter__` would leave it taken
                if io.activity == seen:
                    (io.news if for_news else io.changed).wait(seconds)
        except RuntimeError as error:
            # Ctrl-C came while `wait` took the lock again: the lock is not held then, and leaving it fails.
            if isinstance(error.__context__, KeyboardInterrupt):
                raise error.__context__ from None
            raise

    async def call(self, function: Any, *arguments: Any) -> Any:
        """Call the function. Raises IllegalStateError for a coroutine function."""
        result = function(*arguments)
        if inspect.isawaitable(result):
            if inspect.iscoroutine(result):
                result.close()
            raise IllegalStateError("a coroutine function cannot be called back from the blocking consumer; use def")
        return result

    async def shielded(self, callback: Coroutine[Any, Any, None]) -> None:
        """Run the callback in this thread."""
        await callback

    async def callbacks_ended(self, seconds: float) -> None:
        """Callbacks run in the calling thread, so none runs beside it."""

    async def joined(self, thread: threading.Thread | None) -> None:
        """Block until the I/O thread has ended, at most five seconds."""
        if thread is not None:
            thread.join(_JOIN_WITHIN_S)

    async def offload(self, work: Callable[[], None]) -> None:
        """Do it in this thread."""
        work()

    def identity(self) -> object:
        """The calling thread."""
        return threading.get_ident()


class AsyncWaiter:
    """Suspends the calling task. Callbacks run in separate tasks, which survive a cancelled caller."""

    def __init__(self) -> None:
        self._callbacks: set[asyncio.Task[None]] = set()

    async def wait(self, io: IoThread, seen: int, seconds: float, *, for_news: bool = False) -> None:
        """Suspend until the activity is no longer `seen`, at most `seconds`."""
        loop, waiters = asyncio.get_running_loop(), io.news_waiters if for_news else io.waiters
        future: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_finish, future)

        with io.lock:
            if io.activity != seen:
                return
            waiters.append(wake)
        handle = loop.call_later(max(0.0, seconds), _finish, future)
        try:
            await future
        finally:
            handle.cancel()
            with io.lock:
                if wake in waiters:
                    waiters.remove(wake)

    async def call(self, function: Any, *arguments: Any) -> Any:
        """Call the function, and await its result if that is awaitable."""
        result = function(*arguments)
        return await result if inspect.isawaitable(result) else result

    async def shielded(self, callback: Coroutine[Any, Any, None]) -> None:
        """Run the callback in a task that survives a cancelled caller."""
        caller = self.identity()

        async def run() -> None:
            _CALLER.set(caller)
            await callback

        task = asyncio.get_running_loop().create_task(run())
        self._callbacks.add(task)
        task.add_done_callback(self._callbacks.discard)
        await asyncio.shield(task)

    async def callbacks_ended(self, seconds: float) -> None:
        """Wait for callbacks that outlived their caller."""
        if self._callbacks and asyncio.current_task() not in self._callbacks:
            await asyncio.wait(self._callbacks, timeout=seconds)

    async def joined(self, thread: threading.Thread | None) -> None:
        """Wait until the I/O thread has ended, without blocking the loop."""
        if thread is not None and thread.is_alive():
            await asyncio.get_running_loop().run_in_executor(None, thread.join, _JOIN_WITHIN_S)

    async def offload(self, work: Callable[[], None]) -> None:
        """Do it in another thread, so that the loop is not blocked."""
        await asyncio.to_thread(work)

    def identity(self) -> object:
        """The calling task; inside a callback the task whose call runs it."""
        return _CALLER.get() or asyncio.current_task()


def run_blocking(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    coroutine.close()
    raise IllegalStateError(one_face_only("Consumer"))


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
