"""The three levels of durability, and when a log has to be synced next.

memory: nothing survives the process. os: everything survives a kill, a power loss may take the tail since the last sync
(at most a second or 8 MiB). sync: acknowledged means durable, by group commit. (faults.md 7.1; Kafka's is `os`.)
"""

from __future__ import annotations

from enum import Enum

OS_SYNC_MS = 1000
OS_SYNC_BYTES = 8 << 20
GROUP_COMMIT_MS = 2
"""Time that the first append of a group waits for others; the whole window stays below 5 ms on an idle disk."""


class Durability(Enum):
    """Durability that an acknowledgement promises."""

    MEMORY = "memory"
    OS = "os"
    SYNC = "sync"


def next_sync_ms(durability: Durability, unsynced_bytes: int, unsynced_since_ms: int) -> int | None:
    """Return when (monotonic) a log with unsynced bytes since then must be synced; None: never."""
    if durability is Durability.MEMORY or not unsynced_bytes:
        return None
    if durability is Durability.SYNC:
        return unsynced_since_ms + GROUP_COMMIT_MS
    return unsynced_since_ms if unsynced_bytes >= OS_SYNC_BYTES else unsynced_since_ms + OS_SYNC_MS
