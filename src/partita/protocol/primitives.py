"""Building blocks of generated messages, and the names their users import: Reader, Writer, Message."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, Self, TypeVar

from partita.protocol.reader import Buffer, MalformedRequest, Reader, TooManyElements
from partita.protocol.writer import Writer

__all__ = [
    "EMPTY", "ZERO_UUID", "Buffer", "MalformedRequest", "Message", "Reader", "Request", "Structure", "TooManyElements",
    "Writer",
]  # fmt: skip

ZERO_UUID = bytes(16)
EMPTY: list[Any] = []
"""Default of array parameters: stands for a new empty list. `Any`, as it stands for arrays of every element type."""

_SHOWN_BYTES_MAX = 64


class Structure:
    """Common behaviour of generated classes: equality and a readable form."""

    __slots__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # how Python marks a class as unhashable; typeshed has a method

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{n}={_shown(getattr(self, n))}' for n in self.__slots__)})"


class Message(Structure):
    """A generated message: types encoded and decoded as a whole."""

    __slots__ = ()
    API_KEY: ClassVar[int]
    MIN_VERSION: ClassVar[int]
    MAX_VERSION: ClassVar[int]
    FLEXIBLE_FROM: ClassVar[int | None]

    def write(self, w: Writer, version: int) -> None:
        """Append the encoded message to `w`. Raises ValueError for values that this version cannot carry."""
        raise NotImplementedError

    @classmethod
    def read(cls, r: Reader, version: int) -> Self:
        """Read a message that may be followed by other bytes. Raises MalformedRequest."""
        raise NotImplementedError

    def encode(self, version: int) -> bytes:
        """The encoded message, without any header."""
        w = Writer()
        self.write(w, version)
        return w.getvalue()

    @classmethod
    def decode(cls, buf: Buffer, version: int) -> Self:
        """Read a whole message. Raises MalformedRequest, also when bytes are left over; `read` lets them be."""
        r = Reader(buf)
        message = cls.read(r, version)
        r.finish()
        return message


R = TypeVar("R", bound=Message)


class Request(Message, Generic[R]):
    """A request, with the type of its response: `Connection.send` of a `Request[R]` gives an R."""

    __slots__ = ()
    API_KEY: ClassVar[int]


def _shown(value: object) -> str:
    """Show long bytes by their size."""
    if isinstance(value, bytes | bytearray | memoryview):
        return repr(bytes(value)) if len(value) <= _SHOWN_BYTES_MAX else f"<{len(value)} bytes>"
    return repr(value)
