"""Protobuf in columns: the columns that a message type gives, and how its messages are read into those that are wanted.

Types are those of Spark's from_protobuf: enums are text, unsigned numbers signed ones of the same size, wrappers
structs. Fields are found by name; what a message does not have is null, and so is zero where the two are the same.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from google.protobuf import descriptor_pb2
from google.protobuf.message import DecodeError
from pyarrow import types as kinds

from partita.records.typed.cells import Cells, Listed, Struct
from partita.records.typed.ddl import SchemaError, type_text
from partita.records.typed.decoding import ProtoDecoder
from partita.records.typed.proto_rows import ProtoField
from partita.registry import protobuf
from partita.registry.errors import RegistryError
from partita.registry.framing import decode_indexes, unframe
from partita.registry.schema import Registry, Schema

_FORMS = {
    "BOOL": ("boolean", pa.bool_(), 4), "STRING": ("text", pa.string(), 0), "BYTES": ("bytes", pa.binary(), 0),
    "ENUM": ("enum", pa.string(), 4), "FLOAT": ("real", pa.float32(), 4), "DOUBLE": ("real", pa.float64(), 8),
    "INT32": ("varint", pa.int32(), 4), "UINT32": ("varint", pa.int32(), 4), "SINT32": ("signed", pa.int32(), 4),
    "FIXED32": ("fixed", pa.int32(), 4), "SFIXED32": ("fixed", pa.int32(), 4),
    "INT64": ("varint", pa.int64(), 8), "UINT64": ("varint", pa.int64(), 8), "SINT64": ("signed", pa.int64(), 8),
    "FIXED64": ("fixed", pa.int64(), 8), "SFIXED64": ("fixed", pa.int64(), 8),
}  # fmt: skip
_TYPES = {getattr(descriptor_pb2.FieldDescriptorProto, f"TYPE_{name}"): name for name in (*_FORMS, "MESSAGE", "GROUP")}
_TIMESTAMP = "google.protobuf.Timestamp"
_ZERO = {"text": b"", "bytes": b"", "real": 0.0}


def columns_of_message(message: Any, within: tuple[str, ...] = ()) -> pa.Schema:
    """The columns of a message's descriptor. Raises SchemaError for a type that contains itself."""
    if message.full_name in within:
        raise SchemaError(f"the type {message.full_name} contains itself, which no column can")
    inner = (*within, message.full_name)
    return pa.schema([pa.field(field.name, _column(field, inner)) for field in message.fields])


def _column(field: Any, within: tuple[str, ...]) -> pa.DataType:
    if _is_map(field):
        key, value = (_single(one, within) for one in field.message_type.fields)
        return pa.map_(key, value)
    single = _single(field, within)
    return pa.list_(pa.field("element", single)) if protobuf.is_repeated(field) else single


def _single(field: Any, within: tuple[str, ...]) -> pa.DataType:
    name = _TYPES[field.type]
    if name == "GROUP":
        raise SchemaError(f"{field.name} is a group, which no column can be")
    if name != "MESSAGE":
        return _FORMS[name][1]
    if field.message_type.full_name == _TIMESTAMP:
        return pa.timestamp("us", "UTC")
    return pa.struct(list(columns_of_message(field.message_type, within)))


def _is_map(field: Any) -> bool:
    return bool(field.message_type is not None and field.message_type.GetOptions().map_entry)


def _is_required(field: Any) -> bool:
    told = getattr(field, "is_required", None)  # older releases of the library have a label instead
    return bool(field.label == field.LABEL_REQUIRED if told is None else told)


def fields_of_message(message: Any, kind: pa.DataType, cells: Struct, where: str = "") -> list[ProtoField]:
    """The fields that are read into these columns, by number. Raises SchemaError for a column of another type."""
    given = {field.name.lower(): field for field in message.fields}
    found = [
        _field(given[wanted.name.lower()], wanted.type, column, f"{where}.{wanted.name}".lstrip("."))
        for wanted, column in zip(kind, cells.columns, strict=True)
        if wanted.name.lower() in given
    ]
    return sorted(found, key=lambda field: int(field.number))


def _field(field: Any, kind: pa.DataType, cells: Cells, where: str) -> ProtoField:
    listed = None
    is_map, is_repeated = _is_map(field), protobuf.is_repeated(field)
    if is_map or is_repeated:
        if not (kinds.is_map(kind) if is_map else kinds.is_list(kind)) or not isinstance(cells, Listed):
            raise _unfit(where, "a map" if is_map else "repeated", kind)
        listed, cells = cells, cells.item
        kind = pa.struct([kind.key_field, kind.item_field]) if is_map else kind.value_type
    name = _TYPES[field.type]
    if name == "MESSAGE" and field.message_type.full_name != _TIMESTAMP:
        if not kinds.is_struct(kind) or not isinstance(cells, Struct):
            raise _unfit(where, f"the message {field.message_type.full_name}", kind)
        made = ProtoField(where, field.number, "message", cells, listed)
        if is_map:
            of_entry = zip(field.message_type.fields, kind, cells.columns, strict=True)
            made.fields = [_entry_part(one, part.type, column, where) for one, part, column in of_entry]
        else:
            made.fields = fields_of_message(field.message_type, kind, cells, where)
        made.is_required = _is_required(field)
        return made
    form, plain, width = ("timestamp", pa.timestamp("us", "UTC"), 0) if name == "MESSAGE" else _FORMS[name]
    if kind != plain:
        raise _unfit(where, type_text(plain), kind)
    made = ProtoField(where, field.number, form, cells, listed)
    made.width = width
    made.is_required = _is_required(field)
    made.skips_zero = not field.has_presence and listed is None
    if field.has_default_value:
        made.default = _default(field, form)
    if form == "enum":
        # Of names for the same number, the first one counts.
        made.symbols = {one.number: one.name.encode() for one in reversed(list(field.enum_type.values))}
        if not field.enum_type.is_closed:
            made.unknown = f"UNKNOWN_ENUM_VALUE_{field.enum_type.name}_".encode()
    return made


def _entry_part(field: Any, kind: pa.DataType, cells: Cells, where: str) -> ProtoField:
    """The key or the value of a map, which are always there."""
    made = _field(field, kind, cells, where)
    made.skips_zero = False
    if made.struct is None and field.message_type is None:
        form = _FORMS[_TYPES[field.type]][0]
        made.default = made.symbols.get(0, b"") if form == "enum" else _ZERO.get(form, 0)
    return made


def _default(field: Any, form: str) -> Any:
    value = field.default_value
    if form == "enum":
        return field.enum_type.values_by_number[value].name.encode()
    if form in ("varint", "fixed"):
        return (value + 2**63) % 2**64 - 2**63  # of uint64 as the column has it
    return value.encode() if isinstance(value, str) else value


def _unfit(where: str, found: str, kind: pa.DataType) -> SchemaError:
    return SchemaError(f"{where} is {found} in the record's schema, which cannot be read as {type_text(kind)}")


def message_at(schema: Schema, indexes: Sequence[int] = (0,)) -> Any:
    """The descriptor of a message of a registry's schema. Raises SchemaError."""
    if schema.type != "PROTOBUF":
        raise SchemaError(f"the schema is of type {schema.type}, not PROTOBUF")
    try:
        return protobuf.class_at(protobuf.file_of(schema), indexes).DESCRIPTOR
    except RegistryError as error:
        raise SchemaError(str(error)) from error


def framed_messages(registry: Registry, columns: pa.Schema) -> ProtoDecoder:
    """A decoder of messages that name their schema in the registry; one that cannot be used spoils its own only."""

    def fields_of(head: bytes, kind: pa.DataType, cells: Struct) -> list[ProtoField]:
        schema_id, path = unframe(head)
        try:
            message = message_at(registry.schema(schema_id), decode_indexes(path)[0])
        except RegistryError as error:
            raise SchemaError(str(error)) from error
        return fields_of_message(message, kind, cells)

    return ProtoDecoder(columns, fields_of, is_framed=True)


def given_message(text: str) -> Any:
    """The message that a text describes: its full name, and a serialized descriptor of its file in base64.

    The descriptor may be a set, its imports before the file that needs them. Raises SchemaError.
    """
    name, _, encoded = text.strip().partition(" ")
    try:
        return protobuf.pool_of(base64.b64decode(encoded, validate=True)).FindMessageTypeByName(name)
    except (ValueError, KeyError, TypeError, DecodeError, RegistryError) as error:
        raise SchemaError(
            "expected a message's full name and a serialized descriptor in base64, as in 'flights.Flight Cgxmb...': "
            f"{error!r:.200}"
        ) from None


def bare_messages(columns: pa.Schema, text: str) -> ProtoDecoder:
    """A decoder of messages without framing, of the type that the text describes."""
    message = given_message(text)
    return ProtoDecoder(columns, lambda _, kind, cells: fields_of_message(message, kind, cells), is_framed=False)
