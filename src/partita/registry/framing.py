"""The bytes around a payload: a zero byte, the schema's id (32 bits, big-endian), for Protobuf the message's place.

The place is a path of indexes through nested message types, as zig-zag varints behind their number; the commonest path,
the first type of the file, is a single zero byte. (Confluent's wire format.)
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from partita.records.builder import varint
from partita.registry.errors import RegistryError

_HEAD = Struct(">bi")
_MAGIC = 0
INDEXES_MAX = 100
"""Nested deeper than any real message: more are taken for damage."""


def frame(schema_id: int, payload: bytes, indexes: Sequence[int] | None = None) -> bytes:
    """The payload with its head; `indexes` for Protobuf only."""
    return _HEAD.pack(_MAGIC, schema_id) + (b"" if indexes is None else encode_indexes(indexes)) + payload


def unframe(data: bytes) -> tuple[int, bytes]:
    """The schema's id and what follows the head. Raises RegistryError."""
    if len(data) < _HEAD.size or data[0] != _MAGIC:
        found = f"{len(data)} bytes" if len(data) < _HEAD.size else f"first byte 0x{data[0]:02x}"
        raise RegistryError(
            f"expected a zero byte and a schema id, got {found}: "
            "the record was not written by a serializer of a schema registry"
        )
    return _HEAD.unpack_from(data)[1], data[_HEAD.size :]


def encode_indexes(indexes: Sequence[int]) -> bytes:
    """The path to a message type."""
    if list(indexes) == [0]:
        return b"\x00"
    return b"".join(map(varint, [len(indexes), *indexes]))


def decode_indexes(data: bytes) -> tuple[list[int], bytes]:
    """The path to a message type, and the message itself. Raises RegistryError."""
    count, pos = _read_varint(data, 0)
    if not 0 <= count <= INDEXES_MAX:
        raise RegistryError(f"a path of {count} message indexes cannot be")
    indexes = []
    for _ in range(count):
        index, pos = _read_varint(data, pos)
        indexes.append(index)
    if min(indexes, default=0) < 0:
        raise RegistryError(f"the message indexes {indexes} cannot be")
    return indexes or [0], data[pos:]


def _read_varint(data: bytes, pos: int) -> tuple[int, int]:
    value = shift = 0
    while pos < len(data) and shift < 35:
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), pos
        shift += 7
    raise RegistryError("the message indexes behind the schema id are cut short")
