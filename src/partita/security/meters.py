"""Meters of recent use, and the delay until it is within bounds. Times are in ms, passed in.

Mirrors Rate, TokenBucket and QuotaUtils of Apache Kafka.
"""

from __future__ import annotations

from collections import deque

WINDOW_MS = 1_000
WINDOWS = 11
"""Kafka's quota.window.size.seconds and quota.window.num."""
_DELAY_MS_MAX = 2**31 - 1
"""The longest delay that an answer can say."""


class RateMeter:
    """A rate over the last windows. Right after a pause it counts as if the time before had been quiet."""

    __slots__ = ("_windows", "last_ms")

    def __init__(self) -> None:
        self._windows: deque[list[float]] = deque()
        """Begin and sum of each window."""
        self.last_ms = 0.0

    def record(self, amount: float, now_ms: float) -> None:
        """Count usage now."""
        if not self._windows or now_ms - self._windows[-1][0] >= WINDOW_MS:
            self._windows.append([now_ms, 0.0])
        self._windows[-1][1] += amount
        self.last_ms = now_ms

    def throttle_ms(self, limit: float, now_ms: float) -> int:
        """Time without usage until the rate is at most `limit` a second; 0 if it is."""
        while self._windows and now_ms - self._windows[0][0] >= WINDOWS * WINDOW_MS:
            self._windows.popleft()
        if not self._windows:
            return 0
        span_ms = now_ms - self._windows[0][0]
        missing = WINDOWS - 1 - int(span_ms // WINDOW_MS)
        span_ms += max(0, missing) * WINDOW_MS
        rate = sum(amount for _, amount in self._windows) * 1000 / span_ms
        return 0 if rate <= limit else round(min(_DELAY_MS_MAX, (rate - limit) / limit * span_ms))


class TokenBucket:
    """Tokens come at a rate, up to the sum of all windows. One may go into debt once."""

    __slots__ = ("_tokens", "last_ms")

    def __init__(self) -> None:
        self._tokens: float | None = None
        self.last_ms = 0.0

    def take(self, tokens: float, rate: float, now_ms: float) -> bool:
        """Take the tokens, unless there is a debt already."""
        left = self._filled(rate, now_ms)
        if left < 0:
            return False
        self._tokens = left - tokens
        return True

    def throttle_ms(self, rate: float, now_ms: float) -> int:
        """Time until the debt is paid; 0 without one."""
        return max(0, round(min(_DELAY_MS_MAX, -self._filled(rate, now_ms) / rate * 1000)))

    def _filled(self, rate: float, now_ms: float) -> float:
        burst = rate * WINDOWS * WINDOW_MS / 1000
        if self._tokens is None:
            self._tokens = burst
        else:
            self._tokens = min(burst, self._tokens + rate * (now_ms - self.last_ms) / 1000)
        self.last_ms = now_ms
        return self._tokens
