"""A few threads for work on records that would hold the event loop up: inflating, walking, compressing.

What runs there is given bytes and returns values; it touches nothing that the loop changes. Most of it is machine code
that lets the loop run meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

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
