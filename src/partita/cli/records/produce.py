"""`partita produce`: write records from standard input or files, one per line, per delimiter, or per file."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import click

import partita
from partita.cli.address import Address, address_options, client_settings_option, settings_of
from partita.cli.connecting import complete_topic, patient_for, require_broker, writable_partitions
from partita.cli.records.formats import from_json, parse_delimiter
from partita.cli.records.patience import told_once
from partita.cli.terminal import say
from partita.errors import KafkaError
from partita.wording import count

if TYPE_CHECKING:
    from partita.producer.shell.client import DeliveryFuture, Producer

TELL_EVERY = 100_000
CHUNK_BYTES = 1 << 16
GIVE_UP_AFTER_S = 15
"""How long a record may take; longer by --set delivery.timeout.ms=120000."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How input is cut into records. `delimiter` None: one record per file; `null`: text that stands for a null."""

    delimiter: bytes | None
    key_separator: bytes | None
    as_json: bool
    null: bytes | None
    key: bytes | None
    partition: int | None
    headers: tuple[tuple[str, bytes], ...]


@click.command()
@click.argument("topic", shell_complete=complete_topic)
@click.argument("files", nargs=-1, type=click.File("rb"), metavar="[FILE]...")
@address_options
@click.option("--key", "-k", help="The key of every record.")
@click.option("--key-separator", "-K", metavar="TEXT", help="Each line is KEY TEXT VALUE, for example -K : .")
@click.option("--header", "-H", "headers", multiple=True, metavar="NAME=VALUE", help="Add a header to every record.")
@click.option("--partition", "-p", type=click.IntRange(min=0), help="Write to this partition only.")
@click.option("--json", "-J", "as_json", is_flag=True, help="Lines are JSON objects with value, key, headers, partition"
              " and timestamp, as consume --json prints them; value_base64 and key_base64 give bytes.")  # fmt: skip
@click.option("--raw", is_flag=True, help="Each file, or all of standard input, is one record.")
@click.option("--delimiter", "-D", metavar="TEXT", help=r"Records end with this instead of \n; escapes \t \0 \x1f.")
@click.option("--null", "-Z", metavar="TEXT", help="A key or value that is exactly this text is null.")
@click.option("--compression", "-z", type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]), default="none")
@click.option("--acks", type=click.Choice(["all", "1", "0"]), default="all", show_default=True)
@client_settings_option("producer")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing if all goes well.")
def produce(
    topic: str, files: tuple[IO[bytes], ...], bootstrap: Address, compression: str, acks: str,
    client_settings: dict[str, str], quiet: bool, **given: Any,
) -> None:  # fmt: skip
    """Write each line of FILEs, or of standard input, as a record to TOPIC.

    Gives up if a record is not acknowledged within 15 s; --set delivery.timeout.ms=120000 waits longer.
    """
    shape = _shape(given)
    options = bootstrap.client_options(compression_type=compression, acks=acks)
    options |= patient_for(client_settings, options, GIVE_UP_AFTER_S) | client_settings
    require_broker(bootstrap)
    try:
        with told_once(outages=False), partita.Producer(options) as producer:
            partitions = writable_partitions(producer, topic)
            _check_partition(topic, partitions, shape.partition, "")
            sent = _send(producer, topic, _records(files, shape, topic, partitions))
    except KafkaError as error:
        raise click.ClickException(str(error)) from error
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if not quiet:
        say(f"{count(sent, 'record')} written to {topic}", err=True)


def _shape(given: dict[str, Any]) -> Shape:
    """How to read the input. Raises UsageError for options that contradict one another."""
    if given["as_json"] and (given["key"] is not None or given["key_separator"] is not None):
        raise click.UsageError("--json has keys of its own; leave out --key and --key-separator")
    if given["raw"] and (given["as_json"] or given["delimiter"] is not None):
        raise click.UsageError("--raw cannot be combined with --json or --delimiter")
    try:
        delimiter = None if given["raw"] else parse_delimiter(given["delimiter"] or r"\n")
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    headers = settings_of(given["headers"], "--header")
    return Shape(
        delimiter, _encoded(given["key_separator"]), given["as_json"], _encoded(given["null"]), _encoded(given["key"]),
        given["partition"], tuple((name, value.encode()) for name, value in headers.items()),
    )  # fmt: skip


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _check_partition(topic: str, partitions: int, wanted: int | None, where: str) -> None:
    if wanted is not None and wanted >= partitions:
        raise click.ClickException(
            f"{where}topic {topic} has {count(partitions, 'partition')}, numbered from 0; "
            f"there is no partition {wanted}"
        )


def _pieces(files: Iterable[IO[bytes]], delimiter: bytes | None) -> Iterator[bytes]:
    for file in files or (sys.stdin.buffer,):
        if delimiter is None:
            yield file.read()
        elif delimiter == b"\n":
            for line in file:
                yield line.removesuffix(b"\n").removesuffix(b"\r")
        else:
            yield from _split(file, delimiter)


def _split(file: IO[bytes], delimiter: bytes) -> Iterator[bytes]:
    rest = b""
    while chunk := file.read(CHUNK_BYTES):
        *whole, rest = (rest + chunk).split(delimiter)
        yield from whole
    if rest and rest != b"\n":
        yield rest


def _records(files: Iterable[IO[bytes]], shape: Shape, topic: str, partitions: int) -> Iterator[dict[str, Any]]:
    """The arguments of `send` for each record. Raises ValueError with the number of the line that is wrong."""
    for number, piece in enumerate(_pieces(files, shape.delimiter), 1):
        if shape.as_json:
            try:
                given = from_json(piece)
            except ValueError as error:
                raise ValueError(f"line {number} {error}: {_short(piece)}") from None
            partition = given.partition if shape.partition is None else shape.partition
            _check_partition(topic, partitions, partition, f"line {number}: ")
            headers = [*shape.headers, *given.headers]
            yield {"key": given.key, "value": given.value, "headers": headers, "partition": partition,
                   "timestamp": given.timestamp}  # fmt: skip
            continue
        key, value = shape.key, piece
        if shape.key_separator is not None:
            key, found, value = piece.partition(shape.key_separator)
            if not found:
                separator = shape.key_separator.decode()
                raise ValueError(f"line {number} has no {separator!r} between key and value: {_short(piece)}")
        yield {
            "key": None if shape.null is not None and key == shape.null else key,
            "value": None if shape.null is not None and value == shape.null else value,
            "headers": shape.headers,
            "partition": shape.partition,
        }


def _short(line: bytes) -> str:
    text = line.decode("utf-8", "backslashreplace")
    return text if len(text) <= 60 else text[:57] + "..."


def _send(producer: Producer, topic: str, records: Iterator[dict[str, Any]]) -> int:
    """Send all records and return how many; raise the first failure, with the number written in spite of it.

    Records before a faulty line are written.
    """
    tells = sys.stderr.isatty()
    failures: list[Exception] = []
    sent = written = 0

    def check(future: DeliveryFuture) -> None:
        nonlocal written
        failure = future.failure()
        if failure is None:
            written += 1
        else:
            failures.append(failure)

    try:
        for record in records:
            if failures:
                break
            producer.send(topic, **record).add_done_callback(check)
            sent += 1
            if tells and sent % TELL_EVERY == 0:
                say(f"\r{sent:,} records", newline=False, err=True)
    except (KafkaError, ValueError, click.ClickException) as error:
        failures.append(error)
    producer.flush()
    if tells and sent >= TELL_EVERY:
        say("\r", newline=False, err=True)
    if failures:
        raise _with_count(failures[0], written, topic)
    return sent


def _with_count(failure: Exception, written: int, topic: str) -> Exception:
    """Return the failure with the number of records that were written in spite of it."""
    reason = failure.message if isinstance(failure, click.ClickException) else str(failure)
    text = f"{reason}; {count(written, 'record')} written to {topic} before that" if written else reason
    return ValueError(text) if isinstance(failure, ValueError) else click.ClickException(text)
