"""How long requests took: a histogram of constant size, with mean and maximum for ever and percentiles of late.

Steps are a sixteenth of a power of two wide, so a percentile is at most 6 % too high. Percentiles cover the last two
and a half to five minutes, as Kafka's do about five. (Yammer: Histogram, ExponentiallyDecayingReservoir.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

HALF_WINDOW_SECONDS = 150.0
STEPS = 16
STEP_BITS = STEPS.bit_length()


def step_of(microseconds: int) -> int:
    """The number of the step that a time falls into; steps grow with the times."""
    shift = max(0, microseconds.bit_length() - STEP_BITS)
    return shift * STEPS + (microseconds >> shift)


def longest_of(step: int) -> int:
    """The longest time that falls into a step, in microseconds."""
    if step < 2 * STEPS:
        return step
    shift = step // STEPS - 1
    return ((step - shift * STEPS + 1) << shift) - 1


class Times:
    """Times of one kind of request, in seconds where they are given and milliseconds where they are read.

    `instant` says how many requests were answered in no time that is worth a clock's reading; they count as 0 ms.
    """

    __slots__ = ("_count", "_earlier", "_instant", "_instant_marks", "_now", "_since", "_total", "most")

    def __init__(self, now: float, instant: Callable[[], int]) -> None:
        self._instant = instant
        self._count = 0
        self._total = 0.0
        self.most = 0.0
        self._since = now
        self._now: defaultdict[int, int] = defaultdict(int)
        self._earlier: defaultdict[int, int] = defaultdict(int)
        self._instant_marks = (0, 0)
        """How many instant answers there had been when the earlier half of the window began, and when this one did."""

    def record(self, took: float, now: float) -> None:
        """Add one time."""
        if now - self._since >= HALF_WINDOW_SECONDS:
            self._turn(now)
        self._count += 1
        self._total += took
        if took > self.most:
            self.most = took
        microseconds = int(took * 1e6)
        shift = microseconds.bit_length() - STEP_BITS
        self._now[microseconds if shift <= 0 else shift * STEPS + (microseconds >> shift)] += 1

    @property
    def count(self) -> int:
        """How many times there have been."""
        return self._count + self._instant()

    @property
    def mean_ms(self) -> float:
        """The mean of all times there have been; 0 without any."""
        return self._total * 1000 / self.count if self.count else 0.0

    def percentile_ms(self, share: float, now: float) -> float:
        """A time that so large a share of the late requests did not exceed; 0 without any."""
        if now - self._since >= HALF_WINDOW_SECONDS:
            self._turn(now)
        instant = self._instant() - self._instant_marks[0]
        total = instant + sum(self._now.values()) + sum(self._earlier.values())
        seen = instant
        if seen >= share * total:
            return 0.0
        for step in sorted({*self._now, *self._earlier}):
            seen += self._now.get(step, 0) + self._earlier.get(step, 0)
            if seen >= share * total:
                return min(longest_of(step) / 1000, self.most * 1000)
        raise AssertionError("all times together are the whole")

    def _turn(self, now: float) -> None:
        """Begin another half of the window; after a long pause, both."""
        is_long_ago = now - self._since >= 2 * HALF_WINDOW_SECONDS
        instant = self._instant()
        self._earlier = defaultdict(int) if is_long_ago else self._now
        self._instant_marks = (instant if is_long_ago else self._instant_marks[1], instant)
        self._now = defaultdict(int)
        self._since = now
