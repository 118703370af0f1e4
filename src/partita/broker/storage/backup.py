"""A copy of a data directory, of a broker that is stopped or one that runs.

A copy of a running broker's is a state that a crash could have left: its next start checks the logs. All its logs end
where they ended at one instant, so that no transaction is in it by half, and no committed offset lies behind the end of
its partition. The small files come later than the logs' ends; entries about anything later are left out.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from partita.broker.storage.catalogue_file import (
    CATALOGUE,
    DELETED_SUFFIX,
    DESCRIPTION,
    TOPICS,
    decode_ends,
    encode_ends,
)
from partita.broker.storage.cut import Cut, End, NoCut, held_cut
from partita.broker.storage.data_dir import CLEAN, COPIED, ENDS, FORMAT, HANDOVER, LOCK, DataDirectoryError
from partita.lazy import later
from partita.log.recovery import base_offsets
from partita.log.segment import LOG_SUFFIX, file_name
from partita.log.segment_swap import SWAP_SUFFIX
from partita.log.snapshots import PRODUCERS_SUFFIX, STATE_NAME

if TYPE_CHECKING:
    import fcntl
else:
    fcntl = later("fcntl")

TRIES = 10
"""Attempts to copy a partition of which a file vanishes meanwhile."""

_Sizes: TypeAlias = dict[str, int]


@dataclass(frozen=True, slots=True)
class Copied:
    """The contents of a copy. `is_clean`: the broker was stopped, and nothing needs to be checked at the next start."""

    topics: int
    partitions: int
    bytes: int
    is_clean: bool


class _Job(NamedTuple):
    """A copy to make: of everything, or of all below a cut. `before` are the logs' files before the cut."""

    source: Path
    target: Path
    cut: Cut | None
    before: dict[str, _Sizes]
    go_on: Callable[[], None]
    """To be called after each file of a log."""


def back_up(source: str | Path, target: str | Path) -> Copied:
    """Copy a data directory to a new folder; start a broker with it to restore. Raises DataDirectoryError.

    A broker that runs is asked where its logs end, and compacts and deletes nothing until the copy is complete, or has
    copied no file for ten minutes. A transaction that is open at that instant is in the copy, and is aborted by the
    first broker that starts with it.
    """
    source, target = Path(source), Path(target)
    if not (source / FORMAT).is_file():
        raise DataDirectoryError(f"{source} is no data directory of a broker")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise DataDirectoryError(f"{target} exists and is not empty")
    try:
        with ExitStack() as held:
            owner = _owner(source, held)
            before = {} if owner is None else _all_logs(source)
            if owner is None:
                return _copied(_Job(source, target, None, before, _nothing))
            cut = held.enter_context(held_cut(source, owner))
            return _copied(_Job(source, target, cut.cut, before, cut.go_on))
    except NoCut as error:
        raise DataDirectoryError(f"{source}: {error}") from None
    except OSError as error:
        raise DataDirectoryError(f"the copy is not complete: {error.filename}: {error.strerror}") from None


def _nothing() -> None:
    """Do nothing: a copy of a stopped broker holds no other process up."""


def _owner(source: Path, held: ExitStack) -> str | None:
    """The process whose broker runs with the directory; None while there is none, and none can start until the end."""
    lock = os.open(source / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    held.callback(os.close, lock)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return os.pread(lock, 32, 0).decode("ascii", "replace").strip() or "another one"
    return None


def _copied(job: _Job) -> Copied:
    source, target = job.source, job.target
    is_clean = (source / CLEAN).exists()
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    target.chmod(0o700)
    (target / TOPICS).mkdir(mode=0o700)
    partitions = size = count = 0
    for topic in _folders(source / TOPICS):
        if topic.name.endswith(DELETED_SUFFIX):
            continue
        count += 1
        (target / TOPICS / topic.name).mkdir(mode=0o700)
        for partition in _folders(topic):
            copied = _copy_partition(job, partition, derived=is_clean)
            partitions += copied is not None
            size += copied or 0
        with suppress(FileNotFoundError):  # it is written a moment after the topic was created
            _copy(topic / DESCRIPTION, target / TOPICS / topic.name / DESCRIPTION)
    # The catalogue is at least as new as the logs: no id of a producer that they hold is delivered again.
    names = [FORMAT, CATALOGUE, COPIED, ENDS, *([HANDOVER, CLEAN] if is_clean else [])]
    for name in names:
        if name in (FORMAT, CATALOGUE) or (source / name).exists():
            _copy(source / name, target / name)
    if not is_clean and job.cut is not None:
        known = decode_ends((source / ENDS).read_bytes()) if (source / ENDS).exists() else {}
        ends = known | {folder: end.log_end_offset for folder, end in job.cut.ends.items()}
        (target / ENDS).write_bytes(encode_ends(ends))
        (target / ENDS).chmod(0o600)
    for grave in sorted((source / TOPICS).glob(f"*{DELETED_SUFFIX}")):
        if grave.is_file():
            _copy(grave, target / TOPICS / grave.name)
    if job.cut is not None:
        (target / COPIED).write_text(f"{job.cut.wall_ms}\n")
        (target / COPIED).chmod(0o600)
    if hasattr(os, "sync"):
        os.sync()
    return Copied(count, partitions, size, is_clean)


def _folders(parent: Path) -> list[Path]:
    """The folders in a folder, in order; none of a topic that is deleted meanwhile."""
    try:
        return sorted(path for path in parent.iterdir() if path.is_dir())
    except FileNotFoundError:
        return []


def _all_logs(source: Path) -> dict[str, _Sizes]:
    """The files of every log, by its folder as the broker names it."""
    found = (partition for topic in _folders(source / TOPICS) for partition in _folders(topic))
    return {str(partition.relative_to(source)): _sizes(partition) for partition in found}


def _copy_partition(job: _Job, source: Path, *, derived: bool) -> int | None:
    """Copy one log; the bytes copied. None: it is not older than the cut, or is deleted meanwhile."""
    folder = str(source.relative_to(job.source))
    end = None if job.cut is None else job.cut.ends.get(folder)
    if job.cut is not None and end is None and folder not in job.before:
        return None
    target = job.target / folder
    for _ in range(TRIES):
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(mode=0o700)
        try:
            # A log that was not open had not changed since the start; it may have since.
            sizes = job.before[folder] if job.cut is not None and end is None else _sizes(source)
            names = _names(sizes, end, derived=derived)
            copied = 0
            for name in names:
                copied += _copy(source / name, target / name)
                job.go_on()
            last = file_name(end.base_offset) if end is not None else max(_logs(names), default="")
            limit = end.size if end is not None else sizes.get(last, 0)
            if job.cut is None or not last:
                return copied
            longer = (target / last).stat().st_size - limit
            os.truncate(target / last, limit)
            return copied - max(0, longer)
        except FileNotFoundError:
            if not source.exists():
                shutil.rmtree(target, ignore_errors=True)
                return None
    raise DataDirectoryError(f"{source} changes faster than it is copied; stop the broker, or take a snapshot")


def _sizes(folder: Path) -> _Sizes:
    return {entry.name: entry.stat().st_size for entry in os.scandir(folder) if entry.is_file()}


def _logs(names: Iterable[str]) -> list[str]:
    return [name for name in names if name.endswith(LOG_SUFFIX)]


def _names(sizes: _Sizes, end: End | None, *, derived: bool) -> list[str]:
    """Return the files to copy of a log, those that describe the log before the log itself.

    Files newer than the cut are left out, and without `derived` the indexes, so that every batch is checked.
    """
    if derived:
        return sorted(sizes)
    names = _logs(sizes)
    states = [file_name(offset, PRODUCERS_SUFFIX) for offset in base_offsets(list(sizes), PRODUCERS_SUFFIX)]
    if end is not None:
        names = [name for name in names if name <= file_name(end.base_offset)]
        states = [name for name in states if name <= file_name(end.log_end_offset, PRODUCERS_SUFFIX)]
    swaps = [name for name in sizes if name.endswith(SWAP_SUFFIX)]
    return [*(name for name in (STATE_NAME,) if name in sizes), *states, *sorted(swaps), *sorted(names)]


def _copy(source: Path, target: Path) -> int:
    """Copy one file as it is now; its bytes."""
    shutil.copyfile(source, target)
    target.chmod(0o600)
    return target.stat().st_size
