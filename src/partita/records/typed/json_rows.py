# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True, freethreading_compatible=True
# mypy: disable-error-code="attr-defined, index, assignment, arg-type, no-any-return, union-attr"
"""JSON objects, one a record, straight into columns: only the wanted fields, with no Python object for most values.

Compiled by Cython when a compiler is there (its types: json_rows.pxd); the same file runs uncompiled. Grammar
and conversions are those of Spark's `from_json` (JacksonParser with its default options), rare forms of values in
`odd_values`. A record is read within its own bytes, so a malformed one cannot touch the others.
"""

from __future__ import annotations

from array import array

try:
    import cython
except ImportError:
    from partita.records.uncompiled import cython

if cython.compiled:
    from cython.cimports.libc.string import memcmp

from partita.records.typed import odd_values
from partita.records.typed.cells import Cells, Listed, Real, Struct, Text, Whole, Wide
from partita.records.typed.json_text import JsonText

BOOLEAN: int = 0
WHOLE: int = 1
REAL: int = 2
DECIMAL: int = 3
TEXT: int = 4
BINARY: int = 5
DATE: int = 6
TIMESTAMP: int = 7
LOCAL_TIMESTAMP: int = 8
STRUCT: int = 9
LIST: int = 10
MAP: int = 11
KINDS = {
    "boolean": BOOLEAN, "whole": WHOLE, "real": REAL, "decimal": DECIMAL, "text": TEXT, "binary": BINARY, "date": DATE,
    "timestamp": TIMESTAMP, "local timestamp": LOCAL_TIMESTAMP, "struct": STRUCT, "list": LIST, "map": MAP,
}  # fmt: skip
"""The numbers are for compiled code alone, which cannot show them to other modules."""
_BROKEN: int = -1
_MISFIT: int = 0
_READ: int = 1
"""What becomes of a value: the JSON itself is broken; it does not fit its column, where nothing was put; it was put."""
_POWERS = memoryview(array("d", [10.0**n for n in range(23)]))
_WHOLE_POWERS = memoryview(array("q", [10**n for n in range(19)]))
_EXACT: int = 1 << 53
_EXACT_32: int = 1 << 24
_DIGITS_MAX: int = 18
_SECONDS_MAX: int = 9_000_000_000_000
"""Microseconds of more do not fit into 64 bits."""


class Field:
    """One wanted field, the elements of a list, or the values of a map (whose keys are text)."""

    __slots__ = (
        "cells", "fields", "form", "is_small", "item", "keys", "kind", "listed", "max", "min", "name", "precision",
        "real", "scale", "size", "struct", "text", "type_name", "whole", "wide",
    )  # fmt: skip

    def __init__(self, name: bytes, form: str, cells: Cells, type_name: str) -> None:
        self.name = name
        self.size = len(name)
        self.form = form
        self.kind = KINDS[form]
        self.cells = cells
        self.type_name = type_name
        self.whole = cells if isinstance(cells, Whole) else None
        self.real = cells if isinstance(cells, Real) else None
        self.wide = cells if isinstance(cells, Wide) else None
        self.text = cells if isinstance(cells, Text) else None
        self.listed = cells if isinstance(cells, Listed) else None
        self.struct = cells if isinstance(cells, Struct) else None
        self.keys: Text | None = None
        self.fields: list[Field] = []
        self.item: Field | None = None
        self.min = self.max = self.precision = self.scale = 0
        self.is_small = False


class JsonRows(JsonText):
    """Appends records to the columns of a struct of wanted fields; `faults` collects rows that are not as wanted."""

    __slots__ = ("faults", "misfit", "root", "zone")

    def __init__(self, root: Field, zone: str) -> None:
        JsonText.__init__(self)
        self.root = root
        self.zone = zone
        self.faults: list[tuple[int, str]] = []

    def read(self, data: memoryview, offsets: memoryview, nulls: memoryview | None, first: int, count: int) -> None:
        """Append `count` values of a binary column; `data` is never empty. A null or blank value is a row of nulls."""
        self.open(data)
        struct = self.root.struct
        row = 0
        while row < count:
            self.pos = self.start = offsets[row]
            self.end = offsets[row + 1]
            at = first + row
            if nulls is not None and not nulls[at >> 3] >> (at & 7) & 1:
                struct.null()
            else:
                self.misfit = None
                if not self.read_record():
                    struct.forget(row)
                    struct.null()
                    self.faults.append((row, self.broken()))
                elif self.misfit is not None:
                    self.faults.append((row, self.misfit))
            row += 1

    def read_record(self) -> bool:
        """Append one record; False for malformed JSON. Whatever follows the object is passed over, as Spark does."""
        self.skip_space()
        if self.pos == self.end:
            self.root.struct.null()
            return True
        if self.data[self.pos] != 0x7B:
            return False
        return self.read_struct(self.root) == _READ

    def read_struct(self, field: Field) -> int:
        """Append the object that begins here."""
        struct = field.struct
        row = struct.rows
        place = 0
        self.pos += 1
        byte = self.next_byte()
        if byte == 0x7D:
            self.pos += 1
            struct.step()
            return _READ
        while True:
            if not self.read_key():
                return _BROKEN
            found = self.field_of(field.fields, place)
            if self.next_byte() != 0x3A:
                return _BROKEN
            self.pos += 1
            if found < 0:
                if not self.skip_value():
                    return _BROKEN
            else:
                place = found + 1
                child = field.fields[found]
                if child.cells.rows > row:
                    child.cells.forget(row)
                done = self.read_value(child)
                if done == _BROKEN:
                    return _BROKEN
                if done == _MISFIT:
                    child.cells.null()
            byte = self.next_byte()
            self.pos += 1
            if byte == 0x7D:
                struct.step()
                return _READ
            if byte != 0x2C:
                self.pos -= 1
                return _BROKEN

    def field_of(self, fields: list[Field], place: int) -> int:
        """The place of the field of this name; the search begins where the last one was found. -1: not wanted."""
        if self.has_escape or self.has_high:
            return self.odd_field(fields)
        size = self.stop - self.begin
        count = len(fields)
        for step in range(count):
            at = place + step
            if at >= count:
                at -= count
            field = fields[at]
            if field.size == size and self.is_name(field, size):
                return at
        return -1

    def is_name(self, field: Field, size: int) -> bool:
        """Whether the string found last is the field's name, of the same size."""
        if cython.compiled:
            name = field.name
            return memcmp(name, self.data + self.begin, size) == 0
        return field.name == self.data[self.begin : self.stop]

    def odd_field(self, fields: list[Field]) -> int:
        """The same for a name with escapes or beyond ASCII."""
        name = odd_values.text_of(self.data[self.begin : self.stop])
        for at, field in enumerate(fields):
            if field.name == name:
                return at
        return -1

    def read_value(self, field: Field) -> int:
        """Append the value that begins here to the field's column."""
        byte = self.next_byte()
        if byte == 0x22 or byte == 0x27:
            return self.put_string(field) if self.find_string(byte) else _BROKEN
        if byte == 0x7B and field.kind == STRUCT:
            return self.read_struct(field)
        if byte == 0x7B and field.kind == MAP:
            return self.read_map(field)
        if byte == 0x5B and field.kind == LIST:
            return self.read_list(field)
        begin = self.begin = self.pos
        if byte == 0x7B or byte == 0x5B:
            if not self.skip_value():
                return _BROKEN
            self.begin = begin
            return self.put_as_text(field)
        if byte == 0x2D or 0x30 <= byte <= 0x39:
            if self.find_number():
                return self.put_number(field)
            self.pos = self.begin
        if byte == 0x6E and self.is_word(b"null", 4):
            field.cells.null()
            return _READ
        if byte == 0x74 and self.is_word(b"true", 4):
            return self.put_boolean(field, 1)
        if byte == 0x66 and self.is_word(b"false", 5):
            return self.put_boolean(field, 0)
        return self.put_odd_number(field) if self.find_odd_number() else _BROKEN

    def read_list(self, field: Field) -> int:
        """Append the array that begins here; one element that does not fit makes it null."""
        listed, item = field.listed, field.item
        before = listed.item.rows
        fits = True
        self.pos += 1
        if self.next_byte() == 0x5D:
            self.pos += 1
            listed.step()
            return _READ
        while True:
            done = self.read_value(item)
            if done == _BROKEN:
                return _BROKEN
            fits = fits and done == _READ
            byte = self.next_byte()
            self.pos += 1
            if byte == 0x5D:
                break
            if byte != 0x2C:
                self.pos -= 1
                return _BROKEN
        if not fits:
            listed.item.forget(before)
            return _MISFIT
        listed.step()
        return _READ

    def read_map(self, field: Field) -> int:
        """Append the object that begins here as a map; one value that does not fit makes it null."""
        listed, item, keys = field.listed, field.item, field.keys
        entries = listed.item
        before = entries.rows
        fits = True
        self.pos += 1
        if self.next_byte() == 0x7D:
            self.pos += 1
            listed.step()
            return _READ
        while True:
            if not self.read_key():
                return _BROKEN
            self.put_text(keys)
            if self.next_byte() != 0x3A:
                return _BROKEN
            self.pos += 1
            done = self.read_value(item)
            if done == _BROKEN:
                return _BROKEN
            fits = fits and done == _READ
            entries.step()
            byte = self.next_byte()
            self.pos += 1
            if byte == 0x7D:
                break
            if byte != 0x2C:
                self.pos -= 1
                return _BROKEN
        if not fits:
            entries.forget(before)
            return _MISFIT
        listed.step()
        return _READ

    def put_number(self, field: Field) -> int:
        """Append the number found last."""
        kind = field.kind
        if kind == REAL:
            return self.put_real(field)
        if kind == DECIMAL:
            return self.put_decimal(field)
        if kind == TEXT:
            # Zero may have a sign to lose.
            if self.is_real or self.mantissa == 0:
                return self.put_as_text(field)
            field.text.put(self.data, self.begin, self.pos - self.begin)
            return _READ
        if self.is_real or (kind != WHOLE and kind != TIMESTAMP):
            return self.misfits(field)
        if self.is_long or (kind == TIMESTAMP and self.mantissa > _SECONDS_MAX):
            return self.put_odd(field)
        number = -self.mantissa if self.is_negative else self.mantissa
        if kind == TIMESTAMP:
            field.whole.put(number * 1_000_000)
            return _READ
        if number < field.min or number > field.max:
            return self.misfits(field)
        # As Jackson reads a byte: 128 to 255 are taken too.
        field.whole.put(number - 256 if number > 127 and field.max == 255 else number)
        return _READ

    def put_real(self, field: Field) -> int:
        """Append a floating-point number: exact by one multiplication or division where both sides are."""
        exponent = self.exponent
        if (
            self.is_long
            or self.mantissa > (_EXACT_32 if field.is_small else _EXACT)
            or not (-10 if field.is_small else -22) <= exponent <= (10 if field.is_small else 22)
        ):
            return self.put_odd(field)
        real: float = float(self.mantissa)
        if exponent < 0:
            real /= _POWERS[-exponent]
        elif exponent:
            real *= _POWERS[exponent]
        # A whole zero has no sign, as in Java.
        field.real.put(-real if self.is_negative and self.is_real else real if not self.is_negative else 0 - real)
        return _READ

    def put_decimal(self, field: Field) -> int:
        """Append a decimal, rounded half up to its scale; what has more digits than its precision does not fit."""
        shift = field.scale + self.exponent
        number = self.mantissa
        if self.is_long or not -_DIGITS_MAX <= shift <= _DIGITS_MAX:
            return self.put_odd(field)
        if shift >= 0:
            if number > _WHOLE_POWERS[_DIGITS_MAX - shift]:
                return self.put_odd(field)
            number *= _WHOLE_POWERS[shift]
        else:
            divisor = _WHOLE_POWERS[-shift]
            rest = number % divisor
            number //= divisor
            if rest >= divisor - rest:
                number += 1
        if field.precision <= _DIGITS_MAX and number >= _WHOLE_POWERS[field.precision]:
            return self.misfits(field)
        field.wide.put(-number if self.is_negative else number)
        return _READ

    def put_boolean(self, field: Field, value: int) -> int:
        """Append true or false."""
        if field.kind == BOOLEAN:
            field.whole.put(value)
            return _READ
        if field.kind == TEXT:
            field.text.put(self.data, self.begin, self.pos - self.begin)
            return _READ
        return self.misfits(field)

    def put_string(self, field: Field) -> int:
        """Append the string found last, without its quotes."""
        kind = field.kind
        if kind == TEXT:
            self.put_text(field.text)
            return _READ
        if kind == DATE and self.stop - self.begin == 10 and self.is_date():
            field.whole.put(self.days())
            return _READ
        if kind in (TIMESTAMP, LOCAL_TIMESTAMP):
            return self.put_instant(field)
        return self.put_odd_string(field)

    def put_text(self, text: Text) -> None:
        """Append the string found last, as it is or, with escapes and beyond ASCII, as it is meant."""
        text.put(self.data, self.begin, self.stop - self.begin)
        if self.has_escape or self.has_high:
            written = cython.address(text.written[0]) if cython.compiled else text.written
            size = self.resolve(written, text.offsets[text.rows - 1], text.size)
            if size >= 0:
                text.cut(size)
            else:
                text.forget(text.rows - 1)
                text.put_bytes(odd_values.text_of(self.data[self.begin : self.stop]))

    def two(self, at: int) -> int:
        """Two digits as a number; below 0 when they are none."""
        high, low = self.data[at] - 0x30, self.data[at + 1] - 0x30
        return high * 10 + low if 0 <= high <= 9 and 0 <= low <= 9 else -1000000

    def is_date(self) -> bool:
        """Whether the string found last begins with a date of the commonest form; 29 February is left to others."""
        at = self.begin
        month, day = self.two(at + 5), self.two(at + 8)
        if self.data[at + 4] != 0x2D or self.data[at + 7] != 0x2D or self.two(at) < 0 or self.two(at + 2) < 0:
            return False
        if not 1 <= month <= 12 or day < 1:
            return False
        return day <= 28 or (day <= 30 and month != 2) or (day == 31 and month in (1, 3, 5, 7, 8, 10, 12))

    def days(self) -> int:
        """Days since 1970 of that date. The year begins in March here, so that a leap day is its last one."""
        at = self.begin
        year = self.two(at) * 100 + self.two(at + 2)
        month = self.two(at + 5)
        if month <= 2:
            year -= 1
            month += 12
        # 400 more years keep the division from seeing a negative number.
        year += 400
        return (
            365 * year + year // 4 - year // 100 + year // 400 + (153 * month - 457) // 5 + self.two(at + 8) - 865_566
        )

    def put_instant(self, field: Field) -> int:
        """Append a timestamp of the forms 2026-01-02T03:04:05[.123456][Z], others by way of `odd_values`."""
        at, stop = self.begin, self.stop
        data = self.data
        size = stop - at
        if size < 19 or not self.is_date() or data[at + 13] != 0x3A or data[at + 16] != 0x3A:
            return self.put_odd_string(field)
        hour, minute, second = self.two(at + 11), self.two(at + 14), self.two(at + 17)
        has_zone = data[stop - 1] == 0x5A
        if (
            (data[at + 10] != 0x54 and data[at + 10] != 0x20)
            or not (0 <= hour <= 23 and 0 <= minute <= 59 and 0 <= second <= 59)
            or (field.kind == LOCAL_TIMESTAMP if has_zone else field.kind == TIMESTAMP and self.zone != "UTC")
        ):
            return self.put_odd_string(field)
        if has_zone:
            stop -= 1
        micros = 0
        if stop - at > 19:
            if data[at + 19] != 0x2E or stop - at > 26:
                return self.put_odd_string(field)
            for index in range(at + 20, at + 26):
                digit = data[index] - 0x30 if index < stop else 0
                if not 0 <= digit <= 9:
                    return self.put_odd_string(field)
                micros = micros * 10 + digit
        seconds = (self.days() * 24 + hour) * 3600 + minute * 60 + second
        field.whole.put(seconds * 1_000_000 + micros)
        return _READ

    def put_odd(self, field: Field) -> int:
        """Append a number of a rare form."""
        text = bytes(self.data[self.begin : self.pos])
        return self.put_object(field, odd_values.number_as(field, text))

    def put_odd_number(self, field: Field) -> int:
        """Append NaN or an infinity."""
        if field.kind == REAL:
            return self.put_odd(field)
        return self.put_as_text(field)

    def put_odd_string(self, field: Field) -> int:
        """Append a string of a rare form, or one that stands for something else."""
        text = odd_values.text_of(self.data[self.begin : self.stop])
        return self.put_object(field, odd_values.string_as(field, text, self.zone))

    def put_as_text(self, field: Field) -> int:
        """Append a number, a list or an object as text, in a text column only."""
        if field.kind != TEXT:
            return self.misfits(field)
        field.text.put_bytes(odd_values.as_text(bytes(self.data[self.begin : self.pos])))
        return _READ

    def put_object(self, field: Field, value: object) -> int:
        """Append a value that `odd_values` made; None did not fit."""
        if value is None:
            return self.misfits(field)
        if field.kind == REAL:
            field.real.put(value)
        elif field.kind == DECIMAL:
            field.wide.put_wide(value)
        elif field.kind == BINARY:
            field.text.put_bytes(value)
        else:
            field.whole.put(value)
        return _READ

    def misfits(self, field: Field) -> int:
        """Note that the value read last does not fit its column."""
        if self.misfit is None:
            found = bytes(self.data[self.begin : self.pos]).decode("utf-8", "replace").rstrip("\"'")
            self.misfit = f"{field.name.decode()} is {found:.60}, which is no {field.type_name}"
        return _MISFIT
