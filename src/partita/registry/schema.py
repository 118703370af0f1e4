"""A schema as registries keep it, and what serializers ask of a registry."""

from __future__ import annotations

from dataclasses import dataclass
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
    """Where schemas are kept. Ids are for ever: an answer may be remembered."""

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
