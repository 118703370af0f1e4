"""The simulated world: one seed, one clock, one queue of events, and their history.

Everything that happens in a simulation is an event of this queue. Events that are due at the same time run in an order
drawn from the seed. Nothing in this package reads time, entropy or hash order, so that a seed is a history.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from math import log
from typing import Any, TypeVar
from zlib import crc32

from partita.now import Now

LEGEND = """\
# time in virtual ms | kind | who | what
#   >  a request leaves a client         <  its response arrives      x  the client learns it will get none
#   =  the broker has decided an answer  +  a batch of the group log is appended   *  the broker or its shard changes
#   a  assigned   r  revoked   l  lost (callbacks, with the partitions owned afterwards)
#   d  records handed to the application: partition, first-last   c  a call or state of the client
#   !  a fault is caused                 E  a rule is broken"""


class Trace:
    """Keeps all lines, or the last `tail`."""

    def __init__(self, *, keep_all: bool = False, tail: int = 60) -> None:
        self.events = 0
        self.digest = 0
        self._lines: deque[tuple[int, str, str, str]] = deque(maxlen=None if keep_all else tail)

    def add(self, ms: int, kind: str, who: str, what: str) -> None:
        """One more event: when, its kind (see `LEGEND`), who, what."""
        self.events += 1
        self.digest = crc32(f"{ms}{kind}{who} {what}".encode(), self.digest)
        self._lines.append((ms, kind, who, what))

    def events_of(self, *kinds: str) -> Iterator[tuple[int, str, str, str]]:
        """The kept events of these kinds: when, kind, who, what."""
        return (event for event in self._lines if event[1] in kinds)

    def lines(self) -> Iterator[str]:
        """The kept lines, rendered."""
        for ms, kind, who, what in self._lines:
            yield f"{ms:>8} {kind} {who:<8} {what}"


_MASK = (1 << 64) - 1
T = TypeVar("T")


class Dice:
    """Everything that is left to chance in one history. `seed` may be any text or number."""

    __slots__ = ("_state",)

    def __init__(self, seed: int | str) -> None:
        self._state = int.from_bytes(sha256(str(seed).encode()).digest()[:8], "big")

    def random(self) -> float:
        """At least 0, less than 1."""
        self._state = state = (self._state * 6364136223846793005 + 1442695040888963407) & _MASK
        return (state >> 12) * 2.0**-52

    def bits(self, count: int) -> int:
        """A number of `count` bits, at most 32."""
        self._state = state = (self._state * 6364136223846793005 + 1442695040888963407) & _MASK
        return state >> (64 - count)

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both possible."""
        return low + int(self.random() * (high - low + 1))

    def uniform(self, low: float, high: float) -> float:
        """A number from `low` to `high`."""
        return low + self.random() * (high - low)

    def chance(self, rate: float) -> bool:
        """True in `rate` of all cases."""
        return rate > 0 and self.random() < rate

    def choice(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[int(self.random() * len(items))]

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """`count` different ones of the items."""
        left = list(items)
        return [left.pop(int(self.random() * len(left))) for _ in range(count)]

    def interval(self, mean: float) -> float:
        """The time until something happens that happens every `mean` on average, at any time equally likely."""
        return -mean * log(1.0 - self.random())


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
        self._stood: list[tuple[int, int]] = []
        """When everything stood still: until when, for how long."""
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

    def stand_still(self, ms: int) -> None:
        """Let time pass in which nothing happens: what is due meanwhile comes late, all at once and in its order."""
        self._move_to(self.now.mono_ms + ms)
        self._stood.append((self.now.mono_ms, ms))

    def stood_ms(self, since_ms: int) -> int:
        """How long everything stood still since this instant."""
        return sum(ms for until_ms, ms in self._stood if until_ms > since_ms)

    def run(self, until_ms: int) -> None:
        """Do everything that is due up to `until_ms` (see `ms`), and what is late by then."""
        queue, end = self._queue, until_ms + START_MONO_MS
        while queue and (queue[0][0] <= end or queue[0][0] <= self.now.mono_ms):
            when, _, _, do, args = heapq.heappop(queue)
            self._move_to(when)
            do(*args)
        self._move_to(end)

    def saw(self, kind: str, who: str, what: str) -> None:
        """One event of the history."""
        self.trace.add(self.now.mono_ms - START_MONO_MS, kind, who, what)

    def _move_to(self, mono_ms: int) -> None:
        if mono_ms > self.now.mono_ms:
            self.now = Now(mono_ms, START_WALL_MS + mono_ms - START_MONO_MS)
