"""Racks: which partitions have a replica near which member.

(Kafka: AbstractPartitionAssignor.useRackAwareAssignment, KIP-881.)
"""

from __future__ import annotations

from collections.abc import Collection, Sequence


def replica_racks(racks: Sequence[Sequence[str | None]] | None, count: int) -> list[frozenset[str]]:
    """For each of `count` partitions the known racks of its replicas."""
    known = [frozenset(rack for rack in replicas if rack) for replicas in (racks or ())[:count]]
    return known + [frozenset()] * (count - len(known))


def racks_matter(member_racks: Collection[str], partition_racks: Sequence[frozenset[str]]) -> bool:
    """True if some member is near some replica and not every partition is near everyone."""
    everywhere = frozenset().union(*partition_racks)
    return not everywhere.isdisjoint(member_racks) and any(racks != everywhere for racks in partition_racks)
