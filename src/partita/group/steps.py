"""Work as generators that yield after each small step, so that a shell can interleave other work."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

T = TypeVar("T")


def finished(steps: Generator[object, Any, T]) -> T:
    """Run all steps without pause and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: T = done.value
            return result
