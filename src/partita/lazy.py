"""Objects created on first use: modules that most runs never need, and objects of a broker that may never be asked.

A start of the command line or of a broker takes as long as the modules that it imports. An import inside a function
would hide a dependency of the file; `later` says so at its head.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)
EXTRA_OF = {
    "pyarrow": "arrow",
    "fastavro": "registry",
    "google": "registry",
    "httpx": "registry",
    "jsonschema": "registry",
    "opentelemetry": "opentelemetry",
}
"""The extra that installs a package that is met at an import, where no option names what it needs."""


def advised(error: ModuleNotFoundError) -> ModuleNotFoundError:
    """Return the error with the command that installs what is missing, if an extra of ours does."""
    extra = EXTRA_OF.get((error.name or "").partition(".")[0])
    if extra is None:
        return error
    return ModuleNotFoundError(f"{error.msg}; install it with: pip install 'partita[{extra}]'", name=error.name)


class Later:
    """A module that is imported when the first of its names is asked for."""

    __slots__ = ("_module",)

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        # As `from module import name` does: a name may be a module of a package, and an import that another thread has
        # begun is waited for. Nothing is kept, so a module that a test replaces is replaced here too.
        try:
            return getattr(__import__(self._module, fromlist=(name,)), name)
        except ModuleNotFoundError as error:
            raise advised(error) from None

    def __reduce__(self) -> tuple[type[Later], tuple[str]]:
        return Later, (self._module,)  # pickle would otherwise ask the module for its methods

    def __repr__(self) -> str:
        return f"later({self._module!r})"


def later(module: str) -> Any:
    """Stand for a module until it is needed. Type checkers read an import below `TYPE_CHECKING` instead."""
    return Later(module)


class Lazy(Generic[T_co]):
    """An object that is made when it is first called for: `lazy()` makes it, `lazy.made` is None until then."""

    __slots__ = ("_make", "made")

    def __init__(self, make: Callable[[], T_co]) -> None:
        self._make = make
        self.made: T_co | None = None

    def __call__(self) -> T_co:
        """Return the object; the first call makes it."""
        if self.made is None:
            self.made = self._make()
        return self.made
