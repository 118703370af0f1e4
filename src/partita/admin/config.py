"""Every option of the admin client, by Kafka's names with underscores. (Kafka: AdminClientConfig.)

Must not know what the options do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from partita.net.config import ClientConfig
from partita.options import REQUIRED, ConfigError, Option, check_options
from partita.security_options import SECURITY_OPTIONS, SECURITY_PROTOCOLS

OPTIONS: tuple[Option, ...] = (
    Option("bootstrap_servers", "list", REQUIRED, "host:port list to find the cluster by"),
    Option("bootstrap_controllers", "list", [], "not supported"),
    Option("client_id", "str", "", "name of this client in the brokers' logs"),
    Option("request_timeout_ms", "int", 30_000, "time for one answer", minimum=0),
    Option("default_api_timeout_ms", "int", 60_000, "time for a whole call, retries included", minimum=0),
    Option("retries", "int", 2_147_483_647, "accepted; a call repeats until its time is over",
           minimum=0, maximum=2_147_483_647),
    Option("retry_backoff_ms", "int", 100, "first wait before a request is repeated", minimum=0),
    Option("retry_backoff_max_ms", "int", 1_000, "longest such wait", minimum=0),
    Option("reconnect_backoff_ms", "int", 50, "first wait before connecting again", minimum=0),
    Option("reconnect_backoff_max_ms", "int", 1_000, "longest such wait", minimum=0),
    Option("socket_connection_setup_timeout_ms", "int", 10_000, "time to connect", minimum=1),
    Option("socket_connection_setup_timeout_max_ms", "int", 30_000, "longest such time", minimum=1),
    Option("connections_max_idle_ms", "int", 300_000, "idle connections are closed after this"),
    Option("metadata_max_age_ms", "int", 300_000, "metadata older than this is asked for again", minimum=0),
    Option("metadata_recovery_strategy", "str", "rebootstrap", "accepted; bootstrap servers are always tried",
           choices=("rebootstrap", "none"), ignore_case=True),
    Option("metadata_recovery_rebootstrap_trigger_ms", "int", 300_000, "accepted; they are always tried", minimum=0),
    Option("client_dns_lookup", "str", "use_all_dns_ips", "accepted; not used",
           choices=("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")),
    Option("send_buffer_bytes", "int", -1, "socket buffer; -1 lets the system choose", minimum=-1),
    Option("receive_buffer_bytes", "int", -1, "socket buffer; -1 lets the system choose", minimum=-1),
    Option("metrics_sample_window_ms", "int", 30_000, "accepted; not used", minimum=0),
    Option("metrics_num_samples", "int", 2, "accepted; not used", minimum=1),
    Option("metrics_recording_level", "str", "INFO", "accepted; not used", choices=("INFO", "DEBUG", "TRACE")),
    Option("metric_reporters", "list", [], "accepted; not used"),
    Option("enable_metrics_push", "bool", False, "accepted; nothing is pushed"),
    Option("config_providers", "list", [], "accepted; not used"),
    Option("security_protocol", "str", "PLAINTEXT", "only PLAINTEXT is spoken so far",
           choices=SECURITY_PROTOCOLS, ignore_case=True),
    *SECURITY_OPTIONS,
)  # fmt: skip


def admin_config(config: Mapping[str, Any] | None, options: Mapping[str, Any]) -> tuple[list[str], ClientConfig]:
    """The servers to start from and the options of connections. Raises ConfigError."""
    values = check_options(OPTIONS, options, config)
    if values["security_protocol"] != "PLAINTEXT":
        raise ConfigError(f"security_protocol {values['security_protocol']} is not supported yet; only PLAINTEXT is")
    names = ClientConfig.__dataclass_fields__.keys() & values.keys() - {"bootstrap_servers", "client_id"}
    servers: list[str] = values["bootstrap_servers"]
    return servers, ClientConfig(client_id=values["client_id"] or "admin", **{name: values[name] for name in names})
