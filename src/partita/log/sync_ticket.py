"""One sync of a log, to be run on another thread than the log."""

from __future__ import annotations

from partita.log.recovery import Chore
from partita.log.storage import File, StorageError, StorageFull


class SyncTicket:
    """One pending sync: `run` may be called on another thread, all else belongs to the log's thread.

    `chores` run first, in order. Those that found the disk full are kept in `postponed` for the next sync.
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
        """Run the chores and sync the file; a failure is stored in `error`."""
        try:
            for chore in self.chores:
                try:
                    chore()
                except StorageFull:
                    self.postponed.append(chore)
            self._file.sync()
        except StorageError as error:
            self.error = error
