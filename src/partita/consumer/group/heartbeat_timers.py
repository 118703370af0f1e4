"""The three clocks of a group member: next heartbeat, session, time between polls (consumer.md 5.8)."""

from __future__ import annotations

from collections.abc import Callable

from partita.consumer.config import ConsumerConfig
from partita.consumer.request import Backoff
from partita.now import Now


class HeartbeatTimers:
    """All times are monotonic milliseconds."""

    def __init__(self, config: ConsumerConfig, uniform: Callable[[float, float], float]) -> None:
        self._config = config
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms, uniform)
        self._attempts = 0
        self.next_ms = 0
        self.session_ms = 0
        self.poll_ms = 0
        self.polled_at_ms = 0

    def start(self, now: Now) -> None:
        """Entering a generation restarts all three."""
        self._attempts = 0
        self.next_ms = now.mono_ms + self._config.heartbeat_interval_ms
        self.alive(now)
        self.polled(now)

    def polled(self, now: Now) -> None:
        """The application polled: the time allowed between polls starts again."""
        self.polled_at_ms = now.mono_ms
        self.poll_ms = now.mono_ms + self._config.max_poll_interval_ms

    def sent(self, now: Now) -> None:
        """A heartbeat was sent: the next one is due one interval later."""
        self.next_ms = now.mono_ms + self._config.heartbeat_interval_ms

    def alive(self, now: Now) -> None:
        """The coordinator knows us: the session starts over."""
        self._attempts = 0
        self.session_ms = now.mono_ms + self._config.session_timeout_ms

    def found(self, now: Now) -> None:
        """The coordinator was looked up: the session starts over, while back-off after failed heartbeats goes on."""
        self.session_ms = now.mono_ms + self._config.session_timeout_ms

    def failed(self, now: Now) -> None:
        """Try again after the back-off, however the heartbeat failed."""
        self.next_ms = now.mono_ms + self._backoff.after(self._attempts)
        self._attempts += 1

    def has_session_expired(self, now: Now) -> bool:
        """Was no heartbeat answered for a whole session timeout?"""
        return now.mono_ms >= self.session_ms

    def has_poll_expired(self, now: Now) -> bool:
        """Did the application not poll for max_poll_interval_ms?"""
        return now.mono_ms >= self.poll_ms

    def wait_ms(self, now: Now, *, can_send: bool = True) -> int:
        """Until one of the three is due; without a coordinator to send to, until one of the other two."""
        due_ms = min(self.session_ms, self.poll_ms)
        return max(0, (min(self.next_ms, due_ms) if can_send else due_ms) - now.mono_ms)
