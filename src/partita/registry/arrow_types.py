"""The Arrow type of an Avro schema, so that every batch of a topic has the same columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from partita.lazy import later
from partita.registry.errors import RegistryError

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = later("pyarrow")


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


def arrow_value(value: Any) -> Any:
    """An object from fastavro as pyarrow takes it: UUIDs become text, whatever has them inside is rebuilt."""
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, dict):
        return {name: arrow_value(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [arrow_value(inner) for inner in value]
    return value
