"""Report once when no broker can be reached any more, and once when one answers again.

Polls return nothing in between, and the application should know why.
"""

from __future__ import annotations

from partita.consumer.request import Event
from partita.now import Now
from partita.wording import Note


class Outage:
    """`unreachable` after every failed round through all known brokers, `answered` after every answer."""

    def __init__(self, events: list[Event]) -> None:
        self._events = events
        self._since_ms: int | None = None

    @property
    def is_on(self) -> bool:
        """Can no broker be reached now?"""
        return self._since_ms is not None

    def unreachable(self, why: str, now: Now) -> None:
        """Note that no broker could be reached; `why` names those that were tried."""
        if self._since_ms is None:
            self._since_ms = now.mono_ms
            text = f"no broker can be reached; trying again until one answers. Tried: {why}"
            self._events.append(Note("no_broker", text, {"tried": why}))

    def answered(self, now: Now) -> None:
        """A broker answered: if none could be reached before, note that the outage is over."""
        if self._since_ms is not None:
            took_ms, self._since_ms = now.mono_ms - self._since_ms, None
            text = f"a broker answers again, after {took_ms / 1000:.1f} s without one"
            self._events.append(Note("broker_again", text, {"without_ms": took_ms}))
