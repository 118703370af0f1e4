"""A topic's settings as its log wants them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partita.log.log_config import LogConfig

if TYPE_CHECKING:
    from partita.broker.config import TopicConfig


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
