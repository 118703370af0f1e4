"""Real files for the log: appended with `write`, read through memory maps, durable by `fdatasync`.

A range inside the current map is served as a view of it, without a copy; short ranges at a growing tail are read, and
only a long one maps the file again. Views keep their map alive, so they outlive `close`, `unlink` and a new map.
Every OSError leaves as a StorageError that names the file.
"""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from partita.broker.storage.open_files import OpenFiles, limit_for_logs
from partita.lazy import later
from partita.log.storage import StorageError, StorageFull, TooManyOpenFiles
from partita.protocol.primitives import Buffer

if TYPE_CHECKING:
    import fcntl
    import shutil
else:
    fcntl = later("fcntl")
    shutil = later("shutil")

_READ_BYTES = 64 << 10
"""Up to here a read copies instead of mapping a file that has grown."""
_FREE_CHECK_BYTES = 4 << 20
_CHUNKS_AT_ONCE = 1024
"""More the kernel refuses to take in one call (IOV_MAX)."""
_KINDS: dict[int, type[StorageError]] = {
    errno.ENOSPC: StorageFull,
    errno.EDQUOT: StorageFull,
    errno.EMFILE: TooManyOpenFiles,
    errno.ENFILE: TooManyOpenFiles,
}
"""Errors that do not mean a failing disk."""
_RESERVED = (".log", ".cleaned")
"""Files that must leave the reserve free; the small files beside them may use it."""
_DIR_MODE, _FILE_MODE = 0o700, 0o600


def sync_data(fd: int) -> None:
    """Return once the file's bytes are durable. macOS needs a call of its own to empty the drive's cache."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(fd)
        return
    full_sync = getattr(fcntl, "F_FULLFSYNC", None)
    if full_sync is None:
        os.fsync(fd)
        return
    try:
        fcntl.fcntl(fd, full_sync)
    except OSError:
        # Network volumes do not know it.
        os.fsync(fd)


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Turn an OSError into a StorageError that names the file."""
    try:
        yield
    except OSError as error:
        raise _storage_error(error, path) from error


class DiskFile:
    """One file, opened when it is first used."""

    __slots__ = ("_is_held", "_map", "_size", "_storage", "_view", "fd", "is_closing", "path", "users")

    def __init__(self, storage: DiskStorage, path: str, size: int) -> None:
        self._storage = storage
        self._size = size
        self._is_held = False
        self._map: mmap.mmap | None = None
        self._view = memoryview(b"")
        self.path = path
        self.fd = -1
        self.users = 0
        self.is_closing = False

    def size(self) -> int:
        """Bytes in the file."""
        return self._size

    @contextmanager
    def _opened(self) -> Iterator[int]:
        files = self._storage.files
        with _named(self.path):
            fd = files.use(self)
            try:
                yield fd
            finally:
                files.done(self)

    def append(self, chunks: Sequence[Buffer]) -> None:
        """Write all chunks at the end, or leave the file as long as it was and raise StorageError."""
        total = sum(len(chunk) for chunk in chunks)
        if self.path.endswith(_RESERVED):
            self._storage.take_room(total, self.path)
        if len(chunks) > _CHUNKS_AT_ONCE:
            chunks = [b"".join(chunks)]
        # `_opened` in full: an append is too frequent for a context manager.
        files = self._storage.files
        try:
            fd = files.use(self)
        except OSError as error:
            raise _storage_error(error, self.path) from error
        try:
            written = os.pwritev(fd, chunks, self._size)
            if written != total:
                _write_rest(fd, b"".join(chunks)[written:], self._size + written)
        except OSError as error:
            self._undo_append(fd)
            raise _storage_error(error, self.path) from error
        finally:
            files.done(self)
        self._size += total

    def _undo_append(self, fd: int) -> None:
        try:
            if os.fstat(fd).st_size > self._size:
                os.ftruncate(fd, self._size)
        except OSError as error:
            raise StorageError(f"{self.path}: cannot take back a failed append: {error}") from error

    def read_at(self, position: int, size: int) -> memoryview:
        """Return a view of the map where it reaches that far, else a copy or a new map.

        Returns fewer bytes if another process has cut the file: to touch a mapped page that is gone ends the process.
        """
        end = min(position + size, self._size)
        view, mapped = self._view, self._map
        if mapped is not None and end <= len(view):
            if end <= position:
                return memoryview(b"")
            if end <= mapped.size():
                return view[position:end]
        with self._opened() as fd:
            if end - position <= _READ_BYTES or os.fstat(fd).st_size < self._size:
                return memoryview(os.pread(fd, max(0, end - position), position))
            self._map = mmap.mmap(fd, self._size, prot=mmap.PROT_READ)
            self._view = view = memoryview(self._map)
            return view[position:end]

    def in_one_piece(self, position: int, size: int) -> int:
        """All of them: a file is mapped as a whole."""
        return size

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes; views of the removed part stay valid."""
        if size >= self._size:
            return
        if size < len(self._view):
            with _named(self.path):
                self._replace_by_copy(size)
        else:
            with self._opened() as fd:
                os.ftruncate(fd, size)
        self._size = size

    def _replace_by_copy(self, size: int) -> None:
        """Leave the mapped file as it is: cutting it would take pages away from under views in use."""
        kept = self._view[:size]
        with open(os.open(self.path + ".tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _FILE_MODE), "wb") as copy:
            copy.write(kept)
            copy.flush()
            sync_data(copy.fileno())
        os.rename(self.path + ".tmp", self.path)
        self.close()

    def sync(self) -> None:
        """Return once every byte is durable. May be called on another thread.

        A file that was removed from its folder by another process is an error: later appends to it are lost.
        """
        with self._opened() as fd:
            if not self._is_held and os.fstat(fd).st_nlink == 0:
                raise StorageError(f"{self.path}: the file was removed while it was in use")
            sync_data(fd)

    def hold(self) -> None:
        """Keep reading these very bytes, even when another file takes the name, until `close`."""
        if not self._is_held:
            with _named(self.path):
                self._storage.files.use(self)
            self._is_held = True

    def close(self) -> None:
        """Give back the descriptor and the map."""
        if self._is_held:
            self._is_held = False
            self._storage.files.done(self)
        self._storage.files.close(self)

    def forget_map(self) -> None:
        """Let the map go as soon as no view of it is in use."""
        self._map = None
        self._view = memoryview(b"")


class DiskStorage:
    """Files below `root`. Appends to logs are refused while less than `reserve_bytes` would be left (D8)."""

    def __init__(self, root: str, *, reserve_bytes: int = 16 << 20, files: OpenFiles | None = None) -> None:
        self.root = os.path.abspath(root)
        self.files = OpenFiles(limit_for_logs()) if files is None else files
        self._reserve_bytes = reserve_bytes
        self._room = 0
        self.before_append: Callable[[], None] | None = None
        """Called before appends to logs while set; it may raise StorageFull."""

    def with_reserve(self, reserve_bytes: int) -> DiskStorage:
        """The same files, with another reserve."""
        return DiskStorage(self.root, reserve_bytes=reserve_bytes, files=self.files)

    def take_room(self, size: int, path: str) -> None:
        """Count `size` bytes against the free space last seen; look again every 4 MiB. Raises StorageFull."""
        if self.before_append is not None:
            self.before_append()
        self._room -= size
        if self._room < 0:
            free = self._free_bytes(path)
            if free < size:
                self._room = 0
                raise StorageFull(f"{path}: the disk has no room for {size} bytes beside a reserve")
            self._room = min(free, _FREE_CHECK_BYTES + size) - size

    def has_room(self, size: int) -> bool:
        """Whether an append of `size` bytes would find room now."""
        return self._room >= size or self._free_bytes(self.root) >= size

    def _free_bytes(self, path: str) -> int:
        """Return the free bytes of the volume without the reserve."""
        with _named(path):
            found = os.statvfs(self.root)
        return found.f_bavail * found.f_frsize - self._reserve_bytes

    def open(self, name: str, *, create: bool = False) -> DiskFile:
        """Open a file, or create an empty one."""
        path = self._path(name)
        with _named(path):
            if create and not os.path.exists(path):
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE))
            return DiskFile(self, path, os.stat(path).st_size)

    def list(self, directory: str) -> list[str]:
        """Names directly inside, sorted; empty when there is no such directory."""
        path = self._path(directory)
        with _named(path):
            try:
                return sorted(os.listdir(path))
            except FileNotFoundError:
                return []

    def make_dir(self, directory: str) -> Sequence[str]:
        """Make a directory and its parents; return the directories whose names have changed."""
        path = self._path(directory)
        if os.path.isdir(path):
            return []
        parent = os.path.dirname(directory)
        changed = self.make_dir(parent) if parent else []
        with _named(path):
            os.mkdir(path, _DIR_MODE)
        return [*changed, parent]

    def remove_dir(self, directory: str) -> None:
        """Remove a directory with all that is in it."""
        shutil.rmtree(self._path(directory), ignore_errors=True)

    def rename(self, old: str, new: str) -> None:
        """Rename a file or directory, replacing a file named `new`."""
        with _named(self._path(old)):
            os.replace(self._path(old), self._path(new))

    def unlink(self, name: str) -> None:
        """Remove one file."""
        with _named(self._path(name)):
            os.unlink(self._path(name))

    def sync_dir(self, directory: str) -> None:
        """Make the name changes in a directory durable."""
        path = self._path(directory)
        with _named(path):
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)

    def _path(self, name: str) -> str:
        return os.path.join(self.root, name.lstrip("/"))


def _write_rest(fd: int, rest: bytes, position: int) -> None:
    while rest:
        written = os.pwrite(fd, rest, position)
        rest, position = rest[written:], position + written


def _storage_error(error: OSError, path: str) -> StorageError:
    kind = _KINDS.get(error.errno or 0, StorageError)
    return kind(f"{path}: {error.strerror or error}")
