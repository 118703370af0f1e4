"""Long loops over what a request names, done in slices between the loop's other work.

A generator does the work and returns the result. It yields None wherever others may have their turn, or an awaitable
whose result it needs. Short work ends before its first `yield` and costs nothing extra.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from partita.broker.wire.turns import SLICE_SECONDS

if TYPE_CHECKING:
    from partita.broker.requests.context import Answer, RequestContext
    from partita.broker.wire.turns import Turns

T = TypeVar("T")
Waits = Awaitable[Any] | None
"""What a step yields. `Any`: each awaitable gives what the step that yields it expects."""
Steps = Generator[Waits, Any, T]

SLICE = 250
"""How many elements (topics, groups, partitions) are worked through before others have their turn, at most."""


def answered(ctx: RequestContext, steps: Steps[Answer]) -> Answer:
    """What a handler returns for its steps: the result at once if they never yield, else what goes on with them.

    Meanwhile later requests of the connection wait: as in Kafka it has one request under way at a time.
    """
    try:
        waits = next(steps)
    except StopIteration as done:
        result: Answer = done.value
        return result
    ctx.holds_back = True
    return _rest(ctx, steps, waits)


def settled(answer: Any) -> Steps[Any]:
    """A last step: the answer itself, or what it gives when it is awaitable."""
    return (yield answer) if isinstance(answer, Awaitable) else answer


async def in_slices(ctx: RequestContext, steps: Steps[T]) -> T:
    """The result of the steps, for handlers that are coroutines."""
    try:
        waits = next(steps)
    except StopIteration as done:
        result: T = done.value
        return result
    ctx.holds_back = True
    rest: T = await _rest(ctx, steps, waits)
    return rest


def _rest(ctx: RequestContext, steps: Steps[Any], waits: Waits) -> asyncio.Future[Any]:
    """What the steps return, a slice at each turn; if that is awaitable, what it gives."""
    rest = _Rest(ctx.services.turns, steps, ctx.services.cluster.loop.create_future())
    rest.wait(waits)
    return rest.result


class _Rest:
    """Steps that go on whenever it is their turn, in one line with the connections that have requests left."""

    def __init__(self, turns: Turns, steps: Steps[Any], result: asyncio.Future[Any]) -> None:
        self._turns = turns
        self._steps = steps
        self.result = result

    def wait(self, waits: Waits) -> None:
        """Get in line, at once or when what the steps need is there."""
        if waits is None:
            self._turns.wait(lambda: self._go_on(lambda: self._steps.send(None)))
        else:
            asyncio.ensure_future(waits).add_done_callback(self._got)

    def _got(self, done: asyncio.Future[Any]) -> None:
        failure = asyncio.CancelledError() if done.cancelled() else done.exception()
        if failure is None:
            self._turns.wait(lambda: self._go_on(lambda: self._steps.send(done.result())))
        else:
            self._turns.wait(lambda: self._go_on(lambda: self._steps.throw(failure)))

    def _go_on(self, resume: Callable[[], Waits]) -> None:
        try:
            waits = resume()
        except StopIteration as done:
            self._end(done.value)
        except asyncio.CancelledError:
            self.result.cancel()
        except Exception as error:
            self._end(error)
        else:
            self.wait(waits)

    def _end(self, outcome: Any) -> None:
        if self.result.done():
            return  # nobody waits for it any more
        if isinstance(outcome, Exception):
            self.result.set_exception(outcome)
        elif isinstance(outcome, Awaitable):
            asyncio.ensure_future(outcome).add_done_callback(self._settle)
        else:
            self.result.set_result(outcome)

    def _settle(self, done: asyncio.Future[Any]) -> None:
        if done.cancelled():
            self.result.cancel()
        else:
            self._end(done.exception() or done.result())


def paced(ctx: RequestContext, steps: Generator[None, None, T]) -> Steps[T]:
    """The result of pure work that yields after each small part of it; every millisecond others have their turn."""
    pace = Pace(ctx.stopwatch)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: T = done.value
            return result
        if pace.is_over():
            yield None


class Pace:
    """Says in loops within loops when a slice is over; the next one begins with the next question."""

    __slots__ = ("_clock", "_end")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._end = 0.0

    def is_over(self) -> bool:
        """Whether others have their turn now."""
        now = self._clock()
        if not self._end:
            self._end = now + SLICE_SECONDS
        elif now >= self._end:
            self._end = 0.0
            return True
        return False


def sliced(elements: Iterable[T], clock: Callable[[], float]) -> Iterator[tuple[T, bool]]:
    """Each element, and whether a slice ends before it: after SLICE of them or SLICE_SECONDS, whichever is first."""
    count, end = 0, clock() + SLICE_SECONDS
    for element in elements:
        is_over = count >= SLICE or (count > 0 and clock() >= end)
        yield element, is_over
        if is_over:
            count, end = 0, clock() + SLICE_SECONDS
        count += 1
