"""A schema as registries keep it, and the interface of a registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, Protocol

SchemaType = Literal["AVRO", "JSON", "PROTOBUF"]


@dataclass(frozen=True, slots=True)
class Reference:
    """Another schema that this one uses by `name`: a version of a subject."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Schema:
    """The text of a schema; of Protobuf the serialized file descriptor in base64."""

    text: str
    type: SchemaType = "AVRO"
    references: tuple[Reference, ...] = ()


class Registry(Protocol):
    """Storage of schemas. Ids are for ever: an answer may be remembered.

    One that remembers may have `forget(schema_id)`, which is called when a schema turns out to be of no use.
    """

    def schema(self, schema_id: int) -> Schema:
        """The schema of this id. Raises RegistryError, RegistryUnavailableError."""

    def register(self, subject: str, schema: Schema) -> int:
        """The id of the schema, which is added to the subject unless it is there already."""

    def latest(self, subject: str) -> tuple[int, Schema]:
        """The newest schema of a subject, with its id."""

    def version(self, subject: str, version: int) -> Schema:
        """One version of a subject, counted from 1."""


def subject_of(topic: str, *, is_key: bool) -> str:
    """The subject of a topic's keys or values (Confluent's TopicNameStrategy)."""
    return f"{topic}-{'key' if is_key else 'value'}"


def subject_namer(subject: Callable[[str], str] | None, *, is_key: bool) -> Callable[[str], str]:
    """Naming of a topic's subject: as the caller says, else as `subject_of` does."""
    return subject if subject is not None else partial(subject_of, is_key=is_key)


@dataclass(slots=True)
class SchemaIds:
    """The ids of one schema by topic; the registry is asked once for each."""

    registry: Registry
    schema: Schema
    subject: Callable[[str], str]
    _known: dict[str, int] = field(default_factory=dict)

    def of(self, topic: str) -> int:
        """The id under which the topic's subject has the schema. Raises RegistryError, RegistryUnavailableError."""
        if topic not in self._known:
            self._known[topic] = self.registry.register(self.subject(topic), self.schema)
        return self._known[topic]
