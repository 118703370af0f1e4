"""An event loop in a thread of its own, for the blocking faces of the clients.

Background work (heartbeats, batches that linger) goes on there whatever the caller's thread does, and whatever a
callback raises. A loop that breaks all the same fails everything that waits for it, with the cause.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import os
import selectors
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, InvalidStateError
from typing import Any, TypeVar

from partita.net.errors import ThreadEndedError

T = TypeVar("T")
_LOG = logging.getLogger("partita.net")
_OURS = threading.local()
AFTER_FORK = "its connections and its thread belong to the parent, so make a new client in the child"


class LoopThread:
    """Start it, `run` coroutines on its loop from any other thread, stop it.

    The thread does not survive a fork: in the child, `run` raises RuntimeError and `stop` has no effect. If the loop
    breaks, `failure` says why, `run` raises it, and `on_failure` is called with it.
    """

    def __init__(self, name: str) -> None:
        self.loop = asyncio.SelectorEventLoop()
        self.failure: ThreadEndedError | None = None
        self.on_failure: Callable[[ThreadEndedError], object] | None = None
        self._lock = threading.Lock()
        self._awaited: set[Future[Any]] = set()
        self._is_stopping = False
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._thread.start()

    @property
    def is_forked(self) -> bool:
        """True in the child of a fork: the thread runs in the parent only."""
        return os.getpid() != self._pid

    def run(self, coroutine: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """The coroutine's result; its error is raised here. TimeoutError (and cancelled) after `timeout` s."""
        if self.is_forked:
            coroutine.close()
            raise RuntimeError(f"this client was made before the process forked (in process {self._pid}); {AFTER_FORK}")
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError("a blocking call was made on the client's own event loop; it would wait for itself")
        with self._lock:
            if self.failure is not None:
                coroutine.close()
                raise self.failure
            future = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
            self._awaited.add(future)
        try:
            return future.result(timeout)
        except BaseException as error:
            future.cancel()
            if isinstance(error, RuntimeError) and isinstance(error.__context__, KeyboardInterrupt):
                raise error.__context__ from None  # it came while a lock was given up, and leaving that lock failed
            if self.failure is not None and inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
                coroutine.close()  # the loop broke before it began, and would leave it never awaited
            raise
        finally:
            with self._lock:
                self._awaited.discard(future)

    def call(self, function: Callable[[], object]) -> None:
        """Have the loop call a function soon."""
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(function)

    def stop(self) -> None:
        """Cancel running tasks, end the thread and close the loop. May be called again, and on the loop itself."""
        if not self._thread.is_alive() or self.is_forked:
            return
        self._is_stopping = True
        self.call(self.loop.stop)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _main(self) -> None:
        try:
            run_unendingly(self.loop, lambda: self._is_stopping)
            left = asyncio.all_tasks(self.loop)
            for task in left:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        except BaseException as error:
            self._failed(error)
        finally:
            close_broken(self.loop)

    def _failed(self, error: BaseException) -> None:
        """The loop will run nothing any more: say so to all that wait for it, and to all who come later."""
        name = threading.current_thread().name
        failure = ThreadEndedError(f"the thread {name} has ended: {error!r}; make a new client")
        failure.__cause__ = error
        _LOG.error("%s", failure, exc_info=error)
        with self._lock:
            self.failure = failure
            awaited = list(self._awaited)
        if self.on_failure is not None:
            self.on_failure(failure)
        for future in awaited:
            with contextlib.suppress(InvalidStateError):
                future.set_exception(failure)


def run_unendingly(loop: asyncio.AbstractEventLoop, is_over: Callable[[], bool]) -> None:
    """Run the loop in a client's own thread until it is stopped.

    `sys.exit()` in a callback ends a loop, and with it the thread, but not the program: so it is logged, and the loop
    continues. Raises an error of the loop itself.
    """
    asyncio.set_event_loop(loop)
    _OURS.is_ours = True
    while True:
        try:
            loop.run_forever()
            return
        except (SystemExit, KeyboardInterrupt) as error:
            _LOG.error("%r was raised in a client's own thread, which goes on", error, exc_info=error)
            if is_over():
                return


def is_ours() -> bool:
    """True in a thread that a client has started, False in the application's threads."""
    return getattr(_OURS, "is_ours", False)


def close_broken(loop: asyncio.AbstractEventLoop) -> None:
    """Close a loop that may have lost its descriptors to others, and the connections that it still has."""
    broken = (OSError, ValueError, RuntimeError, AttributeError)  # the last: of a closed selector, since Python 3.13
    with contextlib.suppress(*broken):
        try:
            loop.close()
        except broken:
            if isinstance(loop, asyncio.SelectorEventLoop):  # its selector is closed, so `close` ended half-way
                loop._selector = selectors.SelectSelector()  # type: ignore[attr-defined]
                # `abort` would have the loop do it, which runs nothing any more: not what waits in it either.
                for transport in tuple(loop._transports.values()):  # type: ignore[attr-defined]
                    if transport._sock is not None:  # else it was closed before, and is only still held
                        transport._call_connection_lost(None)
                loop.close()
