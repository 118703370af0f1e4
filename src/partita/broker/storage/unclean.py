"""Sync data that a crash left in the page cache alone, before any client can see it.

Under `sync` nothing is shown that could vanish. After a kill the logs hold bytes that were written and perhaps never
synced; a start syncs those files, so that each log begins at its end, as Kafka's leader does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from partita.broker.storage.catalogue_file import TOPICS, topic_folders
from partita.broker.storage.side_by_side import AT_ONCE, side_by_side
from partita.log.log_config import LogConfig
from partita.log.recovery import base_offsets
from partita.log.segment import LOG_SUFFIX, Segment, file_name
from partita.log.storage import Storage


def sync_unclean_logs(storage: Storage, *, at_once: int = AT_ONCE) -> int:
    """Make durable all that logs hold, and the names of their files; return how many there were. Raises StorageError.

    A segment whose index matches its size was synced before. (`Segment.open_trusted`)
    """
    jobs: list[Callable[[], None]] = []
    folders = []
    for topic_id in topic_folders(storage):
        folder = f"{TOPICS}/{topic_id}"
        logs = [f"{folder}/{name}" for name in storage.list(folder) if name.isdigit()]
        unsynced = [(log, bases) for log in logs if (bases := _unsynced(storage, log))]
        jobs += [partial(_sync, storage, log, bases) for log, bases in unsynced]
        # The names last: a directory is synced when all the files that it names are.
        folders += [folder] if unsynced else []
    side_by_side(jobs, "syncing the logs that were not closed in order", at_once=at_once)
    side_by_side([partial(storage.sync_dir, folder) for folder in folders], "syncing folders", at_once=at_once)
    if folders:
        storage.sync_dir(TOPICS)
    return len(jobs)


def _unsynced(storage: Storage, directory: str) -> list[int]:
    interval_bytes = LogConfig().index_interval_bytes
    bases = base_offsets(storage.list(directory), LOG_SUFFIX)
    return [base for base in bases if Segment.open_trusted(storage, directory, base, interval_bytes) is None]


def _sync(storage: Storage, directory: str, bases: list[int]) -> None:
    for base in bases:
        file = storage.open(f"{directory}/{file_name(base)}")
        file.sync()
        file.close()
    storage.sync_dir(directory)
