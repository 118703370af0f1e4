"""The machine's clocks, for shells. Pure code takes a `Now` instead."""

from __future__ import annotations

import time

from partita.now import Now


class SystemClock:
    """Milliseconds of the machine's monotonic and wall clock, plus an adjustable offset."""

    def __init__(self) -> None:
        self._ahead_ms = 0

    def now(self) -> Now:
        """This instant on both of the machine's clocks, plus what the clock was advanced by."""
        return Now(time.monotonic_ns() // 1_000_000 + self._ahead_ms, time.time_ns() // 1_000_000 + self._ahead_ms)

    def mono_ms(self) -> int:
        """`now().mono_ms`, for hot paths."""
        return time.monotonic_ns() // 1_000_000 + self._ahead_ms

    def advance(self, ms: int) -> None:
        """Let this clock run `ms` (>= 0) ahead of the machine from now on."""
        if ms < 0:
            raise ValueError(f"a clock cannot go back; advance by 0 ms or more, not {ms}")
        self._ahead_ms += ms
