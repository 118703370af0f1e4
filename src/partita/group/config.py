"""The coordinator's settings: Kafka's names with underscores, Kafka's defaults, Kafka's bounds.

A shard holds one `GroupConfig` and reads it at each decision, so replacing it reconfigures a running broker. Settings
of the KIP-848 protocol are here too, so that the broker checks and reports all of them. (Kafka:
GroupCoordinatorConfig.) Names that start with "partita_" are limits that Kafka does not have.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

_INT_MAX = 2**31 - 1
NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""Time within which the first join of a new member is answered. Not configurable in Kafka either."""


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """Every setting of the coordinator. Raises ValueError for values out of bounds."""

    offset_metadata_max_bytes: int = 4096
    offsets_load_buffer_size: int = 5_242_880
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
    offsets_topic_num_partitions: int = 50
    offsets_commit_timeout_ms: int = 5_000
    offsets_topic_segment_bytes: int = 104_857_600
    offsets_topic_replication_factor: int = 3
    offsets_topic_compression_codec: int = 0
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = _INT_MAX
    group_coordinator_rebalance_protocols: tuple[str, ...] = ("classic", "consumer", "streams")
    group_coordinator_threads: int = 4
    group_coordinator_append_linger_ms: int = -1
    group_coordinator_background_threads: int = 2
    group_coordinator_cached_buffer_max_bytes: int = 1_048_588
    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_min_session_timeout_ms: int = 45_000
    group_consumer_max_session_timeout_ms: int = 60_000
    group_consumer_heartbeat_interval_ms: int = 5_000
    group_consumer_min_heartbeat_interval_ms: int = 5_000
    group_consumer_max_heartbeat_interval_ms: int = 15_000
    group_consumer_max_size: int = _INT_MAX
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")
    group_consumer_migration_policy: str = "bidirectional"
    group_consumer_regex_refresh_interval_ms: int = 600_000
    group_consumer_assignment_interval_ms: int = 1_000
    group_consumer_min_assignment_interval_ms: int = 0
    group_consumer_max_assignment_interval_ms: int = 15_000
    group_share_session_timeout_ms: int = 45_000
    group_share_min_session_timeout_ms: int = 45_000
    group_share_max_session_timeout_ms: int = 60_000
    group_share_heartbeat_interval_ms: int = 5_000
    group_share_min_heartbeat_interval_ms: int = 5_000
    group_share_max_heartbeat_interval_ms: int = 15_000
    group_share_max_size: int = 200
    group_share_assignment_interval_ms: int = 1_000
    group_share_min_assignment_interval_ms: int = 0
    group_share_max_assignment_interval_ms: int = 15_000
    group_share_initialize_retry_interval_ms: int = 30_000
    group_streams_acceptable_recovery_lag: int = 10_000
    group_streams_assignment_interval_ms: int = 1_000
    group_streams_heartbeat_interval_ms: int = 5_000
    group_streams_initial_rebalance_delay_ms: int = 3_000
    group_streams_max_assignment_interval_ms: int = 15_000
    group_streams_max_heartbeat_interval_ms: int = 15_000
    group_streams_max_session_timeout_ms: int = 60_000
    group_streams_max_size: int = _INT_MAX
    group_streams_max_standby_replicas: int = 2
    group_streams_min_assignment_interval_ms: int = 0
    group_streams_min_heartbeat_interval_ms: int = 5_000
    group_streams_min_session_timeout_ms: int = 45_000
    group_streams_min_task_offset_interval_ms: int = 15_000
    group_streams_num_standby_replicas: int = 0
    group_streams_rack_aware_assignment_tags: tuple[str, ...] = ()
    group_streams_session_timeout_ms: int = 45_000
    group_streams_task_offset_interval_ms: int = 60_000

    max_message_bytes: int = 1_048_588
    """Largest batch the offsets topic takes (its own `max.message.bytes`); larger steps are refused before a change."""
    partita_pending_members_max: int = 100_000
    partita_member_metadata_max_bytes: int = 1_048_576
    partita_protocols_max: int = 1_000
    """Limits of one shard against faulty clients; each is answered with a fatal error."""

    partita_groups_max: int = 10_000
    """Maximum number of groups over all shards of a broker; further new groups are refused."""
    partita_rebalance_on_static_change: bool = False
    """Rebalance when a static member restarts with other topics (Kafka waits for the next rebalance)."""

    def __post_init__(self) -> None:
        for name, low in _AT_LEAST.items():
            value = getattr(self, name)
            if value < low:
                raise ValueError(f"Invalid value {value} for configuration {_dotted(name)}: must be at least {low}")
        low, high = self.group_min_session_timeout_ms, self.group_max_session_timeout_ms
        if low > high:
            raise ValueError(f"group.min.session.timeout.ms {low} must be at most group.max.session.timeout.ms {high}")

    @property
    def offsets_retention_ms(self) -> int:
        """Time offsets are kept after their group became empty."""
        return self.offsets_retention_minutes * 60_000

    @classmethod
    def from_options(cls, options: Any) -> GroupConfig:
        """Read every setting from a mapping or look-up `options.get("group.max.size")`; None leaves the default."""
        given = {f.name: options.get(_dotted(f.name)) for f in fields(cls) if f.name in _OPTIONS}
        return cls(**{name: value for name, value in given.items() if value is not None})


def _dotted(name: str) -> str:
    return name.replace("_", ".")


_OPTIONS = frozenset(f.name for f in fields(GroupConfig)) - {
    "max_message_bytes",
    "partita_pending_members_max",
    "partita_member_metadata_max_bytes",
    "partita_protocols_max",
}

_UNBOUNDED = {
    "offset_metadata_max_bytes",
    "offsets_topic_compression_codec",
    "group_min_session_timeout_ms",
    "group_max_session_timeout_ms",
    "group_initial_rebalance_delay_ms",
}
_MAY_BE_ZERO = ("assignment_interval_ms", "streams_initial_rebalance_delay_ms", "standby_replicas", "recovery_lag")
"""Ends of the names of settings that may be 0; the others have to be 1 or more."""
_AT_LEAST = {
    f.name: 0 if f.name.endswith(_MAY_BE_ZERO) else 1
    for f in fields(GroupConfig)
    if f.type == "int" and f.name in _OPTIONS - _UNBOUNDED
} | {
    "group_coordinator_append_linger_ms": -1,
    "group_coordinator_cached_buffer_max_bytes": 524_288,
    "group_consumer_regex_refresh_interval_ms": 10_000,
}
