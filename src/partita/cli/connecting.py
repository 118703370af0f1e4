"""A connected admin client for a command, and what happens when several things are asked for and some of them fail."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
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
    from partita.net.errors import Disconnected

    options = {"socket.connection.setup.timeout.ms": CONNECT_TIMEOUT_MS, **address.client_options()}
    try:
        with Admin(options) as admin:
            yield admin
    except Disconnected as error:
        raise click.ClickException(
            f"no broker answers at {address.servers} ({error}); is one running? Start one with: partita broker"
        ) from error
    except KafkaError as error:
        raise click.ClickException(str(error)) from error
    except ValueError as error:
        raise click.UsageError(str(error)) from error


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
