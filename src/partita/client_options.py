"""The options that the consumer, the producer and the admin client share: finding brokers and keeping connections.

By Kafka's names with underscores, with Kafka's defaults and bounds (CommonClientConfigs).
"""

from __future__ import annotations

from partita.options import REQUIRED, Option
from partita.security_options import SECURITY_OPTIONS, SECURITY_PROTOCOLS

CLIENT_OPTIONS: tuple[Option, ...] = (
    Option("bootstrap_servers", "list", REQUIRED, "host:port list to find the cluster by"),
    Option("client_id", "str", "", "name of this client in the brokers' logs"),
    Option("request_timeout_ms", "int", 30_000, "time for one answer", minimum=0),
    Option("retry_backoff_ms", "int", 100, "first wait before a request is repeated", minimum=0),
    Option("retry_backoff_max_ms", "int", 1_000, "longest such wait", minimum=0),
    Option("reconnect_backoff_ms", "int", 50, "first wait before connecting again", minimum=0),
    Option("reconnect_backoff_max_ms", "int", 1_000, "longest such wait", minimum=0),
    Option("socket_connection_setup_timeout_ms", "int", 10_000, "time to connect", minimum=1),
    Option("socket_connection_setup_timeout_max_ms", "int", 30_000, "longest such time", minimum=1),
    Option("metadata_max_age_ms", "int", 300_000, "metadata older than this is asked for again", minimum=0),
    Option("metadata_recovery_strategy", "str", "rebootstrap", "when to use bootstrap servers again; here: always",
           choices=("rebootstrap", "none"), ignore_case=True),
    Option("metadata_recovery_rebootstrap_trigger_ms", "int", 300_000, "when they are tried again", minimum=0),
    Option("client_dns_lookup", "str", "use_all_dns_ips", "how host names are looked up",
           choices=("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")),
    Option("send_buffer_bytes", "int", -1, "socket buffer; -1 lets the system choose", minimum=-1),
    Option("receive_buffer_bytes", "int", -1, "socket buffer; -1 lets the system choose", minimum=-1),
    Option("config_providers", "list", [], "where values of options are fetched from"),
    Option("security_protocol", "str", "PLAINTEXT", "how brokers are reached: plain text or TLS, with or without SASL",
           choices=SECURITY_PROTOCOLS, ignore_case=True),
    *SECURITY_OPTIONS,
)  # fmt: skip
