"""Write the primitive types of the Kafka protocol.

A `Writer` collects bytes; large record payloads are kept as they are, so that a response can be sent without copying
them. Compiled where a compiler is there, with the types in `writer.pxd`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from struct import Struct, pack
from typing import TypeVar

from partita.protocol.reader import Buffer, TooManyElements, with_pauses

_KEEP_AS_CHUNK = 4096
_STRING_BYTES_MAX = 0x7FFF
T = TypeVar("T")
_int8 = Struct(">b").pack
_int16 = Struct(">h").pack
_uint16 = Struct(">H").pack
_int32 = Struct(">i").pack
_int64 = Struct(">q").pack
_float64 = Struct(">d").pack


class Writer:
    """Collects one message. `chunks` are the bytes to send; `getvalue` joins it.

    `elements_max` bounds the elements of all its arrays of structs and of text; what is more raises TooManyElements.
    `pause`, if it is given, is called again and again while a long array is written.
    """

    __slots__ = ("_chunks", "_elements_left", "_first", "_pause", "buf")

    def __init__(self, elements_max: int = sys.maxsize, pause: Callable[[], object] | None = None) -> None:
        self.buf = bytearray()
        self._elements_left = elements_max
        self._pause = pause
        self._chunks: list[Buffer] = []
        self._first: bytearray | None = None

    def getvalue(self) -> bytes:
        """Everything written so far, as one piece."""
        return b"".join([*self._chunks, self.buf]) if self._chunks else bytes(self.buf)

    def chunks(self) -> list[Buffer]:
        """Everything written so far, in pieces: large values were not copied."""
        return [*self._chunks, self.buf]

    def framed(self) -> list[Buffer]:
        """The chunks, with the size of what follows written over the first four bytes."""
        first = self._first or self.buf
        size = len(self.buf) - 4
        for chunk in self._chunks:
            size += len(chunk)
        first[:4] = _int32(size)
        return [*self._chunks, self.buf]

    def required(self, value: T | None, name: str) -> T:
        """Return `value`; raise ValueError when it is null, which this version cannot say."""
        if value is None:
            raise ValueError(f"{name} cannot be null in this version; give a value or use a newer version")
        return value

    # Numbers

    def int8(self, value: int) -> None:
        """Write a signed 8-bit number."""
        self.buf += _int8(value)

    def int16(self, value: int) -> None:
        """Write a signed 16-bit number."""
        self.buf += _int16(value)

    def uint16(self, value: int) -> None:
        """Write an unsigned 16-bit number."""
        self.buf += _uint16(value)

    def int32(self, value: int) -> None:
        """Write a signed 32-bit number."""
        self.buf += _int32(value)

    def int64(self, value: int) -> None:
        """Write a signed 64-bit number."""
        self.buf += _int64(value)

    def float64(self, value: float) -> None:
        """Write a 64-bit floating-point number."""
        self.buf += _float64(value)

    def boolean(self, value: bool) -> None:
        """Write one byte, 1 or 0."""
        self.buf.append(1 if value else 0)

    def uvarint(self, value: int) -> None:
        """Write an unsigned varint."""
        while value > 0x7F:
            self.buf.append((value & 0x7F) | 0x80)
            value >>= 7
        self.buf.append(value)

    # Bytes and text

    def uuid(self, value: bytes) -> None:
        """Write the 16 bytes of a UUID."""
        if len(value) != 16:
            raise ValueError(f"a UUID has 16 bytes, not {len(value)}")
        self.buf += value

    def _encoded(self, value: str) -> Buffer:
        raw = value.encode()
        if len(raw) > _STRING_BYTES_MAX:
            raise ValueError(f"string of {len(raw)} bytes; at most {_STRING_BYTES_MAX} fit")
        return raw

    def string(self, value: str) -> None:
        """Write a string with a 16-bit length."""
        raw = self._encoded(value)
        self.buf.append(len(raw) >> 8)
        self.buf.append(len(raw) & 0xFF)
        self.buf += raw

    def nullable_string(self, value: str | None) -> None:
        """Write a string with a 16-bit length; None as -1."""
        if value is None:
            self.buf += b"\xff\xff"
        else:
            self.string(value)

    def compact_string(self, value: str) -> None:
        """Write a string with a varint length."""
        raw = self._encoded(value)
        self.uvarint(len(raw) + 1)
        self.buf += raw

    def compact_nullable_string(self, value: str | None) -> None:
        """Write a string with a varint length; None as 0."""
        if value is None:
            self.buf.append(0)
        else:
            self.compact_string(value)

    def bytes(self, value: Buffer) -> None:
        """Write bytes with a 32-bit length."""
        self.buf += _int32(len(value))
        self.buf += value

    def nullable_bytes(self, value: Buffer | None) -> None:
        """Write bytes with a 32-bit length; None as -1."""
        if value is None:
            self.buf += b"\xff\xff\xff\xff"
        else:
            self.bytes(value)

    def compact_bytes(self, value: Buffer) -> None:
        """Write bytes with a varint length."""
        self.uvarint(len(value) + 1)
        self.buf += value

    def compact_nullable_bytes(self, value: Buffer | None) -> None:
        """Write bytes with a varint length; None as 0."""
        if value is None:
            self.buf.append(0)
        else:
            self.compact_bytes(value)

    def nullable_records(self, value: Buffer | None) -> None:
        """Write records with a 32-bit length, without copying large ones; None as -1."""
        if value is None:
            self.buf += b"\xff\xff\xff\xff"
        else:
            self.buf += _int32(len(value))
            self._payload(value)

    def compact_nullable_records(self, value: Buffer | None) -> None:
        """Write records with a varint length, without copying large ones; None as 0."""
        if value is None:
            self.buf.append(0)
        else:
            self.uvarint(len(value) + 1)
            self._payload(value)

    def _payload(self, value: Buffer) -> None:
        if len(value) < _KEEP_AS_CHUNK:
            self.buf += value
            return
        if self._first is None:
            self._first = self.buf
        self._chunks += (self.buf, value)
        self.buf = bytearray()

    # Arrays and tagged fields

    def count(self, value: int) -> None:
        """Number of following elements; -1 is null."""
        self.buf += _int32(value)

    def compact_count(self, value: int) -> None:
        """Write the varint length of an array; -1 stands for null."""
        self.uvarint(value + 1)

    def each(self, elements: list[T]) -> Iterable[T]:
        """Return an iterable for writing these elements. Raises TooManyElements."""
        self._elements_left -= len(elements)
        if self._elements_left < 0:
            raise TooManyElements("more array elements than are allowed in this message")
        return elements if self._pause is None else with_pauses(elements, self._pause)

    def int32_array(self, values: list[int]) -> None:
        """Write an array of 32-bit numbers with a 32-bit length."""
        self.buf += pack(f">i{len(values)}i", len(values), *values)

    def compact_int32_array(self, values: list[int]) -> None:
        """Write an array of 32-bit numbers with a varint length."""
        self.uvarint(len(values) + 1)
        self.buf += pack(f">{len(values)}i", *values)

    def tags(self, fields: list[tuple[int, Writer]]) -> None:
        """Append the tagged fields, given by ascending number."""
        self.uvarint(len(fields))
        for number, content in fields:
            raw = content.getvalue()
            self.uvarint(number)
            self.uvarint(len(raw))
            self.buf += raw
