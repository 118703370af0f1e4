"""From settings to a running cluster: the way in shared by the command line and the embedded broker.

Whatever can be wrong with the settings (a taken port, a directory in use, an unknown option) ends as a StartError with
one line. Must not know threads or terminals.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from errno import EACCES, EADDRINUSE

from partita.broker.cluster import Cluster
from partita.broker.config import BrokerConfig, ConfigError, as_text
from partita.broker.data_dir import DataDirectoryError, DiskStore, MemoryStore
from partita.broker.store import Store
from partita.log.durability import Durability

MEMORY, OS, SYNC = "memory", "os", "sync"
NODES_MAX = 32
PORT_MAX = 65_535


class StartError(Exception):
    """The broker cannot start; the message is one line for the user."""


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """How to start. `port` 0 lets the system choose; with several nodes a given port is the first node's."""

    host: str = "127.0.0.1"
    port: int = 0
    data_dir: str | None = None
    durability: str | None = None
    nodes: int = 1
    kafka_defaults: bool = False
    notes_file: str | None = None
    admin_port: int | None = None
    options: Mapping[str, object] = field(default_factory=dict)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A uvloop where it is installed (not with PARTITA_UVLOOP=0), else asyncio's own."""
    if os.environ.get("PARTITA_UVLOOP", "1") != "0":
        try:
            import uvloop
        except ImportError:
            pass
        else:
            return uvloop.new_event_loop()
    return asyncio.new_event_loop()


async def start_cluster(settings: BrokerSettings) -> Cluster:
    """Open the store and start every node on the running loop; raise StartError when something is in the way."""
    if not 1 <= settings.nodes <= NODES_MAX:
        raise StartError(f"nodes must be between 1 and {NODES_MAX}, not {settings.nodes}")
    ports = [settings.port + i if settings.port else 0 for i in range(settings.nodes)]
    if not 0 <= ports[0] <= ports[-1] <= PORT_MAX:
        raise StartError(f"ports are between 0 and {PORT_MAX}, and {settings.nodes} from {settings.port} on are wanted")
    try:
        config = BrokerConfig(settings.options, kafka_defaults=settings.kafka_defaults)
        store = _open_store(settings)
    except (ConfigError, DataDirectoryError) as error:
        raise StartError(str(error)) from None
    cluster = Cluster(config, store, settings.nodes)
    if settings.notes_file is not None:
        await _open_notes(cluster, settings.notes_file)
    try:
        await cluster.start(settings.host, ports)
    except OSError as error:
        await cluster.stop()
        reason = os.strerror(error.errno) if error.errno else str(error)
        hint = "--port" if error.errno in (EADDRINUSE, EACCES) else "--host"
        raise StartError(f"cannot listen on {settings.host}:{settings.port}: {reason}; choose another {hint}") from None
    if settings.admin_port is not None:
        await _start_admin(cluster, settings.admin_port)
    return cluster


async def _open_notes(cluster: Cluster, path: str) -> None:
    try:
        cluster.notes.write_to(path)
    except OSError as error:
        await cluster.stop()
        raise StartError(f"cannot write notes to {path}: {error.strerror}") from None


async def _start_admin(cluster: Cluster, port: int) -> None:
    from partita.broker.admin_http import AdminEndpoint

    endpoint = AdminEndpoint(cluster)
    try:
        cluster.admin_port = await endpoint.listen(port)
    except OSError as error:
        await cluster.stop()
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise StartError(f"cannot listen on 127.0.0.1:{port}: {reason}; choose another --admin-port") from None
    cluster.on_stop(endpoint.close)


def _open_store(settings: BrokerSettings) -> Store:
    durability = settings.durability or (MEMORY if settings.data_dir is None else OS)
    if durability not in (MEMORY, OS, SYNC):
        raise StartError(f"durability must be memory, os or sync, not {durability}")
    if settings.data_dir is None:
        if durability != MEMORY:
            raise StartError(f"durability {durability} needs a data directory")
        return MemoryStore()
    return DiskStore(settings.data_dir, Durability(durability))


def banner(cluster: Cluster) -> list[str]:
    """What a user should know at start: address, data, durability, what differs from Kafka."""
    addresses = ", ".join(f"{node.advertised_host}:{node.port}" for node in cluster.nodes.values())
    differs = ", ".join(f"{name}={as_text(value)}" for name, value in cluster.config.differs_from_kafka().items())
    lines = [
        f"bootstrap  {addresses}",
        f"data       {cluster.store.description}",
        f"settings   {differs or 'all as in Apache Kafka'}",
    ]
    return lines if cluster.admin_port is None else [*lines, f"control    http://127.0.0.1:{cluster.admin_port}"]
