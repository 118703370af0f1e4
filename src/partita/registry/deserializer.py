"""From framed bytes to objects, whatever kind of schema they name; for records one by one and for Arrow columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from partita.lazy import later
from partita.registry import avro, json_schema, protobuf
from partita.registry.errors import RegistryError, RegistryUnavailableError
from partita.registry.framing import unframe
from partita.registry.schema import Registry, Schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import compute as pc

    from partita.registry import arrow_types
else:
    arrow_types = later("partita.registry.arrow_types")
    pa = later("pyarrow")
    pc = later("pyarrow.compute")

Decoded: TypeAlias = Any
"""A dict from Avro, an object from JSON, a message from Protobuf."""


class RegistryDeserializer:
    """Give it as key_deserializer or value_deserializer, or to poll_arrow(value=...).

    `reader_schema` is the Avro schema as which records are seen, whatever they were written with; `message` is the
    class of Protobuf messages, without which one is made from the schema. Null stays None.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        reader_schema: str | Mapping[str, Any] | None = None,
        message: type | None = None,
    ) -> None:
        self.registry = registry
        self._reader_text = (
            reader_schema if isinstance(reader_schema, str) or reader_schema is None else json.dumps(reader_schema)
        )
        self._message = message
        self._readers: dict[int, Callable[[bytes], Decoded]] = {}
        self._parsed: dict[int, Any] = {}

    def __getstate__(self) -> tuple[Any, ...]:
        return (self.registry, self._reader_text, self._message)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        registry, reader_schema, message = state
        RegistryDeserializer.__init__(self, registry, reader_schema=reader_schema, message=message)

    def deserialize(self, topic: str, headers: object, data: bytes | None) -> Decoded:
        """The object. Raises RegistryError for bytes that cannot be read, RegistryUnavailableError for an outage."""
        if data is None:
            return None
        schema_id, payload = unframe(data)
        read = self._readers.get(schema_id) or self._learn(schema_id)
        return read(payload)

    def has_to_ask(self, data: bytes | None) -> bool:
        """Whether reading these bytes asks the registry, which may take long."""
        try:
            return data is not None and unframe(data)[0] not in self._readers
        except RegistryError:
            return False

    def to_arrow(self, column: pa.Array) -> pa.Array:
        """A column of framed bytes as structs; Avro's types are the reader's schema's, else the newest one's."""
        heads = pc.binary_slice(column, 0, 5).unique().to_pylist()
        ids = {unframe(head)[0] for head in heads if head is not None}
        if not ids:
            return pa.nulls(len(column))
        for schema_id in ids - self._readers.keys():
            self._learn(schema_id)
        schema = self.registry.schema(max(ids))
        if schema.type == "AVRO":
            return self._avro_to_arrow(column, max(ids), schema)
        values = [self.deserialize("", (), value) for value in column.to_pylist()]
        if schema.type == "PROTOBUF":
            values = [None if value is None else protobuf.as_dict(value) for value in values]
        return pa.array(values)

    def _avro_to_arrow(self, column: pa.Array, schema_id: int, schema: Schema) -> pa.Array:
        kind = arrow_types.arrow_type(self._reader() if self._reader_text else self._avro(schema_id, schema))
        if not pa.types.is_struct(kind):
            return pa.array([self.deserialize("", (), value) for value in column.to_pylist()], kind)
        columns = pa.schema(list(kind))
        decoded = arrow_types.framed_decoder(self.registry, columns, self._reader_text).decode(column)
        if decoded.faults:
            raise RegistryError(decoded.faults[0][1])
        return decoded.columns

    def _learn(self, schema_id: int) -> Callable[[bytes], Decoded]:
        """The reader for a schema. A schema that cannot be used is an outage: it makes no record unreadable."""
        schema = self.registry.schema(schema_id)
        try:
            found = self._readers[schema_id] = self._reader_of(schema_id, schema)
        except RegistryUnavailableError:
            raise
        except Exception as error:  # the parsers of three formats raise whatever they like
            getattr(self.registry, "forget", id)(schema_id)
            said = str(error) or repr(error)
            raise RegistryUnavailableError(f"schema {schema_id} of {self.registry!r} cannot be used: {said}") from error
        return found

    def _reader_of(self, schema_id: int, schema: Schema) -> Callable[[bytes], Decoded]:
        match schema.type:
            case "AVRO":
                writer = self._avro(schema_id, schema)
                reader = self._reader() if self._reader_text is not None else None
                return lambda payload: avro.read(payload, writer, reader)
            case "JSON":
                check = json_schema.validator(schema)
                return lambda payload: json_schema.read(payload, check)
            case "PROTOBUF":
                return protobuf.reader(schema, self._message)
        raise RegistryError(f"schema {schema_id} is of type {schema.type}; AVRO, JSON and PROTOBUF can be read")

    def _avro(self, schema_id: int, schema: Schema) -> Any:
        if schema_id not in self._parsed:
            self._parsed[schema_id] = avro.parse(self.registry, schema)
        return self._parsed[schema_id]

    def _reader(self) -> Any:
        return self._avro(-1, Schema(self._reader_text or ""))
