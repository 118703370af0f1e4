"""Every option of the admin client, by Kafka's names with underscores. (Kafka: AdminClientConfig.)"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from partita.client_options import CLIENT_OPTIONS
from partita.net.config import ClientConfig
from partita.options import Option, check_options
from partita.references import resolve_options
from partita.security.meaning import security_of

OPTIONS: tuple[Option, ...] = (
    *CLIENT_OPTIONS,
    Option("bootstrap_controllers", "list", [], "addresses of controllers"),
    Option("default_api_timeout_ms", "int", 60_000, "time for a whole call, retries included", minimum=0),
    Option("retries", "int", 2_147_483_647, "how often a call is repeated; here until its time is over",
           minimum=0, maximum=2_147_483_647),
    Option("connections_max_idle_ms", "int", 300_000, "idle connections are closed after this; -1: never", minimum=-1),
    Option("metrics_sample_window_ms", "int", 30_000, "window of averages and rates", minimum=0),
    Option("metrics_num_samples", "int", 2, "how many windows count", minimum=1),
    Option("metrics_recording_level", "str", "INFO", "all metrics are recorded at any level",
           choices=("INFO", "DEBUG", "TRACE")),
    Option("metric_reporters", "list", [], "classes that are told of metrics"),
    Option("enable_metrics_push", "bool", False, "whether metrics are pushed to the broker"),
)  # fmt: skip


def admin_config(config: Mapping[str, Any] | None, options: Mapping[str, Any]) -> tuple[list[str], ClientConfig]:
    """The servers to start from and the options of connections. Raises ConfigError."""
    values = check_options(OPTIONS, resolve_options(options), resolve_options(config))
    values["security"] = security_of(values)
    names = ClientConfig.__dataclass_fields__.keys() & values.keys() - {"bootstrap_servers", "client_id"}
    servers: list[str] = values["bootstrap_servers"]
    return servers, ClientConfig(client_id=values["client_id"] or "admin", **{name: values[name] for name in names})
