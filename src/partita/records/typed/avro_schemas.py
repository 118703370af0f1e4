"""Avro's schemas: the columns that they give, and how records of one schema are read into the columns that are wanted.

Types are those of Spark's `from_avro`: enums are text, times whole numbers, unions of several types structs of members.
Fields are found by name; what the writer lacks is null, or the default of the reader's schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from math import log10
from typing import Any

import pyarrow as pa
from pyarrow import types as kinds

from partita.records.typed.avro_rows import Node
from partita.records.typed.cells import Cells, Listed, Struct
from partita.records.typed.ddl import SchemaError, type_text

_PLAIN = {  # null alone has no type of its own in SQL; such a column is always null
    "null": pa.string(), "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(), "float": pa.float32(),
    "double": pa.float64(), "bytes": pa.binary(), "string": pa.string(),
}  # fmt: skip
_LOGICAL = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("us"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}
_AS_IT_IS = {
    "date": pa.date32(), "time-millis": pa.time32("ms"), "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", "UTC"), "local-timestamp-millis": pa.timestamp("ms"),
}  # fmt: skip
"""Columns that other readers than Spark have for a logical type."""
_DIGITS_MAX = 38
_MICROS = (pa.timestamp("us", "UTC"), pa.timestamp("us"))
_PROMOTED = {
    ("long", pa.int32()), ("int", pa.int64()), ("int", pa.float32()), ("int", pa.float64()), ("long", pa.float32()),
    ("long", pa.float64()), ("float", pa.float64()), ("string", pa.binary()), ("bytes", pa.string()),
}  # fmt: skip
"""Types of a writer that are also read as others; a long as an int only where it is one."""


_IN_JSON: dict[str, Any] = {
    "null": type(None), "boolean": bool, "int": int, "long": int, "float": (int, float), "double": (int, float),
    "bytes": str, "string": str, "fixed": str, "enum": str, "array": list, "map": dict, "record": dict,
}  # fmt: skip
"""What Python has for a default in JSON."""


class AvroSchema:
    """A parsed schema with the types that it names; `others` are the texts of schemas that it refers to."""

    def __init__(self, text: str, others: Iterable[str] = ()) -> None:
        self._named: dict[str, Any] = {}
        for one in (*others, text):
            try:
                self.type = self._resolved(json.loads(one), "")
            except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
                raise SchemaError(f"this is no Avro schema: {error!r}") from error

    def columns(self) -> pa.Schema:
        """The columns of its records. Raises SchemaError for a schema that is no record's."""
        kind = self.arrow(self.type)
        if not kinds.is_struct(kind):
            raise SchemaError(f"an Avro schema of columns is a record, not {type_text(kind)}")
        return pa.schema(list(kind))

    def _resolved(self, schema: Any, namespace: str) -> Any:
        """The schema with full names; types that are used by name become the name."""
        if isinstance(schema, list):
            return [self._resolved(branch, namespace) for branch in schema]
        if isinstance(schema, str):
            full = schema if "." in schema or not namespace else f"{namespace}.{schema}"
            if schema in _PLAIN:
                return schema
            found = next((name for name in (full, schema) if name in self._named), None)
            if found is None:
                raise SchemaError(f"the Avro schema uses the type {schema!r}, which it does not define")
            return found
        kind = schema["type"]
        if kind in ("record", "error", "enum", "fixed"):
            name = schema["name"]
            if "." in name:
                namespace, _, name = name.rpartition(".")
            else:
                namespace = schema.get("namespace", namespace)
            full = f"{namespace}.{name}" if namespace else name
            made = self._named[full] = {**schema, "name": full, "type": "record" if kind == "error" else kind}
            if "fields" in schema:
                made["fields"] = [{**f, "type": self._resolved(f["type"], namespace)} for f in schema["fields"]]
            return made
        if kind == "array":
            return {**schema, "items": self._resolved(schema["items"], namespace)}
        if kind == "map":
            return {**schema, "values": self._resolved(schema["values"], namespace)}
        if isinstance(kind, str) and kind in _PLAIN:
            return schema
        return self._resolved(kind, namespace)

    def seen(self, schema: Any) -> Any:
        """A type as a dict or a list, names resolved."""
        if isinstance(schema, str):
            return self._named.get(schema) or {"type": schema}
        return schema

    def arrow(self, schema: Any, within: tuple[str, ...] = ()) -> pa.DataType:
        """The type of a column. Raises SchemaError for a type that contains itself."""
        schema = self.seen(schema)
        if isinstance(schema, list):
            return self._union(schema, within)
        kind = schema["type"]
        if _is_decimal(schema):
            if schema["precision"] > _DIGITS_MAX:
                raise SchemaError(
                    f"a decimal has at most {_DIGITS_MAX} digits, not {schema['precision']}; leave the field out"
                )
            return pa.decimal128(schema["precision"], schema.get("scale", 0))
        if kind in _PLAIN:
            return _LOGICAL.get((kind, schema.get("logicalType", "")), _PLAIN[kind])
        if kind in ("enum", "fixed"):
            return pa.string() if kind == "enum" else pa.binary()
        if kind == "array":
            return pa.list_(pa.field("element", self.arrow(schema["items"], within)))
        if kind == "map":
            return pa.map_(pa.string(), self.arrow(schema["values"], within))
        if kind != "record":
            raise SchemaError(f"unknown Avro type {kind!r}")
        if schema["name"] in within:
            raise SchemaError(f"the Avro type {schema['name']} contains itself, which no column can; leave it out")
        inner = (*within, schema["name"])
        return pa.struct([pa.field(field["name"], self.arrow(field["type"], inner)) for field in schema["fields"]])

    def _union(self, branches: list[Any], within: tuple[str, ...]) -> pa.DataType:
        types = [self.arrow(branch, within) for branch in branches if branch != "null"]
        if not types:
            return pa.string()
        widest = _widest(types)
        if widest is not None:
            return widest
        return pa.struct([pa.field(f"member{n}", kind) for n, kind in enumerate(types)])


def _is_decimal(schema: Any) -> bool:
    """Whether the type is a decimal; one whose digits cannot be is what it is without its logical type."""
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if schema.get("logicalType") != "decimal" or not isinstance(precision, int) or not isinstance(scale, int):
        return False
    if not 0 <= scale <= precision or precision < 1 or schema["type"] not in ("bytes", "fixed"):
        return False
    return bool(schema["type"] == "bytes" or precision <= (8 * schema["size"] - 1) * log10(2))


def _widest(types: list[pa.DataType]) -> pa.DataType | None:
    """The one type for all branches of a union, as Spark has it: only numbers of one kind have one."""
    if len(types) == 1:
        return types[0]
    for wide, narrow in ((pa.int64(), pa.int32()), (pa.float64(), pa.float32())):
        if set(types) == {wide, narrow}:
            return wide
    return None


class Reading:
    """Makes the nodes that read records of `writer` into columns. `defaults` are the reader's, by field of the root."""

    def __init__(self, writer: AvroSchema, defaults: Mapping[str, Any] | None = None) -> None:
        self._writer = writer
        self._defaults = defaults or {}
        self._passed_over: dict[str, Node] = {}

    def node(self, kind: pa.DataType, cells: Struct) -> Node:
        """The node for whole records. Raises SchemaError if they do not give such columns."""
        schema = self._writer.seen(self._writer.type)
        if isinstance(schema, list) or schema["type"] != "record":
            raise SchemaError("the schema of the records is no record's")
        node = self._record(schema, kind, cells, "")
        names = {field["name"] for field in schema["fields"]}
        for field, column in zip(kind, cells.columns, strict=True):
            if field.name not in names and field.name in self._defaults:
                node.nodes.append(_constant(field.type, column, self._defaults[field.name]))
        return node

    def _node(self, schema: Any, kind: pa.DataType | None, cells: Cells | None, where: str) -> Node:
        schema = self._writer.seen(schema)
        if isinstance(schema, list):
            return self._union(schema, kind, cells, where)
        form = schema["type"]
        if form == "record":
            return self._record(schema, kind, cells, where)
        if form in ("array", "map"):
            return self._list(schema, kind, cells, where)
        node = Node(form, cells)
        node.size = schema.get("size", 0)
        node.symbols = [symbol.encode() for symbol in schema.get("symbols", ())]
        if kind is not None:
            self._check(schema, kind, where)
            if "timestamp-millis" in schema.get("logicalType", "") and kind in _MICROS:
                node.factor = 1000
            if form == "long" and kind == pa.int32():
                node.is_narrow, node.value = True, where
            if kinds.is_decimal(kind):
                node.value = 10**kind.precision
            # Bytes that are read as text have to be some.
            node.is_utf8 = kind == pa.string()
        return node

    def _check(self, schema: Any, kind: pa.DataType, where: str) -> None:
        """Raise SchemaError unless values of this type are values of the column."""
        given = self._writer.arrow(schema)
        if given == kind or (schema["type"], kind) in _PROMOTED or kind == _PLAIN.get(schema["type"]):
            return
        if kind == _AS_IT_IS.get(schema.get("logicalType")) or kinds.is_fixed_size_binary(kind):
            return
        if kinds.is_decimal(given) and kinds.is_decimal(kind) and given.scale == kind.scale:
            return
        raise SchemaError(
            f"{where} is {type_text(given)} in the record's schema, which cannot be read as {type_text(kind)}"
        )

    def _record(self, schema: Any, kind: pa.DataType | None, cells: Cells | None, where: str) -> Node:
        if kind is None and schema["name"] in self._passed_over:
            return self._passed_over[schema["name"]]
        node = Node("record", cells)
        if kind is None:
            self._passed_over[schema["name"]] = node
        wanted: dict[str, tuple[pa.DataType, Cells]] = {}
        if kind is not None:
            if not kinds.is_struct(kind) or not isinstance(cells, Struct):
                raise SchemaError(
                    f"{where} is a record in the record's schema, which cannot be read as {type_text(kind)}"
                )
            wanted = {f.name.lower(): (f.type, column) for f, column in zip(kind, cells.columns, strict=True)}
        for field in schema["fields"]:
            inner, column = wanted.get(field["name"].lower(), (None, None))
            node.nodes.append(self._node(field["type"], inner, column, f"{where}.{field['name']}".lstrip(".")))
        return node

    def _list(self, schema: Any, kind: pa.DataType | None, cells: Cells | None, where: str) -> Node:
        is_map = schema["type"] == "map"
        node = Node(schema["type"], cells)
        of_elements = schema["values" if is_map else "items"]
        inner, item = None, None
        if kind is not None:
            if not (kinds.is_map(kind) if is_map else kinds.is_list(kind)) or not isinstance(cells, Listed):
                raise SchemaError(f"{where} is {schema['type']} in the record's schema, not {type_text(kind)}")
            inner, item = (kind.item_type if is_map else kind.value_type), cells.item
        if is_map:
            keys, item = item.columns if isinstance(item, Struct) else (None, None)
            node.nodes.append(Node("string", keys))
        node.nodes.append(self._node(of_elements, inner, item, where))
        return node

    def _union(self, branches: list[Any], kind: pa.DataType | None, cells: Cells | None, where: str) -> Node:
        node = Node("union", cells)
        types = [self._writer.arrow(branch) for branch in branches if branch != "null"] if kind is not None else []
        node.is_members = len(types) > 1 and _widest(types) is None
        columns: list[tuple[pa.DataType | None, Cells | None]] = [(kind, cells)] * len(branches)
        if node.is_members:
            if not isinstance(cells, Struct) or len(cells.columns) != len(types):
                members = type_text(self._writer.arrow(branches))
                raise SchemaError(f"{where} is {members} in the record's schema, not {type_text(kind)}")
            inner_columns = iter(
                [(field.type, column) for field, column in zip(kind or (), cells.columns, strict=True)]
            )
            columns = [(kind, cells) if branch == "null" else next(inner_columns) for branch in branches]
        for branch, (inner, column) in zip(branches, columns, strict=True):
            node.nodes.append(Node("null", cells) if branch == "null" else self._node(branch, inner, column, where))
        return node


def defaults_of(reader: AvroSchema) -> dict[str, Any]:
    """The defaults of a reader's fields, by name, as their columns have them. Raises SchemaError."""
    fields = [field for field in reader.seen(reader.type)["fields"] if "default" in field]
    try:
        return {field["name"]: _as_column(reader, field["type"], field["default"]) for field in fields}
    except (KeyError, UnicodeEncodeError) as error:
        raise SchemaError(f"the Avro schema has a default that is not of its field's type: {error}") from error


def _as_column(reader: AvroSchema, schema: Any, value: Any) -> Any:
    """A default in JSON as its column has it: members of a union by name, times in microseconds, bytes."""
    schema = reader.seen(schema)
    if isinstance(schema, list):
        return _member(reader, schema, value)
    form, logical = schema["type"], schema.get("logicalType", "")
    if not isinstance(value, _IN_JSON[form]) or (isinstance(value, bool) and form != "boolean"):
        raise KeyError(value)
    if form == "array":
        return [_as_column(reader, schema["items"], one) for one in value]
    if form == "map":
        return {key: _as_column(reader, schema["values"], one) for key, one in value.items()}
    if form == "record":
        return {
            field["name"]: _as_column(reader, field["type"], value.get(field["name"], field.get("default")))
            for field in schema["fields"]
        }
    if form in ("bytes", "fixed"):
        raw = value.encode("latin-1")
        return int.from_bytes(raw, "big", signed=True) if _is_decimal(schema) else raw
    return value * 1000 if "timestamp-millis" in logical else value


def _member(reader: AvroSchema, branches: list[Any], value: Any) -> Any:
    """The default of a union: of the first type that it fits."""
    types = [branch for branch in branches if branch != "null"]
    if value is None and len(types) < len(branches):
        return None
    for place, branch in enumerate(types):
        try:
            found = _as_column(reader, branch, value)
        except KeyError:
            continue
        is_members = len(types) > 1 and _widest([reader.arrow(one) for one in types]) is None
        return {f"member{place}": found} if is_members else found
    raise KeyError(value)


def _constant(kind: pa.DataType, cells: Cells, value: Any) -> Node:
    """The node that appends a default."""
    node = Node("constant", cells)
    node.value = value.encode() if isinstance(value, str) else value
    if isinstance(value, dict) and isinstance(cells, Listed):
        entry = pa.struct([kind.key_field, kind.item_field])
        keyed = [dict(zip(entry.names, pair, strict=True)) for pair in value.items()]
        node.nodes = [_constant(entry, cells.item, one) for one in keyed]
    elif isinstance(value, dict) and isinstance(cells, Struct):
        columns = zip(kind, cells.columns, strict=True)
        node.nodes = [_constant(field.type, column, value.get(field.name)) for field, column in columns]
    elif isinstance(value, list) and isinstance(cells, Listed):
        node.nodes = [_constant(kind.value_type, cells.item, one) for one in value]
    return node
