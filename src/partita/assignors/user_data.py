# cython: boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""The user data of the sticky assignor: the last assignment of a member and its generation.

The leader reads one for every member, so reading is compiled by Cython when a compiler is there (its types:
user_data.pxd); the same file runs uncompiled. (Kafka: StickyAssignor's schemas.)
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct

from partita.assignors.interface import TopicPartition
from partita.protocol.primitives import Writer

try:
    import cython
except ImportError:
    from partita.records.uncompiled import cython

_unpack = Struct(">I").unpack_from
_NOWHERE = (0, 0)


def encode_user_data(partitions: Iterable[TopicPartition], generation_id: int) -> bytes:
    """Partitions assigned to a member, by topic, and their generation (version 1 of the user data)."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    writer = Writer()
    writer.count(len(by_topic))
    for topic, numbers in by_topic.items():
        writer.string(topic)
        writer.count(len(numbers))
        for number in numbers:
            writer.int32(number)
    writer.int32(generation_id)
    return writer.getvalue()


def read_claim(data: bytes, places: dict[bytes, tuple[int, int]]) -> tuple[list[int], int]:
    """The numbers of the partitions claimed, and the generation; unreadable bytes claim nothing.

    `places` maps a topic's name to the number of its first partition and its partition count; what is not there is
    passed over. Version 0 of the user data has no generation, which reads as -1.
    """
    claimed: list[int] = []
    end = len(data)
    if end < 4:
        return [], -1
    topics = _uint32(data, 0)
    pos = 4
    while topics:
        topics -= 1
        if end - pos < 2:
            return [], -1
        size = data[pos] << 8 | data[pos + 1]
        pos += 2
        if size > 0x7FFF or end - pos < size + 4:
            return [], -1
        first, known = places.get(data[pos : pos + size], _NOWHERE)
        pos += size
        count = _uint32(data, pos)
        pos += 4
        if count > (end - pos) >> 2:
            return [], -1
        while count:
            number = _uint32(data, pos)
            pos += 4
            count -= 1
            if number < known:
                claimed.append(first + number)
    if end - pos < 4:
        return claimed, -1
    generation = _uint32(data, pos)
    return claimed, generation if generation < 0x80000000 else -1


def _uint32(data: bytes, pos: int) -> int:
    """Four bytes that are known to be there. What is negative in Kafka's schema is larger than anything known here."""
    if cython.compiled:
        return data[pos] << 24 | data[pos + 1] << 16 | data[pos + 2] << 8 | data[pos + 3]
    (value,) = _unpack(data, pos)
    return value  # type: ignore[no-any-return]  # struct returns Any
