"""The simulated world: one seed, one clock, one queue of events.

Everything that happens in a simulation is an event of this queue. Events that are due at the same time run in an order
drawn from the seed. Nothing in this package reads time, entropy or hash order, so that a seed is a history.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from partita.now import Now
from partita.sim.world.dice import Dice
from partita.sim.world.trace import Trace

START_MONO_MS = 1_000
START_WALL_MS = 1_700_000_000_000


class World:
    """`at` and `after` put events into the queue, `run` lets time pass."""

    def __init__(self, seed: int, trace: Trace) -> None:
        self.seed = seed
        self.dice = Dice(seed)
        self.trace = trace
        self.now = Now(START_MONO_MS, START_WALL_MS)
        self._queue: list[tuple[int, int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._made = 0

    @property
    def ms(self) -> int:
        """Virtual milliseconds since the start."""
        return self.now.mono_ms - START_MONO_MS

    def at(self, mono_ms: int, do: Callable[..., None], *args: Any) -> None:
        """Have `do(*args)` called at this instant, or now if it is past."""
        self._made += 1
        when = max(mono_ms, self.now.mono_ms)
        heapq.heappush(self._queue, (when, self.dice.bits(16), self._made, do, args))

    def after(self, ms: int, do: Callable[..., None], *args: Any) -> None:
        """Have `do(*args)` called in `ms` milliseconds."""
        self.at(self.now.mono_ms + ms, do, *args)

    def run(self, until_ms: int) -> None:
        """Do everything that is due up to `until_ms` (see `ms`)."""
        queue, end = self._queue, until_ms + START_MONO_MS
        while queue and queue[0][0] <= end:
            when, _, _, do, args = heapq.heappop(queue)
            self._move_to(when)
            do(*args)
        self._move_to(end)

    def saw(self, kind: str, who: str, what: str) -> None:
        """One event of the history."""
        self.trace.add(self.now.mono_ms - START_MONO_MS, kind, who, what)

    def _move_to(self, mono_ms: int) -> None:
        if mono_ms != self.now.mono_ms:
            self.now = Now(mono_ms, START_WALL_MS + mono_ms - START_MONO_MS)
