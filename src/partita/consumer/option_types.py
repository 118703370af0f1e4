"""Keyword arguments: options of the consumer alone. Written by tools/option_types.py; do not edit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from partita.client_option_types import ClientOptions


class ConsumerOptions(ClientOptions, total=False):
    """Every option by its name, in Kafka's spelling with underscores: options of the consumer alone."""

    group_id: str | None
    group_instance_id: str | None
    group_protocol: str
    group_remote_assignor: str | None
    client_rack: str
    interceptor_classes: str | Iterable[Any]
    partition_assignment_strategy: str | Iterable[Any]
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    auto_offset_reset: str
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    max_poll_records: int
    fetch_min_bytes: int
    fetch_max_wait_ms: int
    fetch_max_bytes: int
    max_partition_fetch_bytes: int
    check_crcs: bool
    isolation_level: str
    exclude_internal_topics: bool
    allow_auto_create_topics: bool
    internal_throw_on_fetch_stable_offset_unsupported: bool
    default_api_timeout_ms: int
    connections_max_idle_ms: int
    metrics_sample_window_ms: int
    metrics_num_samples: int
    metrics_recording_level: str
    metric_reporters: str | Iterable[Any]
    enable_metrics_push: bool
    fetch_buffer_max_bytes: int
    enable_partition_eof: bool
    commit_done_only: bool
    progress_timeout_ms: int
    poison_policy: str
    dead_letter_topic: str | None
    dead_letter_exactly_once: bool
