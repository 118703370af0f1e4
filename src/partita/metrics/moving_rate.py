"""A rate per second that forgets slowly, as the load averages of Unix do. (Yammer: Meter, EWMA.)"""

from __future__ import annotations

from math import exp

TICK_MS = 5_000


class MovingRate:
    """The rate of a counter over about so many minutes, brought up to date when it is read.

    What came since the last reading counts as spread evenly over that time, in ticks of five seconds.
    """

    __slots__ = ("_alpha", "_last_count", "_last_ms", "_rate")

    def __init__(self, minutes: float, now_ms: float) -> None:
        self._alpha = 1 - exp(-TICK_MS / 60_000 / minutes)
        self._last_ms = now_ms
        self._last_count = 0
        self._rate: float | None = None

    def read(self, count: int, now_ms: float) -> float:
        """The rate, when the counter stands at `count`."""
        ticks = int((now_ms - self._last_ms) // TICK_MS)
        if ticks >= 1:
            instant = (count - self._last_count) / (now_ms - self._last_ms) * 1_000
            before = instant if self._rate is None else self._rate
            self._rate = instant + (before - instant) * (1 - self._alpha) ** ticks
            self._last_count, self._last_ms = count, now_ms
        return self._rate or 0.0
