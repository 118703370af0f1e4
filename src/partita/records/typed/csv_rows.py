# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True, freethreading_compatible=True
# mypy: disable-error-code="attr-defined, index, assignment, arg-type, union-attr"
"""CSV, one record of it a value, straight into columns by their order, with no Python object for most values.

Compiled by Cython when a compiler is there (its types: csv_rows.pxd); the same file runs uncompiled. Grammar and
conversions are those of Spark's from_csv with its default options: quotes are escaped by a backslash, an empty value
is null. Quotes of rare forms, and rare forms of values, are in `odd_cells`.
"""

from __future__ import annotations

from partita.records.typed import odd_cells, odd_values
from partita.records.typed.json_rows import KINDS, Field, JsonRows

_BOOLEAN: int = KINDS["boolean"]
_WHOLE: int = KINDS["whole"]
_REAL: int = KINDS["real"]
_DECIMAL: int = KINDS["decimal"]
_TEXT: int = KINDS["text"]
_BINARY: int = KINDS["binary"]
_DATE: int = KINDS["date"]


class CsvRows:
    """Appends records to the columns of a struct of fields; `faults` collects rows that are not as wanted.

    `values` converts values of the forms that CSV and JSON share. The last cell is from `begin` to `stop`, or it is
    `rare`; `is_plain`: it is ASCII without a backslash. A record with a rare cell is copied once, to `copy`, which ends
    where it ends.
    """

    __slots__ = ("begin", "copy", "end", "faults", "is_plain", "pos", "rare", "root", "separator", "stop", "values")

    def __init__(self, root: Field, zone: str, separator: int) -> None:
        self.root = root
        self.values = JsonRows(root, zone)
        self.separator = separator
        self.pos = self.end = self.begin = self.stop = 0
        self.rare: bytes | None = None
        self.copy: bytes | None = None
        self.faults: list[tuple[int, str]] = []

    def read(self, data: memoryview, offsets: memoryview, nulls: memoryview | None, first: int, count: int) -> None:
        """Append `count` values of a binary column; `data` is never empty. A null is a row of nulls."""
        values = self.values
        values.open(data)
        row = 0
        while row < count:
            self.pos = offsets[row]
            self.end = offsets[row + 1]
            self.copy = None
            at = first + row
            if nulls is not None and not nulls[at >> 3] >> (at & 7) & 1:
                self.root.struct.null()
            else:
                values.misfit = None
                reason = self.read_record()
                if reason is None:
                    reason = values.misfit
                if reason is not None:
                    self.faults.append((row, reason))
            row += 1

    def read_record(self) -> str | None:
        """Append one record; return the reason if it has not as many values as there are columns.

        To Spark a line break is part of a value, and an empty record one of nulls.
        """
        fields = self.root.fields
        if self.pos == self.end:
            self.root.struct.null()
            return None
        wanted = len(fields)
        found = 0
        while True:
            self.find_cell()
            if found < wanted and not self.put_cell(fields[found]):
                fields[found].cells.null()
            found += 1
            if self.pos >= self.end:
                break
            self.pos += 1
        self.root.struct.step()
        return None if found == wanted else f"the record has {found} values, not {wanted}"

    def find_cell(self) -> None:
        """Find the value that begins here; `pos` is at a separator or the end afterwards."""
        self.rare = None
        if self.pos >= self.end or self.values.data[self.pos] != 0x22:
            self.find_bare()
        elif not self.find_quoted():
            if self.copy is None:
                self.copy = bytes(self.values.data[self.pos : self.end])
            start = self.end - len(self.copy)
            self.rare, stop = odd_cells.quoted(self.copy, self.pos - start, self.separator)
            self.pos = start + stop

    def find_bare(self) -> None:
        """Find the value without quotes that begins here."""
        data, end = self.values.data, self.end
        at = self.begin = self.pos
        marks = 0
        has_escape = False
        while at < end:
            byte = data[at]
            if byte == self.separator:
                break
            marks |= byte
            if byte == 0x5C:
                has_escape = True
            at += 1
        self.stop = self.pos = at
        self.is_plain = marks < 0x80 and not has_escape

    def find_quoted(self) -> bool:
        """Find the quoted value that begins here, without its quotes; False if it has escapes or another rare form."""
        data, end = self.values.data, self.end
        at = self.begin = self.pos + 1
        marks = 0
        has_escape = False
        while at < end:
            byte = data[at]
            if byte == 0x22:
                if data[at - 1] == 0x5C or (at + 1 < end and data[at + 1] != self.separator):
                    return False
                self.stop = at
                self.pos = at + 1
                self.is_plain = marks < 0x80 and not has_escape
                return True
            if byte == 0x5C:
                has_escape = True
                if at + 1 < end and (data[at + 1] == 0x22 or data[at + 1] == 0x5C):
                    return False
            marks |= byte
            at += 1
        return False

    def put_cell(self, field: Field) -> bool:
        """Append the cell found last, null if it is empty; False if it does not fit its column."""
        values, kind = self.values, field.kind
        if self.rare is not None:
            return self.put_rare(field, self.rare)
        values.begin = values.pos = self.begin
        values.stop = values.end = self.stop
        if self.begin == self.stop:
            field.cells.null()
            return True
        if kind in (_TEXT, _BINARY):
            if self.is_plain:
                field.text.put(values.data, self.begin, self.stop - self.begin)
                return True
        elif self.is_plain:
            if kind in (_WHOLE, _REAL, _DECIMAL):
                done = self.put_number(field)
                if done >= 0:
                    return done == 1
            elif kind == _DATE:
                if self.stop - self.begin == 10 and values.is_date():
                    field.whole.put(values.days())
                    return True
            elif kind != _BOOLEAN:
                values.pos = self.stop
                return values.put_string(field) == 1
        return self.put_rare(field, bytes(values.data[self.begin : self.stop]))

    def put_number(self, field: Field) -> int:
        """Append a number of a common form: 1 if it fits, 0 if it does not, -1 if it is of another form."""
        values = self.values
        byte = values.data[self.begin]
        if (byte != 0x2D and not 0x30 <= byte <= 0x39) or (byte == 0x2D and self.stop == self.begin + 1):
            return -1
        # Zero may have a sign that JSON loses.
        if not values.find_number() or values.pos != self.stop or values.mantissa == 0:
            return -1
        if field.kind == _REAL:
            return values.put_real(field)
        if field.kind == _DECIMAL:
            return values.put_decimal(field)
        if values.is_real or values.is_long:
            return -1
        return values.put_number(field)

    def put_rare(self, field: Field, raw: bytes) -> bool:
        """Append a value of a rare form."""
        if not raw:
            field.cells.null()
        elif field.kind in (_TEXT, _BINARY):
            field.text.put_bytes(odd_values.as_java(raw).encode())
        else:
            text = odd_values.as_java(raw)
            value = odd_cells.cell_as(field, text, self.values.zone)
            if value is not None:
                self.values.put_object(field, value)
                return True
            if self.values.misfit is None:
                self.values.misfit = f"{field.name.decode()} is {text:.60}, which is no {field.type_name}"
            return False
        return True
