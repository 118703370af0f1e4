"""From a caller's objects to bytes: by a function of the object, an object with `serialize`, or a name.

A plain function gets the object and is not called for None; `serialize(topic, headers, data)` is called for None too,
and may add headers, as in Kafka. Without a serializer bytes are taken as they are and text becomes UTF-8.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from struct import Struct
from struct import error as StructError
from typing import Any, Protocol, TypeAlias

from partita.options import ConfigError, check_arguments
from partita.protocol.primitives import Buffer
from partita.wording import unsendable

Headers: TypeAlias = list[tuple[str, Buffer | None]]


class SerializesFrom(Protocol):
    """An object that turns a key or value into bytes. It may append to `headers`, and is called for None too."""

    def serialize(self, topic: str, headers: Headers, data: Any, /) -> Buffer | str | None:
        """The bytes; None for a null. `Any` is the user's own type."""


Serializer: TypeAlias = Callable[[Any], Buffer | str | None] | SerializesFrom
Serialize: TypeAlias = Callable[[str, Headers, Any], Buffer | str | None]
"""How a serializer is called: with the topic, the headers so far, and the object."""
TIMESTAMP_MAX = 2**63 - 1
_TOPIC_SIZE_MAX = 249
GivenHeaders: TypeAlias = Mapping[str, Buffer | str | None] | Iterable[tuple[str, Buffer | str | None]]


def _number(code: str) -> Callable[[Any], bytes]:
    pack = Struct(code).pack

    def write(value: Any) -> bytes:
        try:
            return pack(value)
        except StructError as error:
            raise TypeError(f"{value!r} is no such number: {error}") from None

    return write


def _text(value: Any) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f"serializer 'str' takes text, not {type(value).__name__}")
    return value.encode()


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


NAMED: dict[str, Callable[[Any], Buffer] | None] = {
    "bytes": None,
    "str": _text,
    "json": _json,
    "short": _number(">h"),
    "int": _number(">i"),
    "long": _number(">q"),
    "float": _number(">f"),
    "double": _number(">d"),
}
"""By the names that deserializers have; None takes bytes and text as they are."""
_CLASS_NAMES = {
    "ByteArraySerializer": "bytes",
    "StringSerializer": "str",
    "ShortSerializer": "short",
    "IntegerSerializer": "int",
    "LongSerializer": "long",
    "FloatSerializer": "float",
    "DoubleSerializer": "double",
}


def serializer(given: Any, option: str) -> Serialize | None:
    """The serializer meant by the value of an option; None takes bytes and text. Raises ConfigError."""
    if isinstance(given, str):
        name = _CLASS_NAMES.get(given.rpartition(".")[2], given)
        if name not in NAMED:
            raise ConfigError(f"{option}: unknown serializer {given!r}; expected {', '.join(NAMED)}, or a function")
        given = NAMED[name]
    if given is None:
        return None
    if isinstance(given, type) and hasattr(given, "serialize"):
        given = given()
    if hasattr(given, "serialize"):
        chosen: Serialize = given.serialize
        check_arguments(chosen, ("topic", "headers", "data"), f"serialize of {option}")
        return chosen
    if not callable(given):
        raise ConfigError(f"{option} must be a function of the object, have a method serialize, or be a name")
    function: Callable[[Any], Buffer | str | None] = given
    check_arguments(function, ("data",), option)

    def write(topic: str, headers: Headers, value: Any) -> Buffer | str | None:
        return None if value is None else function(value)

    return write


def to_bytes(value: Any, what: str, hint: str = "is") -> Buffer | None:
    """The bytes of a key, value or header. Raises TypeError for objects that need a serializer."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    cure = "" if what == "header" else f", or give a {what}_serializer"
    raise TypeError(f"the {what} {hint} {type(value).__name__}; expected bytes or str{cure}")


def check_topic(topic: str) -> None:
    """Refuse what cannot be sent as the name of a topic; which names are valid, the broker says. Raises ValueError."""
    if not isinstance(topic, str) or not topic:
        raise ValueError(f"topic must be a name, not {topic!r}")
    # One request asks for all topics: a name that breaks it would keep every other topic from being known.
    if len(topic) > _TOPIC_SIZE_MAX or unsendable(topic):
        raise ValueError(f"topic must be text of at most 249 characters, not {topic[:_TOPIC_SIZE_MAX]!r}")


def check_number(value: int, name: str, kind: str, most: int) -> None:
    """Refuse anything but a whole number from 0. Raises TypeError and ValueError that say which `kind` it has to be."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be {kind}, not {value!r}")
    if value < 0:
        raise ValueError(f"{name} must be 0 or more, not {value}")
    if value > most:
        raise ValueError(f"{name} must be at most {most}, not {value}")


def to_headers(headers: GivenHeaders | None) -> Sequence[tuple[str, Buffer | None]]:
    """Headers as (name, bytes) pairs, from pairs or a dict."""
    if not headers:
        return ()
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    found = []
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not isinstance(pair[0], str):
            raise TypeError(f"headers are a dict or pairs such as [('source', b'web')]; {pair!r} is no pair")
        found.append((pair[0], to_bytes(pair[1], "header")))
    return tuple(found)
