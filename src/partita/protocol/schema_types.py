"""Properties of each schema type for the generator: its Python type, method, default and least size."""

from __future__ import annotations

from collections.abc import Sequence

from partita.protocol.schema_file import Field, Versions

STRUCT_CODES = {"int8": "b", "int16": "h", "uint16": "H", "int32": "i", "int64": "q", "float64": "d"}
"""Numbers of a fixed size, and their codes in `struct`."""

_PYTHON_TYPES = {
    **dict.fromkeys(("int8", "int16", "uint16", "int32", "int64"), "int"),
    "float64": "float", "boolean": "bool", "string": "str", "bytes": "Buffer", "records": "Buffer", "uuid": "bytes",
}  # fmt: skip
_ZEROS = {"float64": "0.0", "boolean": "False", "string": '""', "bytes": 'b""', "records": 'b""', "uuid": "ZERO_UUID"}
_SIZES = {"int8": 1, "boolean": 1, "int16": 2, "uint16": 2, "int32": 4, "int64": 8, "float64": 8, "uuid": 16}
_LENGTH_SIZES = {"string": 2, "bytes": 4, "records": 4}


def annotation(field: Field) -> str:
    """The Python type of an attribute."""
    base = _PYTHON_TYPES.get(field.type, field.type)
    text = f"list[{base}]" if field.is_array else base
    return f"{text} | None" if field.nullable else text


def default(field: Field) -> str:
    """The value of a field that is not given, as an expression that makes a new one each time."""
    if field.default == "null" or (field.type == "records" and field.nullable and field.default is None):
        return "None"
    if field.is_array:
        return "[]"
    if field.is_struct:
        return "None" if field.nullable else f"{field.type}()"
    if field.default is not None:
        return field.default.capitalize() if field.type == "boolean" else field.default
    return _ZEROS.get(field.type, "0")


def is_empty_unless_said(field: Field) -> bool:
    """A tagged nullable struct without a default of its own: left out of the bytes it is an empty one, not null."""
    return (
        field.is_struct and not field.is_array and bool(field.nullable) and field.tag is not None and not field.default
    )


def is_number(field: Field) -> bool:
    """Whether the field always has the same size, so that it can be read together with its neighbours."""
    return field.type in STRUCT_CODES and not field.is_array


def method(kind: str, flexible: bool, nullable: bool) -> str:
    """The method of Reader and Writer for one value of a primitive type. Records are nullable wherever they occur."""
    if kind not in _LENGTH_SIZES:
        return kind
    return ("compact_" if flexible else "") + ("nullable_" if nullable or kind == "records" else "") + kind


def least_size(field: Field, span: Versions, flexible: bool) -> int:
    """A lower bound for the bytes of one element: what an announced count is checked against."""
    if not field.is_struct:
        return _SIZES.get(field.type) or (1 if flexible else _LENGTH_SIZES[field.type])
    return max(1, _least_struct(field.fields, span, flexible))


def _least_struct(fields: Sequence[Field], span: Versions, flexible: bool) -> int:
    total = 1 if flexible else 0
    for field in fields:
        if field.tag is not None or field.versions & span != span:
            continue
        if field.is_array:
            total += 1 if flexible else 4
        else:
            total += 1 if field.is_struct and field.nullable else least_size(field, span, flexible)
    return total
