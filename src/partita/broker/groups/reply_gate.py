"""The reply gate of one shard: no reply leaves before every record decided before it is durable.

First in, first out, also for steps that wrote nothing. A step that waits longer than `offsets.commit.timeout.ms` is
answered as timed out; its records stay in the log and may still take effect. (Kafka: CoordinatorRuntime's deferred
events.)
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from partita.group.contract import GroupRequest, Step
from partita.group.refusals import failed_write, not_here, refusal
from partita.group.requests import FetchOffsets
from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import Structure


class Call:
    """One caller's token: its answer at once, or a future of it."""

    __slots__ = ("future", "request", "response")

    def __init__(self, request: GroupRequest) -> None:
        self.request = request
        self.response: Structure | None = None
        self.future: asyncio.Future[Structure | None] | None = None

    def answer(self, response: Structure) -> None:
        """Give the caller its answer; later answers are ignored."""
        if self.future is None:
            self.response = response
        elif not self.future.done():
            self.future.set_result(response)


class _Waiting(NamedTuple):
    """A step whose records are in the log: `offset` must be durable first, `due_ms` is when patience ends."""

    offset: int
    step: Step
    due_ms: int


class ReplyGate:
    """Steps that wait for the log, oldest first."""

    def __init__(self) -> None:
        self._waiting: deque[_Waiting] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def next_due_ms(self) -> int | None:
        """When (monotonic) the oldest waiting step times out; None when nothing waits."""
        return self._waiting[0].due_ms if self._waiting else None

    def last_offset(self) -> int:
        """The offset that must be durable before a step that comes now may be answered."""
        return self._waiting[-1].offset

    def add(self, offset: int, step: Step, due_ms: int) -> None:
        """Let `step` wait until `offset` is durable, at most until `due_ms`."""
        self._waiting.append(_Waiting(offset, step, due_ms))

    def release(self, durable: int) -> None:
        """Answer what waited for offsets up to `durable`."""
        waiting = self._waiting
        while waiting and waiting[0].offset <= durable:
            release(waiting.popleft().step)

    def expire(self, now_ms: int) -> None:
        """Answer what waited too long as timed out. Nothing is undone."""
        while self._waiting and self._waiting[0].due_ms <= now_ms:
            refuse(self._waiting.popleft().step, _timed_out)

    def drop(self) -> None:
        """Answer all that wait with NOT_COORDINATOR: the shard is over."""
        waiting, self._waiting = self._waiting, deque()
        for entry in waiting:
            refuse(entry.step, not_here)


def release(step: Step) -> None:
    """Give the callers of a step their answers."""
    for token, message in step.replies:
        assert isinstance(token, Call), "tokens are calls of the runner"
        token.answer(message)


def refuse(step: Step, answer: Callable[[GroupRequest], Structure]) -> None:
    """Give the step's callers another answer than the one decided."""
    for token, _ in step.replies:
        assert isinstance(token, Call), "tokens are calls of the runner"
        token.answer(answer(token.request))


def _timed_out(request: GroupRequest) -> Structure:
    """Old clients do not retry COORDINATOR_NOT_AVAILABLE of OffsetFetch, so that one gets NOT_COORDINATOR."""
    if isinstance(request.message, FetchOffsets):
        return not_here(request)
    return refusal(request, failed_write(ErrorCode.REQUEST_TIMED_OUT))
