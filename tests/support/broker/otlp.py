"""Payloads of metrics in OTLP, written by hand: protocol buffers of the few messages that clients send."""

from __future__ import annotations

from collections.abc import Mapping
from struct import pack


def field(number: int, content: bytes | str | int) -> bytes:
    """A field of a message: text and messages with their length, numbers as varints."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    raw = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def varint(value: int) -> bytes:
    out = bytearray()
    value &= (1 << 64) - 1
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def label(name: str, value: bytes) -> bytes:
    return field(1, name) + field(2, value)


def gauge(name: str, value: float, **labels: str) -> bytes:
    """A metric with one number."""
    return field(1, name) + field(3, "ms") + field(5, field(1, point(value, labels)))


def total(name: str, value: int, *, is_delta: bool, is_monotonic: bool = True, **labels: str) -> bytes:
    """A metric that is a sum."""
    kind = field(2, 1 if is_delta else 2) + field(3, is_monotonic)
    return field(1, name) + field(7, field(1, point(value, labels)) + kind)


def point(value: float, labels: Mapping[str, str]) -> bytes:
    times = pack("<BQBQ", 2 << 3 | 1, 1, 3 << 3 | 1, 2)
    number = pack("<Bq", 6 << 3 | 1, value) if isinstance(value, int) else pack("<Bd", 4 << 3 | 1, value)
    return times + number + b"".join(field(7, label(name, field(1, text))) for name, text in labels.items())


def payload(*metrics: bytes, resource: bytes = b"") -> bytes:
    """Metrics of one client, with the labels of its resource."""
    scope = field(1, field(1, "scope")) + b"".join(field(2, metric) for metric in metrics)
    return field(1, field(1, resource) + field(2, scope))
