# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True, freethreading_compatible=True
# mypy: disable-error-code="attr-defined, index, assignment, arg-type, misc, no-any-return, union-attr"
"""Avro's binary encoding, one value a record, straight into columns: only the wanted fields, the others passed over.

Compiled by Cython when a compiler is there (its types: avro_rows.pxd); the same file runs uncompiled. `avro_schemas`
makes a tree of nodes of each schema, which says what is to be done.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import unpack_from
from typing import Any

try:
    import cython
except ImportError:
    from partita.records.uncompiled import cython

if cython.compiled:
    from cython.cimports.libc.string import memcpy

from partita.records.typed.cells import Cells, Listed, Real, Struct, Text, Whole, Wide

NULL: int = 0
BOOLEAN: int = 1
WHOLE: int = 2
FLOAT: int = 3
DOUBLE: int = 4
TEXT: int = 5
FIXED: int = 6
ENUM: int = 7
ARRAY: int = 8
MAP: int = 9
RECORD: int = 10
UNION: int = 11
CONSTANT: int = 12
KINDS = {
    "null": NULL, "boolean": BOOLEAN, "int": WHOLE, "long": WHOLE, "float": FLOAT, "double": DOUBLE, "bytes": TEXT,
    "string": TEXT, "fixed": FIXED, "enum": ENUM, "array": ARRAY, "map": MAP, "record": RECORD, "union": UNION,
    "constant": CONSTANT,
}  # fmt: skip
"""The numbers are for compiled code alone, which cannot show them to other modules."""
_EMPTY_MAX: int = 10_000
"""So many elements of a record's lists may have no bytes at all, as nulls have none."""
_DEPTH_MAX: int = 120
"""Types that contain themselves are passed over so deep: uncompiled, a level takes four calls of Python's thousand."""
_HEAD: int = 5
"""Bytes in front of a framed record: a zero, and the id of its schema."""
_MALFORMED = "the bytes are not what their Avro schema says: at byte {} of {}"


class Node:
    """A type of the writer's schema; without `cells` it is passed over.

    `factor` multiplies a whole number, 0 if it stays; `size` is that of a fixed type; with `is_utf8` bytes are text;
    with `is_narrow` the column takes 32 bits of 64, and `value` is its name. The nodes of a union are its branches: one
    for null has the union's own cells.
    """

    __slots__ = (
        "cells", "factor", "is_int", "is_members", "is_narrow", "is_utf8", "kind", "listed", "nodes", "real", "size",
        "struct", "symbols", "text", "value", "whole", "wide",
    )  # fmt: skip

    def __init__(self, form: str, cells: Cells | None) -> None:
        self.kind = KINDS[form]
        self.is_int = form == "int"
        self.is_utf8 = form == "string"
        self.cells = cells
        self.whole = cells if isinstance(cells, Whole) else None
        self.real = cells if isinstance(cells, Real) else None
        self.wide = cells if isinstance(cells, Wide) else None
        self.text = cells if isinstance(cells, Text) else None
        self.listed = cells if isinstance(cells, Listed) else None
        self.struct = cells if isinstance(cells, Struct) else None
        self.nodes: list[Node] = []
        self.symbols: list[bytes] = []
        self.factor = self.size = 0
        self.is_members = self.is_narrow = False
        self.value: Any = None


class AvroRows:
    """Appends records to the columns of a struct; `faults` collects rows that could not be read.

    `learn` gives the node for the id of a schema, or the reason why its records cannot be read; without it they are
    bare, and all of `node`.
    """

    __slots__ = (
        "data", "depth", "end", "faults", "known_id", "learn", "node", "nodes", "pos", "reason", "root", "spare",
    )  # fmt: skip

    def __init__(self, root: Struct, node: Node | None, learn: Callable[[int], Node | str] | None) -> None:
        self.root = root
        self.node = node
        self.learn = learn
        self.known_id = -1
        self.depth = 0
        self.nodes: dict[int, Node | str] = {}
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
            self.spare = _EMPTY_MAX
            at = first + row
            if nulls is not None and not nulls[at >> 3] >> (at & 7) & 1:
                root.null()
            else:
                reason = None if self.learn is None else self.choose()
                if reason is None:
                    self.reason = None
                    if not self.read_value(self.node):
                        reason = self.reason or _MALFORMED.format(self.pos - start, offsets[row + 1] - start)
                    elif self.pos != self.end:
                        reason = f"{self.end - self.pos} bytes are left over behind the Avro record"
                if reason is not None:
                    root.forget(row)
                    root.null()
                    self.faults.append((row, reason))
            row += 1

    def choose(self) -> str | None:
        """Find the node for the schema that the record names; return the reason if there is none."""
        if self.end - self.pos < _HEAD or self.data[self.pos] != 0:
            return "expected a zero byte and a schema id: it was not written by a serializer of a schema registry"
        schema_id = 0
        for index in range(1, _HEAD):
            schema_id = schema_id << 8 | self.data[self.pos + index]
        if schema_id != self.known_id:
            found = self.nodes.get(schema_id)
            if found is None:
                found = self.nodes[schema_id] = self.learn(schema_id)
            if isinstance(found, str):
                return found
            self.node = found
            self.known_id = schema_id
        self.pos += _HEAD
        return None

    def number(self) -> int:
        """A zig-zag varint; `end` is moved before `pos` when it is malformed, so that whatever follows is too."""
        value = 0
        shift = 0
        while self.pos < self.end and shift < 70:
            byte = self.data[self.pos]
            self.pos += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if not cython.compiled:
                    value &= 0xFFFFFFFFFFFFFFFF
                return (value >> 1) ^ -(value & 1)
            shift += 7
        self.end = self.pos - 1
        return 0

    def read_value(self, node: Node) -> bool:
        """Read a value of this node's type; False when the bytes are malformed."""
        kind = node.kind
        if kind == UNION:
            return self.read_union(node)
        if kind == TEXT:
            size = self.number()
            if size < 0 or size > self.end - self.pos:
                return False
            return self.put_bytes(node, size)
        if kind == WHOLE:
            return self.put_whole(node, self.number())
        if kind == RECORD:
            return self.read_record(node)
        if kind in (DOUBLE, FLOAT):
            return self.put_real(node)
        if kind in (ARRAY, MAP):
            return self.read_list(node)
        return self.read_other(node)

    def read_record(self, node: Node) -> bool:
        """Read the fields in turn."""
        self.depth += 1
        if self.depth > _DEPTH_MAX:
            return False
        for child in node.nodes:
            if not self.read_value(child):
                return False
        self.depth -= 1
        if node.struct is not None:
            node.struct.step()
        return True

    def read_other(self, node: Node) -> bool:
        """The types that are rare."""
        kind = node.kind
        if kind == NULL:
            if node.cells is not None:
                node.cells.null()
            return True
        if kind == FIXED:
            return node.size <= self.end - self.pos and self.put_bytes(node, node.size)
        if kind == BOOLEAN:
            if self.pos >= self.end:
                return False
            if node.whole is not None:
                node.whole.put(self.data[self.pos] == 1)
            self.pos += 1
            return True
        if kind == ENUM:
            place = self.number()
            if place < 0 or place >= len(node.symbols) or self.pos > self.end:
                return False
            if node.text is not None:
                node.text.put_bytes(node.symbols[place])
            return True
        self.put_constant(node)
        return True

    def read_union(self, node: Node) -> bool:
        """The branch that the record chose; branches without cells of their own are members of a struct."""
        place = self.number()
        if place < 0 or place >= len(node.nodes) or self.pos > self.end:
            return False
        branch = node.nodes[place]
        if not self.read_value(branch):
            return False
        if node.is_members and branch.kind != NULL:
            node.struct.step()
        return True

    def read_list(self, node: Node) -> bool:
        """The blocks of an array or a map; one that is not wanted is passed over by its size, if it says it."""
        while True:
            count = self.number()
            if self.pos > self.end:
                return False
            if count == 0:
                break
            size = -1
            if count < 0:
                count = -count
                size = self.number()
                if node.cells is None:
                    if size < 0 or size > self.end - self.pos:
                        return False
                    self.pos += size
                    continue
            before = self.pos
            if count < 0 or count > self.end - before + self.spare or not self.read_block(node, count):
                return False
            if count > self.pos - before:
                self.spare -= count - (self.pos - before)
        if node.listed is not None:
            node.listed.step()
        return True

    def read_block(self, node: Node, count: int) -> bool:
        """So many elements, or entries."""
        entries = node.listed.item if node.kind == MAP and node.listed is not None else None
        while count > 0:
            for child in node.nodes:
                if not self.read_value(child):
                    return False
            if entries is not None:
                entries.step()
            count -= 1
        return True

    def put_whole(self, node: Node, number: int) -> bool:
        """Append a whole number, where it is wanted, in the column's unit."""
        if self.pos > self.end or (node.is_int and not -2147483648 <= number <= 2147483647):
            return False
        if node.whole is not None:
            if node.is_narrow and not -2147483648 <= number <= 2147483647:
                self.reason = f"{node.value} is {number}, which is no int"
                return False
            if node.factor:
                if not -9_223_372_036_854_775 <= number <= 9_223_372_036_854_775:
                    return False
                number *= node.factor
            node.whole.put(number)
        elif node.real is not None:
            node.real.put(number)
        return True

    def put_real(self, node: Node) -> bool:
        """Append a floating-point number, its least significant byte first."""
        double = small = 0.0
        width = 8 if node.kind == DOUBLE else 4
        if width > self.end - self.pos:
            return False
        if node.real is not None:
            if not cython.compiled:
                double = unpack_from("<d" if width == 8 else "<f", self.data, self.pos)[0]
            else:
                bits = 0
                for index in range(width):
                    bits |= cython.cast(cython.ulonglong, self.data[self.pos + index]) << (8 * index)
                if width == 8:
                    memcpy(cython.address(double), cython.address(bits), 8)
                else:
                    small_bits = bits
                    memcpy(cython.address(small), cython.address(small_bits), 4)
                    double = small
            node.real.put(double)
        self.pos += width
        return True

    def put_bytes(self, node: Node, size: int) -> bool:
        """Append so many bytes: text, bytes, or a decimal's number."""
        if node.text is not None:
            if node.is_utf8 and not self.is_text(size):
                return False
            node.text.put(self.data, self.pos, size)
        elif node.wide is not None and not self.put_decimal(node, size):
            return False
        self.pos += size
        return True

    def is_text(self, size: int) -> bool:
        """Whether the next bytes are UTF-8."""
        high = 0
        for index in range(self.pos, self.pos + size):
            high |= self.data[index]
        return high < 0x80 or is_utf8(self.data[self.pos : self.pos + size])

    def put_decimal(self, node: Node, size: int) -> bool:
        """Append a number of any size, its most significant byte first, that the column's digits can hold."""
        number = int.from_bytes(self.data[self.pos : self.pos + size], "big", signed=True)
        if size == 0 or not -node.value < number < node.value:
            return False
        node.wide.put_wide(number)
        return True

    def put_constant(self, node: Node) -> None:
        """Append the default of a field that the writer does not have."""
        value = node.value
        if value is None:
            node.cells.null()
        elif node.whole is not None:
            node.whole.put(value)
        elif node.real is not None:
            node.real.put(value)
        elif node.text is not None:
            node.text.put_bytes(value)
        elif node.wide is not None:
            node.wide.put_wide(value)
        else:
            for child in node.nodes:
                self.put_constant(child)
            node.cells.step()


def is_utf8(raw: bytes) -> bool:
    """Whether the bytes are text."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True
