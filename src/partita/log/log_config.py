"""Settings of a partition's log: topic configs by Kafka's names with underscores, and the levels of durability.

memory: nothing survives the process. os: everything survives a kill, a power loss may take the tail since the last sync
(at most a second or 8 MiB). sync: acknowledged means durable, by group commit. (faults.md 7.1; Kafka's is `os`.)
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

DAY_MS = 86_400_000
FOREVER = 2**63 - 1


class LogConfig(NamedTuple):
    """Configs with Kafka's defaults. A retention of -1 means no limit."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * DAY_MS
    retention_ms: int = 7 * DAY_MS
    retention_bytes: int = -1
    index_interval_bytes: int = 4096
    delete: bool = True
    compact: bool = False
    delete_retention_ms: int = DAY_MS
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = FOREVER
    log_append_time: bool = False
    producer_id_expiration_ms: int = DAY_MS


OS_SYNC_MS = 1000
OS_SYNC_BYTES = 8 << 20
GROUP_COMMIT_MS = 2
"""Time that the first append of a group waits for others; the whole window stays below 5 ms on an idle disk."""


class Durability(Enum):
    """Durability that an acknowledgement promises."""

    MEMORY = "memory"
    OS = "os"
    SYNC = "sync"


MEMORY, OS, SYNC = Durability


def next_sync_ms(durability: Durability, unsynced_bytes: int, unsynced_since_ms: int) -> int | None:
    """Return when (monotonic) a log with unsynced bytes since then must be synced; None: never."""
    if durability is Durability.MEMORY or not unsynced_bytes:
        return None
    if durability is Durability.SYNC:
        return unsynced_since_ms + GROUP_COMMIT_MS
    return unsynced_since_ms if unsynced_bytes >= OS_SYNC_BYTES else unsynced_since_ms + OS_SYNC_MS
