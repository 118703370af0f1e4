"""The logs of a store: opened one by one, watched for damage and failure, with the chores of the next sync."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from partita.broker.config import TopicConfig
from partita.broker.storage.side_by_side import AT_ONCE, side_by_side
from partita.lazy import later
from partita.log.log_config import Durability, LogConfig
from partita.log.storage import TRANSIENT, Storage, StorageError, replace_file
from partita.system_clock import SystemClock

if TYPE_CHECKING:
    from partita.broker.storage import catalogue_file
    from partita.log import partition_log
else:
    catalogue_file = later("partita.broker.storage.catalogue_file")
    partition_log = later("partita.log.partition_log")


def log_config(config: TopicConfig) -> LogConfig:
    """Read every option a log obeys; ask again when one has changed."""
    policies = config.list("cleanup.policy")
    # Kafka's tests shorten segments below the public minimum with this one.
    segment_bytes = config.get("internal.segment.bytes")
    return LogConfig(
        segment_bytes=segment_bytes if isinstance(segment_bytes, int) else config.int("segment.bytes"),
        segment_ms=config.int("segment.ms"),
        retention_ms=config.int("retention.ms"),
        retention_bytes=config.int("retention.bytes"),
        index_interval_bytes=config.int("index.interval.bytes"),
        delete="delete" in policies,
        compact="compact" in policies,
        delete_retention_ms=config.int("delete.retention.ms"),
        min_cleanable_dirty_ratio=config.float("min.cleanable.dirty.ratio"),
        min_compaction_lag_ms=config.int("min.compaction.lag.ms"),
        max_compaction_lag_ms=config.int("max.compaction.lag.ms"),
        log_append_time=config.text("message.timestamp.type") == "LogAppendTime",
    )


log = logging.getLogger("partita.broker")

NO_ROOM_EVERY_MS = 60_000
"""Shortest time between log lines about batches refused for want of room or descriptors."""
COUNTERS = {
    "unclean_starts": "starts after a stop that was not in order",
    "logs_cut": "logs that recovery made shorter",
    "bytes_cut": "bytes that recovery took from logs",
    "batches_damaged": "batches that cannot be read",
    "offsets_clamped": "committed offsets whose records were lost, brought back to the end of the log",
    "offsets_missing": "offsets of logs whose segments are missing",
}
"""The damage that a store counts, each with its description."""


class LogStore:
    """The common part of stores on disk and in memory; see `partita.broker.storage.store.Store` for its promises."""

    _at_once = AT_ONCE
    """Number of logs synced at a time, at a start and a stop."""

    def __init__(self, storage: Storage, group_storage: Storage, durability: Durability) -> None:
        self._storage = storage
        self._group_storage = group_storage
        self._configs: dict[str, TopicConfig] = {}
        self._described: set[str] = set()
        """Topic folders that hold their description already."""
        self._clock = SystemClock()
        self.durability = durability
        self.unclean = False
        self.failure: str | None = None
        self.handover: bytes | None = None
        self.copied_ms = -1
        self.logs: dict[str, partition_log.PartitionLog] = {}
        self.chores: list[Callable[[], None]] = []
        self.on_opened: Callable[[partition_log.PartitionLog], None] | None = None
        self.on_failed: Callable[[str], None] | None = None
        self.on_chore: Callable[[], None] | None = None
        self.notices: list[tuple[str, dict[str, object]]] = []
        self.on_notice: Callable[..., None] | None = None
        self._ends: dict[str, int] = {}
        """Log ends at the last orderly stop, by folder: they never become shorter."""
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
    ) -> partition_log.PartitionLog:
        """Open the log of one partition, creating it when it is new. Called once per partition."""
        if self.failure is not None:
            raise StorageError(f"the log directory is offline: {self.failure}")
        folder = f"{catalogue_file.TOPICS}/{topic_id.hex()}"
        directory = f"{folder}/{partition}"
        try:
            opened = partition_log.PartitionLog.open(
                self._group_storage if is_group_log else self._storage,
                directory,
                log_config(config),
                durability=self.durability,
                was_clean=not self.unclean,
                known_end=self._ends.get(directory, 0),
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
        """Write the description into the topic's folder unless it is there. Checked once per folder: it may be full."""
        if folder in self._described:
            return
        self._described.add(folder)
        if catalogue_file.DESCRIPTION not in self._storage.list(folder):
            self.later(partial(self._write_description, folder, description()))

    def _write_description(self, folder: str, description: bytes) -> None:
        if self._storage.list(folder):
            replace_file(self._storage, folder, catalogue_file.DESCRIPTION, catalogue_file.encode(description))

    def describe(self, topic_id: bytes, description: bytes) -> None:
        """Write the catalogue's present description of the topic into its folder, if it has one."""
        folder = f"{catalogue_file.TOPICS}/{topic_id.hex()}"
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
        """Take the log directory offline: a file operation failed, and the state of the disk is unknown (D7)."""
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

    def _tell_recovery(self, opened: partition_log.PartitionLog) -> None:
        """Report records that recovery removed (7.4); nothing is cut in silence."""
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
        """Record an observation about the disk, and pass it to the listener."""
        self.notices.append((what, details))
        if self.on_notice is not None:
            self.on_notice(what, **details)

    def _damaged(self, damaged: partition_log.PartitionLog, what: str) -> None:
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
        directory = f"{catalogue_file.TOPICS}/{topic_id.hex()}/{partition}"
        return directory in self._ends or bool(self._storage.list(directory))

    def delete_log(self, topic_id: bytes, partition: int) -> None:
        """Forget one partition's data; its log is discarded already."""
        directory = f"{catalogue_file.TOPICS}/{topic_id.hex()}/{partition}"
        self.logs.pop(directory, None)
        self._configs.pop(directory, None)
        self._ends.pop(directory, None)
        self._described.discard(f"{catalogue_file.TOPICS}/{topic_id.hex()}")
        self.later(partial(self._remove, topic_id.hex(), partition))

    def _remove(self, topic_id: str, partition: int) -> None:
        self._storage.remove_dir(f"{catalogue_file.TOPICS}/{topic_id}/{partition}")

    def close_logs(self) -> None:
        """Close every open log: many at a time where each waits for a disk."""
        side_by_side([opened.close for opened in self.logs.values()], "closing logs", at_once=self._at_once)

    def refresh_configs(self, logs: Iterable[partition_log.PartitionLog]) -> None:
        """Let these open logs obey their topics' settings of now, which are read once for each topic."""
        read: dict[int, LogConfig] = {}
        for opened in logs:
            config = self._configs[opened.directory]
            found = read.get(id(config))
            if found is None:
                found = read[id(config)] = log_config(config)
            opened.config = found
