"""`partita produce`: write records from standard input or files, one per line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any

import click

from partita.cli.common import bootstrap_option, count, require_broker, settings_of

if TYPE_CHECKING:
    from partita.producer.shell.client import DeliveryFuture, Producer

TELL_EVERY = 100_000


@click.command()
@click.argument("topic")
@click.argument("files", nargs=-1, type=click.File("rb"), metavar="[FILE]...")
@bootstrap_option
@click.option("--key", help="The key of every record.")
@click.option("--key-separator", metavar="TEXT", help="Each line is KEY TEXT VALUE, such as with --key-separator : .")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header of every record.")
@click.option("--partition", type=click.IntRange(min=0), help="Write to this partition only.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Lines are objects with value, key, headers, partition, timestamp, as consume --json prints them.",
)
@click.option("--compression", type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]), default="none")
@click.option("--acks", type=click.Choice(["all", "1", "0"]), default="all", show_default=True)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A producer option by Kafka's name.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing if all goes well.")
def produce(
    topic: str, files: tuple[IO[bytes], ...], bootstrap: str, key: str | None, key_separator: str | None,
    headers: tuple[str, ...], partition: int | None, as_json: bool, compression: str, acks: str,
    settings: tuple[str, ...], quiet: bool,
) -> None:  # fmt: skip
    """Write each line of FILEs, or of standard input, as a record to TOPIC."""
    from partita import Producer
    from partita.errors import KafkaError

    if as_json and (key is not None or key_separator is not None):
        raise click.UsageError("--json has keys of its own; leave out --key and --key-separator")
    options: dict[str, Any] = {"compression.type": compression, "acks": acks, **settings_of(settings)}
    fixed: dict[str, Any] = {"key": key, "partition": partition, "headers": settings_of(headers, "--header")}
    records = _records(_lines(files), fixed, key_separator, as_json)
    require_broker(bootstrap)
    try:
        with Producer({"bootstrap.servers": bootstrap, "client.id": "partita-cli", **options}) as producer:
            sent = _send(producer, topic, records)
    except KafkaError as error:
        raise click.ClickException(str(error)) from error
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if not quiet:
        click.echo(f"{count(sent, 'record')} written to {topic}", err=True)


def _lines(files: Iterable[IO[bytes]]) -> Iterator[bytes]:
    for file in files or (sys.stdin.buffer,):
        for line in file:
            yield line.rstrip(b"\r\n")


def _records(
    lines: Iterable[bytes], fixed: dict[str, Any], separator: str | None, as_json: bool
) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, 1):
        if as_json:
            yield _from_json(line, number, fixed)
        elif separator is not None:
            key, found, value = line.partition(separator.encode())
            if not found:
                raise ValueError(f"line {number} has no {separator!r} between key and value: {_short(line)}")
            yield {**fixed, "key": key, "value": value}
        else:
            yield {**fixed, "value": line}


def _from_json(line: bytes, number: int, fixed: dict[str, Any]) -> dict[str, Any]:
    try:
        given = json.loads(line)
    except ValueError as error:
        raise ValueError(f"line {number} is not JSON ({error}): {_short(line)}") from None
    if not isinstance(given, dict) or "value" not in given:
        raise ValueError(f"line {number} is not an object with a value: {_short(line)}")
    value = given["value"]
    text = value if value is None or isinstance(value, str) else json.dumps(value)
    record = {**fixed, "key": given.get("key"), "value": text, "timestamp": given.get("timestamp")}
    if fixed["partition"] is None:
        record["partition"] = given.get("partition")
    return {**record, "headers": [*fixed["headers"].items(), *(given.get("headers") or ())]}


def _short(line: bytes) -> str:
    text = line.decode("utf-8", "backslashreplace")
    return text if len(text) <= 60 else text[:57] + "..."


def _send(producer: Producer, topic: str, records: Iterator[dict[str, Any]]) -> int:
    """Send all; raise the first failure. Lines before a bad one are sent."""
    tells = sys.stderr.isatty()
    failures: list[Exception] = []

    def check(future: DeliveryFuture) -> None:
        failure = future.failure()
        if failure is not None:
            failures.append(failure)

    sent = 0
    for record in records:
        if failures:
            break
        producer.send(topic, **record).add_done_callback(check)
        sent += 1
        if tells and sent % TELL_EVERY == 0:
            click.echo(f"\r{sent:,} records", nl=False, err=True)
    producer.flush()
    if tells and sent >= TELL_EVERY:
        click.echo("\r", nl=False, err=True)
    if failures:
        raise failures[0]
    return sent
