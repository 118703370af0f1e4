"""The audit log of logins, and the delay of refusals: both bounded, however often clients try. (security.md 6, 17.)

At most one failure per second is written, with the count of those that were left out. Names that peers send are
escaped and cut; passwords, tokens and proofs never get here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from partita.broker.config import BrokerConfig
from partita.broker.notes import Notes
from partita.broker.wire.contract import ConnectionHandle

log = logging.getLogger("partita.security")
LINE_EVERY_SECONDS = 1.0
WINDOW_SECONDS = 10.0
FREE_FAILURES = 20
"""So many failures of one address within the window cost the configured delay; each further one a tenth more."""
DELAY_SECONDS_MAX = 1.0
HOSTS_MAX = 1024
TEXT_CHARACTERS_MAX = 200


class LoginLog:
    """Shared by all listeners of a broker process."""

    def __init__(self, config: BrokerConfig, notes: Notes, clock: Callable[[], float]) -> None:
        """`clock` counts seconds from any start."""
        self._config = config
        self._notes = notes
        self._clock = clock
        self._failures: dict[str, int] = {}
        self._window_ends = float("-inf")
        self._next_line_at = float("-inf")
        self._unwritten = 0

    def logged_in(self, connection: ConnectionHandle, listener: str, mechanism: str) -> None:
        """A client has logged in, or renewed its login."""
        log.debug(
            "%s logged in from %s on %s by %s", ascii(str(connection.principal))[1:-1], connection.client_host,
            listener, mechanism,
        )  # fmt: skip
        self._notes.login(
            "login", principal=_shown(str(connection.principal)), host=connection.client_host, listener=listener,
            mechanism=mechanism,
        )  # fmt: skip

    def failed(self, connection: ConnectionHandle, listener: str, mechanism: str, user: str, reason: str) -> float:
        """A login failed; return for how many seconds its answer is to be held back."""
        self._write(connection.client_host, listener, _shown(mechanism), _shown(user), _shown(reason))
        return self._delay(connection.client_host)

    def _write(self, host: str, listener: str, mechanism: str, user: str, reason: str) -> None:
        now = self._clock()
        if now < self._next_line_at:
            self._unwritten += 1
            return
        self._next_line_at = now + LINE_EVERY_SECONDS
        more = f"; {self._unwritten} more since the last line" if self._unwritten else ""
        self._unwritten = 0
        who = f" as '{user}'" if user else ""
        log.info("failed authentication%s from %s on %s by %s (%s)%s", who, host, listener, mechanism, reason, more)
        self._notes.login("login-failed", user=user, host=host, listener=listener, mechanism=mechanism, reason=reason)

    def _delay(self, host: str) -> float:
        now = self._clock()
        if now >= self._window_ends or len(self._failures) >= HOSTS_MAX:
            self._failures.clear()
            self._window_ends = now + WINDOW_SECONDS
        count = self._failures[host] = self._failures.get(host, 0) + 1
        least = self._config.int("connection.failed.authentication.delay.ms") / 1000
        return max(least, min(DELAY_SECONDS_MAX, least * (1 + max(0, count - FREE_FAILURES) / 10)))


def _shown(text: str) -> str:
    return ascii(text)[1:-1][:TEXT_CHARACTERS_MAX]
