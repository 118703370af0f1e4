"""Read and write the primitive types of the Kafka protocol.

`Reader` walks one frame and never allocates by an announced length: every count is checked against the
bytes that are left. `Writer` collects bytes; large record payloads are kept as they are, so that a
response can be sent without copying them. (Kafka: ByteBufferAccessor, ObjectSerializationCache.)
Must not know about any API, version, socket or clock.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError
from typing import Any, ClassVar, Self, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview

ZERO_UUID = bytes(16)
EMPTY: list[Any] = []
"""Default of array parameters: stands for a new empty list."""

_INT8 = Struct(">b")
_INT16 = Struct(">h")
_UINT16 = Struct(">H")
_INT32 = Struct(">i")
_INT64 = Struct(">q")
_FLOAT64 = Struct(">d")
_KEEP_AS_CHUNK = 4096


class MalformedRequest(ValueError):
    """Bytes that are not a valid message: cut short, oversized, or nonsense."""


class Structure:
    """Common behaviour of generated classes: equality and a readable form."""

    __slots__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{n}={getattr(self, n)!r}' for n in self.__slots__)})"


class Message(Structure):
    """A generated message: what is encoded and decoded as a whole."""

    __slots__ = ()
    API_KEY: ClassVar[int]
    MIN_VERSION: ClassVar[int]
    MAX_VERSION: ClassVar[int]
    FLEXIBLE_FROM: ClassVar[int | None]

    def write(self, w: Writer, version: int) -> None:
        raise NotImplementedError

    @classmethod
    def read(cls, r: Reader, version: int) -> Self:
        raise NotImplementedError

    def encode(self, version: int) -> bytes:
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


class Reader:
    """A cursor over one message. Raises MalformedRequest instead of reading past the end."""

    __slots__ = ("buf", "end", "pos")

    def __init__(self, buf: Buffer, pos: int = 0) -> None:
        self.buf = buf
        self.pos = pos
        self.end = len(buf)

    def remaining(self) -> int:
        return self.end - self.pos

    def finish(self) -> None:
        """Refuse bytes after the end of a message."""
        if self.pos != self.end:
            raise MalformedRequest(f"{self.remaining()} bytes left over at {self.pos}")

    def _fixed(self, form: Struct) -> Any:
        try:
            (value,) = form.unpack_from(self.buf, self.pos)
        except StructError:
            raise MalformedRequest(f"{form.size} bytes expected at {self.pos}, {self.remaining()} left") from None
        self.pos += form.size
        return value

    def int8(self) -> int:
        return self._fixed(_INT8)  # type: ignore[no-any-return]

    def int16(self) -> int:
        return self._fixed(_INT16)  # type: ignore[no-any-return]

    def uint16(self) -> int:
        return self._fixed(_UINT16)  # type: ignore[no-any-return]

    def int32(self) -> int:
        return self._fixed(_INT32)  # type: ignore[no-any-return]

    def int64(self) -> int:
        return self._fixed(_INT64)  # type: ignore[no-any-return]

    def float64(self) -> float:
        return self._fixed(_FLOAT64)  # type: ignore[no-any-return]

    def boolean(self) -> bool:
        return self.int8() != 0

    def uvarint(self) -> int:
        """An unsigned 32-bit varint."""
        value = shift = 0
        while True:
            if self.pos >= self.end:
                raise MalformedRequest(f"varint cut short at {self.pos}")
            byte = self.buf[self.pos]
            self.pos += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 28:
                raise MalformedRequest(f"varint longer than 5 bytes at {self.pos}")
        if value > 0xFFFFFFFF:
            raise MalformedRequest(f"varint {value} exceeds 32 bits")
        return value

    def take(self, size: int) -> Buffer:
        start = self.pos
        if size < 0 or size > self.end - start:
            raise MalformedRequest(f"length {size} at {start}, {self.remaining()} left")
        self.pos = start + size
        return self.buf[start : self.pos]

    def _text(self, size: int) -> str:
        return str(self.take(size), "utf-8", "replace")

    def uuid(self) -> bytes:
        return bytes(self.take(16))

    def string(self) -> str:
        return self._text(self.int16())

    def nullable_string(self) -> str | None:
        size = self.int16()
        return None if size == -1 else self._text(size)

    def compact_string(self) -> str:
        return self._text(self.uvarint() - 1)

    def compact_nullable_string(self) -> str | None:
        size = self.uvarint()
        return None if size == 0 else self._text(size - 1)

    def bytes(self) -> bytes:
        return bytes(self.take(self.int32()))

    def nullable_bytes(self) -> bytes | None:
        size = self.int32()
        return None if size == -1 else bytes(self.take(size))

    def compact_bytes(self) -> bytes:
        return bytes(self.take(self.uvarint() - 1))

    def compact_nullable_bytes(self) -> bytes | None:
        size = self.uvarint()
        return None if size == 0 else bytes(self.take(size - 1))

    def nullable_records(self) -> memoryview | None:
        """Record batches as a view of the frame; nothing is copied."""
        size = self.int32()
        return None if size == -1 else memoryview(self.take(size))

    def compact_nullable_records(self) -> memoryview | None:
        size = self.uvarint()
        return None if size == 0 else memoryview(self.take(size - 1))

    def count(self) -> int:
        return self._bounded(self.int32())

    def compact_count(self) -> int:
        return self._bounded(self.uvarint() - 1)

    def nullable_count(self) -> int:
        count = self.int32()
        return count if count == -1 else self._bounded(count)

    def compact_nullable_count(self) -> int:
        count = self.uvarint() - 1
        return count if count == -1 else self._bounded(count)

    def _bounded(self, count: int) -> int:
        if count < 0 or count > self.end - self.pos:
            raise MalformedRequest(f"{count} elements announced at {self.pos}, {self.remaining()} bytes left")
        return count

    def tag_end(self) -> int:
        """Read a tagged field's size; return where the field must end."""
        size = self.uvarint()
        if size > self.end - self.pos:
            raise MalformedRequest(f"tagged field of {size} bytes at {self.pos}, {self.remaining()} left")
        return self.pos + size

    def check_tag(self, end: int) -> None:
        if self.pos != end:
            raise MalformedRequest(f"tagged field ends at {self.pos}, announced {end}")

    def skip_tags(self) -> None:
        """Pass over a section of tagged fields none of which is known."""
        for _ in range(self.uvarint()):
            self.uvarint()
            self.pos = self.tag_end()


class Writer:
    """Collects one message. `chunks` is what to send; `getvalue` joins it."""

    __slots__ = ("_chunks", "buf")

    def __init__(self) -> None:
        self.buf = bytearray()
        self._chunks: list[Buffer] = []

    def getvalue(self) -> bytes:
        return b"".join(self.chunks())

    def chunks(self) -> list[Buffer]:
        return [*self._chunks, self.buf]

    def required(self, value: Any, name: str) -> Any:
        """Return `value`; raise ValueError when it is null, which this version cannot say."""
        if value is None:
            raise ValueError(f"{name} cannot be null in this version; give a value or use a newer version")
        return value

    def int8(self, value: int) -> None:
        self.buf += _INT8.pack(value)

    def int16(self, value: int) -> None:
        self.buf += _INT16.pack(value)

    def uint16(self, value: int) -> None:
        self.buf += _UINT16.pack(value)

    def int32(self, value: int) -> None:
        self.buf += _INT32.pack(value)

    def int64(self, value: int) -> None:
        self.buf += _INT64.pack(value)

    def float64(self, value: float) -> None:
        self.buf += _FLOAT64.pack(value)

    def boolean(self, value: bool) -> None:
        self.buf.append(1 if value else 0)

    def uvarint(self, value: int) -> None:
        while value > 0x7F:
            self.buf.append((value & 0x7F) | 0x80)
            value >>= 7
        self.buf.append(value)

    def uuid(self, value: bytes) -> None:
        if len(value) != 16:
            raise ValueError(f"a UUID has 16 bytes, not {len(value)}")
        self.buf += value

    def string(self, value: str) -> None:
        raw = value.encode()
        if len(raw) > 0x7FFF:
            raise ValueError(f"string of {len(raw)} bytes; at most 32767 fit")
        self.buf += _INT16.pack(len(raw))
        self.buf += raw

    def nullable_string(self, value: str | None) -> None:
        if value is None:
            self.buf += b"\xff\xff"
        else:
            self.string(value)

    def compact_string(self, value: str) -> None:
        raw = value.encode()
        if len(raw) > 0x7FFF:
            raise ValueError(f"string of {len(raw)} bytes; at most 32767 fit")
        self.uvarint(len(raw) + 1)
        self.buf += raw

    def compact_nullable_string(self, value: str | None) -> None:
        if value is None:
            self.buf.append(0)
        else:
            self.compact_string(value)

    def bytes(self, value: Buffer) -> None:
        self.buf += _INT32.pack(len(value))
        self.buf += value

    def nullable_bytes(self, value: Buffer | None) -> None:
        if value is None:
            self.buf += b"\xff\xff\xff\xff"
        else:
            self.bytes(value)

    def compact_bytes(self, value: Buffer) -> None:
        self.uvarint(len(value) + 1)
        self.buf += value

    def compact_nullable_bytes(self, value: Buffer | None) -> None:
        if value is None:
            self.buf.append(0)
        else:
            self.compact_bytes(value)

    def _payload(self, value: Buffer) -> None:
        if len(value) < _KEEP_AS_CHUNK:
            self.buf += value
            return
        self._chunks += (self.buf, value)
        self.buf = bytearray()

    def nullable_records(self, value: Buffer | None) -> None:
        if value is None:
            self.buf += b"\xff\xff\xff\xff"
        else:
            self.int32(len(value))
            self._payload(value)

    def compact_nullable_records(self, value: Buffer | None) -> None:
        if value is None:
            self.buf.append(0)
        else:
            self.uvarint(len(value) + 1)
            self._payload(value)

    def count(self, value: int) -> None:
        self.buf += _INT32.pack(value)

    def compact_count(self, value: int) -> None:
        self.uvarint(value + 1)

    def tag(self, number: int, content: Writer) -> None:
        """Append one tagged field."""
        raw = content.getvalue()
        self.uvarint(number)
        self.uvarint(len(raw))
        self.buf += raw
