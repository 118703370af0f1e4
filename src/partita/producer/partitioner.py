# cython: cdivision=True, freethreading_compatible=True
"""Choice of a record's partition: by the hash of its key, else one partition at a time until it has its share.

Records without a key stick to one partition until about batch.size bytes went there, then another is drawn; with
adaptive partitioning those with longer queues are drawn less often. Compiled by Cython when a compiler is there (its
types: partitioner.pxd); the same file runs uncompiled. (Kafka: BuiltInPartitioner, KIP-794; Utils.murmur2.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from struct import unpack_from

from partita.protocol.primitives import Buffer

try:
    import cython
except ImportError:
    from partita.records.uncompiled import cython

_M = 0x5BD1E995
_SEED = 0x9747B28C
_MASK = 0xFFFFFFFF


def murmur2(key: Buffer) -> int:
    """Kafka's 32-bit hash of a key, as an unsigned number."""
    length = len(key)
    h = _SEED ^ length
    if cython.compiled:
        data = key
        at = 0
        while at + 4 <= length:
            k = (
                data[at]
                | cython.cast(cython.uint, data[at + 1]) << 8
                | cython.cast(cython.uint, data[at + 2]) << 16
                | cython.cast(cython.uint, data[at + 3]) << 24
            )
            k = k * _M & _MASK
            h = (h * _M & _MASK) ^ ((k ^ k >> 24) * _M & _MASK)
            at += 4
    else:
        for k in unpack_from(f"<{length >> 2}I", key):
            k = k * _M & _MASK
            h = (h * _M & _MASK) ^ ((k ^ k >> 24) * _M & _MASK)
    rest = length & 3
    if rest:
        h = (h ^ int.from_bytes(key[length - rest :], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


def partition_for_key(key: Buffer, partition_count: int) -> int:
    """The partition of every record with this key, the same as Kafka's."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


class StickyPartitioner:
    """Draws partitions for the records of one topic that have no key."""

    __slots__ = ("_draw", "batch_size", "partition", "sent_bytes", "version")

    def __init__(self, batch_size: int, draw: Callable[[int], int]) -> None:
        self.batch_size = max(1, batch_size)
        self._draw = draw
        self.partition = -1
        self.version = -1
        self.sent_bytes = 0

    def current(self, version: int) -> int:
        """The partition being filled, -1 if it has its share or the cluster looks different from before."""
        return self.partition if self.version == version and self.sent_bytes < self.batch_size else -1

    def switch(self, available: Sequence[int], queue_sizes: Callable[[int], int] | None, version: int) -> int:
        """Draw another partition of those available (not none); keep an unfinished one that still is.

        `queue_sizes` returns how many batches wait for a partition; None draws all alike.
        """
        if self.partition not in available or self.sent_bytes >= self.batch_size:
            self.partition = self._next(available, queue_sizes)
            self.sent_bytes = 0
        self.version = version
        return self.partition

    def sent(self, partition: int, size_in_bytes: int) -> None:
        """Count a record towards the share of the current partition."""
        if partition == self.partition:
            self.sent_bytes += size_in_bytes

    def _next(self, available: Sequence[int], queue_sizes: Callable[[int], int] | None) -> int:
        if queue_sizes is None:
            return available[self._draw(len(available))]
        sizes = [queue_sizes(partition) for partition in available]
        longest = max(sizes) + 1
        shares = list(accumulate(longest - size for size in sizes))
        drawn = self._draw(shares[-1])
        return next(p for p, upto in zip(available, shares, strict=True) if drawn < upto)
