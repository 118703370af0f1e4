"""Time as a parameter: what a decision may know about it.

Pure code receives a `Now`; only shells own a `Clock`. Deadlines use `mono_ms`, stored timestamps `wall_ms`.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Now(NamedTuple):
    """One instant, in milliseconds, on the monotonic and on the wall clock."""

    mono_ms: int
    wall_ms: int


class Clock(Protocol):
    """Where a shell gets its instants from."""

    def now(self) -> Now:
        """This instant."""


class ManualClock:
    """A clock that moves only when told; for tests, the simulator and an advanced broker clock."""

    def __init__(self, mono_ms: int = 0, wall_ms: int = 1_700_000_000_000) -> None:
        self._now = Now(mono_ms, wall_ms)

    def now(self) -> Now:
        """The instant the clock was set to."""
        return self._now

    def advance(self, ms: int) -> Now:
        """Move both clocks forward by `ms` (>= 0)."""
        if ms < 0:
            raise ValueError(f"a clock cannot go back; advance by 0 ms or more, not {ms}")
        self._now = Now(self._now.mono_ms + ms, self._now.wall_ms + ms)
        return self._now
