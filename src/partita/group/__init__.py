"""The GroupCoordinator: pure rules for consumer groups and their offsets.

Mirrors org.apache.kafka.coordinator.group. Start reading at `coordinator`.
"""

from __future__ import annotations

_MIN_INT32 = -(1 << 31)


def partition_for(group_id: str, count: int) -> int:
    """Return the partition of `__consumer_offsets` that holds the group: |Java's String.hashCode| mod `count`."""
    hashed = hash_code(group_id)
    signed = hashed - (1 << 32) if hashed & 0x80000000 else hashed
    return 0 if signed == _MIN_INT32 else abs(signed) % count


def hash_code(text: str) -> int:
    """Return Java's String.hashCode as an unsigned number of 32 bits."""
    code_units = text.encode("utf-16-be", "surrogatepass")
    hashed = 0
    for at in range(0, len(code_units), 2):
        hashed = (31 * hashed + (code_units[at] << 8) + code_units[at + 1]) & 0xFFFFFFFF
    return hashed
