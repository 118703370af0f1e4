"""The logs of a store: opened one by one, watched for damage and failure, with the chores of the next sync."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from partita.broker.config import TopicConfig
from partita.broker.storage.catalogue_file import DESCRIPTION, TOPICS, encode
from partita.broker.storage.log_settings import log_config
from partita.log.durability import Durability
from partita.log.log_config import LogConfig
from partita.log.storage import TRANSIENT, Storage, StorageError, replace_file
from partita.system_clock import SystemClock

if TYPE_CHECKING:
    from partita.log.partition_log import PartitionLog

log = logging.getLogger("partita.broker")

NO_ROOM_EVERY_MS = 60_000
"""How often at most the log says that batches are refused for want of room or descriptors."""
COUNTERS = {
    "unclean_starts": "starts after a stop that was not in order",
    "logs_cut": "logs that recovery made shorter",
    "bytes_cut": "bytes that recovery took from logs",
    "batches_damaged": "batches that cannot be read",
    "offsets_clamped": "committed offsets whose records were lost, brought back to the end of the log",
    "offsets_missing": "offsets of logs whose segments are missing",
}
"""What a store counts of damage, and what that is."""


class LogStore:
    """What stores on disk and in memory share; see `partita.broker.storage.store.Store` for its promises."""

    def __init__(self, storage: Storage, group_storage: Storage, durability: Durability) -> None:
        self._storage = storage
        self._group_storage = group_storage
        self._configs: dict[str, TopicConfig] = {}
        self._described: set[str] = set()
        """Topic folders that say what they are."""
        self._clock = SystemClock()
        self.durability = durability
        self.unclean = False
        self.failure: str | None = None
        self.handover: bytes | None = None
        self.copied_ms = -1
        self.logs: dict[str, PartitionLog] = {}
        self.chores: list[Callable[[], None]] = []
        self.on_opened: Callable[[PartitionLog], None] | None = None
        self.on_failed: Callable[[str], None] | None = None
        self.on_chore: Callable[[], None] | None = None
        self.notices: list[tuple[str, dict[str, object]]] = []
        self.on_notice: Callable[..., None] | None = None
        self.counters = dict.fromkeys(COUNTERS, 0)
        self._no_room_from_ms = 0

    def open_log(
        self,
        topic_id: bytes,
        partition: int,
        config: TopicConfig,
        *,
        is_group_log: bool = False,
        description: Callable[[], bytes] | None = None,
    ) -> PartitionLog:
        """Open the log of one partition, creating it when it is new. Called once per partition."""
        # Imported with the first log: a broker starts without.
        from partita.log.partition_log import PartitionLog

        if self.failure is not None:
            raise StorageError(f"the log directory is offline: {self.failure}")
        folder = f"{TOPICS}/{topic_id.hex()}"
        directory = f"{folder}/{partition}"
        try:
            opened = PartitionLog.open(
                self._group_storage if is_group_log else self._storage,
                directory,
                log_config(config),
                durability=self.durability,
                was_clean=not self.unclean,
                wall_ms=self._clock.now().wall_ms,
            )
        except StorageError as error:
            self.note_error(error)
            raise
        if description is not None and self.durability is not Durability.MEMORY:
            self._describe(folder, description)
        opened.on_failed = lambda _, reason: self.fail(reason)
        opened.on_damaged = self._damaged
        opened.on_no_room = self._no_room
        self._tell_recovery(opened)
        self.logs[directory] = opened
        self._configs[directory] = config
        if self.on_opened is not None:
            self.on_opened(opened)
        return opened

    def _describe(self, folder: str, description: Callable[[], bytes]) -> None:
        """Let the folder say what the topic is, unless it does. A folder is looked at once: it may be very full."""
        if folder in self._described:
            return
        self._described.add(folder)
        if DESCRIPTION not in self._storage.list(folder):
            self.later(partial(self._write_description, folder, description()))

    def _write_description(self, folder: str, description: bytes) -> None:
        if self._storage.list(folder):
            replace_file(self._storage, folder, DESCRIPTION, encode(description))

    def describe(self, topic_id: bytes, description: bytes) -> None:
        """Let the topic's folder, if there is one, say what the catalogue says of the topic now."""
        folder = f"{TOPICS}/{topic_id.hex()}"
        if self.durability is not Durability.MEMORY:
            self.later(partial(self._write_description, folder, description))

    def later(self, chore: Callable[[], None]) -> None:
        """Let the next sync do `chore`, on whatever thread it runs. In memory it is done at once."""
        if self.durability is Durability.MEMORY:
            chore()
            return
        self.chores.append(chore)
        if self.on_chore is not None:
            self.on_chore()

    def fail(self, reason: str) -> None:
        """Take the log directory offline: a file operation failed, and what is on the disk is unknown (D7)."""
        if self.failure is not None:
            return
        self.failure = reason
        for opened in tuple(self.logs.values()):
            opened.fail(reason)
        self.notice("log directory offline", reason=reason)
        if self.on_failed is not None:
            self.on_failed(reason)

    def note_error(self, error: StorageError) -> None:
        """Take the log directory offline, unless the error is about room or descriptors only."""
        if not isinstance(error, TRANSIENT):
            self.fail(str(error))

    def _tell_recovery(self, opened: PartitionLog) -> None:
        """Say what recovery took away (7.4); nothing is cut in silence."""
        report = opened.report
        for start, end in report.gaps:
            self.counters["offsets_missing"] += end - start
            log.warning("%s has no segments for the offsets %d to %d", opened.directory, start, end - 1)
            self.notice("segments missing", directory=opened.directory, from_offset=start, to_offset=end - 1)
        lost = [name for name in report.files_removed if name.endswith(".log")]
        if not report.bytes_cut and not lost and report.problem is None:
            return
        self.counters["logs_cut"] += 1
        self.counters["bytes_cut"] += report.bytes_cut
        log.warning(
            "%s was cut at offset %d: %s; %d bytes and %d segments are gone",
            opened.directory,
            opened.log_end_offset,
            report.problem or "left-over files",
            report.bytes_cut,
            len(lost),
        )
        self.notice(
            "log cut",
            directory=opened.directory,
            log_end_offset=opened.log_end_offset,
            problem=report.problem,
            bytes_cut=report.bytes_cut,
            files_removed=report.files_removed,
        )

    def notice(self, what: str, **details: object) -> None:
        """Remember something that was noticed of the disk, and tell whoever listens."""
        self.notices.append((what, details))
        if self.on_notice is not None:
            self.on_notice(what, **details)

    def _damaged(self, damaged: PartitionLog, what: str) -> None:
        """Log a damaged batch once, however often it is asked for."""
        where = what if os.path.isabs(what) else f"{damaged.directory}/{what}"
        if not any(details.get("where") == where for _, details in self.notices):
            self.counters["batches_damaged"] += 1
            log.error("a batch on the disk cannot be read, and fetches of it are refused: %s", where)
            self.notice("batch damaged", where=where)

    def _no_room(self, reason: str) -> None:
        """Log that batches are refused, at most once a minute however many are; their clients try again."""
        now_ms = self._clock.now().mono_ms
        if now_ms >= self._no_room_from_ms:
            self._no_room_from_ms = now_ms + NO_ROOM_EVERY_MS
            log.error("batches are refused: %s", reason)

    def has_log(self, topic_id: bytes, partition: int) -> bool:
        """Whether anything was ever written for the partition."""
        return bool(self._storage.list(f"{TOPICS}/{topic_id.hex()}/{partition}"))

    def delete_log(self, topic_id: bytes, partition: int) -> None:
        """Forget one partition's data; its log is discarded already."""
        directory = f"{TOPICS}/{topic_id.hex()}/{partition}"
        self.logs.pop(directory, None)
        self._configs.pop(directory, None)
        self._described.discard(f"{TOPICS}/{topic_id.hex()}")
        self.later(partial(self._remove, topic_id.hex(), partition))

    def _remove(self, topic_id: str, partition: int) -> None:
        self._storage.remove_dir(f"{TOPICS}/{topic_id}/{partition}")

    def refresh_configs(self, logs: Iterable[PartitionLog]) -> None:
        """Let these open logs obey their topics' settings of now, which are read once for each topic."""
        read: dict[int, LogConfig] = {}
        for opened in logs:
            config = self._configs[opened.directory]
            found = read.get(id(config))
            if found is None:
                found = read[id(config)] = log_config(config)
            opened.config = found
