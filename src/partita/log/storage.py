"""The few file operations a log needs, and files that live in memory.

Names are relative, `/`-separated, inside one root. A file is only appended to or cut; `rename` replaces it. Bytes
before the last `sync` and names before the last `sync_dir` of their directory survive a crash (faults.md 7.3). Other
implementations: `partita.broker.storage.disk_storage` (real files), and a simulated disk in the tests.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import Buffer

if TYPE_CHECKING:
    from mmap import mmap


class StorageError(Exception):
    """A file operation failed; the message names the file, and `code` is the error for clients."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class StorageFull(StorageError):
    """The disk has no room for the bytes; the file is as long as before."""


class TooManyOpenFiles(StorageError):
    """No file descriptor was left; the disk itself is fine."""


TRANSIENT = (StorageFull, TooManyOpenFiles)
"""Errors that do not mean that the disk is broken."""


class File(Protocol):
    """One open file."""

    def size(self) -> int:
        """Bytes in the file."""
        ...

    def append(self, chunks: Sequence[Buffer]) -> None:
        """Write all chunks at the end, or raise StorageError and leave the file as long as it was."""
        ...

    def read_at(self, position: int, size: int) -> memoryview:
        """Return up to `size` bytes from `position`, fewer only at the end. Views stay valid while referenced."""
        ...

    def in_one_piece(self, position: int, size: int) -> int:
        """Return how many of `size` bytes can be read without joining copies. Bytes of one append are never split."""
        ...

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes; a longer size changes nothing. Raises StorageError."""
        ...

    def sync(self) -> None:
        """Return once every byte is durable. After a failure the file must not be trusted again (D7)."""
        ...

    def hold(self) -> None:
        """Keep reading this file's bytes, even when another file takes its name, until `close`."""
        ...

    def close(self) -> None:
        """Release the file's resources; views stay valid, and a later use opens it again."""
        ...


class Storage(Protocol):
    """One root of named files."""

    def open(self, name: str, *, create: bool = False) -> File:
        """Open a file. Raises StorageError when it is missing and `create` is false."""
        ...

    def list(self, directory: str) -> list[str]:
        """Names (files and directories) directly inside, sorted; empty when there is no such directory."""
        ...

    def make_dir(self, directory: str) -> Sequence[str]:
        """Create a directory and its parents; return the directories to be synced, none if it exists."""
        ...

    def remove_dir(self, directory: str) -> None:
        """Remove the directory with its contents; a missing one is ignored."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Rename a file, replacing `new` when it exists."""
        ...

    def unlink(self, name: str) -> None:
        """Remove one file. Raises StorageError when it is missing."""
        ...

    def sync_dir(self, directory: str) -> None:
        """Return once all name changes in the directory are durable."""
        ...


def replace_file(storage: Storage, directory: str, name: str, content: Buffer) -> None:
    """Replace the content of `name` atomically: after a crash it is the old or the new one, never a mixture."""
    temporary = f"{directory}/{name}.tmp"
    write_synced(storage, temporary, content)
    storage.rename(temporary, f"{directory}/{name}")
    storage.sync_dir(directory)


def write_synced(storage: Storage, name: str, content: Buffer) -> None:
    """Write a file and sync it; its name is not."""
    file = storage.open(name, create=True)
    file.truncate(0)
    file.append([content])
    file.sync()
    file.close()


def read_file(storage: Storage, directory: str, name: str) -> memoryview | None:
    """Return the whole content, or None when there is no such file."""
    if name not in storage.list(directory):
        return None
    file = storage.open(f"{directory}/{name}")
    content = file.read_at(0, file.size())
    file.close()
    return content


Block: TypeAlias = "bytearray | mmap"
_FIRST_BLOCK_BYTES = 1 << 14
_LAST_BLOCK_BYTES = 1 << 24


class MemoryFile:
    """Bytes in blocks of growing size; an append never moves earlier bytes, so views stay valid."""

    def __init__(self, allocate: Callable[[int], Block] = bytearray) -> None:
        self._allocate = allocate
        self._blocks: list[Block] = []
        self._starts: list[int] = []
        self._used: list[int] = []
        self._size = 0

    def size(self) -> int:
        """Bytes in the file."""
        return self._size

    def append(self, chunks: Sequence[Buffer]) -> None:
        """Copy all chunks to the end."""
        total = sum(len(chunk) for chunk in chunks)
        if not self._blocks or self._used[-1] + total > len(self._blocks[-1]):
            self._add_block(total)
        block, used = self._blocks[-1], self._used[-1]
        for chunk in chunks:
            block[used : used + len(chunk)] = chunk
            used += len(chunk)
        self._used[-1] = used
        self._size += total

    def _add_block(self, at_least: int) -> None:
        grown = 2 * len(self._blocks[-1]) if self._blocks else _FIRST_BLOCK_BYTES
        self._blocks.append(self._allocate(max(at_least, min(grown, _LAST_BLOCK_BYTES))))
        self._starts.append(self._size)
        self._used.append(0)

    def read_at(self, position: int, size: int) -> memoryview:
        """Return a view of the bytes, or a copy if they lie in two blocks."""
        end = min(position + size, self._size)
        if end <= position:
            return memoryview(b"")
        first = bisect_right(self._starts, position) - 1
        start = self._starts[first]
        if end <= start + self._used[first]:
            return memoryview(self._blocks[first]).toreadonly()[position - start : end - start]
        return memoryview(b"".join(self._pieces(first, position, end)))

    def in_one_piece(self, position: int, size: int) -> int:
        """Return the number of bytes up to the end of their block."""
        first = bisect_right(self._starts, position) - 1
        return size if first < 0 else min(size, self._starts[first] + self._used[first] - position)

    def _pieces(self, first: int, position: int, end: int) -> list[memoryview]:
        pieces = []
        for i in range(first, len(self._blocks)):
            start = self._starts[i]
            if start >= end:
                break
            stop = min(end - start, self._used[i])
            pieces.append(memoryview(self._blocks[i])[max(position - start, 0) : stop])
        return pieces

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes."""
        if size >= self._size:
            return
        while self._blocks and self._starts[-1] >= size:
            del self._blocks[-1], self._starts[-1], self._used[-1]
        if self._blocks:
            kept = size - self._starts[-1]
            # Continue in a new block instead of overwriting: views of the cut bytes may still exist.
            self._blocks[-1] = bytearray(self._blocks[-1][:kept])
            self._used[-1] = kept
        self._size = size

    def sync(self) -> None:
        """Nothing to do: memory has nothing to sync."""

    def hold(self) -> None:
        """Do nothing: a file in memory keeps its bytes whatever happens to its name."""

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


class MemoryStorage:
    """Files that live as long as this object. `allocate(size)` returns a new block of that many bytes."""

    def __init__(self, allocate: Callable[[int], Block] = bytearray) -> None:
        self._allocate = allocate
        self._files: dict[str, MemoryFile] = {}
        self._names: dict[str, dict[str, None]] = {}
        """Names by directory, so that `list` need not scan all files."""

    def open(self, name: str, *, create: bool = False) -> MemoryFile:
        """Return the file itself; every user shares it."""
        file = self._files.get(name)
        if file is None:
            if not create:
                raise StorageError(f"{name}: no such file")
            file = self._files[name] = MemoryFile(self._allocate)
            self._link(name)
        return file

    def list(self, directory: str) -> list[str]:
        """Return the names directly inside, sorted."""
        return sorted(self._names.get(directory, ()))

    def make_dir(self, directory: str) -> Sequence[str]:
        """Nothing to do: directories are name prefixes."""
        return []

    def remove_dir(self, directory: str) -> None:
        """Remove every file below the directory."""
        for name in self.list(directory):
            below = f"{directory}/{name}"
            if self._files.pop(below, None) is None:
                self.remove_dir(below)
        if self._names.pop(directory, None) is not None:
            self._unlink(directory)

    def rename(self, old: str, new: str) -> None:
        """Rename a file, replacing `new` when it exists."""
        if old not in self._files:
            raise StorageError(f"{old}: no such file")
        self._files[new] = self._files.pop(old)
        self._unlink(old)
        self._link(new)

    def unlink(self, name: str) -> None:
        """Remove one file."""
        if self._files.pop(name, None) is None:
            raise StorageError(f"{name}: no such file")
        self._unlink(name)

    def _link(self, name: str) -> None:
        """Add a name to its directory, and the directory to its parent."""
        directory, _, last = name.rpartition("/")
        is_new = directory not in self._names
        self._names.setdefault(directory, {})[last] = None
        if is_new and directory:
            self._link(directory)

    def _unlink(self, name: str) -> None:
        """Remove a name, and directories that become empty."""
        directory, _, last = name.rpartition("/")
        inside = self._names.get(directory, {})
        inside.pop(last, None)
        if not inside and directory and self._names.pop(directory, None) is not None:
            self._unlink(directory)

    def sync_dir(self, directory: str) -> None:
        """Nothing to do."""
