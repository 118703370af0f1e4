"""The disk of a simulated broker: what is synced survives a crash, and of the rest a prefix that the seed draws.

The catalogue of topics is durable at once. (Its own crashes are tested with the broker's real files.)
"""

from __future__ import annotations

from collections.abc import Sequence

from partita.broker.storage.memory_store import MemoryStore
from partita.log.log_config import Durability
from partita.log.storage import MemoryFile, MemoryStorage, StorageFull
from partita.protocol.primitives import Buffer
from partita.sim.world.world import Dice
from partita.system_clock import SystemClock

DISK_FULL = "the simulated disk is full"


class SimFile(MemoryFile):
    """Bytes, and how many of them are durable."""

    def __init__(self, disk: SimDisk) -> None:
        super().__init__(lambda size: bytearray(size))
        self._disk = disk
        self.durable = 0

    def sync(self) -> None:
        """Make every byte durable."""
        self.durable = self.size()

    def truncate(self, size: int) -> None:
        """Cut the file; that is durable at once."""
        super().truncate(size)
        self.durable = min(self.durable, self.size())

    def append(self, chunks: Sequence[Buffer]) -> None:
        """Add bytes; they are not durable yet. Raises StorageFull."""
        if self._disk.is_full:
            raise StorageFull(DISK_FULL)
        super().append(chunks)


class SimDisk(MemoryStorage):
    """Files that outlive the processes that use them. `catalogue` holds the lines about topics."""

    def __init__(self) -> None:
        super().__init__(lambda size: bytearray(size))
        self.catalogue: list[bytes] = []
        self.is_full = False
        """Whether appends to files find no room."""

    def open(self, name: str, *, create: bool = False) -> MemoryFile:
        """Return the file itself."""
        if create and name not in self._files:
            self._files[name] = SimFile(self)
            self._link(name)
        return super().open(name)

    def crash(self, dice: Dice) -> int:
        """Lose, of every file, some of what is not durable; return how many bytes are lost."""
        lost = 0
        for name in sorted(self._files):
            file = self._files[name]
            assert isinstance(file, SimFile), "every file was opened here"
            if file.durable < file.size():
                before = file.size()
                file.truncate(dice.between(file.durable, before))
                lost += before - file.size()
            file.sync()
        return lost


class SimStore(MemoryStore):
    """The disk of one process, under the durability `sync`."""

    description = "simulated"
    root = "simulated"

    def __init__(self, disk: SimDisk, clock: SystemClock, *, was_clean: bool) -> None:
        super().__init__()
        self._storage = self._group_storage = disk
        self._clock = clock
        self._disk = disk
        self._catalogue = disk.catalogue
        self.durability = Durability.SYNC
        self.unclean = not was_clean

    def has_room_for_groups(self, size: int) -> bool:
        """Whether the disk takes appends."""
        return not self._disk.is_full

    def append_catalogue(self, *lines: bytes, may_wait: bool = False, holds_appends: bool = False) -> None:
        """Add lines, durably."""
        self._catalogue += lines

    def rewrite_catalogue(self, lines: list[bytes]) -> None:
        """Replace all lines, durably."""
        self._catalogue[:] = lines
