"""From key and value bytes to objects: by a function of the bytes, an object with `deserialize`, or a name.

A plain function gets the bytes and is not called for null; `deserialize(topic, headers, data)` is called for null
too, as Kafka does.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from struct import Struct
from struct import error as StructError
from typing import Any, Protocol, TypeAlias, TypeVar

from partita.consumer.errors import RecordDeserializationError
from partita.offsets.topic_partition import TopicPartition
from partita.options import ConfigError, check_arguments

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
Deserializer: TypeAlias = Callable[[str, Headers, bytes | None], Any]
"""`Any`: a deserializer returns the user's own type, which `From` carries to type checkers."""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class DeserializesTo(Protocol[T_co]):
    """An object that turns the bytes of a key or value into a T; it is called for null too, as in Kafka."""

    def deserialize(self, topic: str, headers: Headers, data: bytes | None, /) -> T_co:
        """The object; raises an error for invalid bytes."""


From: TypeAlias = Callable[[bytes], T] | DeserializesTo[T]
"""A user's deserializer to T: a function of the bytes, or an object with `deserialize`."""


class Named(Protocol[T_co]):
    """A name, such as "json": any text. Type checkers cannot see the type of the objects, so it is Any.

    A protocol does this in one signature, where overloads would repeat all options in a checker's every answer.
    """

    def casefold(self) -> str:
        """Only text has it."""

    def __getattribute__(self, name: str, /) -> T_co:
        """Declared to return Any."""


Given: TypeAlias = From[T] | Named[T] | None
"""Everything that may be given as a deserializer; None leaves bytes."""

_INT, _LONG, _SHORT = Struct(">i"), Struct(">q"), Struct(">h")
_FLOAT, _DOUBLE = Struct(">f"), Struct(">d")


def _number(form: Struct) -> Callable[[bytes], Any]:
    def read(data: bytes) -> Any:
        try:
            return form.unpack(data)[0]
        except StructError:
            raise ValueError(f"{form.size} bytes expected, {len(data)} came") from None

    return read


NAMED: dict[str, Callable[[bytes], Any] | None] = {
    "bytes": None,
    "str": lambda data: data.decode("utf-8"),
    "json": json.loads,
    "short": _number(_SHORT),
    "int": _number(_INT),
    "long": _number(_LONG),
    "float": _number(_FLOAT),
    "double": _number(_DOUBLE),
}
_CLASS_NAMES = {
    "ByteArrayDeserializer": "bytes",
    "ShortDeserializer": "short",
    "IntegerDeserializer": "int",
    "LongDeserializer": "long",
    "FloatDeserializer": "float",
    "DoubleDeserializer": "double",
}


def deserializer(given: Any) -> Deserializer | None:
    """The deserializer meant; None leaves bytes as they are. Raises ConfigError."""
    if given is None:
        return None
    if given in (str, bytes):
        given = given.__name__
    elif isinstance(given, type) and hasattr(given, "deserialize"):
        given = given()
    if hasattr(given, "deserialize"):
        found: Deserializer = given.deserialize
        check_arguments(found, ("topic", "headers", "data"), "deserialize of a deserializer")
        return found
    if isinstance(given, str):
        kafkas = given.rpartition(".")[2]
        if kafkas == "StringDeserializer":
            return _of_bytes(_text_as_kafka)
        name = _CLASS_NAMES.get(kafkas, given)
        if name not in NAMED:
            raise ConfigError(f"unknown deserializer {given!r}; expected one of {', '.join(NAMED)}, or give a function")
        function = NAMED[name]
        return None if function is None else _of_bytes(function)
    check_arguments(given, ("data",), "a deserializer")
    return _of_bytes(given)


def _text_as_kafka(data: bytes) -> str:
    """As Kafka's StringDeserializer: malformed UTF-8 is replaced, where "str" refuses it."""
    return data.decode("utf-8", "replace")


def _of_bytes(function: Callable[[bytes], Any]) -> Deserializer:
    def read(topic: str, headers: Headers, data: bytes | None) -> Any:
        return None if data is None else function(data)

    return read


def deserialized(
    function: Deserializer | None, origin: str, tp: TopicPartition, record: Any, data: Any, advice: str = ""
) -> Any:
    """The object of a record's key or value (`origin`), or the bytes. Raises RecordDeserializationError."""
    if function is None:
        return data
    try:
        return function(record.topic, record.headers, data)
    except Exception as error:
        raw = {"key": record.key, "value": record.value, "headers": record.headers}
        raise RecordDeserializationError(origin, tp, record.offset, record.timestamp, raw, error, advice) from error
