"""Garbage collection in a process that only runs a broker: short collections often, full ones rarely.

A full collection visits every live object, and no request is served meanwhile: half a second with a million objects.
Requests leave no reference cycles, so new objects are visited in small portions, and all of them only as often as costs
a ten-thousandth of the time.
"""

from __future__ import annotations

import asyncio
import gc
import time

YOUNG_OBJECTS, YOUNG_COLLECTIONS = 10_000, 5
"""New objects between two collections of them, and how many of those go before the next older ones are looked at."""
NEVER = 1 << 30
WHOLE_SHARE = 10_000
WHOLE_SECONDS_MIN = 60.0


class GarbageCollection:
    """Takes the place of Python's own schedule in this process."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def start(self) -> None:
        """Exclude everything loaded so far, which stays for good; then collect by this schedule."""
        gc.freeze()
        gc.set_threshold(YOUNG_OBJECTS, YOUNG_COLLECTIONS, NEVER)
        self._loop.call_later(WHOLE_SECONDS_MIN, self.collect)

    def collect(self) -> None:
        """Look at everything, and decide by how long that took when to do so again."""
        begun = time.perf_counter()
        gc.collect()
        took = time.perf_counter() - begun
        self._loop.call_later(max(WHOLE_SECONDS_MIN, took * WHOLE_SHARE), self.collect)
