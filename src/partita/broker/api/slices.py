"""Handlers that walk over what a request names: generators, run in slices between the loop's other work.

Such a handler yields None after each element, where others may have their turn, or an awaitable whose result it needs.
How many elements are one slice is decided here, by the clock. Short work ends within its first slice and costs little.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from types import GeneratorType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from partita.broker.wire.turns import SLICE_SECONDS

if TYPE_CHECKING:
    from partita.broker.api.context import Answer, RequestContext
    from partita.broker.wire.turns import Turns
    from partita.protocol.primitives import Message

T = TypeVar("T")
Waits = Awaitable[Any] | None
"""The value that a step yields. `Any`: each awaitable gives what the step that yields it expects."""
Steps = Generator[Waits, Any, T]
Handler: TypeAlias = "Callable[[RequestContext, Message], Answer | Steps[Answer]]"

AT_ONCE = 250
"""How many partitions of one group are asked about, or committed, without slices."""


def handled(ctx: RequestContext, handler: Handler, request: Message) -> Answer:
    """The handler's answer. If it answers in steps, one slice of them is run at once, and a future runs the rest.

    Meanwhile later requests of the connection wait: as in Kafka it has one request under way at a time.
    """
    answer = handler(ctx, request)
    return _run(ctx, answer) if isinstance(answer, GeneratorType) else cast("Answer", answer)


def _run(ctx: RequestContext, steps: Steps[Answer]) -> Answer:
    turns = ctx.services.turns
    try:
        waits = _slice(turns, steps, steps.__next__)
    except StopIteration as done:
        answer: Answer = done.value
        return answer
    ctx.holds_back = True
    rest = _Rest(turns, steps, ctx.services.cluster.loop.create_future())
    rest.wait(waits)
    return rest.result


def settled(answer: Any) -> Steps[Any]:
    """Yield as a last step: returns the answer itself, or its result when it is awaitable."""
    return (yield answer) if isinstance(answer, Awaitable) else answer


def _slice(turns: Turns, steps: Steps[Any], resume: Callable[[], Waits]) -> Waits:
    """Take steps until the slice is over, or something has to be awaited. Raises StopIteration with the result."""
    # Wall time is never less than CPU time, and far cheaper to read; a busy machine makes slices shorter, not longer.
    clock = turns.clock
    end = clock() + SLICE_SECONDS
    waits = resume()
    while waits is None and clock() < end:
        waits = next(steps)
    return waits


class _Rest:
    """Steps that go on whenever it is their turn, in one line with the connections that have requests left."""

    def __init__(self, turns: Turns, steps: Steps[Any], result: asyncio.Future[Any]) -> None:
        self._turns = turns
        self._steps = steps
        self.result = result

    def wait(self, waits: Waits) -> None:
        """Get in line, at once or when the awaited result is there."""
        if waits is None:
            self._turns.wait(lambda: self._go_on(self._steps.__next__))
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
            waits = _slice(self._turns, self._steps, resume)
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
