"""Work that yields after each small part of it, so that a shell may let others have their turn in between."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

T = TypeVar("T")


def finished(steps: Generator[object, Any, T]) -> T:
    """The result of all steps at once. They wait for nothing."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: T = done.value
            return result
