"""Keyword arguments: options of the producer alone. Written by tools/option_types.py; do not edit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from partita.client_option_types import ClientOptions
from partita.producer.serializing import Serializer


class ProducerOptions(ClientOptions, total=False):
    """Every option by its name, in Kafka's spelling with underscores: options of the producer alone."""

    key_serializer: Serializer | str | None
    value_serializer: Serializer | str | None
    acks: str | int
    enable_idempotence: bool
    compression_type: str
    compression_gzip_level: int
    compression_lz4_level: int
    compression_zstd_level: int
    batch_size: int
    linger_ms: int
    buffer_memory: int
    buffer_memory_allocation_strategy: str
    max_block_ms: int
    max_request_size: int
    max_in_flight_requests_per_connection: int
    delivery_timeout_ms: int
    retries: int
    partitioner_class: Any
    partitioner_ignore_keys: bool
    partitioner_adaptive_partitioning_enable: bool
    partitioner_rack_aware: bool
    client_rack: str
    partitioner_availability_timeout_ms: int
    connections_max_idle_ms: int
    metadata_max_idle_ms: int
    interceptor_classes: str | Iterable[Any]
    transactional_id: str | None
    transaction_timeout_ms: int
    transaction_two_phase_commit_enable: bool
    metrics_sample_window_ms: int
    metrics_num_samples: int
    metrics_recording_level: str
    metric_reporters: str | Iterable[Any]
    enable_metrics_push: bool
