"""Framed Avro in columns: the Arrow type of a schema, so that every batch has the same one, and the decoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from partita.records.typed.avro_schemas import AvroSchema, defaults_of
from partita.records.typed.ddl import SchemaError
from partita.records.typed.decoding import AvroDecoder
from partita.registry.errors import RegistryError
from partita.registry.schema import Registry, Schema


def arrow_type(schema: Any, named: dict[str, Any] | None = None) -> pa.DataType:
    """The type of a parsed Avro schema. Raises RegistryError for unions of several types, and for recursive ones."""
    named = {} if named is None else named
    if isinstance(schema, list):
        kinds = [kind for kind in schema if kind != "null"]
        if len(kinds) != 1:
            raise RegistryError(f"a union of {len(kinds)} types has no Arrow type; read the column as bytes")
        return arrow_type(kinds[0], named)
    if isinstance(schema, str):
        if schema in named:
            if named[schema] is None:
                raise RegistryError(f"the recursive type {schema!r} has no Arrow type; read the column as bytes")
            return named[schema]
        return _primitive(schema)
    return _complex(schema, named, pa)


def _primitive(name: str) -> pa.DataType:
    makers = {
        "null": pa.null, "boolean": pa.bool_, "int": pa.int32, "long": pa.int64, "float": pa.float32,
        "double": pa.float64, "bytes": pa.binary, "string": pa.string,
    }  # fmt: skip
    if name not in makers:
        raise RegistryError(f"unknown Avro type {name!r}")
    return makers[name]()


def _complex(schema: Mapping[str, Any], named: dict[str, Any], pa: Any) -> pa.DataType:
    kind, logical = schema["type"], schema.get("logicalType")
    match logical, kind:
        case "decimal", _:
            return pa.decimal128(schema["precision"], schema.get("scale", 0))
        case "date", _:
            return pa.date32()
        case "time-millis", _:
            return pa.time32("ms")
        case "time-micros", _:
            return pa.time64("us")
        case (("timestamp-millis" | "local-timestamp-millis"), _):
            return pa.timestamp("ms", tz="UTC" if logical.startswith("timestamp") else None)
        case (("timestamp-micros" | "local-timestamp-micros"), _):
            return pa.timestamp("us", tz="UTC" if logical.startswith("timestamp") else None)
        case _, ("record" | "error"):
            named[schema["name"]] = None
            fields = [pa.field(field["name"], arrow_type(field["type"], named)) for field in schema["fields"]]
            named[schema["name"]] = pa.struct(fields)
            return named[schema["name"]]
        case _, "enum":
            named[schema["name"]] = pa.string()
            return pa.string()
        case _, "fixed":
            named[schema["name"]] = pa.binary(schema["size"])
            return named[schema["name"]]
        case _, "array":
            return pa.list_(arrow_type(schema["items"], named))
        case _, "map":
            return pa.map_(pa.string(), arrow_type(schema["values"], named))
    return arrow_type(kind, named)


def column_schema(registry: Registry, schema: Schema) -> AvroSchema:
    """The schema for columns, with the schemas that it refers to. Raises RegistryError for one that is none."""
    texts: list[str] = []
    _collect(registry, schema, texts)
    try:
        return AvroSchema(schema.text, texts)
    except SchemaError as error:
        raise RegistryError(str(error)) from error


def framed_decoder(registry: Registry, columns: pa.Schema, reader: str | None = None) -> AvroDecoder:
    """A decoder of records that name their schema in the registry; one that is missing or unfit spoils its own only.

    The schema `reader` has defaults of what writers lack.
    """

    def find(schema_id: int) -> AvroSchema:
        try:
            schema = registry.schema(schema_id)
            if schema.type != "AVRO":
                raise RegistryError(f"schema {schema_id} is of type {schema.type}, not AVRO")
            return column_schema(registry, schema)
        except RegistryError as error:
            raise SchemaError(str(error)) from error

    return AvroDecoder(columns, find, {} if reader is None else defaults_of(AvroSchema(reader)))


def _collect(registry: Registry, schema: Schema, texts: list[str]) -> None:
    """The texts that a schema refers to, each behind those that it refers to itself."""
    for reference in schema.references:
        other = registry.version(reference.subject, reference.version)
        _collect(registry, other, texts)
        if other.text not in texts:
            texts.append(other.text)
