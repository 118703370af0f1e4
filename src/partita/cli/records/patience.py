"""When a command that reads up to an end gives up: no broker answers any more, or nothing moves for very long."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from partita.consumer.errors import ApiTimeoutError
from partita.offsets.topic_partition import TopicPartition

if TYPE_CHECKING:
    from partita import Consumer
    from partita.wording import Note

UNREACHABLE_S = 15.0
"""How long no broker may be reachable."""
STANDSTILL_S = 120.0
"""How long nothing may move while brokers answer; a quota holds a reader back for less."""
ASK_S = 0.5
_LOGS = logging.getLogger("partita.consumer"), logging.getLogger("partita.producer")


def brief_calls(settings: Mapping[str, str], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with which each call of a consumer ends after `UNREACHABLE_S`, unless the user has set a limit."""
    said = {name.replace("_", ".") for name in (*settings, *options)}
    return {} if "default.api.timeout.ms" in said else {"default.api.timeout.ms": int(UNREACHABLE_S * 1000)}


class Patience:
    """Watches a consumer that reads up to an end, and raises when that end cannot be reached."""

    def __init__(
        self, consumer: Consumer, ends: Mapping[TopicPartition, int], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._consumer = consumer
        self._ends = ends
        self._clock = clock
        self._unreachable_since: float | None = None
        self._tried = ""
        self._positions: dict[TopicPartition, int | None] = {}
        self._moved_at = clock()
        consumer.on_note(self._hear)

    def _hear(self, note: Note) -> None:
        if note.kind == "no_broker":
            self._unreachable_since = self._clock()
            self._tried = str(note.fields.get("tried", ""))
        elif note.kind == "broker_again":
            self._unreachable_since, self._moved_at = None, self._clock()

    def behind(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return those of the consumer's `partitions` not read to their end; one without an end counts as read."""
        positions = {tp: self._position(tp) for tp in partitions if tp in self._ends}
        behind = [tp for tp, position in sorted(positions.items()) if position is None or position < self._ends[tp]]
        if not behind or positions != self._positions:
            self._positions, self._moved_at = positions, self._clock()
        return behind

    def nothing_came(self, behind: Iterable[TopicPartition]) -> None:
        """Call this after a poll without records. Raises ClickException when waiting longer makes no sense.

        This is so after `UNREACHABLE_S` without a broker, and after `STANDSTILL_S` in which no partition has moved.
        """
        self.check_reachable(UNREACHABLE_S)
        if behind and self._clock() - self._moved_at >= STANDSTILL_S:
            names = ", ".join(map(str, behind))
            raise click.ClickException(f"nothing of {names} came for {STANDSTILL_S:.0f} s; reading ended too early")

    def check_reachable(self, within_s: float) -> None:
        """Raise ClickException when no broker has been reachable for `within_s`."""
        if self._unreachable_since is None:
            return
        waited = self._clock() - self._unreachable_since
        if waited >= within_s:
            raise click.ClickException(
                f"no broker could be reached for {waited:.0f} s; the command ended too early. Tried: {self._tried}"
            )

    def _position(self, tp: TopicPartition) -> int | None:
        try:
            return self._consumer.position(tp, timeout=ASK_S)
        except ApiTimeoutError:
            return None


@contextmanager
def told_once(*, outages: bool) -> Iterator[None]:
    """Keep the clients from logging what the command's last line reports: records that were not delivered.

    `outages`: the same for a broker that goes away. A command that ends by itself reports it; one that runs until
    Ctrl-C lets the client log it at once.
    """
    hidden = {"not_delivered", "no_broker", "broker_again"} if outages else {"not_delivered"}

    def is_told_here(record: logging.LogRecord) -> bool:
        return getattr(record, "kind", None) not in hidden

    for log in _LOGS:
        log.addFilter(is_told_here)
    try:
        yield
    finally:
        for log in _LOGS:
            log.removeFilter(is_told_here)
