"""Shares the event loop's time between connections: none is served for longer than a turn while others wait.

A connection that has requests left when its turn is over waits in line; those in line go on one after the other, a
round at a time, and between two rounds the loop does everything else. The reference is Kafka, which takes one request
of a connection at a time. (Kafka: SocketServer's muted channels; H34.)
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from partita.protocol.primitives import Structure

TURN_SECONDS = 0.0005
"""Longest turn of one connection; a request that was begun is always finished."""
SLICE_SECONDS = 0.001
"""Longest slice of a long request; an element that was begun is always finished."""
ROUND_SECONDS = 0.002
"""Time for those in line before the loop looks for other work."""


class Turns:
    """The line of connections with requests left."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float] = time.perf_counter) -> None:
        self._loop = loop
        self.clock = clock
        """Returns seconds, for work that has to end soon."""
        self._in_line: deque[Callable[[], None]] = deque()
        self._is_scheduled = False

    def begin(self) -> float:
        """Begin a turn; return when it is over, for `is_over`. The more connections wait, the shorter it is."""
        return self.clock() + TURN_SECONDS / (1 + len(self._in_line))

    def is_over(self, end: float) -> bool:
        """Whether a turn that was to end at `end` is over."""
        return self.clock() >= end

    def wait(self, go_on: Callable[[], None]) -> None:
        """Get in line: `go_on` is called once, when it is this connection's turn again."""
        self._in_line.append(go_on)
        self._schedule()

    def work_off(self, steps: Iterator[object]) -> None:
        """Take these steps, a slice of them whenever it is their turn."""
        self.wait(partial(self._work_slice, steps))

    async def worked_off(self, steps: Iterator[object]) -> None:
        """Take these steps as `work_off` does; return after the last one, or raise what it raised."""
        done: asyncio.Future[None] = self._loop.create_future()
        self.work_off(_until(steps, done))
        await done

    def _work_slice(self, steps: Iterator[object]) -> None:
        end = self.clock() + SLICE_SECONDS
        for _ in steps:
            if self.clock() >= end:
                self.work_off(steps)
                return

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._serve_round)

    def _serve_round(self) -> None:
        """Serve those in line now, each at most once, until the round's time is over."""
        self._is_scheduled = False
        end = self.clock() + ROUND_SECONDS
        try:
            for _ in range(len(self._in_line)):
                self._in_line.popleft()()
                if self.clock() >= end:
                    break
        finally:
            if self._in_line:
                self._schedule()


def _until(steps: Iterator[object], done: asyncio.Future[None]) -> Iterator[object]:
    try:
        yield from steps
    except Exception as error:
        if not done.done():
            done.set_exception(error)
    else:
        if not done.done():
            done.set_result(None)


def let_go(*held: Any) -> Iterator[None]:
    """Empty lists, dictionaries and messages, one element in a step: to free very many at once takes long.

    Nothing may use them any more.
    """
    stack = list(held)
    del held
    while stack:
        yield None
        last = stack.pop()
        if isinstance(last, Structure):
            stack += [value for name in last.__slots__ if isinstance(value := getattr(last, name), list | dict)]
        elif isinstance(last, dict) and last:
            last.popitem()
            stack.append(last)
        elif isinstance(last, list) and last:
            stack += (last, last.pop())
