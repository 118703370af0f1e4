"""Kafka's murmur2 over a whole column of keys at once, and the partition of each.

The same hash, seed and sign rule as Kafka's own partitioner (Utils.murmur2, toPositive). Without the compiled
`partita.records.row_packing` numpy computes it word by word instead of key by key.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from partita.records import row_packing

SEED = 0x9747B28C
M = np.uint32(0x5BD1E995)


def murmur2(offsets: NDArray[np.int64], data: NDArray[np.uint8], seed: int = SEED) -> NDArray[np.uint32]:
    """The hash of each key; key i is `data[offsets[i]:offsets[i + 1]]`."""
    if not row_packing.COMPILED:
        return hash_by_words(offsets, data, seed)
    hashes = np.empty(len(offsets) - 1, np.uint32)
    row_packing.hash_all(offsets, data, seed, hashes)
    return hashes


def hash_by_words(offsets: NDArray[np.int64], data: NDArray[np.uint8], seed: int) -> NDArray[np.uint32]:
    """As `murmur2`, the first word of all keys first."""
    starts, lengths = offsets[:-1], np.diff(offsets)
    padded = np.concatenate([data, np.zeros(4, np.uint8)])
    hashes = np.uint32(seed) ^ lengths.astype(np.uint32)
    for word in range(int(lengths.max(initial=0)) // 4):
        rows = np.nonzero(lengths >= 4 * (word + 1))[0]
        k = _words(padded, starts[rows] + 4 * word) * M
        k ^= k >> np.uint32(24)
        hashes[rows] = hashes[rows] * M ^ k * M
    _mix_tail(hashes, padded, starts, lengths)
    hashes ^= hashes >> np.uint32(13)
    hashes *= M
    hashes ^= hashes >> np.uint32(15)
    return hashes


def partitions_of(offsets: NDArray[np.int64], data: NDArray[np.uint8], count: int) -> NDArray[np.int64]:
    """The partition of each key among `count`."""
    positive = murmur2(offsets, data) & np.uint32(0x7FFFFFFF)
    return (positive % np.uint32(count)).astype(np.int64)


def _words(padded: NDArray[np.uint8], at: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Four bytes from each place, little-endian."""
    words: NDArray[np.uint32] = padded[at].astype(np.uint32)
    for i in (1, 2, 3):
        words |= padded[at + i].astype(np.uint32) << np.uint32(8 * i)
    return words


def _mix_tail(
    hashes: NDArray[np.uint32], padded: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> None:
    """The one to three bytes that do not fill a word."""
    rests = lengths % 4
    rows = np.nonzero(rests)[0]
    if not rows.size:
        return
    tails = _words(padded, starts[rows] + lengths[rows] - rests[rows])
    tails &= (np.uint32(1) << (np.uint32(8) * rests[rows].astype(np.uint32))) - np.uint32(1)
    hashes[rows] = (hashes[rows] ^ tails) * M
