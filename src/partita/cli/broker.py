"""`partita broker`: run a broker until SIGTERM or Ctrl-C.

At the start it prints where it listens, where the data is, what survives a crash, and which defaults differ from
Kafka's. If it cannot start, it prints one line and exits with code 2.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
from click.core import ParameterSource

from partita.broker.config import ConfigError
from partita.broker.garbage import GarbageCollection
from partita.broker.launch import BrokerSettings, StartError, banner, new_event_loop, start_broker
from partita.cli.logs import JSON, LEVELS, TEXT, log_to_stderr
from partita.cli.terminal import complain, say
from partita.cli.variables import TOKEN_VARIABLE
from partita.log.storage import StorageError
from partita.properties import parse_properties
from partita.secret import Secret

if TYPE_CHECKING:
    from partita.broker.running import RunningBroker

DEFAULT_PORT = 9092


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="Port to listen on; 0 picks a free one.",
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on; --set listeners gives several."
)
@click.option("--data-dir", type=click.Path(file_okay=False), help="Keep topics and groups in this directory.")
@click.option("--memory", is_flag=True, help="Keep everything in memory (the default without --data-dir).")
@click.option(
    "--durability",
    type=click.Choice(["memory", "os", "sync"]),
    help="When a write is acknowledged: memory = at once (data is lost at exit), os = once the operating system has it "
    "(survives a process crash), sync = once it is on the disk.",
)
@click.option(
    "--nodes", type=click.IntRange(1, 32), default=1, show_default=True, help="Number of nodes that share one store."
)
@click.option("--kafka-defaults", is_flag=True, help="Use Kafka's defaults where Partita's differ.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a broker option by Kafka's name.")
@click.option(
    "--notes",
    "notes_file",
    type=click.Path(dir_okay=False),
    help="Append events, such as rebalances, to this file as JSON lines.",
)
@click.option("--tls", is_flag=True, help="Speak TLS, with throw-away certificates for localhost.")
@click.option(
    "--tls-dir",
    type=click.Path(exists=True, file_okay=False),
    metavar="DIR",
    help="Speak TLS, with the certificates that `partita certs make DIR` made.",
)
@click.option("--mtls", is_flag=True, help="The same, and ask clients for certificates of the same authority.")
@click.option(
    "--users",
    "users_file",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Ask for SASL; these users may log in. One name=password per line.",
)
@click.option(
    "--acl",
    "acls",
    multiple=True,
    metavar="LINE",
    help="Turn on the authorizer and add ACLs: 'allow User:alice read,describe topic orders-*'.",
)
@click.option(
    "--assignor",
    "assignors",
    multiple=True,
    metavar="MODULE:CLASS",
    help="Offer a server-side assignor of your own to KIP-848 groups.",
)
@click.option("--admin-port", type=click.IntRange(0, 65535), help="Serve the control endpoint on this loopback port.")
@click.option(
    "--admin-token",
    envvar=TOKEN_VARIABLE,
    show_envvar=True,
    help="What the control endpoint asks for; without it one is made up and printed at the start.",
)
@click.option(
    "--log-level",
    type=click.Choice(LEVELS),
    default="info",
    show_default=True,
    help="What goes to stderr: info is one line per event (groups, topics, leaders, logins refused), warning what may "
    "need a person.",
)
@click.option(
    "--log-format",
    type=click.Choice([TEXT, JSON]),
    default=TEXT,
    show_default=True,
    help="Lines for people, or one JSON object per line; then nothing but the log is printed.",
)
def broker(
    port: int,
    host: str,
    data_dir: str | None,
    memory: bool,
    durability: str | None,
    nodes: int,
    kafka_defaults: bool,
    settings: tuple[str, ...],
    notes_file: str | None,
    admin_port: int | None,
    admin_token: str | None,
    tls: bool,
    tls_dir: str | None,
    mtls: bool,
    users_file: str | None,
    acls: tuple[str, ...],
    assignors: tuple[str, ...],
    log_level: str,
    log_format: str,
) -> None:
    """Run a broker that any Kafka client can use. SIGTERM or Ctrl-C stops it cleanly."""
    if memory and data_dir is not None:
        _refuse("--memory and --data-dir cannot be combined")
    if tls and tls_dir is not None:
        _refuse("--tls makes certificates and --tls-dir has some; give one or the other")
    options: dict[str, object] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            _refuse(f"--set expects NAME=VALUE, not {setting!r}")
        options[name.strip()] = value
    if "listeners" in options and any(_was_given(name) for name in ("host", "port")):
        _refuse("--set listeners replaces --host and --port; give one or the other")
    log_to_stderr(log_level, log_format)
    try:
        users = _users_of(users_file)
    except ConfigError as error:
        _refuse(str(error))
    chosen = BrokerSettings(
        host, port, data_dir, durability, nodes, kafka_defaults, notes_file, admin_port, admin_token,
        tls=tls, tls_dir=tls_dir, mtls=mtls, users=users, acls=acls, assignors=assignors, options=options,
    )  # fmt: skip
    loop = new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(_serve(chosen, users_file, prints=log_format == TEXT))
    except StartError as error:
        _refuse(str(error))


def _users_of(path: str | None) -> dict[str, str]:
    """Names and passwords of a properties file. Raises ConfigError."""
    if path is None:
        return {}
    try:
        users = parse_properties(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"--users {path}: {error}") from None
    if not users:
        raise ConfigError(f"--users {path} names nobody; one name=password per line is expected")
    return users


def _was_given(name: str) -> bool:
    return click.get_current_context().get_parameter_source(name) is not ParameterSource.DEFAULT


async def _serve(settings: BrokerSettings, users_file: str | None, *, prints: bool) -> None:
    running = await start_broker(settings)
    stopping = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError):  # Windows: Ctrl-C ends the loop by KeyboardInterrupt
            running.cluster.loop.add_signal_handler(signum, stopping.set)
    if hasattr(signal, "SIGHUP"):
        running.cluster.loop.add_signal_handler(signal.SIGHUP, _reload, running, users_file)
    running.on_failure(stopping.set)
    if running.failure is not None:
        stopping.set()
    lines = banner(running, shows_token=settings.admin_token is None)
    if prints:
        for line in lines:
            say(line)
        sys.stdout.flush()
    else:
        running.events.write("Started", **dict(line.split(None, 1) for line in lines))
    GarbageCollection(running.cluster.loop).start()
    await stopping.wait()
    await running.stop()
    if running.failure is not None:
        complain(f"the log directory failed: {running.failure}", command="partita broker")
        sys.exit(1)
    if prints:
        say("stopped")


def _reload(running: RunningBroker, users_file: str | None) -> None:
    """Read certificates and users again, for what connects and logs in from now on; what is wrong changes nothing."""
    from partita.broker.security.ready_made import OWN_USER

    guards = running.services.guards
    try:
        if guards is not None:
            guards.reload()
        if users_file is not None:
            wanted = {user: Secret(password) for user, password in _users_of(users_file).items()}
            running.services.users.replace(wanted, but=frozenset({OWN_USER}))
    except (ConfigError, StorageError) as error:
        complain(str(error), command="partita broker")


def _refuse(reason: str) -> NoReturn:
    complain(reason, command="partita broker")
    sys.exit(2)
