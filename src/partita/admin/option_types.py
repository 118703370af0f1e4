"""Keyword arguments: options of the admin alone. Written by tools/option_types.py; do not edit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from partita.client_option_types import ClientOptions


class AdminOptions(ClientOptions, total=False):
    """Every option by its name, in Kafka's spelling with underscores: options of the admin alone."""

    bootstrap_controllers: str | Iterable[Any]
    default_api_timeout_ms: int
    retries: int
    connections_max_idle_ms: int
    metrics_sample_window_ms: int
    metrics_num_samples: int
    metrics_recording_level: str
    metric_reporters: str | Iterable[Any]
    enable_metrics_push: bool
