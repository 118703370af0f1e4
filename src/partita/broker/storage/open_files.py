"""The descriptors of the logs: opened when a file is used, and closed again when too many files are open.

A partition that was touched once would hold a descriptor for ever, and clients would find none left. Files in use on
any thread keep theirs; of the others the ones unused for longest are closed first.
"""

from __future__ import annotations

import errno
import os
from threading import Lock
from typing import Protocol

CLIENTS_SHARE = 2
"""One half of the descriptors is for clients, the other for logs."""
WANTED = 65_536
LEAST = 16
_NONE_LEFT = {errno.EMFILE, errno.ENFILE}


class Openable(Protocol):
    """A file that holds a descriptor now and then. The fields belong to `OpenFiles`."""

    path: str
    fd: int
    users: int
    is_closing: bool

    def forget_map(self) -> None:
        """Give up the memory map, which holds a descriptor of its own."""
        ...


class OpenFiles:
    """At most `limit` open files. Safe for several threads."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lock = Lock()
        self._open: dict[Openable, None] = {}
        """Oldest use first."""

    def __len__(self) -> int:
        return len(self._open)

    def use(self, file: Openable) -> int:
        """Return a descriptor of the file that stays open until `done`. Raises OSError."""
        with self._lock:
            file.is_closing = False
            if file.fd < 0:
                self._close_idle(self.limit - 1)
                file.fd = self._opened(file)
            else:
                self._open.pop(file, None)
            self._open[file] = None
            file.users += 1
            return file.fd

    def done(self, file: Openable) -> None:
        """The descriptor given by `use` is not needed any more."""
        with self._lock:
            file.users -= 1
            if file.is_closing and not file.users:
                self._close(file)

    def close(self, file: Openable) -> None:
        """Close the file, at once or as soon as it is no longer in use."""
        with self._lock:
            file.is_closing = True
            if not file.users:
                self._close(file)

    def _opened(self, file: Openable) -> int:
        try:
            return os.open(file.path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            if error.errno not in _NONE_LEFT:
                raise
        # Somebody else took what was left: make do with fewer.
        self._close_idle(len(self._open) // 2)
        return os.open(file.path, os.O_RDWR | os.O_CLOEXEC)

    def _close_idle(self, keep: int) -> None:
        excess = len(self._open) - keep
        if excess <= 0:
            return
        idle = [file for file in self._open if not file.users]
        for file in idle[:excess]:
            self._close(file)

    def _close(self, file: Openable) -> None:
        self._open.pop(file, None)
        if file.fd >= 0:
            os.close(file.fd)
            file.fd = -1
        file.forget_map()


def raise_soft_limit() -> int:
    """Let this process open as many files as it may, within reason; return how many that are."""
    try:
        import resource
    except ImportError:
        return 512
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            return soft
        return wanted
    return WANTED if soft == resource.RLIM_INFINITY else soft


def limit_for_logs() -> int:
    """Bound of the logs' open files: a mapped file takes two descriptors, and clients get their share."""
    return max(LEAST, raise_soft_limit() // CLIENTS_SHARE // 2)
