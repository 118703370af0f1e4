"""Garbage collection in a process that only runs a broker: in portions, and of everything only in quiet moments.

Python's own schedule visits every live object now and then, and no request is served meanwhile: half a second with a
million objects. Here a collection visits the newest objects alone, and what has survived two of them is not looked at
again (`gc.freeze`). So none takes longer than some milliseconds, however much the broker holds. Requests leave no
reference cycles; cycles that outlive their portion wait for the rare collection of everything.
"""

from __future__ import annotations

import asyncio
import gc
import time

NEW_OBJECTS, NEW_COLLECTIONS, PORTION_COLLECTIONS = 1000, 4, 1
"""New objects between two collections of them, how many of those go before the next older ones are looked at, and how
many of these before a portion ends: about 10,000 objects."""
WHOLE_SHARE = 10_000
WHOLE_SECONDS_MIN = 60.0
LOOK_SECONDS = 1.0
QUIET_SHARE = 0.02
"""A second of which the process uses less than this is quiet."""
LOOKS_MAX = 3600
"""Looks for a quiet second before everything is collected all the same."""


class GarbageCollection:
    """Takes the place of Python's own schedule in this process."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._looks = 0
        self._cpu_s = 0.0

    def start(self) -> None:
        """Exclude everything loaded so far, which stays for good; then collect by this schedule."""
        gc.callbacks.append(end_of_portion)
        gc.set_threshold(NEW_OBJECTS, NEW_COLLECTIONS, PORTION_COLLECTIONS)
        gc.freeze()
        _count_nothing_as_left()
        self._loop.call_later(WHOLE_SECONDS_MIN, self.look)

    def look(self) -> None:
        """Collect everything if the last second was quiet, else look again a second later."""
        now_s = time.process_time()
        used, self._cpu_s = now_s - self._cpu_s, now_s
        is_quiet = self._looks > 0 and used < QUIET_SHARE * LOOK_SECONDS
        if is_quiet or self._looks == LOOKS_MAX:
            self._looks = 0
            self._loop.call_later(max(WHOLE_SECONDS_MIN, self.collect() * WHOLE_SHARE), self.look)
        else:
            self._looks += 1
            self._loop.call_later(LOOK_SECONDS, self.look)

    def collect(self) -> float:
        """Collect everything; return how many seconds that took."""
        begun = time.perf_counter()
        gc.unfreeze()
        gc.collect()
        _count_nothing_as_left()
        return time.perf_counter() - begun


def _count_nothing_as_left() -> None:
    """Python puts a portion off while it is less than a quarter of what the last full collection has left."""
    gc.collect()


def end_of_portion(phase: str, details: dict[str, int]) -> None:
    """Set what has survived a portion apart, so that no later one looks at it; called around each collection."""
    if phase == "stop" and details["generation"] == 2:
        gc.freeze()
