"""Real files for the log: appended with `write`, read through memory maps, durable by `fdatasync`.

A range inside the current map is served as a view of it, without a copy; short ranges at a growing tail are read, and
only a long one maps the file again. Views keep their map alive, so they outlive `close`, `unlink` and a new map.
"""

from __future__ import annotations

import errno
import mmap
import os
import shutil
from collections.abc import Sequence
from threading import Lock

from partita.log.storage import StorageError, StorageFull
from partita.protocol.primitives import Buffer

_READ_BYTES = 64 << 10
"""Up to here a read copies instead of mapping a file that has grown."""
_FREE_CHECK_BYTES = 16 << 20
_CHUNKS_AT_ONCE = 1024
"""More the kernel refuses to take in one call (IOV_MAX)."""
_FULL = {errno.ENOSPC, errno.EDQUOT}


class DiskFile:
    """One file, opened when it is first used."""

    __slots__ = ("_fd", "_map", "_path", "_size", "_storage", "_sync_lock", "_view")

    def __init__(self, storage: DiskStorage, path: str, size: int) -> None:
        self._storage = storage
        self._path = path
        self._size = size
        self._fd = -1
        self._sync_lock = Lock()
        self._map: mmap.mmap | None = None
        self._view = memoryview(b"")

    def size(self) -> int:
        """Bytes in the file."""
        return self._size

    def append(self, chunks: Sequence[Buffer]) -> None:
        """Write all chunks at the end, or leave the file as long as it was and raise StorageError."""
        total = sum(len(chunk) for chunk in chunks)
        self._storage.take_room(total, self._path)
        if len(chunks) > _CHUNKS_AT_ONCE:
            chunks = [b"".join(chunks)]
        try:
            written = os.pwritev(self._open(), chunks, self._size)
            if written != total:
                self._write_rest(b"".join(chunks)[written:], self._size + written)
        except OSError as error:
            self._undo_append()
            raise _storage_error(error, self._path) from error
        self._size += total

    def _write_rest(self, rest: bytes, position: int) -> None:
        while rest:
            written = os.pwrite(self._open(), rest, position)
            rest, position = rest[written:], position + written

    def _undo_append(self) -> None:
        try:
            if self._fd >= 0 and os.fstat(self._fd).st_size > self._size:
                os.ftruncate(self._fd, self._size)
        except OSError as error:
            raise StorageError(f"{self._path}: cannot take back a failed append: {error}") from error

    def read_at(self, position: int, size: int) -> memoryview:
        """A view of the map where it reaches that far, else a copy or a new map."""
        end = min(position + size, self._size)
        if end <= len(self._view):
            return self._view[position:end] if end > position else memoryview(b"")
        try:
            if end - position <= _READ_BYTES:
                return memoryview(os.pread(self._open(), end - position, position))
            return self._map_again()[position:end]
        except OSError as error:
            raise _storage_error(error, self._path) from error

    def _map_again(self) -> memoryview:
        self._map = mmap.mmap(self._open(), self._size, prot=mmap.PROT_READ)
        self._view = memoryview(self._map)
        return self._view

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes; views of what is cut stay valid."""
        if size >= self._size:
            return
        try:
            if size < len(self._view):
                self._replace_by_copy(size)
            else:
                os.ftruncate(self._open(), size)
        except OSError as error:
            raise _storage_error(error, self._path) from error
        self._size = size

    def _replace_by_copy(self, size: int) -> None:
        """Leave the mapped file as it is: cutting it would take pages away from under views in use."""
        kept = self._view[:size]
        with open(self._path + ".tmp", "wb") as copy:
            copy.write(kept)
            copy.flush()
            os.fdatasync(copy.fileno())
        os.rename(self._path + ".tmp", self._path)
        self.close()

    def sync(self) -> None:
        """May be called on another thread; a file that is gone needs no sync."""
        with self._sync_lock:
            try:
                if self._fd < 0 and not os.path.exists(self._path):
                    return
                os.fdatasync(self._open())
            except OSError as error:
                raise _storage_error(error, self._path) from error

    def close(self) -> None:
        """Give back the descriptor and the map."""
        if self._fd >= 0:
            with self._sync_lock:
                os.close(self._fd)
                self._fd = -1
        self._map = None
        self._view = memoryview(b"")

    def _open(self) -> int:
        if self._fd < 0:
            try:
                self._fd = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
            except OSError as error:
                raise _storage_error(error, self._path) from error
        return self._fd


class DiskStorage:
    """Files below `root`. Appends are refused while less than `reserve_bytes` of the disk would be left (D8)."""

    def __init__(self, root: str, *, reserve_bytes: int = 16 << 20) -> None:
        self.root = os.path.abspath(root)
        self._reserve_bytes = reserve_bytes
        self._room = 0

    def take_room(self, size: int, path: str) -> None:
        """Count `size` bytes against the free space last seen; look again every 16 MiB."""
        self._room -= size
        if self._room < 0:
            found = os.statvfs(self.root)
            free = found.f_bavail * found.f_frsize - self._reserve_bytes
            if free < size:
                self._room = 0
                raise StorageFull(f"{path}: the disk has no room for {size} bytes beside a reserve")
            self._room = min(free, _FREE_CHECK_BYTES + size) - size

    def open(self, name: str, *, create: bool = False) -> DiskFile:
        """Open a file, or create an empty one."""
        path = self._path(name)
        try:
            if create and not os.path.exists(path):
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644))
            return DiskFile(self, path, os.stat(path).st_size)
        except OSError as error:
            raise _storage_error(error, path) from error

    def list(self, directory: str) -> list[str]:
        """Names directly inside, sorted; empty when there is no such directory."""
        try:
            return sorted(os.listdir(self._path(directory)))
        except FileNotFoundError:
            return []

    def make_dir(self, directory: str) -> None:
        """Make a directory and its parents, durably."""
        path = self._path(directory)
        if not os.path.isdir(path):
            parent = os.path.dirname(directory)
            if parent:
                self.make_dir(parent)
            try:
                os.mkdir(path, 0o755)
            except OSError as error:
                raise _storage_error(error, path) from error
            self.sync_dir(parent)

    def remove_dir(self, directory: str) -> None:
        """Remove a directory with all that is in it."""
        shutil.rmtree(self._path(directory), ignore_errors=True)

    def rename(self, old: str, new: str) -> None:
        """Rename a file or directory, replacing a file named `new`."""
        try:
            os.replace(self._path(old), self._path(new))
        except OSError as error:
            raise _storage_error(error, self._path(old)) from error

    def unlink(self, name: str) -> None:
        """Remove one file."""
        try:
            os.unlink(self._path(name))
        except OSError as error:
            raise _storage_error(error, self._path(name)) from error

    def sync_dir(self, directory: str) -> None:
        """Make the name changes in a directory durable."""
        path = self._path(directory)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        except OSError as error:
            raise _storage_error(error, path) from error

    def _path(self, name: str) -> str:
        return os.path.join(self.root, name.lstrip("/"))


def _storage_error(error: OSError, path: str) -> StorageError:
    kind = StorageFull if error.errno in _FULL else StorageError
    return kind(f"{path}: {error.strerror or error}")
