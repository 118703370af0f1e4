"""What the commands share: common options, a connected admin client, tables and JSON output."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from partita.admin import Admin

F = TypeVar("F", bound=Callable[..., Any])
CONNECT_TIMEOUT_MS = 3_000


def bootstrap_option(command: F) -> F:
    """Add `--bootstrap`, the address of the cluster."""
    return click.option(
        "--bootstrap",
        "-b",
        default="127.0.0.1:9092",
        show_default=True,
        envvar="PARTITA_BOOTSTRAP",
        help="Broker address, host:port; separate several with commas.",
    )(command)


def json_option(command: F) -> F:
    """Add `--json`, output for scripts."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")(command)


@contextmanager
def connected(bootstrap: str) -> Iterator[Admin]:
    """Connect an admin client. Its errors become one line each; bad input exits with code 2."""
    from partita.admin import Admin
    from partita.errors import KafkaError
    from partita.net.errors import Disconnected

    try:
        with Admin(
            bootstrap_servers=bootstrap, client_id="partita-cli", socket_connection_setup_timeout_ms=CONNECT_TIMEOUT_MS
        ) as admin:
            yield admin
    except Disconnected as error:
        raise click.ClickException(
            f"no broker answers at {bootstrap} ({error}); is one running? Start one with: partita broker"
        ) from error
    except KafkaError as error:
        raise click.ClickException(str(error)) from error
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def require_broker(bootstrap: str) -> None:
    """Fail at once with one line if no broker answers; a client would keep trying. Raises ClickException."""
    with connected(bootstrap):
        pass


def print_json(value: Any) -> None:
    """Print a result, a list of results, or plain data as JSON."""
    if isinstance(value, list):
        value = [item.as_json() if hasattr(item, "as_json") else item for item in value]
    elif hasattr(value, "as_json"):
        value = value.as_json()
    click.echo(json.dumps(value, indent=2))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows as columns under their names, numbers aligned to the right, "-" for unknown values."""
    body = [["-" if cell is None else str(cell) for cell in row] for row in rows]
    numeric = [bool(body) and all(_is_number(row[i]) for row in body) for i in range(len(columns))]
    widths = [max(len(name), *(len(row[i]) for row in body)) if body else len(name) for i, name in enumerate(columns)]
    for row in [[name.upper() for name in columns], *body]:
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        click.echo("  ".join(cells).rstrip())


def _is_number(text: str) -> bool:
    return text == "-" or text.lstrip("-").isdigit()


def settings_of(given: Iterable[str], option: str = "--set") -> dict[str, str]:
    """Parse NAME=VALUE arguments into a dict. Raises UsageError."""
    settings = {}
    for setting in given:
        name, equals, value = setting.partition("=")
        if not equals or not name.strip():
            raise click.UsageError(f"{option} expects NAME=VALUE, not {setting!r}")
        settings[name.strip()] = value.strip()
    return settings


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


def count(number: int, noun: str) -> str:
    """A number with its noun in singular or plural: 1 topic, 2 topics."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
