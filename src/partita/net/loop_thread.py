"""An event loop in a thread of its own, for the blocking faces of the clients.

Background work (heartbeats, batches that linger) goes on there whatever the caller's thread does.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")
AFTER_FORK = "its connections and its thread belong to the parent, so make a new client in the child"


def not_pickled(client: object) -> NoReturn:
    """Stands for `__reduce__` in clients. Raises TypeError: connections and threads stay in their process."""
    kind = type(client).__name__
    raise TypeError(
        f"a {kind} cannot be pickled or copied: its connections and threads belong to this process. "
        f"Hand its options on, and make a {kind} where they arrive"
    )


class OneFace:
    """Keeps a client to one of its two faces: blocking calls, or those of the object that `async with` gave."""

    def __init__(self, client: str) -> None:
        self._client = client  # the name of its class
        self._is_async = False

    def enter_async(self, *, is_used: bool) -> None:
        """Begin `async with`. Raises RuntimeError if blocking calls were made before (`is_used`)."""
        if is_used:
            raise RuntimeError(
                f"this {self._client} has made blocking calls, so its connections belong to another loop; make a "
                "new one for `async with`"
            )
        self._is_async = True

    def check_blocking(self) -> None:
        """Raise RuntimeError after `async with`: the call would run on another loop than the connections."""
        if self._is_async:
            raise RuntimeError(
                f"this {self._client} was entered with `async with`; call what that gave and await it: "
                f"`async with {self._client}(...) as {self._client.lower()}:`"
            )


class LoopThread:
    """Start it, `run` coroutines on its loop from any other thread, stop it.

    The thread does not survive a fork: in the child, `run` raises RuntimeError and `stop` has no effect.
    """

    def __init__(self, name: str) -> None:
        self.loop = asyncio.SelectorEventLoop()
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._thread.start()

    @property
    def is_forked(self) -> bool:
        """True in the child of a fork: the thread runs in the parent only."""
        return os.getpid() != self._pid

    def run(self, coroutine: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """The coroutine's result; what it raises is raised here. TimeoutError (and cancelled) after `timeout` s."""
        if self.is_forked:
            coroutine.close()
            raise RuntimeError(f"this client was made before the process forked (in process {self._pid}); {AFTER_FORK}")
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError("a blocking call was made on the client's own event loop; it would wait for itself")
        future = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        try:
            return future.result(timeout)
        except BaseException:
            future.cancel()
            raise

    def call(self, function: Callable[[], object]) -> None:
        """Have the loop call a function soon."""
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(function)

    def stop(self) -> None:
        """Cancel what still runs, end the thread and close the loop. May be called again."""
        if not self._thread.is_alive() or self.is_forked:
            return
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()

    def _main(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            left = asyncio.all_tasks(self.loop)
            for task in left:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        finally:
            self.loop.close()
