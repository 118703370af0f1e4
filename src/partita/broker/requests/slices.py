"""Long loops over what a request names, done in slices between the loop's other work.

A generator does the work, yields wherever others may have their turn, and returns the result. Short work ends before
its first `yield` and costs nothing extra.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from partita.broker.requests.context import RequestContext

T = TypeVar("T")
Steps = Generator[None, None, T]

SLICE = 250
"""How many elements (topics, groups, partitions) are worked through before others have their turn."""


async def in_slices(ctx: RequestContext, steps: Steps[T]) -> T:
    """Run the steps, others having their turn in between. Meanwhile later requests of the connection wait.

    (Kafka has one request of a connection under way at a time.)
    """
    ctx.holds_back = True
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: T = done.value
            return result
        await asyncio.sleep(0)


def finished(steps: Steps[T]) -> T:
    """Run all steps at once."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: T = done.value
            return result


def answered(ctx: RequestContext, steps: Steps[T]) -> T | Awaitable[T]:
    """What a handler returns for its steps: the result at once if they never yield, else what goes on with them."""
    try:
        next(steps)
    except StopIteration as done:
        result: T = done.value
        return result
    ctx.holds_back = True
    return in_slices(ctx, steps)


def sliced(elements: Iterable[T], size: int = SLICE) -> Iterator[tuple[T, bool]]:
    """Each element, and whether a slice ends before it."""
    for index, element in enumerate(elements):
        yield element, index % size == 0 and index > 0
