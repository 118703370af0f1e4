"""Up to which offset the records of a shard have been replaced by later ones.

Kafka: ShareCoordinatorOffsetsManager.
"""

from __future__ import annotations

from partita.share.coordinator.model import ShareKey


class PrunePoint:
    """The smallest offset among the latest snapshots, as it was at the last snapshot or tombstone."""

    def __init__(self) -> None:
        self._snapshots: dict[ShareKey, int] = {}
        self.offset: int | None = None

    def stored(self, key: ShareKey, offset: int) -> None:
        """A snapshot of the share partition lies at this offset."""
        self._snapshots[key] = offset
        self._find()

    def removed(self, key: ShareKey, offset: int) -> None:
        """A tombstone lies at this offset; it is still needed until the next snapshot or tombstone of any."""
        self._snapshots[key] = offset
        self._find()
        del self._snapshots[key]

    def _find(self) -> None:
        self.offset = min(self._snapshots.values()) or None
