"""`partita broker` on a loop that measures itself: `python bench/timed_broker.py FILE [options of the broker]`.

FILE holds one double: the most CPU time, in seconds, that the loop's thread has used between two looks at its sockets.
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
from time import thread_time

import partita.cli.broker
from partita.broker.garbage import GarbageCollection
from partita.cli.main import main

LONGEST = Struct("d")


class TimedSelector(selectors.DefaultSelector):
    """Measures from the end of one `select` to the beginning of the next."""

    def __init__(self, longest: mmap.mmap) -> None:
        super().__init__()
        self._longest = longest
        self._since = thread_time()
        collect = GarbageCollection.collect

        def left_out(collection: GarbageCollection) -> float:
            begun = thread_time()
            took = collect(collection)
            self._since += thread_time() - begun
            return took

        GarbageCollection.collect = left_out  # type: ignore[assignment, method-assign]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for events, as the loop asks."""
        used = thread_time() - self._since
        if used > LONGEST.unpack_from(self._longest)[0]:
            LONGEST.pack_into(self._longest, 0, used)
        ready: list[tuple[selectors.SelectorKey, int]] = super().select(timeout)
        self._since = thread_time()
        return ready


def timed_loop(path: Path) -> asyncio.AbstractEventLoop:
    """asyncio's own loop: uvloop has no selector, and its turns are shorter."""
    with path.open("r+b") as file:
        return asyncio.SelectorEventLoop(TimedSelector(mmap.mmap(file.fileno(), LONGEST.size)))


if __name__ == "__main__":
    where = Path(sys.argv.pop(1))
    vars(partita.cli.broker)["new_event_loop"] = lambda: timed_loop(where)
    sys.argv[1:1] = ["broker"]
    main()
