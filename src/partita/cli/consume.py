"""`partita consume`: read records to the screen or into a pipe, alone or as a member of a group."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from partita.cli.common import bootstrap_option, require_broker, settings_of

if TYPE_CHECKING:
    from partita import Consumer
    from partita.records.batch import Record

POLL_S = 0.5


@click.command()
@click.argument("topics", nargs=-1, required=True)
@bootstrap_option
@click.option("--group", "-g", help="Read as a member of this group and commit what was printed.")
@click.option("--from", "start", type=click.Choice(["earliest", "latest"]), default="latest", show_default=True,
              help="Where to begin: without a group always, in a group where it has no committed offset.")  # fmt: skip
@click.option("--max", "limit", type=click.IntRange(min=1), help="Stop after so many records.")
@click.option("--until-end", is_flag=True, help="Stop at the end the topics had when reading began.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per record, with all its fields.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A consumer option by Kafka's name.")
def consume(
    topics: tuple[str, ...], bootstrap: str, group: str | None, start: str, limit: int | None, until_end: bool,
    as_json: bool, settings: tuple[str, ...],
) -> None:  # fmt: skip
    """Read records of TOPICS and print their values, one a line. Ends with Ctrl-C, --max or --until-end."""
    from partita import Consumer

    options: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": start,
        "enable.auto.commit": False,
        **settings_of(settings),
    }
    require_broker(bootstrap)
    try:
        with Consumer(options) as consumer:
            _begin(consumer, list(topics), group, start)
            _read(consumer, _ends(consumer, list(topics)) if until_end else None, limit, as_json, group is not None)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    except (KeyboardInterrupt, BrokenPipeError):
        sys.stderr.close()


def _begin(consumer: Consumer, topics: list[str], group: str | None, start: str) -> None:
    """Subscribe as a member, or take every partition by hand."""
    if group is not None:
        consumer.subscribe(topics)
        return
    partitions = [(topic, number) for topic in topics for number in consumer.partitions_for(topic)]
    if not partitions:
        raise click.ClickException(f"no topic named {', '.join(topics)}; see: partita topics list")
    consumer.assign(partitions)
    if start == "earliest":
        consumer.seek_to_beginning()
    else:
        consumer.seek_to_end()


def _ends(consumer: Consumer, topics: list[str]) -> dict[tuple[str, int], int]:
    """The partitions that hold something, with their ends now."""
    partitions = [(topic, number) for topic in topics for number in consumer.partitions_for(topic)]
    begins, ends = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
    return {(tp.topic, tp.partition): end for tp, end in ends.items() if end > begins[tp]}


def _read(
    consumer: Consumer, ends: dict[tuple[str, int], int] | None, limit: int | None, as_json: bool, commits: bool
) -> None:
    printed = 0
    while (ends is None or not _reached(consumer, ends)) and printed != limit:
        done: dict[tuple[str, int], int] = {}
        for record in consumer.poll(timeout=POLL_S, max_records=None if limit is None else limit - printed):
            click.echo(_as_json(record) if as_json else _text(record.value))
            done[record.topic, record.partition] = record.offset + 1
            printed += 1
        if commits and done:
            consumer.commit(done)


def _reached(consumer: Consumer, ends: dict[tuple[str, int], int]) -> bool:
    """Is every partition we hold at its end? Partitions of other members are theirs to finish."""
    mine = {(tp.topic, tp.partition) for tp in consumer.assignment()}
    return bool(mine) and all(consumer.position(tp) >= end for tp, end in ends.items() if tp in mine)


def _text(value: object) -> str:
    """Bytes as text; what is not UTF-8 is escaped."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else ""


def _as_json(record: Record) -> str:
    fields = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": None if record.key is None else _text(record.key),
        "value": None if record.value is None else _text(record.value),
        "headers": [[name, None if value is None else _text(value)] for name, value in record.headers],
    }
    return json.dumps(fields)
