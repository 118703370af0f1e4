"""One sync of a log, to be run beside the thread that uses the log."""

from __future__ import annotations

from partita.log.recovery import Chore
from partita.log.storage import File, StorageError, StorageFull


class SyncTicket:
    """One sync under way: `run` may be called on another thread, everything else belongs to the log.

    `chores` are done first, in order. Those that found the disk full are left in `postponed` for the next sync.
    """

    __slots__ = ("_file", "appended_bytes", "begun_ms", "chores", "end_offset", "error", "postponed")

    def __init__(self, chores: list[Chore], file: File, end_offset: int, appended_bytes: int, begun_ms: int) -> None:
        self._file = file
        self.chores = chores
        self.postponed: list[Chore] = []
        self.end_offset = end_offset
        self.appended_bytes = appended_bytes
        self.begun_ms = begun_ms
        self.error: StorageError | None = None

    def run(self) -> None:
        """Do the chores and sync the file; a failure is kept in `error`."""
        try:
            for chore in self.chores:
                try:
                    chore()
                except StorageFull:
                    self.postponed.append(chore)
            self._file.sync()
        except StorageError as error:
            self.error = error
