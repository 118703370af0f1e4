"""A broker's data on disk, in a locked and versioned directory.

format (version), lock (held by one process, with its id in it), clean (mark of an orderly stop), handover (state of the
coordinators at that stop), ends (where each log ended at that stop), copied (mark of a copy of a running broker),
catalogue (lines with a checksum each), topics/<topic id>/topic (the catalogue's line about it),
topics/<topic id>/<partition>/ (logs), topics/<topic id>.deleted (a deletion for whose line there was no room).
The lock dies with its process, so a stale one is no hindrance.
Directories are 0700 and files 0600.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from partita.broker.storage.catalogue_file import (
    CATALOGUE,
    DELETED_SUFFIX,
    DESCRIPTION,
    TOPICS,
    buried_by,
    buried_topics,
    decode,
    decode_ends,
    deleted_line,
    encode,
    encode_ends,
    forgotten_topics,
    grave,
    line_of_folder,
    repaired,
    topic_folders,
)
from partita.broker.storage.disk_storage import DiskStorage
from partita.broker.storage.log_store import LogStore
from partita.lazy import later
from partita.log.log_config import Durability
from partita.log.storage import StorageError, StorageFull, read_file, replace_file

if TYPE_CHECKING:
    import fcntl

    from partita.broker.storage import unclean
else:
    fcntl = later("fcntl")
    unclean = later("partita.broker.storage.unclean")


log = logging.getLogger("partita.broker")

FORMAT_VERSION = 1
_FORMAT_TITLE = "partita data directory, format"
FORMAT, LOCK, CLEAN, HANDOVER = "format", "lock", "clean", "handover"
ENDS = "ends"
COPIED = "copied"
"""Says of a copy of a running broker, for good, when that one had its logs end here."""
_SURVIVES = {
    Durability.OS: "durability os: survives a kill of the broker; a power loss may take the last second",
    Durability.SYNC: "durability sync: survives a power loss",
}
_DIR_MODE, _FILE_MODE = 0o700, 0o600
_RESERVE_BYTES = 16 << 20
"""Bytes of the volume that logs of data leave free (D8)."""
_GROUP_LOG_RESERVE_BYTES = 1 << 20
"""Bytes of the data's reserve that the group log leaves free, for the small files of a start and a stop."""
_RESERVE_SHARE = 4
"""The reserve is at most a quarter of the volume, so that a small volume can be used at all."""


_WAY_OUT = "make it readable and writable, or restore it from a copy, and start again"


class DataDirectoryError(Exception):
    """A directory that cannot be used; the message is one line for the user who starts the broker."""


class DiskStore(LogStore):
    """A data directory, held by this process alone. Raises DataDirectoryError with one line when it cannot be used.

    Logs of data leave 16 MiB of the volume free, at most a quarter of it. The group log may use that reserve
    but for its last MiB, which the small files of a start and a stop may use (D8).
    """

    def __init__(self, root: str, durability: Durability = Durability.OS) -> None:
        if os.name != "posix":
            raise DataDirectoryError("a data directory needs Linux or macOS; start the broker in memory (--memory)")
        self.root = os.path.abspath(root)
        self.description = f"{self.root}, {_SURVIVES[durability]}"
        try:
            is_new = self._check_format()
            os.makedirs(self.root, mode=_DIR_MODE, exist_ok=True)
            with suppress(PermissionError):
                os.chmod(self.root, _DIR_MODE)
            self._lock = _take_lock(self.root)
            volume = os.statvfs(self.root)
            reserve_bytes = min(_RESERVE_BYTES, volume.f_frsize * volume.f_blocks // _RESERVE_SHARE)
            self._small = DiskStorage(self.root, reserve_bytes=0)
            self._groups = self._small.with_reserve(min(_GROUP_LOG_RESERVE_BYTES, reserve_bytes))
            self._data = self._small.with_reserve(reserve_bytes)
            super().__init__(self._data, self._groups, durability)
            self._begin(is_new)
        except OSError as error:
            raise DataDirectoryError(f"data directory: {_told(error, self.root)}; {_WAY_OUT}") from error
        except StorageError as error:
            raise DataDirectoryError(f"data directory: {error}; {_WAY_OUT}") from error

    def _check_format(self) -> bool:
        """Whether the directory is new. Nothing is changed, least of all in one of a newer format (D12)."""
        if not os.path.isdir(self.root):
            return True
        names = [name for name in os.listdir(self.root) if name not in (LOCK, "lost+found", f"{FORMAT}.tmp")]
        if not names:
            return True
        if FORMAT not in names and TOPICS in names:
            raise DataDirectoryError(
                f"{self.root}/{FORMAT} is missing; `partita doctor --repair {self.root}` writes it again"
            )
        if FORMAT not in names:
            raise DataDirectoryError(f"{self.root} is neither empty nor a Partita data directory; choose another one")
        with open(os.path.join(self.root, FORMAT), encoding="ascii", errors="replace") as file:
            title, _, version = file.read().strip().rpartition(" ")
        if title != _FORMAT_TITLE or not version.isdigit():
            raise DataDirectoryError(f"{self.root}/{FORMAT} does not say a Partita format; choose another directory")
        if int(version) > FORMAT_VERSION:
            raise DataDirectoryError(
                f"{self.root} has format {version}, written by a newer Partita; this one reads up to {FORMAT_VERSION}"
            )
        return False

    def _begin(self, is_new: bool) -> None:
        if is_new:
            replace_file(self._small, "", FORMAT, f"{_FORMAT_TITLE} {FORMAT_VERSION}\n".encode())
        names = self._small.list("")
        self._was_clean = CLEAN in names
        self.unclean = CATALOGUE in names and not self._was_clean
        self._owed: list[bytes] = []
        self._graves: list[str] = []
        # Of an unclean stop nobody knows what was synced.
        self._lines_written, self._lines_durable = int(self.unclean), 0
        if self._was_clean:
            # Before anything else is written: from here on the next start must check.
            self._small.unlink(CLEAN)
            self._small.sync_dir("")
            self.handover = self._read_handover()
        if HANDOVER in names:
            self._small.unlink(HANDOVER)
        if ENDS in names:
            self._ends = decode_ends(bytes(read_file(self._small, "", ENDS) or b""))
        if COPIED in names:
            self.copied_ms = int(bytes(read_file(self._small, "", COPIED) or b"-1"))
        self._small.make_dir(TOPICS)
        self._finish_deletions()
        if self.unclean:
            self.counters["unclean_starts"] += 1
            log.warning("%s was not closed in order; logs are checked when they are opened", self.root)
            self.notice("unclean start", directory=self.root)
            if self.durability is Durability.SYNC:
                unclean.sync_unclean_logs(self._small, at_once=self._at_once)

    def _finish_deletions(self) -> None:
        """Remove remains of deletions; graves only if an orderly stop wrote the catalogue without their topics."""
        for name in self._small.list(TOPICS):
            topic_id = buried_by(name)
            if topic_id is None and name.endswith(DELETED_SUFFIX):
                self._small.remove_dir(f"{TOPICS}/{name}")
            elif topic_id is not None and self._was_clean:
                self._small.remove_dir(f"{TOPICS}/{topic_id}")
                self._small.unlink(f"{TOPICS}/{name}")

    def _read_handover(self) -> bytes | None:
        content = read_file(self._small, "", HANDOVER)
        if content is None:
            return None
        lines = decode(bytes(content)).good
        return lines[0] if lines else b""

    def read_catalogue(self) -> list[bytes]:
        """All good lines, oldest first; an incomplete last one is cut off. Raises DataDirectoryError on damage.

        A topic that has a folder and no line is restored from its folder, and said so.
        """
        content = read_file(self._small, "", CATALOGUE)
        if content is None:
            if topic_folders(self._small):
                raise self._refused("is missing, but there are topic folders")
            self._small.open(CATALOGUE, create=True)
            self._small.sync_dir("")
            return []
        found = decode(bytes(content))
        if found.bad:
            raise self._refused(f"is damaged in line {', '.join(map(str, found.bad))}")
        if found.torn and self._was_clean and bytes(content).endswith(b"\n"):
            # A whole line that an orderly stop has written is no torn tail.
            raise self._refused(f"is damaged in line {len(found.good) + 1}")
        if not found.good and topic_folders(self._small):
            raise self._refused("is empty, but there are topic folders")
        if found.torn:
            self._cut_catalogue(found.valid_bytes, found.torn)
        lines = found.good + self._forgotten(found.good)
        return lines + self._buried(lines)

    def _refused(self, what: str) -> DataDirectoryError:
        os.close(self._lock)
        return DataDirectoryError(
            f"{os.path.join(self.root, CATALOGUE)} {what}; `partita doctor --repair {self.root}` rebuilds it"
        )

    def _cut_catalogue(self, valid_bytes: int, torn: int) -> None:
        log.warning("the last line of %s/%s was incomplete; %d bytes were cut off", self.root, CATALOGUE, torn)
        self.notice("catalogue cut", bytes_cut=torn)
        file = self._small.open(CATALOGUE)
        file.truncate(valid_bytes)
        file.sync()
        file.close()

    def _buried(self, lines: list[bytes]) -> list[bytes]:
        """The lines of deletions that found no room before."""
        topic_ids = buried_topics(self._small, lines)
        deleted = [deleted_line(topic_id) for topic_id in topic_ids]
        if deleted:
            # A kill may have left the graves unsynced, and the data goes next.
            self._graves = [grave(topic_id) for topic_id in topic_ids]
            self.later(self.sync_catalogue)
            self.append_catalogue(*deleted, may_wait=True)
        return deleted

    def _forgotten(self, lines: list[bytes]) -> list[bytes]:
        restored = []
        for topic_id in forgotten_topics(self._small, lines):
            line = line_of_folder(self._small, topic_id)
            if line is None:
                log.warning("%s/%s/%s belongs to no topic of the catalogue", self.root, TOPICS, topic_id)
                self.notice("topic folder without a topic", topic_id=topic_id)
            else:
                log.warning("%s/%s: topic %s was restored from its folder", self.root, CATALOGUE, topic_id)
                self.notice("topic restored", topic_id=topic_id)
                self.append_catalogue(line, may_wait=True)
                restored.append(line)
        return restored

    def append_catalogue(self, *lines: bytes, may_wait: bool = False, holds_appends: bool = False) -> None:
        """Add lines (given without line ends) in one write; they are durable with the next sync. Raises StorageError.

        With `may_wait` a full disk is no error: the lines are written as soon as there is room, and before later lines;
        if it `holds_appends`, before logs take any append.
        """
        if self.failure is not None:
            raise StorageError(f"the log directory is offline: {self.failure}")
        try:
            self._append_catalogue([*self._owed, *lines])
            self._owe([])
        except StorageFull:
            if not may_wait:
                raise
            self._owe([*self._owed, *lines], holds_appends=holds_appends)
        except StorageError as error:
            self.fail(str(error))
            raise

    def _append_catalogue(self, lines: list[bytes]) -> None:
        if lines:
            is_synced = self._lines_written == self._lines_durable
            encoded = [encode(line, is_durable_before=is_synced and not i) for i, line in enumerate(lines)]
            file = self._small.open(CATALOGUE, create=True)
            try:
                file.append(encoded)
            finally:
                file.close()
            self._lines_written += len(lines)
            self.later(self.sync_catalogue)

    def sync_catalogue(self) -> None:
        """Return once every line and every grave so far is durable. Raises StorageError, also where there is no room.

        Data of deleted topics goes after it, so it is not put off as other chores are.
        """
        written, has_graves = self._lines_written, bool(self._graves)
        try:
            file = self._small.open(CATALOGUE)
            try:
                file.sync()
            finally:
                file.close()
            if has_graves:
                self._small.sync_dir(TOPICS)
        except StorageFull as error:
            raise StorageError(str(error)) from error
        self._lines_durable = max(self._lines_durable, written)

    def bury(self, topic_ids: Iterable[bytes], lines: Iterable[bytes]) -> None:
        """Say that these topics are deleted by what needs no room: names of empty files. Durable with the next sync.

        The lines that say it are written as soon as there is room, and before later lines. Raises StorageError; then
        none is said to be deleted.
        """
        dug: list[str] = []
        try:
            for topic_id in topic_ids:
                self._small.open(grave(topic_id.hex()), create=True)
                dug.append(grave(topic_id.hex()))
        except StorageError as error:
            self.note_error(error)
            for name in dug:
                with suppress(StorageError):
                    self._small.unlink(name)
            raise
        self._graves += dug
        self._owe([*self._owed, *lines])
        self.later(self.sync_catalogue)

    def _owe(self, lines: list[bytes], *, holds_appends: bool = False) -> None:
        self._owed = lines
        if not lines and self._graves:
            # After the sync of the lines, which is a chore already.
            graves, self._graves = self._graves, []
            self.later(partial(self._level, graves))
        for storage in (self._data, self._groups):
            if holds_appends or not lines:
                storage.before_append = self._pay if lines else None

    def _level(self, graves: list[str]) -> None:
        """Remove graves whose lines are durable."""
        for name in graves:
            self._small.unlink(name)

    def _pay(self) -> None:
        """Write the lines that found no room; until then no log takes an append. Raises StorageFull."""
        self.append_catalogue()

    def rewrite_catalogue(self, lines: list[bytes]) -> None:
        """Replace the whole catalogue, all or nothing. On a full disk the longer one stays."""
        with suppress(StorageFull):
            replace_file(self._small, "", CATALOGUE, b"".join(map(encode, lines)))
            self._owe([])

    def _remove(self, topic_id: str, partition: int) -> None:
        """Remove one partition's folder, and the topic's with the last one. The next start finishes the rest."""
        folder = f"{TOPICS}/{topic_id}"
        names = self._small.list(folder)
        if DESCRIPTION in names:
            # First of all: a folder that does not say its name is not taken for a forgotten topic.
            self._small.unlink(f"{folder}/{DESCRIPTION}")
            self._small.sync_dir(folder)
            names.remove(DESCRIPTION)
        if str(partition) in names:
            gone = f"{TOPICS}/{topic_id}-{partition}{DELETED_SUFFIX}"
            self._small.rename(f"{folder}/{partition}", gone)
            self._small.sync_dir(TOPICS)
            self._small.remove_dir(gone)
        if not any(name.isdigit() for name in self._small.list(folder)):
            self._small.remove_dir(folder)
            self._small.sync_dir(TOPICS)

    def volume_bytes(self) -> tuple[int, int]:
        """Size and free space of the volume."""
        volume = os.statvfs(self.root)
        return volume.f_frsize * volume.f_blocks, volume.f_frsize * volume.f_bavail

    def has_room_for_groups(self, size: int) -> bool:
        """Whether the group log may grow by so many bytes. Raises StorageError."""
        return self._groups.has_room(size)

    def check(self) -> None:
        """Take the directory offline when it has been removed. (B12)"""
        if self.failure is None and os.fstat(self._lock).st_nlink == 0:
            self.fail(f"{self.root} was removed while it was in use")

    def settle(self) -> None:
        """Write the lines of the catalogue that found no room, if there is some now."""
        if self._owed and self.failure is None:
            with suppress(StorageError):
                self._pay()

    def close(self) -> None:
        """Leave a clean-stop mark, unless a log has failed, and release the lock; the logs are closed already.

        On a disk too full for the coordinators' state there is no mark either.
        """
        try:
            if self.failure is None and not self._owed:
                self._leave_mark()
        except StorageError as error:
            self.note_error(error)
        finally:
            os.close(self._lock)

    def _leave_mark(self) -> None:
        if self.handover is not None:
            replace_file(self._small, "", HANDOVER, encode(self.handover))
        ends = self._ends | {folder: opened.log_end_offset for folder, opened in self.logs.items()}
        with suppress(StorageFull):
            # Those of an earlier stop stay true.
            replace_file(self._small, "", ENDS, encode_ends(ends))
        replace_file(self._small, "", CLEAN, b"stopped in order\n")


def repair(root: str) -> list[str]:
    """Rebuild the catalogue of a data directory that no broker uses; return the repairs, one sentence each.

    The old catalogue stays beside it as "catalogue.damaged". An empty list: nothing was wrong, nothing was changed.
    Raises DataDirectoryError.
    """
    root = os.path.abspath(root)
    has_format = os.path.exists(os.path.join(root, FORMAT))
    if not has_format and not os.path.isdir(os.path.join(root, TOPICS)):
        raise DataDirectoryError(f"{root} is no Partita data directory")
    lock = _take_lock(root)
    try:
        storage = DiskStorage(root, reserve_bytes=0)
        found = repaired(storage)
        if found.done:
            old = read_file(storage, "", CATALOGUE)
            if old is not None:
                replace_file(storage, "", f"{CATALOGUE}.damaged", old)
            replace_file(storage, "", CATALOGUE, b"".join(map(encode, found.lines)))
        if not has_format:
            replace_file(storage, "", FORMAT, f"{_FORMAT_TITLE} {FORMAT_VERSION}\n".encode())
            found.done.append(f"the file {FORMAT} was written again")
        return found.done
    except StorageError as error:
        raise DataDirectoryError(str(error)) from error
    finally:
        os.close(lock)


def _told(error: OSError, root: str) -> str:
    return f"{error.filename or root}: {error.strerror or error}"


def _take_lock(root: str) -> int:
    """Lock the directory for this process, and say so in the lock file (D9)."""
    lock = os.open(os.path.join(root, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        owner = os.pread(lock, 32, 0).decode("ascii", "replace").strip() or "another one"
        os.close(lock)
        raise DataDirectoryError(f"{root} is in use by process {owner}; stop it or choose another directory") from None
    os.ftruncate(lock, 0)
    with suppress(OSError):
        # A full disk has no room for the number; the lock holds all the same.
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    return lock
