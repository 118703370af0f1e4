"""Columns of bytes to typed columns: the formats, and the result with the reasons of rows that could not be read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias

import pyarrow as pa
from pyarrow import types as kinds

from partita.records.typed.avro_rows import AvroRows, Node
from partita.records.typed.avro_schemas import AvroSchema, Reading
from partita.records.typed.cells import Cells, Listed, Struct, Text
from partita.records.typed.csv_rows import CsvRows
from partita.records.typed.ddl import SchemaError, type_text
from partita.records.typed.filled import array_of, cells_of
from partita.records.typed.json_rows import Field, JsonRows
from partita.records.typed.proto_rows import ProtoField, ProtoRows

_WHOLE = {
    pa.int8(): (-(2**7), 255),
    pa.int16(): (-(2**15), 2**15 - 1),
    pa.int32(): (-(2**31), 2**31 - 1),
    pa.int64(): (-(2**63), 2**63 - 1),
}
"""Bounds of whole numbers in JSON; those of a byte are Jackson's."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """As many rows as there were records. `faults`: rows that are not as the schema says, in order, and why.

    A fault's row has the values that could be read, or none.
    """

    columns: pa.StructArray
    faults: list[tuple[int, str]]


FieldsOf: TypeAlias = Callable[[bytes, pa.DataType, Struct], list[ProtoField]]
"""Gives the fields of a message, by the head of framed ones, that are read into the columns of a struct."""


class Decoder(Protocol):
    """A format with the columns that are wanted of it."""

    def decode(self, column: pa.Array) -> Decoded:
        """The typed columns of a binary column; a null row has nulls."""


class JsonDecoder:
    """Objects of JSON, with the values of Spark's `from_json`. Texts of timestamps without a zone are of `zone`."""

    def __init__(self, schema: pa.Schema, zone: str = "UTC") -> None:
        self._kind = pa.struct(list(schema))
        self._cells = cells_of(self._kind)
        root = _field("", self._kind, self._cells)
        self._rows = JsonRows(root, zone)

    def decode(self, column: pa.Array) -> Decoded:
        """See Decoder."""
        return decoded(self._rows, column, self._cells, self._kind)


class CsvDecoder:
    """Records of CSV, with the values of Spark's from_csv: columns by order, `separator` (ASCII) between them."""

    def __init__(self, schema: pa.Schema, zone: str = "UTC", separator: str = ",") -> None:
        nested = next((field for field in schema if kinds.is_nested(field.type)), None)
        if nested is not None:
            raise SchemaError(f"column {nested.name}: CSV cannot be decoded as {type_text(nested.type)}")
        self._kind = pa.struct(list(schema))
        self._cells = cells_of(self._kind)
        root = _field("", self._kind, self._cells)
        for field in root.fields:
            field.max = min(field.max, 127) if field.min == -128 else field.max
        self._rows = CsvRows(root, zone, ord(separator))

    def decode(self, column: pa.Array) -> Decoded:
        """See Decoder."""
        return decoded(self._rows, column, self._cells, self._kind)


class AvroDecoder:
    """Records of Avro, with the types of Spark's `from_avro`: bare ones of one schema, or framed with a schema's id.

    `writer` is the schema of bare ones, or a function that finds the schema of an id. It raises SchemaError where its
    records cannot be read, and whatever else it raises fails them all.
    """

    def __init__(
        self,
        columns: pa.Schema,
        writer: AvroSchema | Callable[[int], AvroSchema],
        defaults: Mapping[str, object] | None = None,
    ) -> None:
        self._kind = pa.struct(list(columns))
        self._cells = Struct([cells_of(field.type) for field in columns])
        self._defaults = defaults
        if isinstance(writer, AvroSchema):
            self._rows = AvroRows(self._cells, self._node(writer), None)
        else:
            self._rows = AvroRows(self._cells, None, partial(self._learn, writer))

    def decode(self, column: pa.Array) -> Decoded:
        """See Decoder."""
        return decoded(self._rows, column, self._cells, self._kind)

    def _node(self, writer: AvroSchema) -> Node:
        return Reading(writer, self._defaults).node(self._kind, self._cells)

    def _learn(self, find: Callable[[int], AvroSchema], schema_id: int) -> Node | str:
        try:
            return self._node(find(schema_id))
        except SchemaError as error:
            return f"schema {schema_id}: {error}"


class ProtoDecoder:
    """Messages of Protobuf, with the types of Spark's from_protobuf: bare ones of one type, or framed.

    `fields_of` gives the fields that are read into the columns, for the head of a framed message or, without it,
    for an empty one. It raises SchemaError where such messages cannot be read; whatever else it raises fails them all.
    """

    def __init__(self, columns: pa.Schema, fields_of: FieldsOf, *, is_framed: bool) -> None:
        self._kind = pa.struct(list(columns))
        self._cells = Struct([cells_of(field.type) for field in columns])
        self._fields_of = fields_of
        if is_framed:
            self._rows = ProtoRows(self._cells, None, self._learn)
        else:
            self._rows = ProtoRows(self._cells, fields_of(b"", self._kind, self._cells), None)

    def decode(self, column: pa.Array) -> Decoded:
        """See Decoder."""
        return decoded(self._rows, column, self._cells, self._kind)

    def _learn(self, head: bytes) -> list[ProtoField] | str:
        try:
            return self._fields_of(head, self._kind, self._cells)
        except SchemaError as error:
            return str(error)


class Rows(Protocol):
    """The reader of a format, which appends to columns."""

    faults: list[tuple[int, str]]

    def read(self, data: memoryview, offsets: memoryview, nulls: memoryview | None, first: int, count: int) -> None:
        """Append so many values of a binary column."""


def decoded(rows: Rows, column: pa.Array, cells: Cells, kind: pa.DataType) -> Decoded:
    """The typed columns of a binary column, which `rows` fills; a null row has nulls."""
    nulls, offsets, data = parts_of(column)
    cells.begin(len(column))
    rows.faults = []
    rows.read(data, offsets, nulls, column.offset, len(column))
    return Decoded(array_of(cells, kind), rows.faults)


def parts_of(column: pa.Array) -> tuple[memoryview | None, memoryview, memoryview]:
    """The bitmap of what is not null, if there is one, the offsets from the first row on, and the bytes."""
    bits, places, data = column.buffers()
    nulls = None if bits is None or not column.null_count else memoryview(bits).cast("B")
    offsets = memoryview(places or b"\0\0\0\0").cast("B").cast("i")[column.offset :]
    return nulls, offsets, memoryview(data if data is not None and data.size else b"\0").cast("B")


def _field(name: str, kind: pa.DataType, cells: Cells) -> Field:
    field = Field(name.encode(), _form(name, kind), cells, type_text(kind))
    if isinstance(cells, Struct):
        field.fields = [_field(one.name, one.type, inner) for one, inner in zip(kind, cells.columns, strict=True)]
    elif isinstance(cells, Listed) and kinds.is_map(kind):
        if kind.key_type != pa.string():
            raise SchemaError(f"column {name}: the keys of a map in JSON are text, not {type_text(kind.key_type)}")
        entries = cells.item
        assert isinstance(entries, Struct), "the entries of a map are structs"
        keys, values = entries.columns
        assert isinstance(keys, Text), "their keys are text"
        field.keys = keys
        field.item = _field(name, kind.item_type, values)
    elif isinstance(cells, Listed):
        field.item = _field(name, kind.value_type, cells.item)
    elif kinds.is_decimal(kind):
        field.precision, field.scale = kind.precision, kind.scale
    field.is_small = kind == pa.float32()
    field.min, field.max = _WHOLE.get(kind, (0, 0))
    return field


def _form(name: str, kind: pa.DataType) -> str:
    forms = {
        pa.bool_(): "boolean", pa.string(): "text", pa.binary(): "binary", pa.date32(): "date",
        pa.timestamp("us", "UTC"): "timestamp", pa.timestamp("us"): "local timestamp",
        pa.float32(): "real", pa.float64(): "real",
    }  # fmt: skip
    if kind in forms:
        return forms[kind]
    if kind in _WHOLE:
        return "whole"
    nested = (
        (kinds.is_decimal, "decimal"), (kinds.is_struct, "struct"), (kinds.is_map, "map"), (kinds.is_list, "list")
    )  # fmt: skip
    found = next((form for is_kind, form in nested if is_kind(kind)), None)
    if found is None:
        raise SchemaError(f"column {name}: JSON cannot be decoded as {type_text(kind)}")
    return found
