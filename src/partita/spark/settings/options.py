"""Parse and check the options of `format("partita")`, for reading and for writing.

`parse_source` and `parse_sink` raise ConfigError for everything that must fail at `load()`. Problems that Spark's
connector reports only once the query runs are collected in `run_problems`, and checks that depend on batch or stream
are in `check_batch` and `check_stream`, since a Python data source does not know which it is at `load()`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any
from zlib import crc32

from partita.options import ConfigError, Option, check_value
from partita.references import resolve_option, resolve_options
from partita.security.meaning import is_security_option, security_of_options
from partita.spark.settings import table
from partita.spark.settings.client_checks import (
    check_member,
    check_numbers,
    check_servers,
    check_topic,
    in_words_of_spark,
    not_known,
    of_members_only,
    whole_number,
)
from partita.spark.settings.positions import LATEST, AtWord, Position, TopicPartition, parse_assign
from partita.spark.settings.produce import ProduceSettings, produce_settings
from partita.spark.settings.starts_and_ends import check_start_against_end, ending, mentions, starting
from partita.spark.settings.typed import Typed, typed_of

NO_NAMES = ("subscribe", "subscribePattern", "assign")
_INSTANCE_ID = re.compile(r"[a-zA-Z0-9._-]{1,240}")
_DELAY = re.compile(r"(\d+)\s*(us|ms|s|m|min|h|d)?")
_UNIT_MS = {"us": 0.001, "ms": 1, None: 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
DECIDED = "the data source decides it itself"
FORBIDDEN_BECAUSE = {"kafka.transactional.id": "this sink writes at least once, it has no transactions"}
_ISOLATION = {"read_uncommitted": False, "read_committed": True}


@dataclass(frozen=True, slots=True)
class TopicSelection:
    """Topics to read: exactly one of the three is set."""

    names: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: tuple[TopicPartition, ...] = ()

    def wants(self, topic: str) -> bool:
        """Whether the topic is selected. A pattern matches anywhere in the name, as in Spark's connector."""
        if self.pattern is not None:
            return re.search(self.pattern, topic) is not None
        return topic in self.names or any(topic == name for name, _ in self.assigned)

    def wants_partition(self, key: TopicPartition) -> bool:
        """Whether the partition is selected."""
        return key in self.assigned if self.assigned else self.wants(key[0])


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one batch of a stream; None: no limit."""

    max_offsets: int | None = None
    min_offsets: int | None = None
    max_delay_ms: int = 900_000
    max_bytes: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The options that are given."""
        given = {
            "maxOffsetsPerTrigger": self.max_offsets,
            "minOffsetsPerTrigger": self.min_offsets,
            "maxBytesPerTrigger": self.max_bytes,
        }
        return tuple(name for name, value in given.items() if value is not None)

    @property
    def any(self) -> bool:
        """Whether there is any limit at all."""
        return bool(self.names)


SHARED_TASK_RECORDS, SHARED_TASK_RECORDS_OF_VIEW = 4096, 131_072
"""Defaults of maxRecordsPerSharedTask: in a stream, and for a view of the log of groups."""


@dataclass(frozen=True, slots=True)
class MemberOptions:
    """Participation of a query in a shared group. `leaves_on_stop` None: only an AvailableNow run leaves.

    `count` None: one member for each core of the cluster.
    """

    count: int | None = 1
    instance_id: str = "spark"
    skips_lost_replay: bool = False
    leaves_on_stop: bool | None = None


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """All options of a read, checked. `starting` is None when the user gave no start."""

    client: Mapping[str, str]
    topics: TopicSelection
    starting: Position | None = None
    ending: Position | None = None
    ending_names: tuple[str, ...] = ()
    time_or_latest: bool = False
    fail_on_data_loss: bool = True
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    max_records_per_shared_task: int | None = None
    view: str = "records"
    columns: tuple[str, ...] = table.COLUMNS
    typed: Typed | None = None
    pushdown: bool | None = None
    read_committed: bool = False
    limits: Limits = Limits()
    offset_poll_ms: int = 200
    group: str | None = None
    commits: bool = False
    member: MemberOptions | None = None
    max_poll_interval_ms: int = 300_000
    group_decides: bool = False
    commit_failure_fails: bool = False
    query_name: str | None = None
    run_problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def shared_task_records(self, *, in_stream: bool, by_cores: int = 0) -> int:
        """Return how many offsets of several partitions a task reads at most; 0: each partition has its own task.

        `by_cores` is the suggestion for a stream's batch from the session's cores; options take precedence over it.
        """
        if self.max_records_per_shared_task is not None:
            return self.max_records_per_shared_task
        if self.min_partitions is not None or self.max_records_per_partition is not None:
            return 0
        if self.view != "records":
            return SHARED_TASK_RECORDS_OF_VIEW
        return max(SHARED_TASK_RECORDS, by_cores) if in_stream else 0


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """All options of a write, checked."""

    client: Mapping[str, str]
    produce: ProduceSettings
    topic: str | None = None
    warnings: tuple[str, ...] = ()
    sink_name: str | None = None
    """The name of a sink that writes exactly once; None: at least once."""
    starts_with: int | None = None
    """The batch that such a sink begins with, if that is not the first."""


@dataclass(slots=True)
class _Given:
    """Options sorted by kind, while being parsed."""

    values: dict[str, Any] = field(default_factory=dict)
    client: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    elsewhere: dict[str, str] = field(default_factory=dict)
    """Options of the other side: write options in a read, read options in a write."""


@dataclass(frozen=True, slots=True)
class _Side:
    """Options that one side, reading or writing, accepts."""

    doing: str
    known: tuple[Option, ...]
    others: tuple[Option, ...]
    forbidden: tuple[str, ...]
    other_prefix: str


READS = _Side("reading", table.SOURCE, table.SINK, table.FORBIDDEN_SOURCE, other_prefix="sink:")
WRITES = _Side("writing", table.SINK, table.SOURCE, table.FORBIDDEN_SINK, other_prefix="source:")


def parse_source(options: Mapping[str, str]) -> SourceOptions:
    """The options of a batch or streaming read. Raises ConfigError naming the option."""
    given = _sort(options, READS)
    values = given.values
    if not any(values[name] is not None for name in NO_NAMES):
        values["subscribe"] = given.elsewhere.get("topic")
    if values["minPartitions"] is not None and values["maxRecordsPerSharedTask"]:
        raise ConfigError("minPartitions asks for more tasks, maxRecordsPerSharedTask for fewer; leave one of them out")
    view = _view(values)
    topics = _topics(values)
    typed = typed_of(values)
    _check_letters(typed, topics)
    _check_group(values, topics)
    if values["groupMode"] == "member":
        check_member(given.client)
    else:
        given.warnings += of_members_only(given.client)
    start = starting(values, given.problems)
    if values["group"] and values["groupMode"] == "none" and view == "records" and start != AtWord("committed"):
        given.warnings.append("group has no effect without groupMode=commit, groupMode=member or a start of committed")
    end, ending_names = ending(values, given.problems)
    check_start_against_end(start, end)
    isolation = given.client.get("isolation.level", "read_uncommitted").strip().lower()
    if isolation not in _ISOLATION:
        given.problems.append(f"kafka.isolation.level must be one of {', '.join(_ISOLATION)}, not {isolation!r}")
    return SourceOptions(
        client=given.client,
        topics=topics,
        starting=start,
        ending=end,
        ending_names=ending_names,
        time_or_latest=values["startingOffsetsByTimestampStrategy"] == "latest",
        fail_on_data_loss=values["failOnDataLoss"],
        min_partitions=values["minPartitions"],
        max_records_per_partition=values["maxRecordsPerPartition"],
        max_records_per_shared_task=values["maxRecordsPerSharedTask"],
        view=view,
        columns=_columns(values["columns"], values["includeHeaders"], view, typed),
        typed=typed,
        pushdown=values["pushdown"],
        read_committed=_ISOLATION.get(isolation, False),
        limits=_limits(values, given.problems),
        offset_poll_ms=values["offsetPollMs"],
        group=values["group"],
        commits=values["groupMode"] == "commit",
        member=_member(values, topics),
        max_poll_interval_ms=_max_poll_interval_ms(given),
        group_decides=values["offsetAuthority"] == "group",
        commit_failure_fails=values["commitFailure"] == "fail",
        query_name=values["queryName"],
        run_problems=tuple(given.problems),
        warnings=tuple(given.warnings),
    )


def parse_sink(options: Mapping[str, str]) -> SinkOptions:
    """The options of a batch or streaming write. Raises ConfigError naming the option."""
    given = _sort(options, WRITES)
    topic = given.values["topic"]
    if topic is not None and not topic:
        raise ConfigError("topic must not be blank")
    if topic is not None:
        check_topic("topic", topic)
    produce = produce_settings(given.client)
    name = given.values["sinkName"]
    if given.values["exactlyOnce"]:
        _check_exactly_once(name, given.client)
    elif name is not None or given.values["sinkStart"] is not None:
        raise ConfigError("sinkName and sinkStart belong to exactlyOnce=true")
    return SinkOptions(
        client=given.client,
        produce=produce,
        topic=topic,
        warnings=tuple(given.warnings),
        sink_name=name,
        starts_with=given.values["sinkStart"],
    )


def _check_exactly_once(name: str | None, client: Mapping[str, str]) -> None:
    if name is None or not name.strip():
        raise ConfigError("exactlyOnce=true needs a sinkName: a name of its own for this sink, kept over restarts")
    if client.get("acks", "all") not in ("all", "-1") or client.get("enable.idempotence", "true").lower() != "true":
        raise ConfigError("exactlyOnce=true needs kafka.acks=all and kafka.enable.idempotence=true")


def check_batch(options: SourceOptions) -> None:
    """Raises ConfigError for options that a batch read may not have."""
    _raise_run_problems(options)
    if options.starting == AtWord("latest") or mentions(options.starting, LATEST):
        raise ConfigError("startingOffsets must not be latest (or -1) in a batch read: nothing would be read")
    if options.commits or options.member:
        mode = "commit" if options.commits else "member"
        raise ConfigError(f"groupMode={mode} needs a stream; a batch read has no point at which progress is known")


def check_stream(options: SourceOptions) -> None:
    """Raises ConfigError for options that a streaming read may not have."""
    _raise_run_problems(options)
    if options.ending_names:
        raise ConfigError(f"{options.ending_names[0]} has no meaning in a stream: it has no end")
    if options.pushdown:
        raise ConfigError("pushdown has no meaning in a stream: Spark offers filters to batch reads only")


def _raise_run_problems(options: SourceOptions) -> None:
    if options.run_problems:
        raise ConfigError("; ".join(options.run_problems))


def _sort(options: Mapping[str, str], side: _Side) -> _Given:
    """Check names, convert values, split off the client's options."""
    given = _Given()
    by_name = {option.name.lower(): option for option in side.known}
    others = {option.name.lower(): option.name for option in side.others}
    is_table = _serves_both(options)
    for spelled, value in options.items():
        name = spelled.lower()
        if name in by_name:
            is_for_executor = name in table.OF_EXECUTOR
            resolved = value if is_for_executor else resolve_option(spelled, value)
            given.values[by_name[name].name] = check_value(by_name[name], resolved)
        elif name.startswith("kafka."):
            _take_client_option(given, spelled, value, side, is_table)
        elif name in others and (is_table or side is WRITES or name == "topic"):
            given.elsewhere[others[name]] = value
            if not is_table and name != "topic":
                given.warnings.append(f"{spelled} has no effect when {side.doing}")
        elif not _has_no_effect(name):
            raise ConfigError(_unknown(spelled, side))
    try:
        security_of_options(resolve_options(without_executors(given.client)))
    except ConfigError as error:
        raise ConfigError(in_words_of_spark(error)) from None
    check_servers(given.client)
    check_numbers(given.client)
    for option in side.known:
        given.values.setdefault(option.name, option.default)
    return given


def table_options(options: Mapping[str, str]) -> dict[str, str] | None:
    """Return the options of `CREATE TABLE ... USING partita OPTIONS (...)`; None when no table is being created.

    Raises ConfigError for a secret: the catalog shows a table's options to everyone.
    """
    if table.TABLE_MARK not in (name.lower() for name in options):
        return None
    kept = {name[len(table.PREFIX) :]: v for name, v in options.items() if name.lower().startswith(table.PREFIX)}
    secret = next((name for name in kept if any(word in name.lower() for word in table.SECRET)), None)
    if secret is not None:
        raise ConfigError(
            f"{secret} must not be an option of a table, which the catalog shows to everybody; "
            f"give it with each statement: SELECT * FROM the_table WITH (`{secret}` = '...')"
        )
    return kept


def _serves_both(options: Mapping[str, str]) -> bool:
    """Whether these are the options of a table or view that names topics for reading and for writing."""
    names = {name.lower() for name in options}
    return "topic" in names and not names.isdisjoint(name.lower() for name in NO_NAMES)


def _take_client_option(given: _Given, spelled: str, value: str, side: _Side, is_table: bool) -> None:
    name = spelled.lower()
    if name in side.forbidden:
        raise ConfigError(f"{spelled} must not be set: {FORBIDDEN_BECAUSE.get(name, DECIDED)}")
    if name == "kafka.group.id":
        given.warnings.append("kafka.group.id has no effect: use the options group and groupMode")
    elif name in table.CLIENT_NO_EFFECT:
        check_numbers({name.removeprefix("kafka."): resolve_option(spelled, value)})
        return
    elif is_security_option(name.removeprefix("kafka.")):
        given.client[name.removeprefix("kafka.")] = value  # references are resolved on each executor: no secret travels
        return
    elif name not in table.CLIENT:
        given.warnings.append(not_known(spelled))
    elif table.CLIENT[name].startswith(side.other_prefix) and not is_table:
        given.warnings.append(f"{spelled} has no effect when {side.doing}")
    is_for_executor = name in table.CLIENT_OF_EXECUTOR
    given.client[name.removeprefix("kafka.")] = value if is_for_executor else resolve_option(spelled, value)


def without_executors(client: Mapping[str, str]) -> dict[str, str]:
    """Return the client options without those that only executors resolve."""
    return {name: value for name, value in client.items() if f"kafka.{name}" not in table.CLIENT_OF_EXECUTOR}


def _has_no_effect(name: str) -> bool:
    plain = tuple(option.lower() for option in table.NO_EFFECT)
    return name in plain or name.startswith("kafkaconsumer.") or name in table.SPARK_OWN


def _unknown(spelled: str, side: _Side) -> str:
    if spelled.lower() == "path":  # what load(), save() and start() are given as an argument
        return f"no path is taken when {side.doing}; topics are named by the option " + (
            "topic" if side is WRITES else "subscribe, subscribePattern or assign"
        )
    names = {name.lower(): name for name in (*(option.name for option in side.known), *table.CLIENT, *table.NO_EFFECT)}
    near = get_close_matches(spelled.lower(), names, n=1, cutoff=0.5)
    return f"unknown option {spelled!r}" + (f"; did you mean {names[near[0]]!r}?" if near else "")


def _view(values: dict[str, Any]) -> str:
    """Return the view to read. A view of the group log chooses its topic itself."""
    view: str = values["view"].strip().lower()
    if view not in table.VIEWS:
        raise ConfigError(f"view={values['view']} is not available in this release; known are {', '.join(table.VIEWS)}")
    if view != "records":
        given = next((name for name in NO_NAMES if values[name] is not None), None)
        if given is not None:
            reads = "asks the cluster" if view == "lag" else f"reads {table.GROUP_LOG}"
            raise ConfigError(f"view={view} {reads}; leave out {given}")
        values["subscribe"] = table.GROUP_LOG
    return view


def _columns(text: str | None, include_headers: bool, view: str, typed: Typed | None) -> tuple[str, ...]:
    """The columns of a read, in the order asked for, without decoded ones."""
    is_records = view == "records"
    if include_headers and not is_records:
        raise ConfigError(f"view={view} has no headers; leave out includeHeaders")
    extra = ("headers",) if include_headers else ()
    if text is None:
        return (table.VIEWS[view] if typed is None else typed.plain_columns) + extra
    known = {name.lower(): name for name in table.VIEWS[view] + (table.EXTRA_COLUMNS if is_records else ())}
    chosen = []
    for part in text.split(","):
        name = part.strip().lower()
        if name not in known:
            near = get_close_matches(name, known, n=1, cutoff=0.5)
            hint = f"; did you mean {known[near[0]]!r}?" if near else f"; expected {', '.join(known.values())}"
            raise ConfigError(f"columns names {part.strip()!r}, which no read has{hint}")
        chosen.append(known[name])
    if len(set(chosen)) < len(chosen):
        raise ConfigError(f"columns names a column twice: {text}")
    return tuple(chosen) + tuple(name for name in extra if name not in chosen)


def _topics(values: Mapping[str, Any]) -> TopicSelection:
    chosen = [name for name in NO_NAMES if values[name] is not None]
    if len(chosen) != 1:
        got = " and ".join(chosen) or "none"
        raise ConfigError(f"exactly one of {', '.join(NO_NAMES)} must be given, not {got}")
    name, text = chosen[0], values[chosen[0]]
    if not text.strip():
        raise ConfigError(f"{name} must not be blank")
    if name == "assign":
        return TopicSelection(assigned=parse_assign(text))
    if name == "subscribe":
        topics = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
        if not topics:
            raise ConfigError(f"subscribe names no topic: {text!r}")
        for topic in topics:
            check_topic("subscribe", topic)
        return TopicSelection(names=topics)
    try:
        re.compile(text)
    except re.error as error:
        raise ConfigError(f"subscribePattern is not a regular expression: {error}") from None
    return TopicSelection(pattern=text)


def _check_letters(typed: Typed | None, topics: TopicSelection) -> None:
    letters = None if typed is None else typed.letter_topic
    if letters is not None:
        check_topic("deadLetterTopic", letters)
        if topics.wants(letters):
            raise ConfigError(f"deadLetterTopic={letters} is read itself: each letter would become another one")


def _check_group(values: Mapping[str, Any], topics: TopicSelection) -> None:
    mode, group = values["groupMode"], values["group"]
    if group is not None and not group:
        raise ConfigError("group must not be blank")
    if mode == "member" and topics.assigned:
        raise ConfigError("groupMode=member does not go with assign: the group decides which partitions are read")
    if mode == "member" and values["view"] != "records":
        raise ConfigError("groupMode=member reads records; leave out view")
    if mode != "none" and group is None:
        raise ConfigError(f"groupMode={mode} needs the option group")
    if mode == "none" and values["offsetAuthority"] == "group":
        raise ConfigError("offsetAuthority=group needs groupMode=commit or member")
    odd = next((option.name for option in table.MEMBER if values[option.name] != option.default), None)
    if mode != "member" and odd is not None:
        raise ConfigError(f"{odd} needs groupMode=member")
    if (values["startingOffsets"] or "").strip().lower() == "committed" and group is None:
        raise ConfigError("startingOffsets=committed needs the option group")


def _member(values: Mapping[str, Any], topics: TopicSelection) -> MemberOptions | None:
    """Participation in the group; the static id is the same in every run of the query."""
    if values["groupMode"] != "member":
        return None
    instance = values["groupInstanceId"]
    if instance is None:
        key = query_key_of(values["queryName"], values["group"], topics)
        instance = "spark-" + re.sub(r"[^a-zA-Z0-9._-]", "_", key)
    if not _INSTANCE_ID.fullmatch(instance):
        raise ConfigError(f"groupInstanceId must be 1 to 240 of a-z A-Z 0-9 . _ -, not {instance!r}")
    return MemberOptions(
        count=_member_count(values["groupMembers"]),
        instance_id=instance,
        skips_lost_replay=values["onReplayLost"] == "skip",
        leaves_on_stop=values["leaveOnStop"],
    )


def _member_count(text: str) -> int | None:
    if text.strip().lower() == "auto":
        return None
    if not text.strip().isdecimal() or int(text) < 1:
        raise ConfigError(f"groupMembers must be a whole number of at least 1, or auto, not {text!r}")
    return int(text)


def query_key_of(query_name: str | None, group: str | None, topics: TopicSelection) -> str:
    """Return a short name, the same in every run: the option queryName, else a hash of the group and its topics."""
    if query_name:
        return query_name.replace(":", "_")[:100]
    return f"{crc32(repr((group, topics)).encode()):08x}"


def _max_poll_interval_ms(given: _Given) -> int:
    return whole_number(given.client, "max.poll.interval.ms", 300_000)


def _limits(values: Mapping[str, Any], problems: list[str]) -> Limits:
    numbers = {
        name: _limit(name, values[name], problems)
        for name in ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxBytesPerTrigger")
    }
    most, least = numbers["maxOffsetsPerTrigger"], numbers["minOffsetsPerTrigger"]
    if most is not None and least is not None and least > most:
        raise ConfigError(f"minOffsetsPerTrigger ({least}) must not exceed maxOffsetsPerTrigger ({most})")
    return Limits(most, least, _delay_ms(values["maxTriggerDelay"]), numbers["maxBytesPerTrigger"])


def _limit(name: str, text: str | None, problems: list[str]) -> int | None:
    if text is None:
        return None
    try:
        number = int(text)
    except ValueError:
        problems.append(f"{name} must be a whole number, not {text!r}")
        return None
    if not 1 <= number <= table.LONG_MAX:
        problems.append(f"{name} must be at least 1 and at most {table.LONG_MAX}, not {number}")
    return number


def _delay_ms(text: str) -> int:
    match = _DELAY.fullmatch(text.strip().lower())
    if match is None:
        raise ConfigError(f"maxTriggerDelay must be a time like 15m, 30s or 500ms, not {text!r}")
    return int(int(match[1]) * _UNIT_MS[match[2]])
