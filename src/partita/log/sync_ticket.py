"""One sync of a log: the chores it runs in order, then the sync of the last file.

It runs on another thread than the log, so a chore takes what it needs when it is made, and never looks at the log: by
the time it runs the log has gone on. A chore that found the disk full is run again, so each may be repeated.
"""

from __future__ import annotations

from contextlib import suppress

from partita.log.producer_state import ProducerStates
from partita.log.recovery import Chore, base_offsets
from partita.log.segment import Segment, file_name
from partita.log.snapshots import PRODUCERS_SUFFIX, STATE_NAME, PartitionState, encode_producers, encode_state
from partita.log.storage import File, Storage, StorageError, StorageFull, replace_file

_SNAPSHOTS_KEPT = 2
"""The newest may be damaged by the crash that makes it needed; then the one before it is read, and more is replayed."""


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
        # Until it has run: what fails before it, a chore of the store or another log's sync, leaves it unsynced.
        self.error: StorageError | None = StorageError("the sync did not take place")

    def run(self) -> None:
        """Run the chores and sync the file; a failure is stored in `error`."""
        try:
            # A full disk postpones one chore and not those behind it: removing old segments may be what makes room.
            for chore in self.chores:
                try:
                    chore()
                except StorageFull:
                    self.postponed.append(chore)
            # Last, so that one flush of the device covers the names and the small files, too.
            self._file.sync()
            self.error = None
        except StorageError as error:
            self.error = error


def sealing(storage: Storage, directory: str, sealed: Segment, save_snapshots: Chore) -> Chore:
    """Return the chore that makes a sealed segment and the name of its successor durable.

    On a full disk it skips the index and the snapshots: start-up rebuilds them from the batches.
    """

    def seal() -> None:
        # The index vouches for the data, so it comes last: one that is there proves that data and name are durable.
        sealed.file.sync()
        storage.sync_dir(directory)
        with suppress(StorageFull):
            sealed.write_index()
            save_snapshots()

    return seal


def removing(storage: Storage, directory: str, gone: list[Segment], save_state: Chore) -> Chore:
    """Return the chore that removes the files of dropped segments, oldest first.

    It stores the log start offset first: a crash in between leaves files that start-up removes. If the disk is too full
    for that, it deletes the files one by one, each durably, until there is room.
    """
    left = list(gone)  # a chore that is run again goes on where it stopped

    def remove() -> None:
        while True:
            try:
                save_state()
                break
            except StorageFull:
                if not left:
                    raise
                # Without room for the new log start, the oldest files go first and one by one. A crash then leaves a
                # log that begins later than its state says, which recovery takes for what it is.
                left.pop(0).delete()
                storage.sync_dir(directory)
        while left:
            left.pop(0).delete()
        storage.sync_dir(directory)

    return remove


def saving(storage: Storage, directory: str, state: PartitionState) -> Chore:
    """Return the chore that writes the state as it is now."""
    content = encode_state(state)
    return lambda: replace_file(storage, directory, STATE_NAME, content)


def saving_all(
    storage: Storage, directory: str, save_state: Chore, producers: ProducerStates, log_end_offset: int
) -> Chore:
    """Return the chore that writes the state and the producers as they are now, and removes older snapshots."""
    name = file_name(log_end_offset, PRODUCERS_SUFFIX)
    content = encode_producers(producers, log_end_offset)

    def save() -> None:
        save_state()
        replace_file(storage, directory, name, content)
        known = base_offsets(storage.list(directory), PRODUCERS_SUFFIX)
        for base in known[:-_SNAPSHOTS_KEPT]:
            storage.unlink(f"{directory}/{file_name(base, PRODUCERS_SUFFIX)}")

    return save
