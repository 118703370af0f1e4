"""Up to which offset the records of a shard have been replaced by later ones.

Kafka: ShareCoordinatorOffsetsManager.
"""

from __future__ import annotations

from partita.share.coordinator.model import ShareKey


class PrunePoint:
    """The smallest offset among the latest snapshots, as it was at the last snapshot or tombstone.

    It is looked for when it is asked for: a group may begin the state of very many share partitions at once.
    """

    def __init__(self) -> None:
        self._snapshots: dict[ShareKey, int] = {}
        self._tombstone: int | None = None
        """The offset of the newest tombstone, until a snapshot follows."""

    @property
    def offset(self) -> int | None:
        """The smallest offset that is still needed; None without any, or if that is the beginning of the log."""
        offsets = self._snapshots.values() if self._tombstone is None else (*self._snapshots.values(), self._tombstone)
        return min(offsets, default=0) or None

    def stored(self, key: ShareKey, offset: int) -> None:
        """A snapshot of the share partition lies at this offset."""
        self._snapshots[key] = offset
        self._tombstone = None

    def removed(self, key: ShareKey, offset: int) -> None:
        """A tombstone lies at this offset; it is still needed until the next snapshot or tombstone of any."""
        self._snapshots.pop(key, None)
        self._tombstone = offset
