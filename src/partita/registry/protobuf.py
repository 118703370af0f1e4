"""Protobuf by way of the protobuf library: messages of generated classes to framed bytes, and back to messages.

A registry keeps the serialized descriptor of the .proto file, so that messages can be read without their classes too.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Sequence
from datetime import UTC
from typing import Any, TypeAlias

from google.protobuf import (
    any_pb2,
    api_pb2,
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    message_factory,
    source_context_pb2,
    struct_pb2,
    timestamp_pb2,
    type_pb2,
    wrappers_pb2,
)
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError

from partita.registry.errors import RegistryError
from partita.registry.framing import decode_indexes, frame
from partita.registry.schema import Registry, Schema, SchemaIds, subject_namer

ProtoMessage: TypeAlias = Any
"""A message, or a class of messages: the protobuf library makes them at run time."""

_GOOGLES = "google.protobuf."
_GOOGLES_FILES: dict[str, Any] = {
    module.DESCRIPTOR.name: module.DESCRIPTOR
    for module in (
        any_pb2, api_pb2, descriptor_pb2, duration_pb2, empty_pb2, field_mask_pb2, source_context_pb2, struct_pb2,
        timestamp_pb2, type_pb2, wrappers_pb2,
    )
}  # fmt: skip
"""A file is known to the library only once its module is imported."""
_WRAPPERS = ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
_OF_GOOGLES: dict[str, Callable[[ProtoMessage], Any]] = {
    "Timestamp": lambda message: message.ToDatetime(tzinfo=UTC),
    "Duration": lambda message: message.ToTimedelta(),
    **{f"{kind}Value": lambda message: message.value for kind in _WRAPPERS},
}


class ProtobufSerializer:
    """Turns messages of one generated class into framed bytes.

    Give it as value_serializer, or with is_key=True as key_serializer. Files that the message's .proto file
    imports, other than Google's own, are not registered: such messages need their class to be read.
    """

    def __init__(
        self,
        registry: Registry,
        message: ProtoMessage,
        *,
        is_key: bool = False,
        subject: Callable[[str], str] | None = None,
    ) -> None:
        self._message = message
        descriptor = message.DESCRIPTOR
        self._indexes = path_of(descriptor)
        schema = Schema(base64.b64encode(descriptor.file.serialized_pb).decode(), "PROTOBUF")
        self._ids = SchemaIds(registry, schema, subject_namer(subject, is_key=is_key))

    def prepare(self, topic: str) -> None:
        """Fetch the schema of this topic's records now, so that `serialize` never waits for the registry.

        A program with an event loop calls it in a thread before the first `send`. Raises as `serialize` does.
        """
        self._ids.of(topic)

    def serialize(self, topic: str, headers: object, data: ProtoMessage) -> bytes | None:
        """The framed bytes; None for None. Raises RegistryError for a message of another class."""
        if data is None:
            return None
        if not isinstance(data, self._message):
            raise RegistryError(f"expected a {self._message.__name__}, got {type(data).__name__}")
        schema_id = self._ids.of(topic)
        payload: bytes = data.SerializeToString()
        return frame(schema_id, payload, self._indexes)


def path_of(descriptor: Any) -> list[int]:
    """The indexes of a message type within its file, from the outermost type inwards."""
    outer = descriptor.containing_type
    siblings = descriptor.file.message_types_by_name.values() if outer is None else outer.nested_types
    place = [one.full_name for one in siblings].index(descriptor.full_name)
    return [place] if outer is None else [*path_of(outer), place]


def reader(schema: Schema, message: ProtoMessage | None) -> Callable[[bytes], ProtoMessage]:
    """A function from payloads to messages: of the class given, or of one made from the schema.

    Raises RegistryError for a schema that no class can be made from.
    """
    classes: dict[tuple[int, ...], ProtoMessage] = {}
    file = None if message is not None else file_of(schema)

    def read(payload: bytes) -> ProtoMessage:
        indexes, body = decode_indexes(payload)
        kind: ProtoMessage = message or classes.get(tuple(indexes))
        if kind is None:
            kind = classes[tuple(indexes)] = class_at(file, indexes)
        try:
            return kind.FromString(body)
        except DecodeError as error:
            raise RegistryError(f"the bytes are no {kind.DESCRIPTOR.full_name}: {error}") from error

    return read


def as_dict(message: ProtoMessage) -> dict[str, Any]:
    """The fields of a message by the names of its .proto file; those without presence are always there.

    Enums become their names, Timestamp a datetime in UTC, Duration a timedelta, wrappers their values; other types of
    Google's own become what JSON has for them. Raises RegistryError for a time that no datetime can be.
    """
    return {
        field.name: _value(field, getattr(message, field.name))
        for field in message.DESCRIPTOR.fields
        if not field.has_presence or message.HasField(field.name)
    }


def _value(field: Any, value: Any) -> Any:
    """A field as Python has it: a dict for a map, a list for a repeated field."""
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        of_values = field.message_type.fields_by_name["value"]
        return {key: _single(of_values, value[key]) for key in value}
    return [_single(field, one) for one in value] if is_repeated(field) else _single(field, value)


def _single(field: Any, value: Any) -> Any:
    if field.enum_type is not None:
        named = field.enum_type.values_by_number.get(value)
        return str(value) if named is None else named.name
    if field.message_type is None:
        return value
    name = field.message_type.full_name
    if not name.startswith(_GOOGLES):
        return as_dict(value)
    try:
        return _OF_GOOGLES.get(name.removeprefix(_GOOGLES), _as_json)(value)
    except (ValueError, OverflowError) as error:
        raise RegistryError(f"{field.name} is no {name}: {error}") from error


def _as_json(message: ProtoMessage) -> Any:
    return MessageToDict(message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)


def is_repeated(field: Any) -> bool:
    """Whether the field is repeated; a map is, too."""
    told = getattr(field, "is_repeated", None)  # older releases of the library have a label instead
    return bool(field.label == field.LABEL_REPEATED if told is None else told)


def file_of(schema: Schema) -> Any:
    """The descriptor of the schema's file, in a pool with its imports."""
    file = descriptor_pb2.FileDescriptorProto()
    try:
        file.ParseFromString(base64.b64decode(schema.text, validate=True))
    except (ValueError, DecodeError) as error:
        raise RegistryError(
            "the registry gave no serialized descriptor of this Protobuf schema; give the message's class: "
            "RegistryDeserializer(registry, message=...)"
        ) from error
    pool = descriptor_pool.DescriptorPool()
    _add_dependencies(pool, file)
    try:
        return pool.Add(file) or pool.FindFileByName(file.name)
    except (TypeError, KeyError) as error:
        raise RegistryError(f"the Protobuf schema cannot be used: {error!r}") from error


def pool_of(serialized: bytes) -> descriptor_pool.DescriptorPool:
    """The types of a serialized descriptor, of one file or of a set. Raises TypeError, DecodeError or RegistryError."""
    files = descriptor_pb2.FileDescriptorSet()
    try:
        files.ParseFromString(serialized)
        is_set = all(file.name for file in files.file) and bool(files.file)
    except DecodeError:
        is_set = False
    if not is_set:
        files = descriptor_pb2.FileDescriptorSet(file=[descriptor_pb2.FileDescriptorProto.FromString(serialized)])
    pool = descriptor_pool.DescriptorPool()
    given = {file.name for file in files.file}
    for file in files.file:
        _add_dependencies(pool, file, given)
        pool.Add(file)
    return pool


def class_at(file: Any, indexes: Sequence[int]) -> ProtoMessage:
    """The class of the message at these indexes of a file."""
    try:
        at = list(file.message_types_by_name.values())[indexes[0]]
        for index in indexes[1:]:
            at = at.nested_types[index]
    except IndexError as error:
        raise RegistryError(f"the Protobuf schema has no message at {list(indexes)}: {error!r}") from error
    return message_factory.GetMessageClass(at)


def _add_dependencies(
    pool: descriptor_pool.DescriptorPool, file: descriptor_pb2.FileDescriptorProto, given: Collection[str] = ()
) -> None:
    """Google's own types come with the library, unless they are `given`."""
    known = descriptor_pool.Default()
    for name in file.dependency:
        if name in given:
            continue
        try:
            found = _GOOGLES_FILES.get(name) or known.FindFileByName(name)
        except KeyError:
            raise RegistryError(f"the Protobuf schema imports {name}; give the message's class to read it") from None
        inner = descriptor_pb2.FileDescriptorProto()
        found.CopyToProto(inner)
        _add_dependencies(pool, inner)
        pool.Add(inner)
