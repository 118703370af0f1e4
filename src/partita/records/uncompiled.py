"""Stands in for the `cython` module where Cython is not installed: decorators, types and contexts do nothing.

A compiled module imports the real one at build time only. `cython.compiled` says which build is running.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class _Nothing:
    """Any attribute, subscript or call with options gives itself; called with one function, gives that back."""

    compiled = False

    def __getattr__(self, name: str) -> _Nothing:
        return self

    def __getitem__(self, key: object) -> _Nothing:
        return self

    def __call__(self, *given: Any, **options: Any) -> Any:  # `Any`: decorates functions of every type
        return given[0] if len(given) == 1 and callable(given[0]) and not options else self

    def freelist(self, _: int) -> Callable[[type[T]], type[T]]:
        return lambda kind: kind

    def cclass(self, kind: type[T]) -> type[T]:
        return kind

    def __enter__(self) -> _Nothing:
        return self

    def __exit__(self, *_: object) -> None:
        return None


cython = _Nothing()


def untrack(given: object) -> None:
    """Exempt this object from garbage collection where compiled; uncompiled, do nothing."""
