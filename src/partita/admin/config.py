"""Every option of the admin client, by Kafka's names with underscores. (Kafka: AdminClientConfig.)"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from partita.client_options import CLIENT_OPTIONS, options_of
from partita.net.config import ClientConfig
from partita.options import check_options
from partita.references import resolve_options
from partita.security.meaning import security_of

OPTIONS = (*CLIENT_OPTIONS, *options_of("admin"))


def admin_config(config: Mapping[str, Any] | None, options: Mapping[str, Any]) -> tuple[list[str], ClientConfig]:
    """The servers to start from and the options of connections. Raises ConfigError."""
    values = check_options(OPTIONS, resolve_options(options), resolve_options(config))
    values["security"] = security_of(values)
    return values["bootstrap_servers"], ClientConfig.of(values, values["client_id"] or "admin")
