"""Fetches that wait for data: looked at again whenever a log they read moves, answered at the latest when time is up.

Many appends of one loop turn lead to one new look. (Kafka: DelayedFetch in its purgatory.)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from partita.now import Clock
from partita.protocol.primitives import Message

if TYPE_CHECKING:
    from partita.broker.topics.catalogue import Partition
    from partita.broker.wire.contract import ConnectionHandle

Look = Callable[[bool], Message | None]
"""Return the answer; None: not enough yet. With True there must be an answer."""


class _Waiting:
    """One waiting request."""

    __slots__ = ("_polls", "_scheduled", "_timer", "connection", "deadline_ms", "future", "look", "partitions")

    def __init__(
        self, polls: LongPolls, partitions: Sequence[Partition], look: Look, wait_ms: int, connection: ConnectionHandle
    ) -> None:
        self._polls = polls
        self._scheduled = False
        self.look = look
        self.partitions = partitions
        self.connection = connection
        self.deadline_ms = polls.clock.now().mono_ms + wait_ms
        self.future: asyncio.Future[Message | None] = polls.loop.create_future()
        self._timer = polls.loop.call_later(wait_ms / 1000, self.time_is_up)
        for partition in partitions:
            partition.log.watch(self.notify)
        connection.on_close(self.drop)

    def notify(self) -> None:
        """Something changed: look again once this turn of the loop is over."""
        if not self._scheduled:
            self._scheduled = True
            self._polls.loop.call_soon(self._look_again)

    def _look_again(self) -> None:
        self._scheduled = False
        if not self.future.done():
            self._answer(is_final=False)

    def time_is_up(self) -> None:
        if not self.future.done():
            self._answer(is_final=True)

    def _answer(self, *, is_final: bool) -> None:
        try:
            answer = self.look(is_final)
        except Exception as error:
            # Whoever awaits the future logs it: an exception must not be lost in a loop callback.
            self._end()
            self.future.set_exception(error)
            return
        if answer is not None:
            self._end()
            self.future.set_result(answer)

    def drop(self) -> None:
        """Nobody is there to read the answer."""
        self._end()
        self.future.cancel()

    def _end(self) -> None:
        self._timer.cancel()
        for partition in self.partitions:
            log = partition.opened_log
            if log is not None:
                log.unwatch(self.notify)
        self.connection.forget(self.drop)
        self._polls.waiting.pop(self, None)


class LongPolls:
    """All waiting requests of a process."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self.loop = loop
        self.clock = clock
        self.waiting: dict[_Waiting, None] = {}

    def wait(
        self, partitions: Sequence[Partition], look: Look, wait_ms: int, connection: ConnectionHandle
    ) -> asyncio.Future[Message | None]:
        """Return a future of the answer that `look` gives when a partition's log moves, or after `wait_ms`."""
        waiting = _Waiting(self, partitions, look, wait_ms, connection)
        self.waiting[waiting] = None
        return waiting.future

    def leader_changed(self, partition: Partition) -> None:
        """Whoever waits on this partition looks again: it has another leader, or is gone."""
        for waiting in tuple(self.waiting):
            if partition in waiting.partitions:
                waiting.notify()

    def clock_jumped(self) -> None:
        """Answer what the clock of now makes due."""
        now_ms = self.clock.now().mono_ms
        for waiting in tuple(self.waiting):
            if waiting.deadline_ms <= now_ms:
                waiting.time_is_up()
