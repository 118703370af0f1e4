"""Addresses on which a node listens and at which clients find it: Kafka's `listeners` and `advertised.listeners`.

A listener has a name; a client that came by one is sent to the other nodes' listeners of the same name. Its protocol is
set by `listener.security.protocol.map`. Mirrors SocketServerConfigs and KafkaConfig.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from typing import NamedTuple

from partita.broker.config import BrokerConfig, ConfigError

PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL = PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
PORT_MAX = 65_535
EVERY_INTERFACE = ("", "0.0.0.0", "::")
_TEXT = re.compile(r"(\w[\w.-]*)://(?:\[([^\[\]]*)\]|([^\[\]:/]*)):(\d{1,5})")


class Endpoint(NamedTuple):
    """A host and a port; `str()` is a value for `bootstrap.servers`."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Listener(NamedTuple):
    """One listener: its name, the address it binds (port 0: a free one), and the advertised one (None: the same).

    `protocol` is one of Kafka's four security protocols.
    """

    name: str
    bound: Endpoint
    advertised: Endpoint | None = None
    protocol: str = PLAINTEXT

    @property
    def has_tls(self) -> bool:
        """Whether its bytes are encrypted."""
        return self.protocol in (SSL, SASL_SSL)

    @property
    def has_sasl(self) -> bool:
        """Whether clients have to log in."""
        return self.protocol in (SASL_PLAINTEXT, SASL_SSL)

    def of_node(self, index: int) -> Listener:
        """The same listener of the node `index` places after the first: ports count up."""
        advertised = self.advertised and _moved(self.advertised, index)
        return self._replace(bound=_moved(self.bound, index), advertised=advertised)

    def found_at(self, port: int) -> Endpoint:
        """Return its address for clients once it is bound to `port`. A wildcard address cannot be advertised."""
        host = socket.gethostname() if self.bound.host in EVERY_INTERFACE else self.bound.host
        host, advertised_port = self.advertised or (host, 0)
        return Endpoint(host, advertised_port or port)


def listeners(config: BrokerConfig, nodes: int) -> list[Listener]:
    """Return the listeners of the first of `nodes` nodes. Raises ConfigError."""
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
    protocols = _protocols(config)
    without = [name for name in bound if name not in protocols]
    if without:
        raise ConfigError(
            f"No security protocol defined for listener {without[0]}: name it in listener.security.protocol.map, "
            f"as {without[0]}:PLAINTEXT"
        )
    between = config.get("inter.broker.listener.name")
    if between is not None and str(between).upper() not in bound:
        raise ConfigError(
            f"inter.broker.listener.name must be a listener name defined in listeners; valid are {', '.join(bound)}"
        )
    return [Listener(name, endpoint, advertised.get(name), protocols[name]) for name, endpoint in bound.items()]


def _protocols(config: BrokerConfig) -> dict[str, str]:
    """Return the protocol of each listener."""
    found = {}
    option = "listener.security.protocol.map"
    for pair in filter(None, (part.strip() for part in config.text(option).split(","))):
        name, _, protocol = (part.strip().upper() for part in pair.partition(":"))
        if not name or protocol not in PROTOCOLS:
            raise ConfigError(
                f"Invalid value {pair} for configuration {option}: must be NAME:PROTOCOL, with one of "
                f"{', '.join(PROTOCOLS)}"
            )
        found[name] = protocol
    return found


def _parsed(option: str, given: object) -> dict[str, Endpoint]:
    assert isinstance(given, Iterable), "the option is a list"
    found: dict[str, Endpoint] = {}
    for text in map(str, given):
        match = _TEXT.fullmatch(text)
        if match is None or int(match[4]) > PORT_MAX:
            raise ConfigError(f"Invalid value {text} for configuration {option}: must be NAME://HOST:PORT")
        name, endpoint = match[1].upper(), Endpoint(match[2] or match[3] or "", int(match[4]))
        if name in found:
            raise ConfigError(f"Invalid value {text} for configuration {option}: each listener needs its own name")
        if option == "listeners" and endpoint.port and endpoint.port in {other.port for other in found.values()}:
            raise ConfigError(f"Invalid value {text} for configuration {option}: each listener needs its own port")
        found[name] = endpoint
    return found


def _moved(endpoint: Endpoint, by: int) -> Endpoint:
    return endpoint._replace(port=endpoint.port and endpoint.port + by)
