"""Partitioners by librdkafka's names, so that a key goes where programs with confluent-kafka have put it.

`murmur2_random` is Kafka's own and the default here; `consistent_random` is librdkafka's default. (rdkafka_msg.c)
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import TypeAlias

from partita.producer.partitioner import murmur2
from partita.protocol.primitives import Buffer

Partitioner: TypeAlias = Callable[[str, Buffer | None, Buffer | None, int], "int | None"]
"""From topic, key, value and the number of partitions; None leaves the choice to the load."""
_FNV_PRIME, _FNV_START, _MASK, _SIGN = 0x01000193, 0x811C9DC5, 0xFFFFFFFF, 0x80000000


def fnv1a(key: Buffer) -> int:
    """FNV-1a with 32 bits, taken as a signed number without its sign, as librdkafka and Sarama do."""
    h = _FNV_START
    for byte in bytes(key):
        h = (h ^ byte) * _FNV_PRIME & _MASK
    return -h & _MASK if h & _SIGN else h


def crc32(key: Buffer) -> int:
    """The CRC-32 of zlib."""
    return zlib.crc32(key)


def positive_murmur2(key: Buffer) -> int:
    """Kafka's hash without its sign bit."""
    return murmur2(bytes(key)) & 0x7FFFFFFF


def _by(hash_of: Callable[[Buffer], int], is_random: Callable[[Buffer | None], bool]) -> Partitioner:
    def partition(topic: str, key: Buffer | None, value: Buffer | None, partition_count: int) -> int | None:
        return None if is_random(key) else hash_of(key or b"") % partition_count

    return partition


NAMED: dict[str, Partitioner | None] = {
    "murmur2_random": None,
    "murmur2": _by(positive_murmur2, lambda key: False),
    "consistent_random": _by(crc32, lambda key: not key),
    "consistent": _by(crc32, lambda key: False),
    "fnv1a_random": _by(fnv1a, lambda key: key is None),
    "fnv1a": _by(fnv1a, lambda key: False),
    "random": lambda topic, key, value, partition_count: None,
}
"""None: the producer's own way. Those called random leave records without key to the load, the others hash nothing."""
