# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True, freethreading_compatible=True
# mypy: disable-error-code="attr-defined, index, assignment, arg-type, misc, no-any-return, union-attr"
"""Protobuf's wire format, one message a record, straight into columns: only the wanted fields, the others passed over.

Compiled by Cython when a compiler is there (its types: proto_rows.pxd); the same file runs uncompiled. The fields of a
message may stand in any order and twice: the last one counts, messages are merged. Columns of a message grow apart and
meet at its end.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import unpack_from

try:
    import cython
except ImportError:
    from partita.records.uncompiled import cython

if cython.compiled:
    from cython.cimports.libc.string import memcpy

from partita.protocol.writer import Writer
from partita.records.typed.avro_rows import is_utf8
from partita.records.typed.cells import Cells, Listed, Real, Struct, Text, Whole

VARINT: int = 0
SIGNED: int = 1
FIXED: int = 2
REAL: int = 3
TEXT: int = 4
BYTES: int = 5
ENUM: int = 6
MESSAGE: int = 7
TIMESTAMP: int = 8
BOOLEAN: int = 9
KINDS = {
    "varint": VARINT, "signed": SIGNED, "fixed": FIXED, "real": REAL, "text": TEXT, "bytes": BYTES, "enum": ENUM,
    "message": MESSAGE, "timestamp": TIMESTAMP, "boolean": BOOLEAN,
}  # fmt: skip
"""The numbers are for compiled code alone, which cannot show them to other modules."""
_VARINT_WIRE: int = 0
_FIXED64_WIRE: int = 1
_SIZED_WIRE: int = 2
_GROUP_WIRE: int = 3
_GROUP_END_WIRE: int = 4
_FIXED32_WIRE: int = 5
_DEPTH_MAX: int = 100
"""Deeper nesting is refused, as Java's library refuses it."""
_HEAD: int = 5
"""Bytes in front of a framed record before the path to its message: a zero, and the id of its schema."""
_SECONDS_MAX: int = 9_000_000_000_000
_INDEXES_MAX: int = 100


class ProtoField:
    """One wanted field. `width` is its size in bytes, where that matters; a repeated one has the cells of its elements.

    `skips_zero`: without presence, zero and nothing are the same, and the column has null. The fields of a message, or
    of an entry of a map, are in `fields`, ordered by their numbers; `symbols` are the names of an enum.
    """

    __slots__ = (
        "cells", "default", "fields", "is_required", "kind", "listed", "name", "number", "real",
        "skips_zero", "struct", "symbols", "text", "unknown", "whole", "width",
    )  # fmt: skip

    def __init__(self, name: str, number: int, form: str, cells: Cells, listed: Listed | None = None) -> None:
        self.name = name
        self.number = number
        self.kind = KINDS[form]
        self.cells = cells
        self.listed = listed
        self.whole = cells if isinstance(cells, Whole) else None
        self.real = cells if isinstance(cells, Real) else None
        self.text = cells if isinstance(cells, Text) else None
        self.struct = cells if isinstance(cells, Struct) else None
        self.fields: list[ProtoField] = []
        self.symbols: dict[int, bytes] = {}
        self.unknown: bytes | None = None
        self.default: object = None
        self.width = 8
        self.is_required = self.skips_zero = False


class ProtoRows:
    """Appends messages to the columns of a struct; `faults` collects rows that could not be read.

    `learn` gives the fields for the head of a framed message, or the reason why its messages cannot be read; without it
    they are bare, and have `fields`. With `is_split`, a message of the record is in parts, so that it is read by
    `read_merged`.
    """

    __slots__ = (
        "data", "depth", "end", "faults", "fields", "is_split", "known", "known_head", "learn", "pos", "reason", "root",
    )  # fmt: skip

    def __init__(
        self, root: Struct, fields: list[ProtoField] | None, learn: Callable[[bytes], list[ProtoField] | str] | None
    ) -> None:
        self.root = root
        self.fields = fields
        self.learn = learn
        self.known: dict[bytes, list[ProtoField] | str] = {}
        self.known_head: bytes | None = None
        self.pos = self.end = self.depth = 0
        self.is_split = False
        self.reason: str | None = None
        self.faults: list[tuple[int, str]] = []

    def read(self, data: memoryview, offsets: memoryview, nulls: memoryview | None, first: int, count: int) -> None:
        """Append `count` values of a binary column; `data` is never empty. A null is a row of nulls."""
        if cython.compiled:
            self.data = cython.address(data[0])
        else:
            self.data = bytes(data)
        root = self.root
        row = 0
        while row < count:
            self.pos = start = offsets[row]
            self.end = offsets[row + 1]
            self.depth = 0
            at = first + row
            if nulls is not None and not nulls[at >> 3] >> (at & 7) & 1:
                root.null()
            else:
                reason = None if self.learn is None else self.choose()
                if reason is None:
                    self.reason = None
                    if not self.read_record(row):
                        where = f"at byte {self.pos - start} of {offsets[row + 1] - start}"
                        reason = self.reason or f"the bytes are no such Protobuf message: {where}"
                if reason is not None:
                    root.forget(row)
                    root.null()
                    self.faults.append((row, reason))
            row += 1

    def read_record(self, row: int) -> bool:
        """Read the message that begins here; again, if it proves to be in parts."""
        start, end = self.pos, self.end
        self.is_split = False
        if self.read_message(self.fields, self.root, end):
            return True
        if not self.is_split:
            return False
        self.root.forget(row)
        self.pos = start
        self.end = end
        self.depth = 0
        return self.read_message(self.fields, self.root, end)

    def read_merged(self, fields: list[ProtoField], struct: Struct, end: int) -> bool:
        """Read the message up to `end`, whose message fields may stand in parts."""
        data, outer = self.data, self.end
        # Messages merge where their bytes are joined; the pointer does not keep the copy.
        joined = self.joined(fields, end)
        self.data = joined
        self.pos = 0
        self.end = len(joined)
        is_read = self.read_fields(fields, struct, self.end)
        self.data = data
        self.pos = end
        self.end = outer
        return is_read

    def joined(self, fields: list[ProtoField], end: int) -> bytes:
        """The bytes up to `end` with the parts of each message field joined, behind all other fields."""
        parts: dict[int, list[bytes]] = {}
        kept: list[bytes] = []
        self.end = end
        while self.pos < end:
            start = self.pos
            tag = self.varint()
            found = self.place_of(fields, tag >> 3, 0) if tag & 7 == _SIZED_WIRE and self.pos <= self.end else -1
            is_part = found >= 0 and fields[found].listed is None and fields[found].kind in (MESSAGE, TIMESTAMP)
            body = self.pos
            if is_part:
                size = self.varint()
                body = self.pos
                self.pos = body + size if 0 <= size <= self.end - body else end + 1
            elif not self.skip(tag & 7, tag >> 3):
                self.pos = end + 1
            if self.pos > end or self.end != end:
                # Malformed: whoever reads it will say so.
                kept.append(bytes(self.data[start:end]))
                break
            if is_part:
                parts.setdefault(tag, []).append(bytes(self.data[body : self.pos]))
            else:
                kept.append(bytes(self.data[start : self.pos]))
        for tag, some in parts.items():
            whole = b"".join(some)
            head = Writer()
            head.uvarint(tag)
            head.uvarint(len(whole))
            kept += [head.getvalue(), whole]
        return b"".join(kept)

    def choose(self) -> str | None:
        """Find the fields for the message that the record's head names; return the reason if there are none."""
        start = self.pos
        if self.end - self.pos <= _HEAD or self.data[self.pos] != 0:
            return "expected a zero byte and a schema id: it was not written by a serializer of a schema registry"
        self.pos += _HEAD
        count = self.varint() >> 1
        if not 0 <= count <= _INDEXES_MAX:
            return "the message indexes behind the schema id are cut short"
        while count > 0:
            self.varint()
            count -= 1
        if self.pos > self.end:
            return "the message indexes behind the schema id are cut short"
        head = bytes(self.data[start : self.pos])
        if head != self.known_head:
            found = self.known.get(head)
            if found is None:
                found = self.known[head] = self.learn(head)
            if isinstance(found, str):
                return found
            self.fields = found
            self.known_head = head
        return None

    def varint(self) -> int:
        """A number of up to 64 bits, signed; `end` is moved before `pos` when it is malformed."""
        value = 0
        shift = 0
        while self.pos < self.end and shift < 70:
            byte = self.data[self.pos]
            self.pos += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if not cython.compiled:
                    value = (value & 0xFFFFFFFFFFFFFFFF ^ 1 << 63) - (1 << 63)
                return value
            shift += 7
        self.end = self.pos - 1
        return 0

    def read_message(self, fields: list[ProtoField], struct: Struct, end: int) -> bool:
        """Read the message up to `end`; False when its bytes are malformed."""
        if self.is_split:
            return self.read_merged(fields, struct, end)
        return self.read_fields(fields, struct, end)

    def read_fields(self, fields: list[ProtoField], struct: Struct, end: int) -> bool:
        """Read the fields up to `end`, and end the row of `struct`."""
        self.depth += 1
        if self.depth > _DEPTH_MAX:
            return False
        row = struct.rows
        place = 0
        outer = self.end
        self.end = end
        while self.pos < self.end:
            tag = self.varint()
            number = tag >> 3
            wire = tag & 7
            if self.pos > self.end or not 0 < number < 1 << 29:
                return False
            found = self.place_of(fields, number, place)
            if found < 0:
                if not self.skip(wire, number):
                    return False
            else:
                place = found + 1
                if not self.read_field(fields[found], wire, row):
                    return False
        if self.pos != end or self.end != end:
            return False
        self.end = outer
        self.depth -= 1
        for field in fields:
            if field.listed is not None:
                field.listed.step()
            elif field.cells.rows == row:
                if field.is_required:
                    self.reason = f"the required field {field.name} is missing"
                    return False
                self.put_default(field)
        struct.step()
        return True

    def place_of(self, fields: list[ProtoField], number: int, place: int) -> int:
        """The place of the field of this number; the search begins where the next one is likely. -1: not wanted."""
        count = len(fields)
        for step in range(count):
            at = place + step
            if at >= count:
                at -= count
            field = fields[at]
            if field.number == number:
                return at
        return -1

    def skip(self, wire: int, number: int) -> bool:
        """Pass over a field that is not wanted."""
        if wire == _VARINT_WIRE:
            self.varint()
        elif wire == _SIZED_WIRE:
            size = self.varint()
            if size < 0 or size > self.end - self.pos:
                return False
            self.pos += size
        elif wire == _FIXED64_WIRE:
            self.pos += 8
        elif wire == _FIXED32_WIRE:
            self.pos += 4
        else:
            return wire == _GROUP_WIRE and self.skip_group(number)
        return self.pos <= self.end

    def skip_group(self, number: int) -> bool:
        """Pass over a group, up to the end that has its number."""
        self.depth += 1
        if self.depth > _DEPTH_MAX:
            return False
        while self.pos < self.end:
            tag = self.varint()
            if tag & 7 == _GROUP_END_WIRE:
                self.depth -= 1
                return tag >> 3 == number and self.pos <= self.end
            if not self.skip(tag & 7, tag >> 3):
                return False
        return False

    def read_field(self, field: ProtoField, wire: int, row: int) -> bool:
        """Read a wanted field: an element if it is repeated, else the value that takes the place of an earlier one."""
        kind = field.kind
        if kind in (TEXT, BYTES, MESSAGE, TIMESTAMP):
            expected = _SIZED_WIRE
        elif kind in (FIXED, REAL):
            expected = _FIXED64_WIRE if field.width == 8 else _FIXED32_WIRE
        else:
            expected = _VARINT_WIRE
        if wire != expected:
            # Elements may be packed whatever the schema says; any other difference makes it an unknown field.
            if wire != _SIZED_WIRE or field.listed is None or expected == _SIZED_WIRE:
                return self.skip(wire, field.number)
            return self.read_packed(field)
        if field.listed is None and field.cells.rows > row:
            if kind in (MESSAGE, TIMESTAMP):
                self.is_split = True
                return False
            field.cells.forget(row)
        return self.read_value(field)

    def read_packed(self, field: ProtoField) -> bool:
        """Elements without tags."""
        size = self.varint()
        if size < 0 or size > self.end - self.pos:
            return False
        stop = self.pos + size
        while self.pos < stop:
            if not self.read_value(field):
                return False
        return self.pos == stop

    def read_value(self, field: ProtoField) -> bool:
        """Append one value."""
        kind = field.kind
        if kind in (TEXT, BYTES, MESSAGE, TIMESTAMP):
            size = self.varint()
            if size < 0 or size > self.end - self.pos:
                return False
            if kind == MESSAGE:
                return self.read_message(field.fields, field.struct, self.pos + size)
            if kind == TIMESTAMP:
                return self.put_timestamp(field, self.pos + size)
            return self.put_bytes(field, size)
        if kind in (FIXED, REAL):
            return self.put_fixed(field)
        number = self.varint()
        if self.pos > self.end:
            return False
        if kind == ENUM:
            self.put_symbol(field, number)
            return True
        if kind == BOOLEAN:
            number = number != 0
        else:
            if field.width == 4:
                number &= 0xFFFFFFFF
            if kind == SIGNED:
                number = ((number >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(number & 1)
            if field.width == 4:
                number = ((number & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000
        self.put_whole(field, number)
        return True

    def put_whole(self, field: ProtoField, number: int) -> None:
        """Append a whole number."""
        if number == 0 and field.skips_zero:
            field.cells.null()
        else:
            field.whole.put(number)

    def put_symbol(self, field: ProtoField, number: int) -> None:
        """Append the name of an enum's number, the low half of which counts."""
        number = ((number & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000
        if number == 0 and field.skips_zero:
            field.cells.null()
        elif number in field.symbols:
            field.text.put_bytes(field.symbols[number])
        elif field.unknown is not None:
            field.text.put_bytes(field.unknown + b"%d" % number)
        elif field.listed is None:
            self.put_default(field)

    def put_bytes(self, field: ProtoField, size: int) -> bool:
        """Append text or bytes."""
        if size == 0 and field.skips_zero:
            field.cells.null()
            return True
        if field.kind == TEXT:
            high = 0
            for index in range(self.pos, self.pos + size):
                high |= self.data[index]
            if high >= 0x80 and not is_utf8(self.data[self.pos : self.pos + size]):
                self.reason = f"{field.name} is no text in UTF-8"
                return False
        field.text.put(self.data, self.pos, size)
        self.pos += size
        return True

    def put_fixed(self, field: ProtoField) -> bool:
        """Append a number of fixed size, its least significant byte first."""
        double = small = 0.0
        width = field.width
        if width > self.end - self.pos:
            return False
        bits = 0
        for index in range(width):
            if cython.compiled:
                bits |= cython.cast(cython.ulonglong, self.data[self.pos + index]) << (8 * index)
            else:
                bits |= self.data[self.pos + index] << (8 * index)
        self.pos += width
        if field.kind == FIXED:
            number = bits
            if width == 4:
                number = (number ^ 0x80000000) - 0x80000000
            elif not cython.compiled:
                number = (number ^ 1 << 63) - (1 << 63)
            self.put_whole(field, number)
            return True
        if bits == 0 and field.skips_zero:
            field.cells.null()
            return True
        if not cython.compiled:
            double = unpack_from("<d" if width == 8 else "<f", self.data, self.pos - width)[0]
        elif width == 8:
            memcpy(cython.address(double), cython.address(bits), 8)
        else:
            small_bits = bits
            memcpy(cython.address(small), cython.address(small_bits), 4)
            double = small
        field.real.put(double)
        return True

    def put_timestamp(self, field: ProtoField, end: int) -> bool:
        """Append the message google.protobuf.Timestamp that ends at `end`, as microseconds."""
        seconds = nanos = 0
        outer = self.end
        self.end = end
        while self.pos < self.end:
            tag = self.varint()
            if tag == 8:
                seconds = self.varint()
            elif tag == 16:
                nanos = self.varint()
            elif not self.skip(tag & 7, tag >> 3):
                return False
        if self.pos != end or self.end != end:
            return False
        self.end = outer
        if not -_SECONDS_MAX <= seconds <= _SECONDS_MAX or not -999_999_999 <= nanos <= 999_999_999:
            self.reason = f"{field.name} is no timestamp"
            return False
        # Rounded down, also before 1970.
        micros = (nanos + 1_000_000_000) // 1000 - 1_000_000
        field.whole.put(seconds * 1_000_000 + micros)
        return True

    def put_default(self, field: ProtoField) -> None:
        """Append what stands for a field that is not there."""
        value = field.default
        if value is None:
            field.cells.null()
        elif field.whole is not None:
            field.whole.put(value)
        elif field.real is not None:
            field.real.put(value)
        else:
            field.text.put_bytes(value)
