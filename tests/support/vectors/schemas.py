"""Every message we have, beside its schema; and from a schema: values for Hypothesis, and reading of Kafka's JSON."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from hypothesis import strategies as st

import partita.protocol
from partita.protocol.error_codes import ErrorCode
from partita.protocol.schema_file import Field, Schema, parse
from partita.protocol.schema_types import is_empty_unless_said

Records = Iterator[str | None]
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


@dataclass(frozen=True, eq=False)
class Described:
    """A message class, its schema, and the module of its structs."""

    module: ModuleType
    schema: Schema
    api: tuple[int, str] | None

    @property
    def cls(self) -> Any:
        return getattr(self.module, self.schema.name)

    @property
    def versions(self) -> range:
        return range(self.schema.versions.first, self.schema.versions.last + 1)

    def values(self, version: int) -> st.SearchStrategy[Any]:
        """Messages that differ from the default only where the version can say so."""
        return _values_of(self, version)

    def from_json(self, json: dict[str, Any], version: int, records: Records) -> Any:
        """The message in the form of Kafka's JSON converter; `records` are the hex of its records, in order."""
        return struct_from_json(self.module, self.schema.name, self.schema.fields, json, version, records)


def described() -> list[Described]:
    found = []
    for source in sorted((Path(partita.protocol.__file__).parent / "schema").glob("*.txt")):
        file = parse(source.read_text())
        module = import_module(f"partita.protocol.messages.{source.stem}")
        found += [Described(module, schema, file.api) for schema in file.schemas]
    return found


def in_version(field: Field, version: int) -> bool:
    versions = field.versions if field.tag is None else field.tag_versions
    return versions.first <= version <= versions.last


# Values


@lru_cache(maxsize=32)
def _values_of(message: Described, version: int) -> st.SearchStrategy[Any]:
    """Kept for the next examples: to build and check a strategy takes as long as to draw from it."""
    return structs(message.module, message.schema.name, message.schema.fields, version)


def structs(module: ModuleType, name: str, fields: list[Field], version: int) -> st.SearchStrategy[Any]:
    given = {field.name: values(module, field, version) for field in fields if in_version(field, version)}
    return st.builds(getattr(module, name), **given)


def values(module: ModuleType, field: Field, version: int) -> st.SearchStrategy[Any]:
    one = structs(module, field.type, field.fields, version) if field.is_struct else primitives(field)
    found = st.lists(one, max_size=3) if field.is_array else one
    nullable = field.nullable.first <= version <= field.nullable.last
    return st.none() | found if nullable else found


def primitives(field: Field) -> st.SearchStrategy[Any]:
    if field.name.endswith("error_code"):
        # kio knows no later one
        return st.sampled_from([int(code) for code in ErrorCode if code <= ErrorCode.SHARE_SESSION_LIMIT_REACHED])
    if field.name == "transaction_start_time_ms" or field.name.endswith("_timestamp_ms"):
        return st.integers(0, 1 << 41)  # kio takes it for a time that is always there; Kafka sends -1 too
    if field.name.endswith("_ms"):
        return st.just(-1) | st.integers(0, 1 << (41 if field.type == "int64" else 30))
    if field.type in BITS:
        top = 1 << (BITS[field.type] - 1)
        return st.integers(-top, top - 1)
    return {
        "uint16": st.integers(0, 0xFFFF),
        "float64": st.floats(allow_nan=False),
        "boolean": st.booleans(),
        "string": st.text(max_size=8),
        "bytes": st.binary(max_size=8),
        "records": st.binary(max_size=80),
        "uuid": st.binary(min_size=16, max_size=16),
    }[field.type]


# Kafka's JSON


def struct_from_json(
    module: ModuleType,
    name: str,
    fields: list[Field],
    json: dict[str, Any],
    version: int,
    records: Records,
) -> Any:
    unknown = json.keys() - {camel(field.name) for field in fields} - {"recordsSizeInBytes"}
    assert not unknown, f"{name} v{version} lacks {unknown}"
    given = {}
    for field in fields:
        key = camel(field.name)
        if field.type == "records" and in_version(field, version):
            found = next(records)
            given[field.name] = None if found is None else bytes.fromhex(found)
        elif key in json:
            given[field.name] = value_from_json(module, field, json[key], version, records)
        else:
            assert field.tag is not None or not in_version(field, version), f"{name} v{version}: {key} is missing"
            if is_empty_unless_said(field):
                given[field.name] = getattr(module, field.type)()
    return getattr(module, name)(**given)


def value_from_json(module: ModuleType, field: Field, value: Any, version: int, records: Records) -> Any:
    if value is None:
        return None
    if field.is_array:
        return [one_from_json(module, field, item, version, records) for item in value]
    return one_from_json(module, field, value, version, records)


def one_from_json(module: ModuleType, field: Field, value: Any, version: int, records: Records) -> Any:
    if field.is_struct:
        return struct_from_json(module, field.type, field.fields, value, version, records)
    if field.type == "bytes":
        return base64.b64decode(value)
    if field.type == "uuid":
        return base64.urlsafe_b64decode(value + "==")
    return value


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
