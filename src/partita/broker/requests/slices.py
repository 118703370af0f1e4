"""Long loops over what a request names, done in slices between the loop's other work.

A generator does the work and returns the result. It yields None wherever others may have their turn, or an awaitable
whose result it needs. Short work ends before its first `yield` and costs nothing extra.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from partita.broker.requests.context import Answer, RequestContext

T = TypeVar("T")
Waits = Awaitable[Any] | None
"""What a step yields. `Any`: each awaitable gives what the step that yields it expects."""
Steps = Generator[Waits, Any, T]

SLICE = 250
"""How many elements (topics, groups, partitions) are worked through before others have their turn, at most."""
SLICE_SECONDS = 0.001
"""How long a slice lasts; an element that was begun is always finished."""


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
    return _rest(steps, waits)


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
    rest: T = await _rest(steps, waits)
    return rest


async def _rest(steps: Steps[Any], waits: Waits) -> Any:
    """What the steps return; if that is awaitable, what it gives."""
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
            return (await done.value) if isinstance(done.value, Awaitable) else done.value


def finished(steps: Steps[T]) -> T:
    """Run steps that wait for nothing at once."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: T = done.value
            return result


def sliced(elements: Iterable[T], clock: Callable[[], float] = time.perf_counter) -> Iterator[tuple[T, bool]]:
    """Each element, and whether a slice ends before it: after SLICE of them or SLICE_SECONDS, whichever is first."""
    count, end = 0, clock() + SLICE_SECONDS
    for element in elements:
        is_over = count >= SLICE or (count > 0 and clock() >= end)
        yield element, is_over
        if is_over:
            count, end = 0, clock() + SLICE_SECONDS
        count += 1
