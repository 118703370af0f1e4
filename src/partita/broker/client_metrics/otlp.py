"""The numbers in an OTLP payload of metrics: protocol buffers, read just as far as clients of Kafka write them.

Gauges and sums are read; histograms and summaries, which no client of Kafka sends, are passed over. Pure.
(opentelemetry.proto.metrics.v1.MetricsData)
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple, TypeAlias

from partita.protocol.primitives import Buffer

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_DELTA = 1
_FIELDS_MAX, _FIELDS_OF_MESSAGE_MAX = 200_000, 20_000
LABELS_MAX = 12
"""Labels of a number, those of its resource first; further ones are left out."""
_VARINT_BYTES_MAX = 10
_DOUBLE, _INT64, _UINT64 = Struct("<d"), Struct("<q"), Struct("<Q")

Fields: TypeAlias = "list[tuple[int, int | memoryview]]"


class BadPayload(ValueError):
    """The bytes are no OTLP metrics; the message says where they end to be."""


class Point(NamedTuple):
    """One number: `labels` are its own and its resource's. A sum may count since the last one that was sent."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float
    is_counter: bool
    is_delta: bool


def points(payload: Buffer) -> Iterator[Point]:
    """Yield each number of a payload. Raises BadPayload, perhaps after some."""
    reader = _Reader()
    for resource_metrics in _parts(reader.fields(memoryview(payload)), 1):
        whole = reader.fields(resource_metrics)
        labels = (label for each in _parts(whole, 1) for label in _labels(reader, reader.fields(each), 1))
        shared = list(dict(labels).items())[:LABELS_MAX]
        for scope in _parts(whole, 2):
            for metric in _parts(reader.fields(scope), 2):
                yield from _of_metric(reader, reader.fields(metric), shared)


def _of_metric(reader: _Reader, metric: Fields, shared: list[tuple[str, str]]) -> Iterator[Point]:
    name = _text(_last(metric, 1))
    for number in (5, 7):
        for data in _parts(metric, number):
            kind = reader.fields(data)
            is_counter = number == 7 and bool(_last(kind, 3))
            is_delta = number == 7 and _last(kind, 2) == _DELTA
            for part in _parts(kind, 1):
                point = reader.fields(part)
                labels = tuple(dict([*shared, *_labels(reader, point, 7)]).items())
                yield Point(name, labels[:LABELS_MAX], _number(point), is_counter, is_delta)


def _number(point: Fields) -> float:
    for number, value in reversed(point):
        if number in (4, 6) and isinstance(value, int):
            packed = _UINT64.pack(value)
            (read,) = (_DOUBLE if number == 4 else _INT64).unpack(packed)
            return float(read)
    return 0.0


def _labels(reader: _Reader, message: Fields, number: int) -> list[tuple[str, str]]:
    pairs = (reader.fields(part) for part in _parts(message, number))
    return [(_text(_last(pair, 1)), _value(reader, pair)) for pair in pairs]


def _value(reader: _Reader, pair: Fields) -> str:
    """The text of an attribute: of a string, a truth or a whole number; nothing of any other kind."""
    for part in _parts(pair, 2):
        for number, value in reader.fields(part):
            if number == 1:
                return _text(value)
            if number in (2, 3) and isinstance(value, int):
                return str(bool(value)).lower() if number == 2 else str(value - (value >> 63 << 64))
    return ""


def _parts(message: Fields, number: int) -> list[memoryview]:
    return [value for each, value in message if each == number and isinstance(value, memoryview)]


def _last(message: Fields, number: int) -> int | memoryview:
    return next((value for each, value in reversed(message) if each == number), 0)


def _text(value: int | memoryview) -> str:
    return bytes(value).decode("utf-8", "replace") if isinstance(value, memoryview) else ""


class _Reader:
    """Reads messages of one payload, of a bounded number of fields: a MiB could hold half a million empty ones."""

    def __init__(self) -> None:
        self._left = _FIELDS_MAX

    def fields(self, message: memoryview) -> Fields:
        """The fields of a message in the order written, each with its number."""
        found: Fields = []
        at = 0
        while at < len(message):
            self._left -= 1
            if self._left < 0 or len(found) == _FIELDS_OF_MESSAGE_MAX:
                raise BadPayload(f"expected at most {_FIELDS_MAX} fields, {_FIELDS_OF_MESSAGE_MAX} in a message")
            key, at = _varint(message, at)
            number, kind = key >> 3, key & 7
            size = 0
            if kind == _VARINT:
                value, at = _varint(message, at)
                found.append((number, value))
                continue
            if kind == _BYTES:
                size, at = _varint(message, at)
            elif kind in (_FIXED64, _FIXED32):
                size = 8 if kind == _FIXED64 else 4
            else:
                raise BadPayload(f"expected a field of kind 0, 1, 2 or 5 at byte {at}, found {kind}")
            if size > len(message) - at:
                raise BadPayload(f"expected {size} bytes of field {number}, {len(message) - at} are left")
            content = message[at : at + size]
            at += size
            found.append((number, content if kind == _BYTES else int.from_bytes(content, "little")))
        return found


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for place, byte in enumerate(message[at : at + _VARINT_BYTES_MAX]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value & (1 << 64) - 1, at + place + 1
    raise BadPayload(f"expected a number that ends within {_VARINT_BYTES_MAX} bytes at byte {at}")
