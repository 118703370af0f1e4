"""Options every client shares: addresses, timeouts, back-off.

Names are Kafka's with underscores, defaults those of consumer.md 3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from partita.security.meaning import PLAIN_TEXT, Security

DEFAULT_PORT = 9092
_LISTENER_SCHEMES = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """Timeouts and back-offs in milliseconds, sizes in bytes (-1: what the system chooses)."""

    bootstrap_servers: tuple[tuple[str, int], ...] = ()
    client_id: str = "partita"
    request_timeout_ms: int = 30_000
    default_api_timeout_ms: int = 60_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    socket_connection_setup_timeout_ms: int = 10_000
    socket_connection_setup_timeout_max_ms: int = 30_000
    connections_max_idle_ms: int = 540_000
    metadata_max_age_ms: int = 300_000
    metadata_cluster_check_enable: bool = True
    # Deviation: Partita leaves the sizes of socket buffers to the system (-1), where Kafka sets 128 KiB and 64 KiB.
    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1
    response_max_bytes: int = 256 << 20
    metrics_sample_window_ms: int = 30_000
    metrics_num_samples: int = 2
    security: Security = PLAIN_TEXT

    @classmethod
    def of(cls, values: Mapping[str, Any], client_id: str, **others: Any) -> ClientConfig:
        """The options of a client that its connections need; `others` have another form or value there."""
        names = cls.__dataclass_fields__.keys() & values.keys() - {"bootstrap_servers", "client_id"}
        return cls(client_id=client_id, **others, **{name: values[name] for name in names})


def parse_servers(servers: str | Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Turn "a:9092,b" or ["a:9092", "[::1]:9093"] into (host, port) pairs. Raises ValueError for nonsense."""
    parts = servers.split(",") if isinstance(servers, str) else [*map(_as_text, servers)]
    found = tuple(parse_server(part.strip()) for part in parts if part.strip())
    if not found:
        raise ValueError("bootstrap_servers is empty; give at least one host:port")
    return found


def _as_text(server: object) -> str:
    if not isinstance(server, str):
        raise ValueError(f"{server!r} is not an address; expected text host:port such as 'localhost:9092'")
    return server


def parse_server(server: str) -> tuple[str, int]:
    """One "host:port", "host" or "[ipv6]:port"; the prefix of a listener, "PLAINTEXT://", is passed over."""
    scheme, _, address = server.rpartition("://")
    if scheme and scheme.upper() not in _LISTENER_SCHEMES:
        raise ValueError(
            f"{server!r} is not an address; expected host:port such as localhost:9092, without {scheme}://"
        )
    host, colon, port = address.rpartition(":")
    if address.endswith("]") or not colon:
        host, port = address, str(DEFAULT_PORT)
    if not port.isdigit() or not 0 < int(port) < 65_536 or not host:
        raise ValueError(f"{server!r} is not an address; expected host:port such as localhost:9092")
    return host.strip("[]"), int(port)


def backoff_ms(base_ms: int, max_ms: int, attempts: int, uniform: Callable[[float, float], float]) -> float:
    """Kafka's back-off: min(max, base * 2^attempts) spread by 20 % either way. `attempts` counts from 0."""
    return min(max_ms, base_ms * 2.0 ** min(attempts, 30)) * uniform(0.8, 1.2)
