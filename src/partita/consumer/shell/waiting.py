"""How the two faces wait: the blocking one on a condition, the asyncio one on a future of its own loop.

The consumer's calls are written once, as coroutines. With `BlockingWaiter` such a coroutine never suspends, and
`run_blocking` simply runs it to its end.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

from partita.consumer.errors import IllegalStateError
from partita.consumer.shell.io_thread import IoThread

T = TypeVar("T")


class Waiter(Protocol):
    """`wait` returns when the I/O thread's `activity` is no longer `seen`, or after `seconds`."""

    async def wait(self, io: IoThread, seen: int, seconds: float) -> None:
        """Return when the activity is no longer `seen`, or after `seconds`."""

    async def call(self, function: Any, *arguments: Any) -> Any:
        """Call back into the application."""

    def identity(self) -> object:
        """Who is calling: a thread or a task."""


class BlockingWaiter:
    """Blocks the calling thread."""

    async def wait(self, io: IoThread, seen: int, seconds: float) -> None:
        """Block until the activity is no longer `seen`, at most `seconds`."""
        with io.changed:
            if io.activity == seen:
                io.changed.wait(seconds)

    async def call(self, function: Any, *arguments: Any) -> Any:
        """Call the function. Raises IllegalStateError for a coroutine function."""
        result = function(*arguments)
        if inspect.isawaitable(result):
            if inspect.iscoroutine(result):
                result.close()
            raise IllegalStateError("a coroutine function cannot be called back from the blocking consumer; use def")
        return result

    def identity(self) -> object:
        """The calling thread."""
        return threading.get_ident()


class AsyncWaiter:
    """Suspends the calling task."""

    async def wait(self, io: IoThread, seen: int, seconds: float) -> None:
        """Suspend until the activity is no longer `seen`, at most `seconds`."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_finish, future)

        with io.lock:
            if io.activity != seen:
                return
            io.waiters.append(wake)
        handle = loop.call_later(max(0.0, seconds), _finish, future)
        try:
            await future
        finally:
            handle.cancel()
            with io.lock:
                if wake in io.waiters:
                    io.waiters.remove(wake)

    async def call(self, function: Any, *arguments: Any) -> Any:
        """Call the function, and await what it returns if that can be awaited."""
        result = function(*arguments)
        return await result if inspect.isawaitable(result) else result

    def identity(self) -> object:
        """The calling task."""
        return asyncio.current_task()


def run_blocking(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    coroutine.close()
    raise IllegalStateError("this call has to wait and cannot be made without await here")


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
