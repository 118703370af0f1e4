"""A clock for tests."""

from __future__ import annotations

from partita.now import Now


class ManualClock:
    """A clock that moves only when told."""

    def __init__(self, mono_ms: int = 0, wall_ms: int = 1_700_000_000_000) -> None:
        self._now = Now(mono_ms, wall_ms)

    def now(self) -> Now:
        """The instant the clock was set to."""
        return self._now

    def mono_ms(self) -> int:
        """`now().mono_ms`."""
        return self._now.mono_ms

    def advance(self, ms: int) -> Now:
        """Move both clocks forward by `ms` (>= 0)."""
        if ms < 0:
            raise ValueError(f"a clock cannot go back; advance by 0 ms or more, not {ms}")
        self._now = Now(self._now.mono_ms + ms, self._now.wall_ms + ms)
        return self._now

    def set_wall_back(self, ms: int) -> None:
        """Set the wall clock back by `ms`."""
        self._now = self._now._replace(wall_ms=self._now.wall_ms - ms)
