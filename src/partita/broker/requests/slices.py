"""Long loops over what a request names, done in slices between the loop's other work.

A generator does the work and returns the result. It yields None wherever others may have their turn, or an awaitable
whose result it needs. Short work ends before its first `yield` and costs nothing extra.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from partita.broker.requests.context import RequestContext

T = TypeVar("T")
Waits = Awaitable[Any] | None
"""What a step yields. `Any`: each awaitable gives what the step that yields it expects."""
Steps = Generator[Waits, Any, T]

SLICE = 250
"""How many elements (topics, groups, partitions) are worked through before others have their turn."""


def answered(ctx: RequestContext, steps: Steps[T]) -> T | Awaitable[T]:
    """What a handler returns for its steps: the result at once if they never yield, else what goes on with them.

    Meanwhile later requests of the connection wait: as in Kafka it has one request under way at a time.
    """
    try:
        waits = next(steps)
    except StopIteration as done:
        result: T = done.value
        return result
    ctx.holds_back = True
    return _rest(steps, waits)


def settled(answer: Any) -> Steps[Any]:
    """A last step: the answer itself, or what it gives when it is awaitable."""
    return (yield answer) if isinstance(answer, Awaitable) else answer


async def in_slices(ctx: RequestContext, steps: Steps[T]) -> T:
    """The result of the steps, for handlers that are coroutines."""
    answer = answered(ctx, steps)
    return await answer if isinstance(answer, Awaitable) else answer


async def _rest(steps: Steps[T], waits: Waits) -> T:
    failure: Exception | None = None
    result: Any = None
    while True:
        try:
            result, failure = await (asyncio.sleep(0) if waits is None else waits), None
        except Exception as error:
            result, failure = None, error
        try:
            waits = steps.send(result) if failure is None else steps.throw(failure)
        except StopIteration as done:
            answer: T = done.value
            return answer


def finished(steps: Steps[T]) -> T:
    """Run steps that wait for nothing at once."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: T = done.value
            return result


def sliced(elements: Iterable[T], size: int = SLICE) -> Iterator[tuple[T, bool]]:
    """Each element, and whether a slice ends before it."""
    for index, element in enumerate(elements):
        yield element, index % size == 0 and index > 0
