"""Topic configs of a partition's log: Kafka's names with underscores."""

from __future__ import annotations

from dataclasses import dataclass

DAY_MS = 86_400_000
FOREVER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class LogConfig:
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
