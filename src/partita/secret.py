"""Values that must not be printed: passwords, tokens and private keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from partita.lazy import later

if TYPE_CHECKING:
    import hmac
else:
    hmac = later("hmac")


class Secret:
    """Text that prints as `***`. Only `reveal` gives it out. It cannot be pickled."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself, for the one place that sends it."""
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented

        return hmac.compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __repr__(self) -> str:
        return "***"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format("***", spec)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled; pass the option that names it instead")
