"""A simulated disk: counts operations, fails or crashes on request, and says what a crash left behind.

Every write and name change waits in a journal until it is synced; `after_crash` applies a legal part of that journal,
chosen by one of the eight models of faults.md 7.3. Used by the simulator and by crash tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import pairwise

from partita.log.storage import StorageError, StorageFull
from partita.protocol.primitives import Buffer

SECTOR_BYTES = 512
_NEED_ROOM = frozenset({"append", "create", "rename"})
Choose = Callable[[int], int]


class SimulatedCrash(BaseException):  # nothing that handles errors may handle this
    """The machine stopped here; nothing after this point happened."""


class CrashModel(IntEnum):
    """What a crash leaves of the operations that were not synced."""

    NOTHING = 1
    EVERYTHING = 2
    PREFIX = 3
    TORN = 4
    SECTORS = 5
    ZEROS = 6
    NAMES = 7
    COLD_FLIP = 8


@dataclass(frozen=True, slots=True)
class _Write:
    inode: int
    position: int
    data: bytes


@dataclass(frozen=True, slots=True)
class _Truncate:
    inode: int
    size: int


@dataclass(frozen=True, slots=True)
class _Link:
    name: str
    inode: int


@dataclass(frozen=True, slots=True)
class _Unlink:
    name: str


@dataclass(frozen=True, slots=True)
class _Rename:
    old: str
    new: str


_NameChange = _Link | _Unlink | _Rename
_DataChange = _Write | _Truncate
_Change = _DataChange | _NameChange


@dataclass(slots=True)
class _Image:
    """File contents by inode, and names."""

    data: dict[int, bytearray]
    names: dict[str, int]
    listed: dict[str, list[str]] = field(default_factory=dict)
    """Directories that were listed since the last change of a name: a start lists each several times."""

    def copy(self) -> _Image:
        return _Image({inode: bytearray(data) for inode, data in self.data.items()}, dict(self.names))

    def list(self, directory: str) -> list[str]:
        if directory not in self.listed:
            prefix = f"{directory}/" if directory else ""
            inside = {name[len(prefix) :].partition("/")[0] for name in self.names if name.startswith(prefix)}
            self.listed[directory] = sorted(inside)
        return self.listed[directory].copy()

    def apply(self, change: _Change) -> None:
        if not isinstance(change, _DataChange):
            self.listed.clear()
        match change:
            case _Write(inode, position, written):
                data = self.data.setdefault(inode, bytearray())
                data.extend(bytes(max(0, position - len(data))))
                data[position : position + len(written)] = written
            case _Truncate(inode, size):
                data = self.data.setdefault(inode, bytearray())
                del data[size:]
            case _Link(name, inode):
                self.names[name] = inode
                self.data.setdefault(inode, bytearray())
            case _Unlink(name):
                self.names.pop(name, None)
            case _Rename(old, new):
                for name in [name for name in self.names if name == old or name.startswith(f"{old}/")]:
                    self.names[new + name[len(old) :]] = self.names.pop(name)


class FaultyFile:
    """One file of a FaultyStorage."""

    def __init__(self, storage: FaultyStorage, name: str, inode: int) -> None:
        self._storage = storage
        self._name = name
        self._inode = inode

    def size(self) -> int:
        return len(self._storage.live.data[self._inode])

    def append(self, chunks: Sequence[Buffer]) -> None:
        data = b"".join(chunks)
        if self._storage.before_append is not None and self._name.endswith((".log", ".cleaned")):
            self._storage.before_append()
        self._storage.step("append", self._name, room_for=len(data))
        self._storage.change(_Write(self._inode, self.size(), data))

    def in_one_piece(self, position: int, size: int) -> int:
        return size

    def read_at(self, position: int, size: int) -> memoryview:
        self._storage.reads += 1
        if self._storage.reads in self._storage.fail_reads:
            raise StorageError(f"{self._name}: injected read error")
        return memoryview(bytes(self._storage.live.data[self._inode][position : position + size]))

    def truncate(self, size: int) -> None:
        if size >= self.size():
            return
        self._storage.step("truncate", self._name)
        self._storage.change(_Truncate(self._inode, size))

    def sync(self) -> None:
        storage = self._storage
        storage.syncs += 1
        mine = [c for c in storage.journal if isinstance(c, _DataChange) and c.inode == self._inode]
        if storage.syncs in storage.fail_syncs:
            # The kernel drops the pages and reports success next time.
            storage.journal = [c for c in storage.journal if c not in mine]
            raise StorageError(f"{self._name}: injected sync error")
        storage.step("sync", self._name)
        for change in mine:
            storage.durable.apply(change)
        if mine:
            storage.journal = [
                c for c in storage.journal if not (isinstance(c, _DataChange) and c.inode == self._inode)
            ]

    def hold(self) -> None:
        """The inode is kept whatever happens to the name."""

    def close(self) -> None:
        """Nothing to give back."""


class FaultyStorage:
    """A disk in memory. `crash_at`: the number of the changing operation (from 1) that does not happen any more."""

    def __init__(self, image: _Image | None = None) -> None:
        self.live = image.copy() if image else _Image({}, {})
        self.durable = image.copy() if image else _Image({}, {})
        self.journal: list[_Change] = []
        self._next_inode = max(self.live.data, default=0) + 1
        self.operations = 0
        self.reads = 0
        self.syncs = 0
        self.crash_at: int | None = None
        self.capacity_bytes: int | None = None
        self.fail_operations: set[int] = set()
        self.fail_reads: set[int] = set()
        self.fail_syncs: set[int] = set()
        self.full_operations: set[int] | range = set()
        """Operations that need room and find none."""
        self.slow_operation = 0
        """The operation that waits until `meanwhile` has returned."""
        self.meanwhile: Callable[[], None] = lambda: None
        self.before_append: Callable[[], None] | None = None
        self.trace: list[str] = []

    def step(self, what: str, name: str, *, room_for: int = 0) -> None:
        """Count one changing operation; crash or fail when this is the one."""
        self.operations += 1
        if self.crash_at is not None and self.operations >= self.crash_at:
            raise SimulatedCrash(f"at operation {self.operations}: {what} {name}")
        if self.operations == self.slow_operation:
            self.meanwhile()
        if self.operations in self.full_operations and what in _NEED_ROOM:
            raise StorageFull(f"{name}: injected: no space left")
        if self.operations in self.fail_operations:
            raise StorageError(f"{name}: injected {what} error")
        if room_for and self.capacity_bytes is not None and self._used() + room_for > self.capacity_bytes:
            raise StorageFull(f"{name}: no space left for {room_for} bytes")
        self.trace.append(f"{what} {name}")

    def _used(self) -> int:
        return sum(len(self.live.data[inode]) for inode in set(self.live.names.values()))

    def change(self, change: _Change) -> None:
        self.live.apply(change)
        self.journal.append(change)

    def open(self, name: str, *, create: bool = False) -> FaultyFile:
        name = name.lstrip("/")
        inode = self.live.names.get(name)
        if inode is None:
            if not create:
                raise StorageError(f"{name}: no such file")
            self.step("create", name)
            inode, self._next_inode = self._next_inode, self._next_inode + 1
            self.change(_Link(name, inode))
        return FaultyFile(self, name, inode)

    def list(self, directory: str) -> list[str]:
        return self.live.list(directory)

    def make_dir(self, directory: str) -> Sequence[str]:
        """Directories are name prefixes."""
        return []

    def remove_dir(self, directory: str) -> None:
        for name in [name for name in self.live.names if name.startswith(f"{directory}/")]:
            self.unlink(name)

    def rename(self, old: str, new: str) -> None:
        old, new = old.lstrip("/"), new.lstrip("/")
        if not any(name == old or name.startswith(f"{old}/") for name in self.live.names):
            raise StorageError(f"{old}: no such file")
        self.step("rename", f"{old} -> {new}")
        self.change(_Rename(old, new))

    def unlink(self, name: str) -> None:
        name = name.lstrip("/")
        if name not in self.live.names:
            raise StorageError(f"{name}: no such file")
        self.step("unlink", name)
        self.change(_Unlink(name))

    def sync_dir(self, directory: str) -> None:
        self.step("sync_dir", directory)
        kept: list[_Change] = []
        for change in self.journal:
            if isinstance(change, _NameChange) and _directory_of(change) == directory:
                self.durable.apply(change)
            else:
                kept.append(change)
        self.journal = kept

    def after_crash(self, model: CrashModel, choose: Choose) -> FaultyStorage:
        """Return the disk a restarted process finds."""
        image = self.durable.copy()
        for change in _surviving(self.journal, model, choose):
            image.apply(change)
        if model is CrashModel.COLD_FLIP:
            _flip_one_sector(image, choose)
        return FaultyStorage(image)


def _directory_of(change: _NameChange) -> str:
    name = change.new if isinstance(change, _Rename) else change.name
    return name.rpartition("/")[0]


def _surviving(journal: list[_Change], model: CrashModel, choose: Choose) -> list[_Change]:
    match model:
        case CrashModel.NOTHING:
            return []
        case CrashModel.EVERYTHING | CrashModel.COLD_FLIP:
            return journal
        case CrashModel.PREFIX:
            return journal[: choose(len(journal) + 1)]
        case CrashModel.TORN:
            prefix = journal[: choose(len(journal) + 1)]
            return [*prefix[:-1], *_torn(prefix[-1], choose)] if prefix else []
        case CrashModel.SECTORS:
            return [piece for change in journal for piece in _some_sectors(change, choose)]
        case CrashModel.ZEROS:
            return [_zeroed(change) for change in journal]
        case CrashModel.NAMES:
            return [piece for change in journal for piece in _maybe_named(change, choose)]


def _torn(change: _Change, choose: Choose) -> list[_Change]:
    if not isinstance(change, _Write):
        return [change]
    sectors = _sectors(change)
    return list(sectors[: choose(len(sectors) + 1)])


def _some_sectors(change: _Change, choose: Choose) -> list[_Change]:
    if not isinstance(change, _Write):
        return [change]
    return [sector for sector in _sectors(change) if choose(2)]


def _zeroed(change: _Change) -> _Change:
    return _Write(change.inode, change.position, bytes(len(change.data))) if isinstance(change, _Write) else change


def _maybe_named(change: _Change, choose: Choose) -> list[_Change]:
    """A new, changed or removed name may be forgotten; file contents are not."""
    if not isinstance(change, _NameChange):
        return [change]
    return [change] if choose(2) else []


def _sectors(write: _Write) -> list[_Write]:
    cuts = [write.position]
    while cuts[-1] < write.position + len(write.data):
        cuts.append(min((cuts[-1] // SECTOR_BYTES + 1) * SECTOR_BYTES, write.position + len(write.data)))
    return [_Write(write.inode, a, write.data[a - write.position : b - write.position]) for a, b in pairwise(cuts)]


def _flip_one_sector(image: _Image, choose: Choose) -> None:
    candidates = sorted(inode for inode in set(image.names.values()) if image.data[inode])
    if not candidates:
        return
    data = image.data[candidates[choose(len(candidates))]]
    data[choose(len(data))] ^= 0x40
