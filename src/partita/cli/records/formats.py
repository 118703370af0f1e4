"""How records look as bytes or JSON: format strings as in kcat, and JSON lines that lose nothing. Pure.

A field in a format string is `%` and a letter, see `FIELDS`; `%%` is a percent sign, and `\\n`, `\\t`, `\\r`, `\\0`,
`\\\\` and `\\x1f` are escapes. `%s`, `%k` and `%h` may be followed by `{hex}` or `{base64}`, `%T` by `{iso}`.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from partita.wording import printable

if TYPE_CHECKING:
    from partita.records.batch import Record

FIELDS = {
    "s": "value",
    "v": "value",
    "S": "length of the value in bytes, -1 for null",
    "k": "key",
    "K": "length of the key in bytes, -1 for null",
    "h": "headers as name=value, separated by commas",
    "t": "topic",
    "p": "partition",
    "o": "offset",
    "T": "timestamp in ms",
    "e": "leader epoch, -1 if unknown",
}
"""Letters of a format string."""
DEFAULT_FORMAT = r"%s\n"
_PIECE = re.compile(r"%(.)(?:\{(hex|base64|iso)\})?|\\x([0-9a-fA-F]{2})|\\(.)|([^%\\]+)|(.)", re.S)
_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}
_SHOWN_ON_A_TERMINAL = "\n\t"

Encode = Callable[[bytes], bytes]
Part = Callable[["Record", "Look"], bytes]


@dataclass(frozen=True, slots=True)
class Look:
    """Text that stands for null, and whether control characters are escaped for a terminal."""

    null: bytes = b""
    is_terminal: bool = False

    def shown(self, field: bytes) -> bytes:
        """Return a field's bytes unchanged, or made safe for a terminal."""
        if not self.is_terminal:
            return field
        return printable(field.decode("utf-8", "backslashreplace"), keep=_SHOWN_ON_A_TERMINAL).encode()


@dataclass(frozen=True, slots=True)
class Format:
    """A parsed format string."""

    parts: tuple[bytes | Part, ...]

    def render(self, record: Record, look: Look) -> bytes:
        """The record in this format."""
        return b"".join(part if isinstance(part, bytes) else part(record, look) for part in self.parts)


def parse_format(text: str) -> Format:
    """Parse a format string. Raises ValueError for an unknown field or escape."""
    parts: list[bytes | Part] = []
    for found in _PIECE.finditer(text):
        field, encoding, hexed, escape, literal, stray = found.groups()
        if field == "%":
            parts.append(b"%")
        elif field is not None:
            parts.append(_field(field, encoding, text))
        elif hexed is not None:
            parts.append(bytes.fromhex(hexed))
        elif escape is not None:
            if escape not in _ESCAPES:
                raise ValueError(rf"unknown escape \{escape} in {text!r}; expected \n, \t, \r, \0, \\ or \x1f")
            parts.append(_ESCAPES[escape])
        elif stray is not None:
            raise ValueError(f"{text!r} ends with {stray!r}; write {stray * 2!r} for the character itself")
        else:
            parts.append(literal.encode())
    return Format(tuple(parts))


def parse_delimiter(text: str) -> bytes:
    """The bytes of a delimiter in which escapes are allowed. Raises ValueError."""
    parts = parse_format(text.replace("%", "%%")).parts
    delimiter = b"".join(part for part in parts if isinstance(part, bytes))
    if not delimiter:
        raise ValueError("the delimiter is empty; use --raw for records without a delimiter")
    return delimiter


def _field(letter: str, encoding: str | None, text: str) -> Part:
    if letter not in FIELDS:
        known = ", ".join(f"%{name}" for name in FIELDS)
        raise ValueError(f"unknown field %{letter} in {text!r}; expected one of {known}, %%")
    if (encoding is not None and (encoding == "iso") != (letter == "T")) or (encoding and letter not in "svkhT"):
        raise ValueError(f"%{letter} cannot be followed by {{{encoding}}}; {{hex}} and {{base64}} are for values, "
                         "keys and headers, {iso} is for the timestamp")  # fmt: skip
    encode = _ENCODINGS[encoding]
    match letter:
        case "s" | "v":
            return lambda record, look: _bytes(record.value, look, encode)
        case "k":
            return lambda record, look: _bytes(record.key, look, encode)
        case "S":
            return lambda record, _: _length(record.value)
        case "K":
            return lambda record, _: _length(record.key)
        case "h":
            return lambda record, look: b",".join(
                look.shown(name.encode()) + b"=" + _bytes(value, look, encode) for name, value in record.headers
            )
        case "t":
            return lambda record, look: look.shown(record.topic.encode())
        case "T" if encoding == "iso":
            return lambda record, _: iso_time(record.timestamp).encode()
    attribute = {"p": "partition", "o": "offset", "T": "timestamp", "e": "leader_epoch"}[letter]
    return lambda record, _: b"%d" % getattr(record, attribute)


def _same(field: bytes) -> bytes:
    return field


def _hex(field: bytes) -> bytes:
    return field.hex().encode()


_ENCODINGS: Mapping[str | None, Encode] = {None: _same, "iso": _same, "hex": _hex, "base64": base64.b64encode}


def _bytes(field: object, look: Look, encode: Encode) -> bytes:
    if field is None:
        return look.null
    assert isinstance(field, bytes), "the command line reads without deserializers"
    return look.shown(encode(field))


def _length(field: object) -> bytes:
    return b"-1" if field is None else b"%d" % len(field) if isinstance(field, bytes) else b"-1"


def iso_time(timestamp_ms: int) -> str:
    """A timestamp as an ISO date and time in UTC; "-" for none."""
    if timestamp_ms < 0:
        return "-"
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def to_json(record: Record) -> str:
    """One line of JSON with all fields, which `from_json` reads back byte for byte.

    A key or value that is not UTF-8 is written in base64, as "key_base64" or "value_base64"; a header's as
    {"base64": ...}.
    """
    fields: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        **_named("key", record.key),
        **_named("value", record.value),
        "headers": [[name, _header(value)] for name, value in record.headers],
    }
    return json.dumps(fields)


def _named(name: str, field: object) -> dict[str, str | None]:
    text = _utf8(field)
    if text is None and isinstance(field, bytes):
        return {f"{name}_base64": base64.b64encode(field).decode()}
    return {name: text}


def _header(value: bytes | None) -> object:
    text = _utf8(value)
    return {"base64": base64.b64encode(value).decode()} if text is None and value is not None else text


def _utf8(field: object) -> str | None:
    if not isinstance(field, bytes):
        return None
    try:
        return field.decode()
    except UnicodeDecodeError:
        return None


@dataclass(frozen=True, slots=True)
class Given:
    """A record read from JSON; `partition` and `timestamp` are None if the line has none."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    partition: int | None
    timestamp: int | None


def from_json(line: bytes) -> Given:
    """The record in a line of JSON as `to_json` writes it. Raises ValueError that says what is wrong.

    A value that is neither text nor null is taken as JSON text itself. Unknown fields are ignored.
    """
    try:
        given = json.loads(line)
    except ValueError as error:
        raise ValueError(f"is not JSON ({error})") from None
    if not isinstance(given, dict) or not given.keys() & {"value", "value_base64"}:
        raise ValueError("is not an object with a value")
    headers = given.get("headers") or ()
    if not all(isinstance(header, list) and len(header) == 2 and isinstance(header[0], str) for header in headers):
        raise ValueError('has headers that are not pairs such as ["name", "value"]')
    return Given(
        _given_bytes(given, "key"),
        _given_bytes(given, "value"),
        [(name, _header_bytes(value)) for name, value in headers],
        _given_int(given, "partition"),
        _given_int(given, "timestamp"),
    )


def _given_bytes(given: Mapping[str, Any], name: str) -> bytes | None:
    encoded = given.get(f"{name}_base64")
    if encoded is not None:
        return _unbase64(encoded, f"{name}_base64")
    plain = given.get(name)
    if plain is None:
        return None
    return (plain if isinstance(plain, str) else json.dumps(plain)).encode()


def _header_bytes(value: object) -> bytes | None:
    if value is None or isinstance(value, str):
        return None if value is None else value.encode()
    if isinstance(value, dict) and value.keys() == {"base64"}:
        return _unbase64(value["base64"], "header")
    raise ValueError('has a header value that is not text, null or {"base64": "..."}')


def _unbase64(text: object, name: str) -> bytes:
    try:
        if isinstance(text, str):
            return base64.b64decode(text, validate=True)
    except ValueError:
        pass
    raise ValueError(f"has a {name} that is not base64")


def _given_int(given: Mapping[str, Any], name: str) -> int | None:
    number = given.get(name)
    if number is None or number == -1:
        return None
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise ValueError(f"has a {name} that is not a number of 0 or more")
    return number
