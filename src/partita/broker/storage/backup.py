"""A copy of a data directory, of a broker that is stopped or one that runs.

A copy of a running broker's is what a crash could have left: its next start checks the logs. Two orders make it so. In
a partition the files are listed before the first is copied, and copied again when a sealed one has changed meanwhile,
so that nothing is missing in the middle. The groups' and transactions' logs come before the data, so that no committed
offset lies behind the end of its partition.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from partita.broker.storage.catalogue_file import CATALOGUE, DELETED_SUFFIX, DESCRIPTION, TOPICS, decode
from partita.broker.storage.data_dir import CLEAN, FORMAT, HANDOVER, DataDirectoryError
from partita.broker.topics.catalogue import OFFSETS_TOPIC, TRANSACTION_TOPIC

TRIES = 10
"""How often a partition is copied whose sealed files change meanwhile, as compaction and retention change them."""
DERIVED = (".index", ".timeindex")
"""Endings of files that a start makes again from the log."""

_Files: TypeAlias = dict[str, os.stat_result]


@dataclass(frozen=True, slots=True)
class Copied:
    """What is in a copy. `is_clean`: the broker was stopped, and nothing needs to be checked at the next start."""

    topics: int
    partitions: int
    bytes: int
    is_clean: bool


def back_up(source: str | Path, target: str | Path) -> Copied:
    """Copy a data directory to a new folder; start a broker with it to restore. Raises DataDirectoryError.

    A transaction that is open while a running broker is copied may be in the data and not among the transactions: stop
    the broker first, or take a snapshot of the file system, where transactions matter.
    """
    source, target = Path(source), Path(target)
    if not (source / FORMAT).is_file():
        raise DataDirectoryError(f"{source} is no data directory of a broker")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise DataDirectoryError(f"{target} exists and is not empty")
    try:
        return _copied(source, target)
    except OSError as error:
        raise DataDirectoryError(f"the copy is not complete: {error.filename}: {error.strerror}") from None


def _copied(source: Path, target: Path) -> Copied:
    was_clean = (source / CLEAN).exists()
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    target.chmod(0o700)
    (target / TOPICS).mkdir(mode=0o700)
    for name in (FORMAT, CATALOGUE):
        _copy(source / name, target / name)
    partitions = size = count = 0
    for topic in _topics(source / TOPICS, _internal_ids(target / CATALOGUE)):
        count += 1
        (target / TOPICS / topic.name).mkdir(mode=0o700)
        for partition in _partitions(topic):
            size += _copy_partition(partition, target / TOPICS / topic.name / partition.name, derived=was_clean)
            partitions += 1
        with suppress(FileNotFoundError):  # it is written a moment after the topic was created
            _copy(topic / DESCRIPTION, target / TOPICS / topic.name / DESCRIPTION)
    is_clean = was_clean and (source / CLEAN).exists()
    if is_clean:
        if (source / HANDOVER).exists():  # without groups there is none
            _copy(source / HANDOVER, target / HANDOVER)
        _copy(source / CLEAN, target / CLEAN)
    if hasattr(os, "sync"):
        os.sync()
    return Copied(count, partitions, size, is_clean)


def _topics(folder: Path, first: set[str]) -> list[Path]:
    """The topics' folders, those of these ids first."""
    found = [path for path in folder.iterdir() if path.is_dir() and not path.name.endswith(DELETED_SUFFIX)]
    return sorted(found, key=lambda path: (path.name not in first, path.name))


def _partitions(topic: Path) -> list[Path]:
    """The folders of a topic's partitions; none of a topic that is deleted meanwhile."""
    try:
        return sorted(path for path in topic.iterdir() if path.is_dir())
    except FileNotFoundError:
        return []


def _internal_ids(catalogue: Path) -> set[str]:
    """The ids of the topics that groups and transactions are kept in."""
    lines = [json.loads(line) for line in decode(catalogue.read_bytes()).good]
    internal = (OFFSETS_TOPIC, TRANSACTION_TOPIC)
    return {str(line["id"]) for line in lines if line.get("name") in internal and "id" in line}


def _copy_partition(source: Path, target: Path, *, derived: bool) -> int:
    """Copy one log; the bytes copied. One that is deleted meanwhile is left out. Raises DataDirectoryError."""
    for _ in range(TRIES):
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(mode=0o700)
        try:
            before = _files(source)
            names = [name for name in before if derived or not name.endswith(DERIVED)]
            size = sum(_copy(source / name, target / name) for name in sorted(names, key=_is_data))
            if _sealed(before, before) == _sealed(_files(source), before):
                return size
        except FileNotFoundError:
            if not source.exists():
                shutil.rmtree(target, ignore_errors=True)
                return 0
    raise DataDirectoryError(f"{source} changes faster than it is copied; stop the broker, or take a snapshot")


def _files(folder: Path) -> _Files:
    return {entry.name: entry.stat() for entry in os.scandir(folder) if entry.is_file()}


def _is_data(name: str) -> tuple[bool, str]:
    """What speaks of the log comes before the log itself."""
    return name.endswith(".log"), name


def _sealed(
    files: dict[str, os.stat_result], among: dict[str, os.stat_result] | None = None
) -> list[tuple[str, int, int]]:
    """The segments but the newest one of `among`, each with what changes when it is replaced."""
    names = sorted(name for name in (files if among is None else among) if name.endswith(".log"))[:-1]
    return [(name, files[name].st_ino, files[name].st_size) for name in names if name in files]


def _copy(source: Path, target: Path) -> int:
    """Copy one file as it is now; its bytes."""
    shutil.copyfile(source, target)
    target.chmod(0o600)
    return target.stat().st_size
