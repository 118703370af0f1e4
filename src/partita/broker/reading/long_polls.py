"""Requests that wait for logs to move: woken by the partitions that moved, answered at the latest when time is up.

Many appends of one loop turn lead to one look, which gets the partitions that moved, so that it need not read the
others again. Looks wait in line with the requests of connections, and what concerns many partitions is done in slices.
(Kafka: DelayedFetch in its purgatory.)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from partita.now import Clock
from partita.protocol.primitives import Message

if TYPE_CHECKING:
    from partita.broker.topics.catalogue import Partition
    from partita.broker.wire.contract import ConnectionHandle
    from partita.broker.wire.turns import Turns

FEW = 250
"""So many partitions are looked at, watched, or let go at once."""
Moved = Sequence["Partition"]
Look = Callable[[Moved, bool], Message | None]
"""Given the partitions that moved since the last look, return the answer; None: not enough yet.

With True as second argument time is up, and there must be an answer.
"""


class _Waiting:
    """One waiting request."""

    __slots__ = ("_moved", "_polls", "_timer", "connection", "deadline_ms", "future", "look", "partitions")

    def __init__(
        self, polls: LongPolls, partitions: Sequence[Partition], look: Look, wait_ms: int, connection: ConnectionHandle
    ) -> None:
        self._polls = polls
        self._moved: dict[Partition, None] = {}
        self.look = look
        self.partitions = partitions
        self.connection = connection
        self.deadline_ms = polls.clock.now().mono_ms + wait_ms
        self.future: asyncio.Future[Message | None] = polls.loop.create_future()
        self._timer = polls.loop.call_later(wait_ms / 1000, self.time_is_up)
        connection.on_close(self.drop)

    def notify(self, partition: Partition) -> None:
        """Note a change: look again once this turn of the loop is over."""
        if self.future.done():
            return
        if not self._moved:
            self._polls.turns.wait(self._look_again)
        self._moved[partition] = None

    def _look_again(self) -> None:
        if self.future.done():
            return
        self._answer(is_final=False)
        if self._moved and not self.future.done():
            self._polls.turns.wait(self._look_again)

    def time_is_up(self) -> None:
        """Answer with the data at hand, when it is this request's turn."""
        self._polls.turns.wait(self._answer_finally)

    def _answer_finally(self) -> None:
        if not self.future.done():
            self._answer(is_final=True)

    def _answer(self, *, is_final: bool) -> None:
        moved = tuple(islice(self._moved, FEW))
        for partition in moved:
            del self._moved[partition]
        try:
            answer = self.look(moved, is_final)
        except Exception as error:
            # Whoever awaits the future logs it: an exception must not be lost in a loop callback.
            self._end()
            self.future.set_exception(error)
            return
        if answer is not None:
            self._end()
            self.future.set_result(answer)

    def drop(self) -> None:
        """Drop the request: the connection for its answer is gone."""
        self._end()
        self.future.cancel()

    def _end(self) -> None:
        self._timer.cancel()
        self.connection.forget(self.drop)
        self._polls.forget(self)


class _Watched:
    """One partition that requests wait for, and which ones."""

    __slots__ = ("notify", "waiting")

    def __init__(self, partition: Partition) -> None:
        self.waiting: dict[_Waiting, None] = {}
        self.notify = partial(_tell, self.waiting, partition)


def _tell(waiting: Iterable[_Waiting], partition: Partition) -> None:
    for each in waiting:
        each.notify(partition)


class LongPolls:
    """All waiting requests of a process."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, turns: Turns) -> None:
        self.loop = loop
        self.clock = clock
        self.turns = turns
        self.waiting: dict[_Waiting, None] = {}
        self._watched: dict[Partition, _Watched] = {}

    def wait(
        self, partitions: Sequence[Partition], look: Look, wait_ms: int, connection: ConnectionHandle
    ) -> asyncio.Future[Message | None]:
        """Return a future of the answer that `look` gives when a partition's log moves, or after `wait_ms`."""
        waiting = self._begin(partitions, look, wait_ms, connection)
        if waiting in self.waiting:
            for partition in partitions:
                self._watch(partition, waiting)
        return waiting.future

    def wait_for_many(
        self,
        partitions: Sequence[Partition],
        has_moved: Callable[[Partition], bool],
        look: Look,
        wait_ms: int,
        connection: ConnectionHandle,
    ) -> Generator[None, None, asyncio.Future[Message | None]]:
        """The same in steps, one for each partition; those that have moved by then are looked at."""
        waiting = self._begin(partitions, look, wait_ms, connection)
        for partition in partitions:
            yield None
            if waiting.future.done():
                break
            self._watch(partition, waiting)
            if has_moved(partition):
                waiting.notify(partition)
        return waiting.future

    def _begin(
        self, partitions: Sequence[Partition], look: Look, wait_ms: int, connection: ConnectionHandle
    ) -> _Waiting:
        waiting = _Waiting(self, partitions, look, wait_ms, connection)
        # A request that was read in slices may be handled after its connection has closed: nothing would end its wait.
        if not waiting.future.done():
            self.waiting[waiting] = None
        return waiting

    def _watch(self, partition: Partition, waiting: _Waiting) -> None:
        watched = self._watched.get(partition)
        if watched is None:
            watched = self._watched[partition] = _Watched(partition)
            partition.log.watch(watched.notify)
        watched.waiting[waiting] = None

    def forget(self, waiting: _Waiting) -> None:
        """Stop the request's waiting; logs without a waiting request are no longer watched."""
        if waiting not in self.waiting:
            return
        del self.waiting[waiting]
        letting_go = self._let_go(waiting)
        if len(waiting.partitions) > FEW:
            self.turns.work_off(letting_go)
        else:
            for _ in letting_go:
                pass

    def _let_go(self, waiting: _Waiting) -> Iterator[None]:
        for partition in waiting.partitions:
            yield None
            watched = self._watched.get(partition)
            if watched is None:
                continue
            watched.waiting.pop(waiting, None)
            if not watched.waiting:
                del self._watched[partition]
                log = partition.opened_log
                if log is not None:
                    log.unwatch(watched.notify)

    def look_again(self, partition: Partition) -> None:
        """Have the requests that wait on this partition look again, though its log did not move.

        It has another leader, is gone, or a share group has records of it to give again.
        """
        watched = self._watched.get(partition)
        if watched is not None:
            watched.notify()

    def clock_jumped(self) -> None:
        """Answer requests that are due at the new time."""
        now_ms = self.clock.now().mono_ms
        for waiting in tuple(self.waiting):
            if waiting.deadline_ms <= now_ms:
                waiting.time_is_up()
