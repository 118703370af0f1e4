"""Ends of all logs of a running broker at one instant, for a copy made file by file.

A copying process holds a lock on one file of the data directory and asks in it; the broker answers in another one. It
reads all ends of an answer in one turn of its loop: no transaction is decided and no offset is committed between two of
them. As long as the lock is held, nothing is compacted and no old segment is deleted, so that everything below the ends
stays in place. The lock dies with its process. The copying process touches its file after each copied file; if that
stops for `STALLED_MS` the broker takes its answer back before it goes on, and the copy fails.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from partita.lazy import later
from partita.now import Clock

if TYPE_CHECKING:
    import fcntl
    from pathlib import Path

    from partita.broker.storage.store import Store
else:
    fcntl = later("fcntl")

log = logging.getLogger("partita.broker")

ASKED, ANSWERED = "backup", "backup.cut"
"""Files of the data directory: a copying process asks in the first one, the broker answers in the second one."""
PATIENCE_SECONDS = 30.0
"""Time for the broker's answer: it looks once a second, and ends the compaction that is under way."""
STALLED_MS = 600_000
"""Time of a copy for one file; one that takes longer is not waited for."""
_LOOK_SECONDS = 0.02


class NoCut(Exception):
    """The broker cannot be asked where its logs end; the message is one line."""


class End(NamedTuple):
    """End of one log: in which segment, after how many of its bytes, before which offset."""

    base_offset: int
    size: int
    log_end_offset: int


class Cut(NamedTuple):
    """All open logs at one instant of the broker's clock, by their folders. Other logs did not change since a start."""

    wall_ms: int
    ends: Mapping[str, End]


class CutsForCopies:
    """The broker's side, used on its loop."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._answered = ""
        self._given_up: str | None = None
        self._seen: _Asked | None = None
        self._went_on_ms = 0
        self.is_held = False
        """Whether a copy is being made: nothing may be compacted, and no old segment deleted."""

    def look(self) -> None:
        """Take note of a copy that begins, goes on or ends, and answer it once no compaction is under way."""
        asked = _asked(self._store.root)
        token = None
        if asked is not None and asked.token != self._given_up:
            if self._is_stalled(asked):
                self._given_up = asked.token
                self._withdraw()
            else:
                token = asked.token
        self._note(token is not None)
        logs = self._store.logs
        if not token or token == self._answered or any(kept.is_being_compacted for kept in logs.values()):
            return
        self._answered = token
        lasts = [(folder, kept.segments[-1], kept.log_end_offset) for folder, kept in logs.items()]
        ends = [(folder, End(last.base_offset, last.size, end)) for folder, last, end in lasts]
        self._store.later(partial(_answer, self._store.root, token, Cut(self._clock.now().wall_ms, dict(ends))))

    def _is_stalled(self, asked: _Asked) -> bool:
        """Whether the copy has not gone on for too long."""
        now_ms = self._clock.now().mono_ms
        if asked != self._seen:
            self._seen, self._went_on_ms = asked, now_ms
        return now_ms - self._went_on_ms >= STALLED_MS

    def _withdraw(self) -> None:
        """Take the answer back, at once: before anything is compacted that the copy counts on."""
        log.warning(
            "the copy of %s has completed no file for %d s and is given up: it ends with an error",
            self._store.root,
            STALLED_MS // 1000,
        )
        with suppress(OSError):
            os.unlink(os.path.join(self._store.root, ANSWERED))

    def _note(self, is_held: bool) -> None:
        if is_held and not self.is_held:
            log.info("a copy of %s is being made: nothing is compacted or deleted until it ends", self._store.root)
        elif self.is_held and not is_held:
            log.info("no copy of %s is being made any more: compaction and retention go on", self._store.root)
        self.is_held = is_held


class _Asked(NamedTuple):
    """A copy's request, and its last sign of progress by the clock of the file system."""

    token: str
    touched_ns: int


def _asked(root: str) -> _Asked | None:
    """Return the request of a copy that is under way; None while there is none."""
    try:
        file = os.open(os.path.join(root, ASKED), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return _Asked(os.pread(file, 64, 0).decode("ascii", "replace"), os.fstat(file).st_mtime_ns)
    else:
        return None  # it died, and left its file
    finally:
        os.close(file)


def _answer(root: str, token: str, cut: Cut) -> None:
    """Write the answer, all or nothing. What cannot be written is not answered: the copy ends with an error."""
    lines = [f"{token} {cut.wall_ms}"]
    lines += [f"{folder} {end.base_offset} {end.size} {end.log_end_offset}" for folder, end in cut.ends.items()]
    path = os.path.join(root, ANSWERED)
    with suppress(OSError):
        with open(f"{path}.tmp", "w", encoding="ascii") as file:
            file.write("\n".join(lines))
        os.replace(f"{path}.tmp", path)


class HeldCut(NamedTuple):
    """A cut below which the broker keeps everything, as long as the copying process calls `go_on` often enough."""

    cut: Cut
    root: Path
    token: str

    def go_on(self) -> None:
        """Say that another file is copied. Raises NoCut if the broker has given the copy up."""
        with suppress(FileNotFoundError):
            if (self.root / ANSWERED).read_text("ascii").startswith(self.token):
                os.utime(self.root / ASKED)
                return
        raise NoCut(f"no file was copied within {STALLED_MS // 1000} s, so the broker has gone on; copy it again")


@contextmanager
def held_cut(root: Path, owner: str) -> Iterator[HeldCut]:
    """Ask the broker, the process `owner`, where its logs end, and keep them whole below that until the block ends.

    Raises NoCut, and OSError where the directory cannot be written.
    """
    file = os.open(root / ASKED, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while not _is_locked(file):
            time.sleep(_LOOK_SECONDS)
        token = os.urandom(8).hex()
        os.ftruncate(file, 0)
        os.pwrite(file, token.encode("ascii"), 0)
        try:
            yield HeldCut(_await_answer(root, token, owner), root, token)
        finally:
            for name in (ASKED, ANSWERED):
                (root / name).unlink(missing_ok=True)
    finally:
        os.close(file)


def _is_locked(file: int) -> bool:
    """Lock a request; return False for a moment in which the broker looks at it. Raises NoCut if a copy has it."""
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # as the broker does
    except OSError:
        raise NoCut("another copy of it is being made; wait for its end") from None
    fcntl.flock(file, fcntl.LOCK_UN)
    return False


def _await_answer(root: Path, token: str, owner: str) -> Cut:
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        with suppress(FileNotFoundError):
            first, *lines = (root / ANSWERED).read_text("ascii").splitlines()
            answered, wall_ms = first.split()
            if answered == token:
                ends = (line.split() for line in lines)
                return Cut(int(wall_ms), {folder: End(*map(int, numbers)) for folder, *numbers in ends})
        time.sleep(_LOOK_SECONDS)
    raise NoCut(
        f"the broker, process {owner}, did not say within {PATIENCE_SECONDS:g} s where its logs end; "
        "stop it, or take a snapshot of the file system"
    )
