"""Answers that are made of several shards' answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def when_all(parts: Sequence[T | asyncio.Future[T]], merge: Callable[[list[T]], R]) -> R | Awaitable[R]:
    """`merge` of all parts: at once when none of them is a future, else once the last one is done."""
    if not any(isinstance(part, asyncio.Future) for part in parts):
        return merge([part for part in parts if not isinstance(part, asyncio.Future)])

    async def later() -> R:
        return merge([await part if isinstance(part, asyncio.Future) else part for part in parts])

    return later()
