"""Where a node listens and where its clients find it: Kafka's `listeners` and `advertised.listeners`.

A listener has a name; a client that came by one is sent to the other nodes' listeners of the same name. All are
unencrypted. Mirrors SocketServerConfigs and KafkaConfig of Apache Kafka 4.3.1.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from typing import NamedTuple

from partita.broker.config import BrokerConfig, ConfigError

PLAINTEXT = "PLAINTEXT"
PORT_MAX = 65_535
EVERY_INTERFACE = ("", "0.0.0.0", "::")
_SECURE = frozenset({"SSL", "SASL_PLAINTEXT", "SASL_SSL"})
_TEXT = re.compile(r"(\w[\w.-]*)://(?:\[([^\[\]]*)\]|([^\[\]:/]*)):(\d{1,5})")


class Endpoint(NamedTuple):
    """A host and a port; `str()` is what a client wants as `bootstrap.servers`."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Listener(NamedTuple):
    """One listener: its name, what it binds (port 0: one that is free), what clients are told (None: the same)."""

    name: str
    bound: Endpoint
    advertised: Endpoint | None = None

    def of_node(self, index: int) -> Listener:
        """The same listener of the node `index` places after the first: ports count up."""
        return Listener(self.name, _moved(self.bound, index), self.advertised and _moved(self.advertised, index))

    def found_at(self, port: int) -> Endpoint:
        """Where clients find it once it is bound to `port`. An address that means every interface helps nobody."""
        host = socket.gethostname() if self.bound.host in EVERY_INTERFACE else self.bound.host
        host, advertised_port = self.advertised or (host, 0)
        return Endpoint(host, advertised_port or port)


def listeners(config: BrokerConfig, nodes: int) -> list[Listener]:
    """What the settings ask for, as it is for the first of `nodes` nodes. Raises ConfigError."""
    bound = _parsed("listeners", config.list("listeners"))
    advertised = _parsed("advertised.listeners", config.get("advertised.listeners") or ())
    if not bound:
        raise ConfigError("Invalid value for configuration listeners: at least one is needed")
    strange = [name for name in advertised if name not in bound]
    if strange:
        raise ConfigError(f"advertised.listeners names {', '.join(strange)}, listeners only {', '.join(bound)}")
    for name, endpoint in advertised.items():
        if endpoint.host in EVERY_INTERFACE:
            raise ConfigError(f"advertised.listeners {name}://{endpoint} is no address that a client can connect to")
    for name, endpoint in (*bound.items(), *advertised.items()):
        if _moved(endpoint, nodes - 1).port > PORT_MAX:
            raise ConfigError(f"{name}: {nodes} ports from {endpoint.port} on are wanted; {PORT_MAX} is the last one")
    return [Listener(name, endpoint, advertised.get(name)) for name, endpoint in bound.items()]


def _parsed(option: str, given: object) -> dict[str, Endpoint]:
    assert isinstance(given, Iterable), "the option is a list"
    found: dict[str, Endpoint] = {}
    for text in map(str, given):
        match = _TEXT.fullmatch(text)
        if match is None or int(match[4]) > PORT_MAX:
            raise ConfigError(f"Invalid value {text} for configuration {option}: must be NAME://HOST:PORT")
        name, endpoint = match[1].upper(), Endpoint(match[2] or match[3] or "", int(match[4]))
        if name in _SECURE:
            raise ConfigError(f"Invalid value {text} for configuration {option}: neither TLS nor SASL is served")
        if name in found:
            raise ConfigError(f"Invalid value {text} for configuration {option}: each listener needs its own name")
        if option == "listeners" and endpoint.port and endpoint.port in {other.port for other in found.values()}:
            raise ConfigError(f"Invalid value {text} for configuration {option}: each listener needs its own port")
        found[name] = endpoint
    return found


def _moved(endpoint: Endpoint, by: int) -> Endpoint:
    return endpoint._replace(port=endpoint.port and endpoint.port + by)
