"""What a broker keeps, on disk in a locked and versioned directory, or in this process.

format (version), lock (held by one process, with its id in it), clean (mark of an orderly stop), catalogue (lines with
a checksum each), topics/<topic id>/<partition>/ (logs). The lock dies with its process, so a stale one is no hindrance.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from typing import TYPE_CHECKING
from zlib import crc32

from partita.broker.config import TopicConfig
from partita.broker.storage.disk_storage import DiskStorage
from partita.broker.storage.log_settings import log_config
from partita.broker.storage.memory import fresh_block
from partita.log.durability import Durability
from partita.log.storage import MemoryStorage, Storage, StorageError, read_file, replace_file
from partita.system_clock import SystemClock

if TYPE_CHECKING:
    from partita.log.partition_log import PartitionLog

FORMAT_VERSION = 1
_FORMAT_TITLE = "partita data directory, format"
_FORMAT, _LOCK, _CLEAN, _CATALOGUE, _TOPICS = "format", "lock", "clean", "catalogue", "topics"
_DELETED_SUFFIX = ".deleted"
_SURVIVES = {
    Durability.MEMORY: "kept in memory, gone when the broker stops",
    Durability.OS: "durability os: survives a kill of the broker; a power loss may take the last second",
    Durability.SYNC: "durability sync: survives a power loss",
}


class DataDirectoryError(Exception):
    """A directory that cannot be used; the message is one line for whoever started the broker."""


class _LogStore:
    """The logs of a store."""

    def __init__(self, storage: Storage, durability: Durability) -> None:
        self._storage = storage
        self._configs: dict[str, TopicConfig] = {}
        self._clock = SystemClock()
        self.durability = durability
        self.unclean = False
        self.logs: dict[str, PartitionLog] = {}
        self.on_opened: Callable[[PartitionLog], None] | None = None

    def open_log(self, topic_id: bytes, partition: int, config: TopicConfig) -> PartitionLog:
        """Open the log of one partition, making it when it is new. Called once per partition."""
        # Imported with the first log: a broker starts without.
        from partita.log.partition_log import PartitionLog

        directory = f"{_TOPICS}/{topic_id.hex()}/{partition}"
        log = PartitionLog.open(
            self._storage,
            directory,
            log_config(config),
            durability=self.durability,
            was_clean=not self.unclean,
            wall_ms=self._clock.now().wall_ms,
        )
        self.logs[directory] = log
        self._configs[directory] = config
        if self.on_opened is not None:
            self.on_opened(log)
        return log

    def has_log(self, topic_id: bytes, partition: int) -> bool:
        """Whether anything was ever written for the partition."""
        return str(partition) in self._storage.list(f"{_TOPICS}/{topic_id.hex()}")

    def delete_log(self, topic_id: bytes, partition: int) -> None:
        """Forget one partition's data; its log is closed already."""
        directory = f"{_TOPICS}/{topic_id.hex()}/{partition}"
        self.logs.pop(directory, None)
        self._configs.pop(directory, None)
        self._storage.remove_dir(directory)

    def refresh_configs(self) -> None:
        """Let every open log obey its topic's settings of now."""
        for directory, log in self.logs.items():
            log.config = log_config(self._configs[directory])


class MemoryStore(_LogStore):
    """Everything in this process; nothing is left when it ends."""

    description = _SURVIVES[Durability.MEMORY]
    root = "memory"

    def __init__(self) -> None:
        super().__init__(MemoryStorage(fresh_block), Durability.MEMORY)
        self._catalogue: list[bytes] = []

    def read_catalogue(self) -> list[bytes]:
        """All lines so far."""
        return list(self._catalogue)

    def append_catalogue(self, line: bytes) -> None:
        """Add one line."""
        self._catalogue.append(line)

    def rewrite_catalogue(self, lines: list[bytes]) -> None:
        """Replace all lines."""
        self._catalogue = list(lines)

    def volume_bytes(self) -> tuple[int, int]:
        """There is no volume."""
        return -1, -1

    def close(self) -> None:
        """Forget every log."""
        self.logs.clear()
        self._configs.clear()


class DiskStore(_LogStore):
    """A data directory, held by this process alone. Raises DataDirectoryError with one line when it cannot be used."""

    def __init__(self, root: str, durability: Durability = Durability.OS, *, reserve_bytes: int = 16 << 20) -> None:
        self.root = os.path.abspath(root)
        self.description = f"{self.root}, {_SURVIVES[durability]}"
        disk = DiskStorage(self.root, reserve_bytes=reserve_bytes)
        super().__init__(disk, durability)
        try:
            is_new = self._check_format()
            os.makedirs(self.root, exist_ok=True)
            self._lock = _take_lock(self.root)
            self._begin(is_new)
        except OSError as error:
            raise DataDirectoryError(f"data directory {self.root}: {error.strerror or error}") from error
        except StorageError as error:
            raise DataDirectoryError(f"data directory: {error}") from error

    def _check_format(self) -> bool:
        """Whether the directory is new. Nothing is changed, least of all in one of a newer format (D12)."""
        if not os.path.isdir(self.root):
            return True
        names = [name for name in os.listdir(self.root) if name not in (_LOCK, "lost+found", f"{_FORMAT}.tmp")]
        if not names:
            return True
        if _FORMAT not in names:
            raise DataDirectoryError(f"{self.root} is neither empty nor a Partita data directory; choose another one")
        with open(os.path.join(self.root, _FORMAT), encoding="ascii", errors="replace") as file:
            title, _, version = file.read().strip().rpartition(" ")
        if title != _FORMAT_TITLE or not version.isdigit():
            raise DataDirectoryError(f"{self.root}/{_FORMAT} does not say a Partita format; choose another directory")
        if int(version) > FORMAT_VERSION:
            raise DataDirectoryError(
                f"{self.root} has format {version}, written by a newer Partita; this one reads up to {FORMAT_VERSION}"
            )
        return False

    def _begin(self, is_new: bool) -> None:
        if is_new:
            replace_file(self._storage, "", _FORMAT, f"{_FORMAT_TITLE} {FORMAT_VERSION}\n".encode())
        names = self._storage.list("")
        self.unclean = _CATALOGUE in names and _CLEAN not in names
        if _CLEAN in names:
            # Before anything else is written: from here on the next start must check.
            self._storage.unlink(_CLEAN)
            self._storage.sync_dir("")
        self._storage.make_dir(_TOPICS)
        for name in self._storage.list(_TOPICS):
            if name.endswith(_DELETED_SUFFIX):
                self._storage.remove_dir(f"{_TOPICS}/{name}")

    def read_catalogue(self) -> list[bytes]:
        """All whole lines, oldest first; a torn tail is cut off."""
        content = read_file(self._storage, "", _CATALOGUE)
        if content is None:
            self._storage.open(_CATALOGUE, create=True)
            self._storage.sync_dir("")
            return []
        lines: list[bytes] = []
        valid_bytes = 0
        for raw in bytes(content).splitlines(keepends=True):
            crc, _, line = raw.rstrip(b"\n").partition(b" ")
            if not raw.endswith(b"\n") or crc != _crc(line):
                break
            lines.append(line)
            valid_bytes += len(raw)
        if valid_bytes < len(content):
            file = self._storage.open(_CATALOGUE)
            file.truncate(valid_bytes)
            file.sync()
            file.close()
        return lines

    def append_catalogue(self, line: bytes) -> None:
        """Add one line (given without line end); it is durable when this returns."""
        file = self._storage.open(_CATALOGUE, create=True)
        file.append([_crc(line), b" ", line, b"\n"])
        file.sync()
        file.close()

    def rewrite_catalogue(self, lines: list[bytes]) -> None:
        """Replace the whole catalogue, all or nothing."""
        replace_file(self._storage, "", _CATALOGUE, b"".join(b"%s %s\n" % (_crc(line), line) for line in lines))

    def delete_log(self, topic_id: bytes, partition: int) -> None:
        """Forget one partition's data; its log is closed already. A crash on the way is finished by the next start."""
        directory = f"{_TOPICS}/{topic_id.hex()}/{partition}"
        self.logs.pop(directory, None)
        self._configs.pop(directory, None)
        if str(partition) in self._storage.list(f"{_TOPICS}/{topic_id.hex()}"):
            gone = f"{_TOPICS}/{topic_id.hex()}-{partition}{_DELETED_SUFFIX}"
            self._storage.rename(directory, gone)
            self._storage.sync_dir(_TOPICS)
            self._storage.remove_dir(gone)
        if not self._storage.list(f"{_TOPICS}/{topic_id.hex()}"):
            self._storage.remove_dir(f"{_TOPICS}/{topic_id.hex()}")

    def volume_bytes(self) -> tuple[int, int]:
        """How large the volume is and how much of it can still be used."""
        volume = os.statvfs(self.root)
        return volume.f_frsize * volume.f_blocks, volume.f_frsize * volume.f_bavail

    def close(self) -> None:
        """Leave a clean-stop mark, unless a log has failed, and release the lock; the logs are closed already."""
        if all(log.failure is None for log in self.logs.values()):
            replace_file(self._storage, "", _CLEAN, b"stopped in order\n")
        os.close(self._lock)


def _take_lock(root: str) -> int:
    """Lock the directory for this process, and say so in the lock file (D9)."""
    lock = os.open(os.path.join(root, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        owner = os.pread(lock, 32, 0).decode("ascii", "replace").strip() or "another one"
        os.close(lock)
        raise DataDirectoryError(f"{root} is in use by process {owner}; stop it or choose another directory") from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    return lock


def _crc(line: bytes) -> bytes:
    return b"%08x" % crc32(line)
