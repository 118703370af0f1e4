"""Time as a parameter: all that a decision knows of time.

Pure code receives a `Now`; only shells own a `Clock`. Deadlines use `mono_ms`, stored timestamps `wall_ms`.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Now(NamedTuple):
    """One instant, in milliseconds, on the monotonic and on the wall clock."""

    mono_ms: int
    wall_ms: int


class Clock(Protocol):
    """Source of a shell's instants."""

    def now(self) -> Now:
        """This instant."""
        ...

    def mono_ms(self) -> int:
        """`now().mono_ms`, for hot paths."""
        ...
