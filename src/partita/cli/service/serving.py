"""A broker in the foreground, until SIGTERM or Ctrl-C.

At the start it prints where it listens, where the data is, what survives a crash, and which defaults differ from
Kafka's. If it cannot start, it prints one line and exits with code 2.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from partita.broker.config import ConfigError
from partita.broker.garbage import GarbageCollection
from partita.broker.launch import BrokerSettings, StartError, banner, new_event_loop, start_broker
from partita.broker.wire.listeners import PORT_MAX
from partita.cli.service.logs import TEXT, log_to_stderr
from partita.cli.terminal import complain, say
from partita.lazy import later
from partita.log.storage import StorageError
from partita.secret import Secret

if TYPE_CHECKING:
    from partita.broker.running import RunningBroker
    from partita.broker.security import ready_made
else:
    ready_made = later("partita.broker.security.ready_made")

DEFAULT_PORT = 9092
ReadUsers: TypeAlias = Callable[[], dict[str, str]]
"""Returns names and passwords as the files hold them now."""
_VARIABLES = ("PARTITA_BROKER_", "PARTITA_ADMIN_TOKEN", "_PARTITA_COMPLETE")


def plain(words: Sequence[str], variables: Mapping[str, str]) -> BrokerSettings | None:
    """The settings of a broker given --host, --port, --memory and --data-dir alone.

    None if anything else is given, or if anything is wrong: then click reads all of it.
    """
    if os.name == "nt" or any(name.startswith(_VARIABLES) for name in variables):  # click expands words on Windows
        return None
    given: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if word == "--memory":
            given[name] = ""
        elif name in ("--host", "--port", "--data-dir"):
            given[name] = value if equals else next(rest, "")
            if not given[name]:
                return None
        else:
            return None
    port, folder = given.get("--port", str(DEFAULT_PORT)), given.get("--data-dir")
    if not (port.isascii() and port.isdecimal() and len(port) <= len(str(PORT_MAX)) and int(port) <= PORT_MAX):
        return None
    if folder is not None and os.path.exists(folder) and not (os.path.isdir(folder) and os.access(folder, os.R_OK)):
        return None
    if folder is not None and "--memory" in given:
        return None
    return BrokerSettings(host=given.get("--host", BrokerSettings().host), port=int(port), data_dir=folder)


def run(
    settings: BrokerSettings, users: ReadUsers | None = None, log_level: str = "info", log_format: str = TEXT
) -> None:
    """Serve until a signal. `users` reads the users who may log in again, at SIGHUP."""
    log_to_stderr(log_level, log_format)
    loop = new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(_serve(settings, users, prints=log_format == TEXT))
    except StartError as error:
        refuse(str(error))


async def _serve(settings: BrokerSettings, users: ReadUsers | None, *, prints: bool) -> None:
    running = await start_broker(settings)
    stopping = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError):  # Windows: Ctrl-C ends the loop by KeyboardInterrupt
            running.cluster.loop.add_signal_handler(signum, stopping.set)
    if hasattr(signal, "SIGHUP"):
        running.cluster.loop.add_signal_handler(signal.SIGHUP, _reload, running, users)
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


def _reload(running: RunningBroker, users: ReadUsers | None) -> None:
    """Read certificates and users again, for new connections and logins; an error leaves everything unchanged."""
    guards = running.services.guards
    try:
        if guards is not None:
            guards.reload()
        if users is not None:
            wanted = {user: Secret(password) for user, password in users().items()}
            running.services.users().replace(wanted, but=frozenset({ready_made.OWN_USER}))
    except (ConfigError, StorageError) as error:
        complain(str(error), command="partita broker")


def refuse(reason: str) -> NoReturn:
    """End with one line and code 2."""
    complain(reason, command="partita broker")
    sys.exit(2)
