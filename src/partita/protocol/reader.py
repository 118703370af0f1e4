"""Read the primitive types of the Kafka protocol from one frame.

A `Reader` never allocates by an announced length: every length and count is checked against the bytes that are left,
and the elements of one message are counted. (Kafka: ByteBufferAccessor; hostile input: faults H6, H7.)
Compiled where a compiler is there, with the types in `reader.pxd`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from struct import Struct, unpack_from
from struct import error as StructError
from typing import Any, TypeAlias, TypeVar

Buffer: TypeAlias = bytes | bytearray | memoryview
T = TypeVar("T")
Bytes: TypeAlias = bytes  # inside the classes, `bytes` is the method

ELEMENTS_MAX = 1 << 20
"""Bound of a message's array elements; no honest message comes near."""
PAUSE_AFTER = 64
"""After how many elements of an array a codec that may pause does."""

_STRING_BYTES_MAX = 0x7FFF
_REPLACED_BYTES = _STRING_BYTES_MAX // 3
"""A longer string may exceed the largest one when each bad byte becomes U+FFFD, which has three."""
_int8 = Struct(">b").unpack_from
_uint16 = Struct(">H").unpack_from
_int32 = Struct(">i").unpack_from
_int64 = Struct(">q").unpack_from
_float64 = Struct(">d").unpack_from


class MalformedRequest(ValueError):
    """Bytes that are not a valid message: cut short, oversized, or nonsense."""


class TooManyElements(MalformedRequest):
    """The arrays of a message have more elements than were allowed."""


class Reader:
    """A cursor over one message. Raises MalformedRequest instead of reading past the end.

    `pause`, if it is set, is called again and again while a long array is read.
    """

    __slots__ = ("_elements", "_whole", "buf", "end", "pause", "pos")

    def __init__(self, buf: Buffer, pos: int = 0) -> None:
        self.buf = buf
        self._whole = buf if type(buf) is bytes else None  # of bytes, text is decoded without a slice
        self.pos = pos
        self.end = len(buf)
        self.pause: Callable[[], object] | None = None
        self._elements = 0

    def allow(self, elements: int) -> None:
        """Accept at most so many array elements in all (and never more than ELEMENTS_MAX), else TooManyElements."""
        self._elements = max(0, ELEMENTS_MAX - elements)

    def remaining(self) -> int:
        """Number of unread bytes."""
        return self.end - self.pos

    def finish(self) -> None:
        """Refuse bytes after the end of a message."""
        if self.pos != self.end:
            raise MalformedRequest(f"{self.end - self.pos} bytes left over at {self.pos}")

    def _short(self, size: int) -> MalformedRequest:
        return MalformedRequest(f"{size} bytes expected at {self.pos}, {self.end - self.pos} left")

    # Numbers

    def int8(self) -> int:
        """Read a signed 8-bit number."""
        try:
            (value,) = _int8(self.buf, self.pos)
        except StructError:
            raise self._short(1) from None
        self.pos += 1
        return value  # type: ignore[no-any-return]  # struct has no types

    def int16(self) -> int:
        """Read a signed 16-bit number."""
        try:
            high = self.buf[self.pos]
            low = self.buf[self.pos + 1]
        except IndexError:
            raise self._short(2) from None
        self.pos += 2
        return (high << 8 | low) - ((high & 0x80) << 9)

    def uint16(self) -> int:
        """Read an unsigned 16-bit number."""
        try:
            (value,) = _uint16(self.buf, self.pos)
        except StructError:
            raise self._short(2) from None
        self.pos += 2
        return value  # type: ignore[no-any-return]  # struct has no types

    def int32(self) -> int:
        """Read a signed 32-bit number."""
        try:
            (value,) = _int32(self.buf, self.pos)
        except StructError:
            raise self._short(4) from None
        self.pos += 4
        return value  # type: ignore[no-any-return]  # struct has no types

    def int64(self) -> int:
        """Read a signed 64-bit number."""
        try:
            (value,) = _int64(self.buf, self.pos)
        except StructError:
            raise self._short(8) from None
        self.pos += 8
        return value  # type: ignore[no-any-return]  # struct has no types

    def float64(self) -> float:
        """Read a 64-bit floating-point number."""
        try:
            (value,) = _float64(self.buf, self.pos)
        except StructError:
            raise self._short(8) from None
        self.pos += 8
        return value  # type: ignore[no-any-return]  # struct has no types

    def fixed(self, form: Struct) -> tuple[Any, ...]:  # `Any`: the numbers are int or float, as `form` says
        """Several numbers at once."""
        try:
            values = form.unpack_from(self.buf, self.pos)
        except StructError:
            raise self._short(form.size) from None
        self.pos += form.size
        return values

    def boolean(self) -> bool:
        """Read one byte; any value but 0 is true."""
        return self.int8() != 0

    def uvarint(self) -> int:
        """An unsigned 32-bit varint, of at most five bytes."""
        try:
            byte = self.buf[self.pos]
            self.pos += 1
            return byte if byte < 0x80 else self._long_uvarint(byte & 0x7F)
        except IndexError:
            raise MalformedRequest(f"varint cut short at {self.pos}") from None

    def _long_uvarint(self, value: int) -> int:
        shift = 7
        byte = 0x80
        while byte > 0x7F:
            if shift > 28:
                raise MalformedRequest(f"varint longer than 5 bytes at {self.pos}")
            byte = self.buf[self.pos]
            self.pos += 1
            value |= (byte & 0x7F) << shift
            shift += 7
        if value > 0xFFFFFFFF:
            raise MalformedRequest(f"varint {value} exceeds 32 bits")
        return value

    # Bytes and text

    def take(self, size: int) -> Buffer:
        """The next `size` bytes: a slice of what is read from."""
        start = self.pos
        if size < 0 or size > self.end - start:
            raise MalformedRequest(f"length {size} at {start}, {self.end - start} bytes left")
        self.pos = start + size
        return self.buf[start : self.pos]

    def _own(self, size: int) -> Bytes:
        raw = self.take(size)
        return raw if type(raw) is bytes else bytes(raw)

    def _text(self, size: int) -> str:
        start = self.pos
        if size < 0 or size > self.end - start or size > _STRING_BYTES_MAX:
            raise MalformedRequest(f"string of {size} bytes at {start}, {self.end - start} bytes left")
        self.pos = stop = start + size
        whole = self._whole
        try:
            return bytes(self.buf[start:stop]).decode() if whole is None else whole[start:stop].decode("utf-8")
        except UnicodeDecodeError:
            return self._replaced(bytes(self.buf[start:stop]))

    def _replaced(self, raw: Bytes) -> str:
        text = replaced(raw)
        if len(raw) > _REPLACED_BYTES and len(text.encode()) > _STRING_BYTES_MAX:
            raise MalformedRequest(
                f"string of {len(raw)} bytes at {self.pos} that are not UTF-8: no answer can repeat it"
            )
        return text

    def string(self) -> str:
        """Read a string with a 16-bit length; null is malformed."""
        return self._text(self.int16())

    def nullable_string(self) -> str | None:
        """Read a string with a 16-bit length; -1 is null."""
        size = self.int16()
        return None if size == -1 else self._text(size)

    def compact_string(self) -> str:
        """Read a string with a varint length; null is malformed."""
        return self._text(self.uvarint() - 1)

    def compact_nullable_string(self) -> str | None:
        """Read a string with a varint length; 0 is null."""
        size = self.uvarint()
        return None if size == 0 else self._text(size - 1)

    def uuid(self) -> Bytes:
        """Read the 16 bytes of a UUID."""
        return bytes(self.take(16))

    def bytes(self) -> Bytes:
        """Read bytes with a 32-bit length; null is malformed."""
        return self._own(self.int32())

    def nullable_bytes(self) -> Bytes | None:
        """Read bytes with a 32-bit length; -1 is null."""
        size = self.int32()
        return None if size == -1 else self._own(size)

    def compact_bytes(self) -> Bytes:
        """Read bytes with a varint length; null is malformed."""
        return self._own(self.uvarint() - 1)

    def compact_nullable_bytes(self) -> Bytes | None:
        """Read bytes with a varint length; 0 is null."""
        size = self.uvarint()
        return None if size == 0 else self._own(size - 1)

    def nullable_records(self) -> memoryview | None:
        """Record batches as a view of the frame; nothing is copied."""
        size = self.int32()
        return None if size == -1 else self._view(size)

    def compact_nullable_records(self) -> memoryview | None:
        """Read records with a varint length, without copying them; 0 is null."""
        size = self.uvarint()
        return None if size == 0 else self._view(size - 1)

    def _view(self, size: int) -> memoryview:
        start = self.pos
        if size < 0 or size > self.end - start:
            raise MalformedRequest(f"{size} bytes of records at {start}, {self.end - start} bytes left")
        self.pos = start + size
        return memoryview(self.buf)[start : self.pos]

    # Arrays

    def count(self, least_size: int) -> int:
        """Number of following elements, each of at least `least_size` bytes."""
        return self._bounded(self.int32(), least_size)

    def compact_count(self, least_size: int) -> int:
        """Read the varint length of an array, checked against the bytes that are left; null is malformed."""
        return self._bounded(self.uvarint() - 1, least_size)

    def nullable_count(self, least_size: int) -> int:
        """As `count`; -1 is null."""
        count = self.int32()
        return count if count == -1 else self._bounded(count, least_size)

    def compact_nullable_count(self, least_size: int) -> int:
        """Read the varint length of an array, checked against the bytes that are left; -1 for null."""
        count = self.uvarint() - 1
        return count if count == -1 else self._bounded(count, least_size)

    def _bounded(self, count: int, least_size: int) -> int:
        if count < 0 or count * least_size > self.end - self.pos:
            raise MalformedRequest(f"{count} elements announced at {self.pos}, {self.end - self.pos} bytes left")
        self._elements += count
        if self._elements > ELEMENTS_MAX:
            raise TooManyElements("more array elements than are allowed in this message")
        return count

    def each(self, count: int) -> Iterable[int]:
        """Return an iterable for reading `count` elements."""
        return range(count) if self.pause is None else with_pauses(range(count), self.pause)

    def int32_array(self) -> list[int]:
        """Read an array of 32-bit numbers with a 32-bit length; null is malformed."""
        return self._int32s(self.count(4))

    def compact_int32_array(self) -> list[int]:
        """Read an array of 32-bit numbers with a varint length; null is malformed."""
        return self._int32s(self.compact_count(4))

    def nullable_int32_array(self) -> list[int] | None:
        """Read an array of 32-bit numbers with a 32-bit length; -1 is null."""
        count = self.nullable_count(4)
        return None if count < 0 else self._int32s(count)

    def compact_nullable_int32_array(self) -> list[int] | None:
        """Read an array of 32-bit numbers with a varint length; 0 is null."""
        count = self.compact_nullable_count(4)
        return None if count < 0 else self._int32s(count)

    def _int32s(self, count: int) -> list[int]:
        start = self.pos
        self.pos = start + 4 * count
        return list(unpack_from(f">{count}i", self.buf, start))

    # Tagged fields

    def tag(self, last: int) -> tuple[int, int]:
        """Read the number of a tagged field, higher than the last one, and its size; return number and end."""
        number = self.uvarint()
        size = self.uvarint()
        if number <= last:
            raise MalformedRequest(f"tag {number} after tag {last}")
        if size > self.end - self.pos:
            raise MalformedRequest(f"tagged field of {size} bytes at {self.pos}, {self.end - self.pos} left")
        return number, self.pos + size

    def end_tag(self, end: int) -> None:
        """Check that a tagged field ended where its size says. Raises MalformedRequest."""
        if self.pos != end:
            raise MalformedRequest(f"tagged field ends at {self.pos}, announced {end}")

    def skip_tags(self) -> None:
        """Pass over a section of tagged fields none of which is known."""
        count = self.uvarint()
        last = -1
        while count:
            last, self.pos = self.tag(last)
            count -= 1


def with_pauses(elements: Iterable[T], pause: Callable[[], object]) -> Iterator[T]:
    """The elements; `pause` is called before the first one and after every PAUSE_AFTER of them."""
    left = 0
    for element in elements:
        if not left:
            pause()
            left = PAUSE_AFTER
        left -= 1
        yield element


def replaced(raw: bytes) -> str:
    """Text that is not UTF-8, each bad piece as U+FFFD; an encoded surrogate is one piece, as in Java."""
    try:
        text = raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace")
    return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)
