"""JSON Schema by way of jsonschema: objects that the schema allows to framed JSON and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import jsonschema

from partita.registry.errors import RegistryError
from partita.registry.framing import frame
from partita.registry.schema import Registry, Schema, SchemaIds, subject_namer

Json: TypeAlias = Any
"""Whatever JSON can say."""


class JsonSchemaSerializer:
    """Turns objects into framed JSON after checking them against `schema` (text or a dict).

    Give it as value_serializer, or with is_key=True as key_serializer.
    """

    def __init__(
        self,
        registry: Registry,
        schema: str | Mapping[str, Any],
        *,
        is_key: bool = False,
        subject: Callable[[str], str] | None = None,
    ) -> None:
        written = Schema(schema if isinstance(schema, str) else json.dumps(schema), "JSON")
        self._validate = validator(written)
        self._ids = SchemaIds(registry, written, subject_namer(subject, is_key=is_key))

    def prepare(self, topic: str) -> None:
        """Fetch the schema of this topic's records now, so that `serialize` never waits for the registry.

        A program with an event loop calls it in a thread before the first `send`. Raises as `serialize` does.
        """
        self._ids.of(topic)

    def serialize(self, topic: str, headers: object, data: Json) -> bytes | None:
        """The framed bytes; None for None. Raises RegistryError for data that the schema does not allow."""
        if data is None:
            return None
        self._validate(data)
        schema_id = self._ids.of(topic)
        try:
            text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise RegistryError(f"the object fits its JSON Schema, but is no JSON: {error}") from error
        return frame(schema_id, text.encode())


def validator(schema: Schema) -> Callable[[Json], None]:
    """A function that raises RegistryError for objects that the schema does not allow."""
    try:
        document = json.loads(schema.text)
        kind = jsonschema.validators.validator_for(document)
        kind.check_schema(document)
    except (ValueError, jsonschema.SchemaError) as error:
        raise RegistryError(f"this is no JSON Schema: {error}") from error
    checker = kind(document)

    def check(data: Json) -> None:
        problem = jsonschema.exceptions.best_match(checker.iter_errors(data))
        if problem is not None:
            raise RegistryError(f"the object does not fit its JSON Schema at {problem.json_path}: {problem.message}")

    return check


def read(payload: bytes, check: Callable[[Json], None]) -> Json:
    """The object, checked. Raises RegistryError."""
    try:
        data = json.loads(payload)
    except ValueError as error:
        raise RegistryError(f"the bytes are no JSON: {error}") from error
    check(data)
    return data
