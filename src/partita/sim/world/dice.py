"""Chance, drawn from a seed: the same numbers in every process and in every Python.

A linear congruential generator of 64 bits whose upper bits are used (Knuth's MMIX constants). The names are those of
Python's `random.Random`, which promises less across versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from math import log
from typing import TypeVar

_MASK = (1 << 64) - 1
T = TypeVar("T")


class Dice:
    """Everything that is left to chance in one history. `seed` may be any text or number."""

    __slots__ = ("_state",)

    def __init__(self, seed: int | str) -> None:
        self._state = int.from_bytes(sha256(str(seed).encode()).digest()[:8], "big")

    def random(self) -> float:
        """At least 0, less than 1."""
        self._state = state = (self._state * 6364136223846793005 + 1442695040888963407) & _MASK
        return (state >> 12) * 2.0**-52

    def bits(self, count: int) -> int:
        """A number of `count` bits, at most 32."""
        self._state = state = (self._state * 6364136223846793005 + 1442695040888963407) & _MASK
        return state >> (64 - count)

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both possible."""
        return low + int(self.random() * (high - low + 1))

    def uniform(self, low: float, high: float) -> float:
        """A number from `low` to `high`."""
        return low + self.random() * (high - low)

    def chance(self, rate: float) -> bool:
        """True in `rate` of all cases."""
        return rate > 0 and self.random() < rate

    def choice(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[int(self.random() * len(items))]

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """`count` different ones of the items."""
        left = list(items)
        return [left.pop(int(self.random() * len(left))) for _ in range(count)]

    def interval(self, mean: float) -> float:
        """The time until something happens that happens every `mean` on average, at any time equally likely."""
        return -mean * log(1.0 - self.random())
