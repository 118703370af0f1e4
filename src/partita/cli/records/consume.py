"""`partita consume`: read records to the screen or into a pipe, alone or as a member of a group."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import click

import partita
from partita.cli.address import Address, address_options, client_settings_option
from partita.cli.connecting import complete_group, complete_topic, connected, require_topics
from partita.cli.records.formats import DEFAULT_FORMAT, FIELDS, Look, parse_delimiter, parse_format, to_json
from partita.cli.records.patience import Patience, brief_calls, told_once
from partita.cli.records.where import Kind, Where, parse_where
from partita.cli.variables import NumberRange
from partita.offsets.topic_partition import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from partita import Consumer
    from partita.records.batch import Record

POLL_S = 0.5
FIELDS_HELP = ", ".join(f"%{letter} {meaning}" for letter, meaning in FIELDS.items() if letter != "v")


@dataclass(frozen=True, slots=True)
class Plan:
    """The partitions to read, where to start and end, and when to stop. None: no such limit."""

    topics: Sequence[str]
    pattern: str | None
    partitions: frozenset[int] | None
    group: str | None
    start: Where
    end: Where | None
    limit: int | None
    idle_s: float | None
    grep: re.Pattern[bytes] | None

    @property
    def is_bounded(self) -> bool:
        """Whether reading ends by itself, whatever is written later."""
        return self.end is not None or self.idle_s is not None


@dataclass(frozen=True, slots=True)
class Output:
    """The stream that records are written to, and the function that formats each one."""

    stream: IO[bytes]
    write: Callable[[Record], bytes]


@click.command()
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...", shell_complete=complete_topic)
@address_options
@click.option(
    "--group", "-g", help="Read as a member of this group and commit what was printed.", shell_complete=complete_group
)
@click.option("--from", "--offset", "-o", "start", metavar="WHERE", help="Start at earliest (or beginning), latest "
              "(or end, the default), an offset, +N (after the first N records of each partition), -N (the last N), a "
              "time such as 2026-01-31T12:00 (UTC), or an age such as '1h ago'. In a group: earliest or latest, used "
              "where nothing is committed.")  # fmt: skip
@click.option("--to", "end", metavar="WHERE", help="Stop before this position; same forms as --from.")
@click.option("--last", type=click.IntRange(min=1), help="Start N records before the end of each partition.")
@click.option("--partition", "-p", "partitions", metavar="0,1", help="Read only these partitions.")
@click.option("--max", "-n", "-c", "limit", type=click.IntRange(min=1), help="Stop after this many records.")
@click.option("--until-end", "-e", is_flag=True, help="Stop at the end that the partitions have now.")
@click.option(
    "--idle",
    type=NumberRange(min=0.1),
    metavar="SECONDS",
    help="Stop when no record came for so long; in a group, since it has joined.",
)
@click.option("--grep", metavar="REGEX", help="Print only records whose key or value matches.")
@click.option("--format", "-f", "layout", metavar="FORMAT", help=f"How to print a record: {FIELDS_HELP}; %s{{hex}}, "
              r"%s{base64}, %T{iso}; escapes \n \t \0 \x1f.")  # fmt: skip
@click.option("--json", "-J", "as_json", is_flag=True, help="Print one JSON object per record, for produce --json.")
@click.option("--raw", is_flag=True, help="Print values exactly as they are, with nothing between them.")
@click.option("--delimiter", "-D", metavar="TEXT", help=r"Print this after each value instead of \n.")
@click.option("--null", "-Z", default="", metavar="TEXT", help="Print this for null keys and values.")
@client_settings_option("consumer")
def consume(
    topics: tuple[str, ...], bootstrap: Address, client_settings: dict[str, str], raw: bool, as_json: bool,
    layout: str | None, delimiter: str | None, null: str, **given: Any,
) -> None:  # fmt: skip
    """Read records of TOPICs and print their values, one per line.

    A TOPIC that begins with ^ is a regular expression for whole names. Ends with Ctrl-C, --max, --until-end, --to or
    --idle. With --until-end or --to it fails if no broker can be reached for 15 s, or if nothing comes for two minutes
    before the end. Topics are never created. On a terminal, control characters are escaped; in a pipe, bytes stay as
    they are.
    """
    write = _writer(raw=raw, as_json=as_json, layout=layout, delimiter=delimiter, null=null)
    plan = _plan(topics, given)
    options = bootstrap.client_options(
        group_id=plan.group,
        auto_offset_reset=plan.start.kind.value if plan.group else "earliest",
        enable_auto_commit=False,
        allow_auto_create_topics=False,
    )
    if plan.is_bounded:
        options |= brief_calls(client_settings, options)
    plan = _existing(bootstrap, plan)
    try:
        with told_once(outages=plan.is_bounded), partita.Consumer(options | client_settings) as consumer:
            ends = _begin(consumer, plan)
            _read(consumer, plan, ends, Output(sys.stdout.buffer, write))
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    except (KeyboardInterrupt, BrokenPipeError):
        return  # who reads the pipe has seen enough


def _writer(*, raw: bool, as_json: bool, layout: str | None, delimiter: str | None, null: str) -> Callable[..., bytes]:
    """Return the function that formats a record. Raises UsageError for options that contradict one another."""
    if sum((raw, as_json, layout is not None, delimiter is not None)) > 1:
        raise click.UsageError("give only one of --format, --json, --raw and --delimiter")
    if as_json:
        return lambda record: to_json(record).encode() + b"\n"
    try:
        after = b"" if delimiter is None else parse_delimiter(delimiter)
        parsed = parse_format(layout if layout is not None else "%s" if raw or delimiter else DEFAULT_FORMAT)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    look = Look(null.encode(), is_terminal=sys.stdout.isatty() and not raw)
    return lambda record: parsed.render(record, look) + after


def _plan(topics: tuple[str, ...], given: dict[str, Any]) -> Plan:
    if given["start"] is not None and given["last"] is not None:
        raise click.UsageError("give only one of --from and --last")
    if given["until_end"] and given["end"] is not None:
        raise click.UsageError("--until-end and --to cannot be combined")
    now_ms = time.time_ns() // 1_000_000
    try:
        end = parse_where(given["end"], now_ms) if given["end"] is not None else None
        start = parse_where(given["start"] or "latest", now_ms)
        grep = re.compile(given["grep"].encode()) if given["grep"] is not None else None
    except (ValueError, re.error) as error:
        raise click.UsageError(str(error)) from None
    start = Where(Kind.LAST, given["last"]) if given["last"] is not None else start
    numbers = None if given["partitions"] is None else _numbers(given["partitions"])
    if given["group"] is not None:
        _check_group_options(start, numbers, end)
    return Plan(
        topics, _pattern(topics), numbers, given["group"], start,
        Where(Kind.LATEST) if given["until_end"] else end, given["limit"], given["idle"], grep,
    )  # fmt: skip


def _check_group_options(start: Where, partitions: frozenset[int] | None, end: Where | None) -> None:
    if start.kind not in (Kind.EARLIEST, Kind.LATEST):
        raise click.UsageError("a group starts at its committed offsets; --from takes only earliest or latest here. "
                               "Move the group with: partita groups reset-offsets")  # fmt: skip
    if partitions is not None:
        raise click.UsageError("a group assigns the partitions itself; leave out --group or --partition")
    if end is not None:
        raise click.UsageError("--to does not work in a group; use --until-end, --max or --idle")


def _numbers(text: str) -> frozenset[int]:
    if not re.fullmatch(r"\s*\d+\s*(,\s*\d+\s*)*", text):
        raise click.UsageError(f"--partition expects numbers such as 0 or 0,1, not {text!r}")
    return frozenset(map(int, text.split(",")))


def _pattern(topics: tuple[str, ...]) -> str | None:
    """One expression for all topics, if every one is an expression."""
    expressions = [topic for topic in topics if topic.startswith("^")]
    if not expressions:
        return None
    if len(expressions) < len(topics):
        raise click.UsageError("topic names and regular expressions (^...) cannot be combined")
    pattern = "|".join(f"(?:{expression})" for expression in expressions)
    try:
        re.compile(pattern)
    except re.error as error:
        raise click.UsageError(f"{', '.join(expressions)} is not a regular expression: {error}") from None
    return pattern


def _existing(bootstrap: Address, plan: Plan) -> Plan:
    """The plan with the names of topics that exist. Raises ClickException if there are none, or one is missing."""
    with connected(bootstrap) as admin:
        if plan.pattern is None:
            require_topics(admin, plan.topics)
            return plan
        names = [topic.name for topic in admin.list_topics() if re.fullmatch(plan.pattern, topic.name)]
    if not names:
        raise click.ClickException(f"no topic matches {' '.join(plan.topics)}; see: partita topics list")
    return Plan(names, plan.pattern, plan.partitions, plan.group, plan.start, plan.end, plan.limit, plan.idle_s,
                plan.grep)  # fmt: skip


def _begin(consumer: Consumer, plan: Plan) -> dict[TopicPartition, int] | None:
    """Subscribe as a member, or assign and seek. Returns the offset to stop at in each partition; None if endless."""
    if plan.group is None:
        partitions = _chosen(consumer, plan)
        consumer.assign(partitions)
        for partition, offset in _offsets(consumer, partitions, plan.start).items():
            consumer.seek(partition, offset)
    elif plan.pattern is not None:
        consumer.subscribe(pattern=plan.pattern)
    else:
        consumer.subscribe(list(plan.topics))
    if plan.end is None:
        return None
    partitions = _chosen(consumer, plan)
    begins = consumer.beginning_offsets(partitions)
    return {tp: end for tp, end in _offsets(consumer, partitions, plan.end).items() if end > begins[tp]}


def _chosen(consumer: Consumer, plan: Plan) -> list[TopicPartition]:
    found: list[TopicPartition] = []
    for topic in plan.topics:
        numbers = consumer.partitions_for(topic)
        missing = sorted((plan.partitions or frozenset()) - set(numbers))
        if missing:
            has = f"{len(numbers)} partition{'' if len(numbers) == 1 else 's'}"
            raise click.ClickException(f"topic {topic} has {has}, numbered from 0; there is no partition {missing[0]}")
        wanted = numbers if plan.partitions is None else sorted(plan.partitions)
        found += [TopicPartition(topic, number) for number in wanted]
    return found


def _offsets(consumer: Consumer, partitions: Iterable[TopicPartition], where: Where) -> Mapping[TopicPartition, int]:
    """Return the offset of a position in each partition of the present logs."""
    wanted = list(partitions)
    begins, ends = consumer.beginning_offsets(wanted), consumer.end_offsets(wanted)
    timed = consumer.offsets_for_times(dict.fromkeys(wanted, where.value)) if where.is_time else {}
    at_time = {tp: found.offset for tp, found in timed.items() if found is not None}
    return {tp: where.offset(begins[tp], ends[tp], at_time.get(tp)) for tp in wanted}


def _read(consumer: Consumer, plan: Plan, ends: dict[TopicPartition, int] | None, output: Output) -> None:
    """Print records until a limit of the plan is reached; in a group, commit what was printed.

    Raises ClickException when the end cannot be reached.
    """
    printed = 0
    heard_at = time.monotonic()
    is_joining = plan.group is not None and plan.idle_s is not None
    patience = Patience(consumer, ends or {})
    while printed != plan.limit:
        mine = consumer.assignment()
        behind = patience.behind(mine)
        if ends is not None and mine and not behind:
            return  # partitions of other members are theirs to finish
        if is_joining:  # records can come only once the group has shared its partitions
            heard_at, is_joining = time.monotonic(), consumer.group_metadata().generation_id <= 0
        if plan.idle_s is not None and time.monotonic() - heard_at >= plan.idle_s:
            patience.check_reachable(0)
            return
        timeout = POLL_S if plan.idle_s is None else min(POLL_S, plan.idle_s)
        done: dict[tuple[str, int], OffsetAndMetadata | int] = {}
        for record in consumer.poll(timeout, max_records=None if plan.limit is None else plan.limit - printed):
            key = TopicPartition(record.topic, record.partition)
            done[key] = record.offset + 1
            if _is_wanted(record, plan, ends):
                output.stream.write(output.write(record))
                printed += 1
        if done:
            output.stream.flush()
            heard_at = time.monotonic()
            if plan.group is not None:
                consumer.commit(done)
        elif ends is not None or is_joining:
            patience.nothing_came(behind)


def _is_wanted(record: Record, plan: Plan, ends: dict[TopicPartition, int] | None) -> bool:
    if ends is not None and plan.group is None:
        end = ends.get(TopicPartition(record.topic, record.partition), 0)
        if record.offset >= end:
            return False
    if plan.grep is None:
        return True
    return any(isinstance(field, bytes) and plan.grep.search(field) for field in (record.key, record.value))
