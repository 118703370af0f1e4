"""A connected admin client for a command, and what happens when several things are asked for and some of them fail."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from partita.cli.address import Address
from partita.cli.terminal import complain
from partita.plurals import count

if TYPE_CHECKING:
    from partita.admin import Admin
    from partita.producer.shell.client import Producer

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
CONNECT_TIMEOUT_MS = 3_000
CREATED_WITHIN_S = 3.0
PROBE_S = 1.0


def json_option(command: F) -> F:
    """Add `--json`, output for scripts."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")(command)


def yes_option(command: F) -> F:
    """Add `--yes`, for what is otherwise asked on a terminal."""
    return click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")(command)


@contextmanager
def connected(address: Address) -> Iterator[Admin]:
    """Connect an admin client. Its errors become one line each; bad input exits with code 2."""
    from partita.admin import Admin
    from partita.errors import KafkaError

    options = {"socket.connection.setup.timeout.ms": CONNECT_TIMEOUT_MS, **address.client_options()}
    try:
        with named_if_unreachable(address), Admin(options) as admin:
            yield admin
    except KafkaError as error:
        raise click.ClickException(str(error)) from error
    except ValueError as error:
        raise click.UsageError(str(error)) from error


@contextmanager
def named_if_unreachable(address: Address) -> Iterator[None]:
    """Turn a failure to reach any broker into one line: where it was looked for, what was found there, what to do."""
    from partita.net.errors import Disconnected

    try:
        yield
    except Disconnected as error:
        raise click.ClickException(_unreachable(address, str(error.args[0] if error.args else error))) from error


def _unreachable(address: Address, why: str) -> str:
    from partita.net.config import parse_servers

    protocol = address.client_options().get("security.protocol", "PLAINTEXT")
    for host, port in parse_servers(address.servers):
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
    """Options with which a producer gives up after so many seconds, unless the user has said how long it may take.

    A person waits for a command: a record that nobody takes is told long before Kafka's two minutes.
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


def require_topics(admin: Admin, names: Iterable[str]) -> None:
    """Raise ClickException with the topics that do not exist. Creates none."""
    existing = {topic.name for topic in admin.list_topics(include_internal=True)}
    missing = [name for name in names if name not in existing]
    if missing:
        noun = "topic" if len(missing) == 1 else "topics"
        raise click.ClickException(f"there is no {noun} named {', '.join(missing)}; see: partita topics list")


def try_each(things: Iterable[T], act: Callable[[T], object]) -> None:
    """Call `act` with each thing. A failure is printed and the others still have their turn.

    Raises ClickException if exactly one thing was given and failed; otherwise exits with code 1 if any failed.
    """
    from partita.errors import KafkaError
    from partita.net.errors import Disconnected

    given = list(things)
    failures = 0
    for thing in given:
        try:
            act(thing)
        except Disconnected:
            raise
        except (KafkaError, click.ClickException) as error:
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


def partition_pairs(admin: Admin, given: Iterable[str]) -> list[tuple[str, int]]:
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
