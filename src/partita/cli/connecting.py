"""Connect an admin client for a command, and go on when some of several arguments fail."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import click

from partita.cli.address import Address, find_address, settings_of
from partita.cli.terminal import complain
from partita.lazy import later
from partita.wording import count

if TYPE_CHECKING:
    from partita import admin as admin_client
    from partita import errors as kafka_errors
    from partita.net import config as net_config
    from partita.net import errors as net_errors
    from partita.producer.shell.client import Producer
else:
    admin_client = later("partita.admin")
    kafka_errors = later("partita.errors")
    net_config = later("partita.net.config")
    net_errors = later("partita.net.errors")

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
CONNECT_TIMEOUT_MS = 3_000
CREATED_WITHIN_S = 3.0
PROBE_S = 1.0
COMPLETION_S = 1.0
"""How long the shell waits for names of topics and groups before it completes none."""


def json_option(command: F) -> F:
    """Add `--json`, output for scripts."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")(command)


def yes_option(command: F) -> F:
    """Add `--yes`, for what is otherwise asked on a terminal."""
    return click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")(command)


@contextmanager
def connected(address: Address) -> Iterator[admin_client.Admin]:
    """Connect an admin client. Its errors become one line each; bad input exits with code 2."""
    options = {"socket.connection.setup.timeout.ms": CONNECT_TIMEOUT_MS, **address.client_options()}
    try:
        with named_if_unreachable(address), admin_client.Admin(options) as admin:
            yield admin
    except kafka_errors.KafkaError as error:
        raise click.ClickException(str(error)) from error
    except ValueError as error:
        raise click.UsageError(str(error)) from error


@contextmanager
def named_if_unreachable(address: Address) -> Iterator[None]:
    """Turn a failure to reach any broker into one line: the addresses tried, the findings there, and a remedy."""
    try:
        yield
    except net_errors.Disconnected as error:
        raise click.ClickException(_unreachable(address, str(error.args[0] if error.args else error))) from error


def _unreachable(address: Address, why: str) -> str:
    protocol = address.client_options().get("security.protocol", "PLAINTEXT")
    for host, port in net_config.parse_servers(address.servers):
        try:
            socket.create_connection((host, port), timeout=PROBE_S).close()
        except (OSError, UnicodeError):
            continue
        return (
            f"{host}:{port} takes connections, and no Kafka broker answers there ({why}); is it the port of a broker "
            f"that expects security.protocol {protocol}? See: partita doctor -b {host}:{port}"
        )
    return f"no broker answers at {address.servers} ({why}); is one running? Start one with: partita broker"


def patient_for(settings: Mapping[str, str], options: Mapping[str, Any], seconds: int) -> dict[str, Any]:
    """Return options with which a producer gives up after `seconds`, unless the user has set a limit.

    A person waits for a command, so a record that is not accepted is reported long before Kafka's two minutes.
    """
    said = {name.replace("_", ".") for name in (*settings, *options)}
    if said & {"delivery.timeout.ms", "request.timeout.ms", "linger.ms", "max.block.ms"}:
        return {}
    ms = seconds * 1000
    return {"delivery.timeout.ms": ms, "request.timeout.ms": ms // 2, "max.block.ms": ms}


def require_broker(address: Address) -> None:
    """Fail at once with one line if no broker answers; a client would keep trying. Raises ClickException."""
    with connected(address):
        pass


def require_topics(admin: admin_client.Admin, names: Iterable[str]) -> None:
    """Raise ClickException with the topics that do not exist. Creates none."""
    existing = {topic.name for topic in admin.list_topics(include_internal=True)}
    missing = [name for name in names if name not in existing]
    if missing:
        noun = "topic" if len(missing) == 1 else "topics"
        raise click.ClickException(f"there is no {noun} named {', '.join(missing)}; see: partita topics list")


def try_each(things: Iterable[T], act: Callable[[T], object]) -> None:
    """Call `act` with each thing. A failure is printed and the others are still tried.

    Raises ClickException if exactly one thing was given and failed; otherwise exits with code 1 if any failed.
    """
    given = list(things)
    failures = 0
    for thing in given:
        try:
            act(thing)
        except net_errors.Disconnected:
            raise
        except (kafka_errors.KafkaError, click.ClickException) as error:
            if len(given) == 1:
                raise
            failures += 1
            complain(error.format_message() if isinstance(error, click.ClickException) else str(error))
    if failures:
        complain(f"{failures} of {count(len(given), 'name')} failed")
        raise SystemExit(1)


def partitions_of(given: Iterable[str]) -> list[str | tuple[str, int]]:
    """Parse TOPIC and TOPIC:0,1 into topics and (topic, partition) pairs. Raises UsageError."""
    chosen: list[str | tuple[str, int]] = []
    for text in given:
        topic, colon, numbers = text.rpartition(":")
        if not colon:
            chosen.append(text)
            continue
        parts = numbers.split(",")
        if not topic or not all(part.strip().isdigit() for part in parts):
            raise click.UsageError(f"expected TOPIC or TOPIC:0,1, not {text!r}")
        chosen += [(topic, int(part)) for part in parts]
    return chosen


def partition_pairs(admin: admin_client.Admin, given: Iterable[str]) -> list[tuple[str, int]]:
    """The (topic, partition) pairs of TOPIC and TOPIC:0,1 arguments; a topic alone means all its partitions."""
    pairs: list[tuple[str, int]] = []
    for wanted in partitions_of(given):
        if isinstance(wanted, str):
            pairs += [(wanted, part.partition) for part in admin.describe_topics(wanted)[0].partitions]
        else:
            pairs.append(wanted)
    return list(dict.fromkeys(pairs))


def writable_partitions(producer: Producer, topic: str) -> int:
    """The number of partitions of a topic, which is created if the broker does that. Raises ClickException if not."""
    until = time.monotonic() + CREATED_WITHIN_S
    while True:
        numbers = producer.partitions_for(topic)
        if numbers:
            return len(numbers)
        if time.monotonic() >= until:
            raise click.ClickException(
                f"there is no topic {topic}, and the broker does not create it; create it with: "
                f"partita topics create {topic}"
            )
        time.sleep(0.1)


def complete_topic(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The topics of the command's cluster that begin with the text, for the shell."""
    return _names(ctx, lambda admin: [topic.name for topic in admin.list_topics(include_internal=True)], incomplete)


def complete_group(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The groups of the command's cluster that begin with the text, for the shell."""
    return _names(ctx, lambda admin: [group.group_id for group in admin.list_groups()], incomplete)


def _names(ctx: click.Context, ask: Callable[[admin_client.Admin], list[str]], incomplete: str) -> list[str]:
    """The names that the cluster gives within a second; none if it cannot be asked."""
    found: list[str] = []

    def look() -> None:
        given = ctx.params
        with suppress(Exception):  # the user is typing: a message would end up in the middle of the line
            extra = settings_of(given["extra"] or (), "-X")
            address = find_address(given["servers"], given["profiles"], extra, config_file=given["config_file"])
            with connected(address) as admin:
                found.extend(ask(admin))

    asking = threading.Thread(target=look, daemon=True)
    asking.start()
    asking.join(COMPLETION_S)
    return sorted(name for name in found if name.startswith(incomplete))
