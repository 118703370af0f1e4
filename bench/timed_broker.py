"""`partita broker` on a loop that measures itself: `python bench/timed_broker.py FILE [options of the broker]`.

FILE holds one double: the most CPU time, in seconds, that the loop's thread has used between two looks at its sockets,
and the thread of slices, for which the loop waits (`partita.broker.beside`).
Nothing else is served meanwhile, so this is the longest that one client made all others wait; how busy the machine is
does not show in it. Collections of all garbage (`partita.broker.garbage`) are left out: no client causes one, and they
wait for a quiet second. A reader may write 0 to begin anew.
"""

from __future__ import annotations

import asyncio
import mmap
import selectors
import sys
from pathlib import Path
from struct import Struct
from threading import get_ident
from time import clock_gettime, pthread_getcpuclockid, thread_time

import partita.cli.service.serving
from partita.broker.beside import SlicedThread
from partita.broker.garbage import GarbageCollection
from partita.cli.main import main

LONGEST = Struct("d")


class TimedSelector(selectors.DefaultSelector):
    """Measures from the end of one `select` to the beginning of the next."""

    def __init__(self, longest: mmap.mmap) -> None:
        super().__init__()
        self._longest = longest
        self._slices: list[int] = []
        """The CPU clocks of the threads of slices."""
        self._since = self._used()
        collect, live = GarbageCollection.collect, SlicedThread._live

        def left_out(collection: GarbageCollection) -> float:
            begun = thread_time()
            took = collect(collection)
            self._since += thread_time() - begun
            return took

        def counted(sliced: SlicedThread) -> None:
            self._slices.append(pthread_getcpuclockid(get_ident()))
            live(sliced)

        GarbageCollection.collect = left_out  # type: ignore[assignment, method-assign]
        SlicedThread._live = counted  # type: ignore[assignment, method-assign]

    def _used(self) -> float:
        return thread_time() + sum(map(clock_gettime, self._slices))

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for events, as the loop asks."""
        used = self._used() - self._since
        if used > LONGEST.unpack_from(self._longest)[0]:
            LONGEST.pack_into(self._longest, 0, used)
        ready: list[tuple[selectors.SelectorKey, int]] = super().select(timeout)
        self._since = self._used()
        return ready


def timed_loop(path: Path) -> asyncio.AbstractEventLoop:
    """asyncio's own loop: uvloop has no selector, and its turns are shorter."""
    with path.open("r+b") as file:
        return asyncio.SelectorEventLoop(TimedSelector(mmap.mmap(file.fileno(), LONGEST.size)))


if __name__ == "__main__":
    where = Path(sys.argv.pop(1))
    vars(partita.cli.service.serving)["new_event_loop"] = lambda: timed_loop(where)
    sys.argv[1:1] = ["broker"]
    main()
