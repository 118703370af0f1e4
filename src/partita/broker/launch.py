"""From settings to a running broker: the way in shared by the command line and the embedded broker.

Whatever can be wrong with the settings (a taken port, a directory in use, an unknown option) ends as a StartError with
one line.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence
from errno import EACCES, EADDRINUSE
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from partita.broker.config import BrokerConfig, ConfigError, as_text
from partita.broker.running import CannotListen, RunningBroker
from partita.broker.storage.memory_store import MemoryStore
from partita.broker.storage.store import Store
from partita.broker.topics.catalogue import OFFSETS_TOPIC
from partita.broker.wire.listeners import PLAINTEXT, PORT_MAX, Endpoint, Listener, listeners
from partita.lazy import later
from partita.log.log_config import Durability
from partita.log.storage import StorageError

if TYPE_CHECKING:
    import secrets

    from partita.assignors import interface as assignor_interface
    from partita.broker import bootstrap_topics
    from partita.broker.control import endpoint as control_endpoint
    from partita.broker.security import ready_made as security_ready_made
    from partita.broker.storage import data_dir
    from partita.security.rights import acl_text
else:
    acl_text = later("partita.security.rights.acl_text")
    assignor_interface = later("partita.assignors.interface")
    bootstrap_topics = later("partita.broker.bootstrap_topics")
    control_endpoint = later("partita.broker.control.endpoint")
    data_dir = later("partita.broker.storage.data_dir")
    secrets = later("secrets")
    security_ready_made = later("partita.broker.security.ready_made")

MEMORY, OS, SYNC = "memory", "os", "sync"
NODES_MAX = 32
TOKEN_BYTES = 16
"""Length of a generated control token, long enough to resist guessing."""
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})

log = logging.getLogger("partita.broker")


class StartError(Exception):
    """The broker cannot start; the message is one line for the user."""


class BrokerSettings(NamedTuple):
    """The settings of a start. `port` 0 lets the system choose; with several nodes a given port is the first node's.

    The option `listeners` takes the place of `host` and `port`. `tls` makes throw-away certificates, `tls_dir` has some
    already, `mtls` asks clients for theirs as well; `users` log in with these passwords, and `acls`, one line each,
    define their rights. `assignors` share partitions in KIP-848 groups: instances, or classes by name as
    "module:Class". `topics` are created unless they exist.
    """

    host: str = "127.0.0.1"
    port: int = 0
    data_dir: str | None = None
    durability: str | None = None
    nodes: int = 1
    kafka_defaults: bool = False
    notes_file: str | None = None
    admin_port: int | None = None
    admin_token: str | None = None
    tls: bool = False
    tls_dir: str | None = None
    mtls: bool = False
    users: Mapping[str, str] = {}
    acls: Sequence[str] = ()
    assignors: Sequence[assignor_interface.Assignor | str] = ()
    topics: Sequence[bootstrap_topics.WantedTopic] = ()
    options: Mapping[str, object] = {}


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


async def start_broker(settings: BrokerSettings) -> RunningBroker:
    """Open the store and start every node on the running loop; raise StartError when something is in the way."""
    _check(settings)
    try:
        ready_made = _ready_made(settings)
        config = _config(settings, ready_made)
        wanted = listeners(config, settings.nodes)
        assignors = [_assignor(given) for given in settings.assignors]
        store = await _open_store(settings)
    except (ConfigError, data_dir.DataDirectoryError) as error:
        raise StartError(str(error)) from None
    try:
        users = {} if ready_made is None else ready_made.users
        running = RunningBroker(config, store, settings.nodes, users, assignors)
    except (data_dir.DataDirectoryError, ConfigError) as error:
        raise StartError(str(error)) from None
    except (StorageError, KeyError, ValueError) as error:
        raise StartError(f"the catalogue of {store.root} cannot be used: {error!r}") from None
    if settings.notes_file is not None:
        await _open_notes(running, settings.notes_file)
    running.ready_made = ready_made
    try:
        await running.start(wanted)
        _grant(running, settings.acls)
        if settings.topics:
            bootstrap_topics.create_wanted(running.cluster, settings.topics)
    except ConfigError as error:
        await running.stop()
        raise StartError(str(error)) from None
    except CannotListen as error:
        await running.stop()
        hint = "port" if error.errno in (EADDRINUSE, EACCES) else "host"
        raise StartError(f"{error}; choose another {hint}") from None
    _warn_of_open_doors(running, wanted)
    if settings.admin_port is not None:
        await _start_admin(running, settings.admin_port, settings.admin_token)
    running.is_complete = True
    return running


def _assignor(given: assignor_interface.Assignor | str) -> assignor_interface.Assignor:
    """A server-side assignor of a user's. Raises ConfigError for a name that leads to none."""
    if isinstance(given, assignor_interface.Assignor):
        return given
    module, _, name = given.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"the assignor {given!r} cannot be found ({error}); it is named as module:Class") from None
    if not (isinstance(found, type) and issubclass(found, assignor_interface.Assignor)):
        raise ConfigError(f"{given} is no subclass of partita.assignors.interface.Assignor")
    try:
        return found()
    except Exception as error:
        raise ConfigError(f"the assignor {given} cannot be made: {type(error).__name__}: {error}") from None


def check_settings(settings: BrokerSettings) -> BrokerConfig:
    """Check as much of the settings as can be without opening a port or a directory. Raises ConfigError, StartError."""
    _check(settings)
    config = _config(settings, None)
    listeners(config, settings.nodes)
    for given in settings.assignors:
        _assignor(given)
    return config


def _check(settings: BrokerSettings) -> None:
    if not isinstance(settings.nodes, int) or not 1 <= settings.nodes <= NODES_MAX:
        raise StartError(f"nodes must be between 1 and {NODES_MAX}, not {settings.nodes!r}")
    if not isinstance(settings.port, int) or not 0 <= settings.port <= PORT_MAX:
        raise StartError(f"ports are between 0 and {PORT_MAX}, not {settings.port!r}")
    if settings.admin_token is not None and not settings.admin_token.strip():
        raise StartError("the admin token is empty; give one, or none to have one made up")


def _config(settings: BrokerSettings, ready_made: security_ready_made.ReadyMade | None) -> BrokerConfig:
    """The options of the broker. Raises ConfigError."""
    options: dict[str, object] = {"listeners": f"{PLAINTEXT}://{Endpoint(settings.host, settings.port)}"}
    made = {} if ready_made is None else ready_made.options
    options |= made | _dotted(settings.options)
    if "super.users" in made:
        options["super.users"] = made["super.users"]  # those that were given, and the broker's own calls
    config = BrokerConfig(options, kafka_defaults=settings.kafka_defaults)
    for name, version in config.removed.items():
        log.warning("%s was removed in Kafka %s and has no effect", name, version)
    return config


def _ready_made(settings: BrokerSettings) -> security_ready_made.ReadyMade | None:
    """The security that needs no options. Raises ConfigError."""
    if not (settings.tls or settings.tls_dir or settings.mtls or settings.users or settings.acls):
        return None
    return security_ready_made.ReadyMade(
        tls=settings.tls,
        mtls=settings.mtls,
        users=settings.users,
        has_acls=bool(settings.acls),
        given=_dotted(settings.options),
        address=Endpoint(settings.host, settings.port),
        folder=settings.tls_dir,
    )


def _dotted(options: Mapping[str, object]) -> dict[str, object]:
    return {name if name.startswith("listener.name.") else name.replace("_", "."): v for name, v in options.items()}


def _warn_of_open_doors(running: RunningBroker, wanted: Sequence[Listener]) -> None:
    """Warn of addresses reachable from other machines that need no login, or that grant everything."""
    exposed = [listener for listener in wanted if listener.bound.host not in LOOPBACK]
    open_doors = [str(listener.bound) for listener in exposed if not listener.has_sasl]
    if open_doors:
        log.warning(
            "whoever reaches %s may read, write and delete everything: nobody has to log in", ", ".join(open_doors)
        )
    elif exposed and running.services.rights is None:
        log.warning("every user may read, write and delete everything: there is no authorizer.class.name")


def _grant(running: RunningBroker, acls: Sequence[str]) -> None:
    """Add the ACLs of the start. Raises ConfigError."""
    if not acls:
        return
    assert running.services.rights is not None, "acls bring an authorizer"
    try:
        running.services.rights.change(added=[acl for line in acls for acl in acl_text.acls_of(line)])
    except acl_text.AclTextError as error:
        raise ConfigError(str(error)) from None


async def _open_notes(running: RunningBroker, path: str) -> None:
    try:
        running.cluster.notes.write_to(path)
    except OSError as error:
        await running.stop()
        raise StartError(f"cannot write notes to {path}: {error.strerror}") from None


async def _start_admin(running: RunningBroker, port: int, token: str | None) -> None:
    running.admin_token = secrets.token_urlsafe(TOKEN_BYTES) if token is None else token
    endpoint = control_endpoint.AdminEndpoint(running, running.admin_token)
    try:
        running.admin_port = await endpoint.listen(port)
    except OSError as error:
        await running.stop()
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise StartError(f"cannot listen on 127.0.0.1:{port}: {reason}; choose another --admin-port") from None
    running.on_stop(endpoint.close)


async def _open_store(settings: BrokerSettings) -> Store:
    durability = settings.durability or (MEMORY if settings.data_dir is None else OS)
    if durability not in (MEMORY, OS, SYNC):
        raise StartError(f"durability must be memory, os or sync, not {durability}")
    if settings.data_dir is None:
        if durability != MEMORY:
            raise StartError(f"durability {durability} needs a data directory")
        return MemoryStore()
    # Beside the loop: after a crash it may have much to sync.
    return await asyncio.to_thread(data_dir.DiskStore, settings.data_dir, Durability(durability))


def banner(running: RunningBroker, *, shows_token: bool = True) -> list[str]:
    """Return the start banner: address, data, durability, differences from Kafka, and a generated token."""
    cluster = running.cluster
    nodes = list(cluster.nodes.values())
    more = list(nodes[0].endpoints)[1:]
    differs = ", ".join(f"{name}={as_text(value)}" for name, value in cluster.config.differs_from_kafka().items())
    lines = [
        f"bootstrap  {', '.join(str(node.endpoint) for node in nodes)}",
        f"data       {cluster.store.description}",
        f"settings   {differs or 'all as in Apache Kafka'}",
    ]
    missing = "" if cluster.catalogue.get(OFFSETS_TOPIC) is not None else cluster.missing_nodes(len(nodes))
    if missing:
        lines.append(f"groups     not served: {missing}")
    guards, ready_made = running.services.guards, running.ready_made
    if guards is not None:
        lines += guards.described()
    if running.services.rights is not None:
        lines.append(f"rights     {len(running.services.rights.authorizer)} ACLs")
    if ready_made is not None and ready_made.certificates is not None:
        lines.append(f"authority  {ready_made.certificates.ca_file} (clients: ssl.ca.location)")
    lines += [f"listener   {name} {', '.join(str(node.endpoints[name]) for node in nodes)}" for name in more]
    if running.admin_port is not None:
        told = f", token {running.admin_token}" if shows_token else ""
        lines.append(f"control    http://127.0.0.1:{running.admin_port}{told}")
    return lines
