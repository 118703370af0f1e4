"""From what a caller gives to bytes.

A serializer is a callable from an object to bytes; without one, bytes are taken as they are and str as UTF-8. None
stays None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from partita.protocol.primitives import Buffer

Serializer: TypeAlias = Callable[[Any], Buffer | str | None]
GivenHeaders: TypeAlias = Mapping[str, Buffer | str | None] | Iterable[tuple[str, Buffer | str | None]]


def to_bytes(value: Any, serializer: Serializer | None, what: str) -> Buffer | None:
    """The bytes of a key or value. Raises TypeError for what needs a serializer."""
    if serializer is not None and value is not None:
        value = serializer(value)
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    hint = "returned" if serializer is not None else "is"
    raise TypeError(f"the {what} {hint} {type(value).__name__}; expected bytes or str, or give a {what}_serializer")


def to_headers(headers: GivenHeaders | None) -> Sequence[tuple[str, Buffer | None]]:
    """Headers as (name, bytes) pairs, from pairs or a dict."""
    if not headers:
        return ()
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return tuple((name, to_bytes(value, None, "header")) for name, value in pairs)
