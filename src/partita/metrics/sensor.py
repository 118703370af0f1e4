"""Values recorded by one sensor: a running total, and samples of the last windows.

Mirrors Kafka's SampledStat and Rate: `metrics.num.samples` windows of `metrics.sample.window.ms` and the one that is
under way; a rate is over the time that has really passed, and at least over all windows but one.
"""

from __future__ import annotations

from math import nan
from typing import NamedTuple


class Sampled(NamedTuple):
    """Summary of the windows. Rates are over `elapsed_ms`; `most` and `least` are NaN without values."""

    total: float
    recorded: int
    most: float
    least: float
    elapsed_ms: float


class _Window:
    """One window: the recorded values with their times."""

    __slots__ = ("count", "last_ms", "least", "most", "start_ms", "total")

    def __init__(self, now_ms: float) -> None:
        self.start_over(now_ms)

    def start_over(self, now_ms: float) -> None:
        self.start_ms = self.last_ms = now_ms
        self.total = 0.0
        self.count = 0
        self.most = self.least = nan


class Sensor:
    """Values of one kind. Not thread safe beyond what the interpreter's lock gives."""

    __slots__ = ("_current", "_samples", "_window_ms", "_windows", "count", "last", "last_ms", "total")

    def __init__(self, window_ms: float = 30_000, samples: int = 2) -> None:
        self._window_ms = max(1.0, window_ms)
        self._samples = samples
        self._windows: list[_Window] = []
        self._current = 0
        self.total = 0.0
        self.count = 0
        self.last = nan
        self.last_ms = -1.0
        """When the last value came; -1 before the first one."""

    def record(self, value: float, now_ms: float) -> None:
        """Add one value."""
        self.total += value
        self.count += 1
        self.last = value
        self.last_ms = now_ms
        window = self._windows[self._current] if self._windows else None
        if window is None or now_ms - window.start_ms >= self._window_ms:
            window = self._next_window(now_ms)
        window.total += value
        window.count += 1
        window.last_ms = now_ms
        if not value <= window.most:
            window.most = value
        if not value >= window.least:
            window.least = value

    def sampled(self, now_ms: float) -> Sampled:
        """The values of the last windows; windows that are over are forgotten."""
        lifetime_ms = self._window_ms * self._samples
        total, count, most, least, start_ms = 0.0, 0, nan, nan, now_ms
        for window in list(self._windows):
            if now_ms - window.last_ms >= lifetime_ms:
                window.start_over(now_ms)
            start_ms = min(start_ms, window.start_ms)
            if window.count:
                total += window.total
                count += window.count
                most = window.most if not most >= window.most else most
                least = window.least if not least <= window.least else least
        elapsed_ms = now_ms - start_ms
        full = elapsed_ms // self._window_ms
        if full < self._samples - 1:
            elapsed_ms += (self._samples - 1 - full) * self._window_ms
        return Sampled(total, count, most, least, max(elapsed_ms, self._window_ms))

    def _next_window(self, now_ms: float) -> _Window:
        if self._windows:
            self._current = (self._current + 1) % (self._samples + 1)
        if self._current == len(self._windows):
            self._windows.append(_Window(now_ms))
        else:
            self._windows[self._current].start_over(now_ms)
        return self._windows[self._current]
