"""Where all logs of a running broker end at one instant, for a copy that is made file by file.

Who copies holds a lock on one file of the data directory and asks in it; the broker answers in another one. What it
answers with was read in one turn of its loop: no transaction is decided and no offset is committed between two of the
ends. As long as the lock is held, nothing is compacted and no old segment is deleted, so that all below the ends stays
where it is. The lock dies with its process.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from partita.now import Clock

if TYPE_CHECKING:
    from pathlib import Path

    from partita.broker.storage.store import Store

ASKED, ANSWERED = "backup", "backup.cut"
"""Files of the data directory: who copies asks in the first one, the broker answers in the second one."""
PATIENCE_SECONDS = 30.0
"""How long the broker may take to answer: it looks once a second, and ends the compaction that is under way."""
_LOOK_SECONDS = 0.02


class NoCut(Exception):
    """The broker cannot be asked where its logs end; the message is one line."""


class End(NamedTuple):
    """Where one log ends: in which segment, after how many of its bytes, before which offset."""

    base_offset: int
    size: int
    log_end_offset: int


@dataclass(frozen=True, slots=True)
class Cut:
    """All open logs at one instant of the broker's clock, by their folders. Other logs did not change since a start."""

    wall_ms: int
    ends: Mapping[str, End]


class CutsForCopies:
    """The broker's side, used on its loop."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._answered = ""
        self.is_held = False
        """Whether a copy is being made: nothing may be compacted, and no old segment deleted."""

    def look(self) -> None:
        """Take note of a copy that begins or ends, and answer it once no compaction is under way."""
        token = _asked(self._store.root)
        self.is_held = token is not None
        logs = self._store.logs
        if not token or token == self._answered or any(kept.is_being_compacted for kept in logs.values()):
            return
        self._answered = token
        lasts = [(folder, kept.segments[-1], kept.log_end_offset) for folder, kept in logs.items()]
        ends = [(folder, End(last.base_offset, last.size, end)) for folder, last, end in lasts]
        self._store.later(partial(_answer, self._store.root, token, Cut(self._clock.now().wall_ms, dict(ends))))


def _asked(root: str) -> str | None:
    """What a copy that is under way has asked with; None while there is none."""
    import fcntl

    try:
        file = os.open(os.path.join(root, ASKED), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return os.pread(file, 64, 0).decode("ascii", "replace")
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


@contextmanager
def held_cut(root: Path, owner: str) -> Iterator[Cut]:
    """Ask the broker, the process `owner`, where its logs end, and keep them whole below that until the block ends.

    Raises NoCut, and OSError where the directory cannot be written.
    """
    import fcntl

    file = os.open(root / ASKED, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise NoCut("another copy of it is being made; wait for its end") from None
        token = os.urandom(8).hex()
        os.ftruncate(file, 0)
        os.pwrite(file, token.encode("ascii"), 0)
        try:
            yield _await_answer(root, token, owner)
        finally:
            for name in (ASKED, ANSWERED):
                (root / name).unlink(missing_ok=True)
    finally:
        os.close(file)


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
