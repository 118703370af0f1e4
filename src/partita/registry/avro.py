"""Avro by way of fastavro: objects to framed bytes and back, and columns of framed bytes to Arrow."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any, TypeAlias

import fastavro

from partita.registry.errors import RegistryError
from partita.registry.framing import frame
from partita.registry.schema import Registry, Schema, subject_namer

Parsed: TypeAlias = Any
"""A parsed schema as fastavro has it: text, list or dict. `Any` here and below: Avro data has every Python type."""


class AvroSerializer:
    """Turns dicts into framed Avro. `schema` is Avro's JSON as text or as a dict; None: the subject's newest.

    Schemas are registered under the topic's subject unless `register` is False; then they have to be there already.
    Give it as value_serializer, or with is_key=True as key_serializer.
    """

    def __init__(
        self,
        registry: Registry,
        schema: str | Mapping[str, Any] | None = None,
        *,
        is_key: bool = False,
        register: bool = True,
        subject: Callable[[str], str] | None = None,
    ) -> None:
        self._registry = registry
        text = schema if isinstance(schema, str) or schema is None else json.dumps(schema)
        self._schema = None if text is None else Schema(text)
        self._register = register
        self._subject = subject_namer(subject, is_key=is_key)
        self._known: dict[str, tuple[int, Parsed]] = {}

    def prepare(self, topic: str) -> None:
        """Fetch the schema of this topic's records now, so that `serialize` never waits for the registry.

        A program with an event loop calls it in a thread before the first `send`. Raises as `serialize` does.
        """
        if topic not in self._known:
            self._learn(topic)

    def serialize(self, topic: str, headers: object, data: Any) -> bytes | None:
        """The framed bytes; None for None. Raises RegistryError for data that the schema does not allow."""
        if data is None:
            return None
        schema_id, parsed = self._known.get(topic) or self._learn(topic)
        out = BytesIO()
        try:
            fastavro.schemaless_writer(out, parsed, data)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise RegistryError(f"the object does not fit Avro schema {schema_id}: {error!r}") from error
        return frame(schema_id, out.getvalue())

    def _learn(self, topic: str) -> tuple[int, Parsed]:
        subject = self._subject(topic)
        if self._schema is None or not self._register:
            schema_id, schema = self._registry.latest(subject)
            if self._schema is not None and json.loads(schema.text) != json.loads(self._schema.text):
                raise RegistryError(f"subject {subject!r} has another schema (id {schema_id}); register this one first")
        else:
            schema_id, schema = self._registry.register(subject, self._schema), self._schema
        self._known[topic] = (schema_id, parse(self._registry, schema))
        return self._known[topic]


def parse(registry: Registry, schema: Schema) -> Parsed:
    """The schema for fastavro, with the schemas that it refers to."""
    named: dict[str, Any] = {}
    _parse_references(registry, schema, named)
    return fastavro.parse_schema(json.loads(schema.text), named_schemas=named)


def _parse_references(registry: Registry, schema: Schema, named: dict[str, Any]) -> None:
    for reference in schema.references:
        if reference.name not in named:
            other = registry.version(reference.subject, reference.version)
            _parse_references(registry, other, named)
            fastavro.parse_schema(json.loads(other.text), named_schemas=named)


def read(payload: bytes, writer: Parsed, reader: Parsed | None = None) -> Any:
    """The object; as `reader` sees it, if one is given. Raises RegistryError for malformed bytes."""
    source = BytesIO(payload)
    try:
        found = fastavro.schemaless_reader(source, writer, reader)
    except (ValueError, TypeError, KeyError, EOFError, IndexError, OverflowError, StopIteration) as error:
        raise RegistryError(f"the bytes are not what their Avro schema says: {error!r}") from error
    except fastavro.read.SchemaResolutionError as error:
        raise RegistryError(f"the reader's schema cannot read this record: {error}") from error
    if source.tell() != len(payload):
        raise RegistryError(f"{len(payload) - source.tell()} bytes are left over behind the Avro record")
    return found
