"""A broker's data in this process: nothing is opened on disk, and nothing stays."""

from __future__ import annotations

from collections.abc import Iterable

from partita.broker.blocks import fresh_block
from partita.broker.storage.log_store import LogStore
from partita.log.log_config import Durability
from partita.log.storage import MemoryStorage


class MemoryStore(LogStore):
    """Everything in this process; nothing is left when it ends."""

    description = "kept in memory, gone when the broker stops"
    root = "memory"
    _at_once = 1

    def __init__(self) -> None:
        storage = MemoryStorage(fresh_block)
        super().__init__(storage, storage, Durability.MEMORY)
        self._catalogue: list[bytes] = []

    def read_catalogue(self) -> list[bytes]:
        """All lines so far."""
        return list(self._catalogue)

    def append_catalogue(self, *lines: bytes, may_wait: bool = False, holds_appends: bool = False) -> None:
        """Add lines."""
        self._catalogue += lines

    def bury(self, topic_ids: Iterable[bytes], lines: Iterable[bytes]) -> None:
        """Add the lines: memory has room."""
        self._catalogue += lines

    def rewrite_catalogue(self, lines: list[bytes]) -> None:
        """Replace all lines."""
        self._catalogue = list(lines)

    def volume_bytes(self) -> tuple[int, int]:
        """There is no volume."""
        return -1, -1

    def has_room_for_groups(self, size: int) -> bool:
        """Memory is not measured."""
        return True

    def check(self) -> None:
        """Do nothing: there is no directory that could be lost."""

    def settle(self) -> None:
        """Do nothing: no line has to wait for room."""

    def sync_catalogue(self) -> None:
        """Memory has nothing to sync."""

    def close(self) -> None:
        """Forget every log."""
        self.logs.clear()
        self._configs.clear()
