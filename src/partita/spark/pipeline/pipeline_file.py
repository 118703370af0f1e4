"""Reads a pipeline file and checks all of it before anything starts. Pure.

Names of options are those of `format("partita")`; client options stand in `[cluster]` without the prefix `kafka.`,
settings of the Spark session in `[spark]` without the prefix `spark.`.
`parse` raises ConfigError that names the place in the file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from partita.options import ConfigError
from partita.security.meaning import is_security_option
from partita.spark.pipeline.column_list import check_columns
from partita.spark.pipeline.toml_table import TomlTable, named
from partita.spark.query_shape import QueryShape, refusals
from partita.spark.settings import table as option_table
from partita.spark.settings.options import SourceOptions, check_batch, check_stream, parse_sink, parse_source
from partita.spark.settings.typed import ERROR, check_separator

FORMATS = ("raw", "json", "csv", "avro", "protobuf")
SINKS = ("parquet", "delta", "iceberg", "topic", "console")
WITH_JSON = ("assign", *(option.name for option in option_table.POSITIONS))
TARGETS = {"parquet": "path", "delta": "path", "iceberg": "name", "topic": "topic"}
"""The key of a sink that names where its rows go."""
ONE_WRITER = ("parquet", "delta")
"""Sinks that take a batch once; a second one with the same path would overwrite it, or be taken for a repetition."""
OTHERWISE = ("drop", "fail", "dead_letters")
BAD_RECORDS = ("fail", "null", "column", "dead_letters")
RECORDS = "records"
"""The SQL name of a batch's decoded records."""
_NAME = re.compile(r"[A-Za-z_]\w*")
_READ = re.compile(r"\b(?:from|join)\s+([A-Za-z_]\w*)\b(?![.(])", re.I)
"""A table that SQL reads, if it is a plain name."""
_OTHER_FROM = re.compile(r"\bdistinct\s+from\b|\b(?:extract|trim|substr|substring|overlay)\s*\([^()]*?\bfrom\b", re.I)
"""What may stand before a column instead."""
_INTERVAL = re.compile(
    r"(interval\s+)?(\d+(\.\d+)?\s+(microsecond|millisecond|second|minute|hour|day|week)s?\s*)+", re.I
)


@dataclass(frozen=True, slots=True)
class Decoding:
    """Conversion of the value to columns. `registry` is a URL or a folder; `bad_records` one of `BAD_RECORDS`."""

    format: str = "raw"
    schema: str = ""
    registry: str = ""
    bad_records: str = "fail"
    separator: str = ","

    @property
    def keeps_bad(self) -> bool:
        """Whether SQL sees records that cannot be read."""
        return self.bad_records in ("null", "column")

    @property
    def hidden(self) -> tuple[str, ...]:
        """The columns of a decoded record that SQL does not see."""
        return () if self.bad_records == "column" else (ERROR, "_value")


@dataclass(frozen=True, slots=True)
class SideTable:
    """A topic that is read once as a whole when the pipeline starts, under a name for SQL."""

    name: str
    options: Mapping[str, str]
    decode: Decoding


@dataclass(frozen=True, slots=True)
class Transform:
    """A name for the result of a SQL query over earlier names."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A SQL condition that every record must meet; `otherwise` is one of `OTHERWISE`."""

    name: str
    check: str
    otherwise: str


@dataclass(frozen=True, slots=True)
class Sink:
    """The destination of a table; `target` is a folder, a table or a topic, depending on the format."""

    table: str
    format: str
    target: str = ""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The whole file, checked."""

    name: str
    checkpoint: str
    cluster: Mapping[str, str]
    source: Mapping[str, str]
    decode: Decoding
    tables: tuple[SideTable, ...]
    rules: tuple[Rule, ...]
    transforms: tuple[Transform, ...]
    sinks: tuple[Sink, ...]
    dead_letters: str = ""
    bad_ratio_max: float = 1.0
    trigger: Mapping[str, Any] | None = None
    spark: Mapping[str, str] = field(default_factory=dict)

    def source_options(self) -> SourceOptions:
        """The options of the stream, parsed."""
        return parse_source(self.read_options(self.source))

    def read_options(self, options: Mapping[str, str]) -> dict[str, str]:
        """The options of a read of this cluster."""
        return {**self._client(), **options}

    def write_options(self, topic: str) -> dict[str, str]:
        """The options of a write to this topic."""
        return {**self._client(), "topic": topic}

    def other_topics(self) -> dict[str, str]:
        """Return the topics besides the stream's own, each with its use: side tables, sinks, dead letters."""
        sides = [(side, parse_source(self.read_options(side.options)).topics) for side in self.tables]
        found = {
            name: f"table {side.name}"
            for side, topics in sides
            for name in (*topics.names, *(topic for topic, _ in topics.assigned))
        }
        found |= {sink.target: f"sink of {sink.table}" for sink in self.sinks if sink.format == "topic"}
        return found | ({self.dead_letters: "dead letters"} if self.dead_letters else {})

    def lacking(self, sink: Sink) -> str:
        """Return the Spark settings that this sink lacks, as far as can be seen from here; empty if none."""
        settings = " ".join(self.spark.values())
        if sink.format == "delta" and "delta" not in self.spark.get("spark.sql.extensions", ""):
            return "[spark] needs jars.packages and sql.extensions of Delta Lake"
        if sink.format == "iceberg" and "org.apache.iceberg.spark" not in settings:
            return "[spark] needs jars.packages of Iceberg and a sql.catalog for the table"
        return ""

    def _client(self) -> dict[str, str]:
        return {f"kafka.{name}": value for name, value in self.cluster.items()}


def parse(text: str, name: str) -> Pipeline:
    """The pipeline that the text describes; `name` is used where the text has none. Raises ConfigError."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"this is no TOML: {error}") from None
    file = TomlTable("the file", document, is_file=True)
    pipeline = Pipeline(
        name=file.text("name", name),
        checkpoint=file.text("checkpoint"),
        cluster={key.removeprefix("kafka."): value for key, value in file.options("cluster", "kafka.").items()},
        source=_read_options(file),
        decode=_decoding(file.inner("decode")),
        tables=tuple(_side_table(table) for table in file.several("table")),
        rules=tuple(_rule(table) for table in file.several("quality")),
        transforms=tuple(Transform(_table_name(t), t.text("sql")) for t in file.several("transform")),
        sinks=tuple(_sink(table) for table in file.several("sink")),
        dead_letters=file.inner("dead_letters").text("topic", ""),
        bad_ratio_max=file.inner("dead_letters").ratio("max_ratio", 1.0),
        trigger=_trigger(file.inner("trigger")),
        spark=file.options("spark", "spark."),
    )
    # Every key has been read by now, so any that is left is a mistake.
    file.refuse_others()
    _check_cluster(pipeline)
    _check_reads(pipeline)
    _check_tables(pipeline)
    _check_sinks(pipeline)
    _check_letters(pipeline)
    return pipeline


def _read_options(table: TomlTable) -> dict[str, str]:
    place = "[source]" if table.place == "the file" else f"source of {table.place}"
    found = table.options("source")
    for name in found:
        # A table in place of JSON text would pass for several options with dots in their names.
        option = name.partition(".")[0]
        if option != name and option in WITH_JSON:
            raise ConfigError(f"{option} of {place} must be a text with JSON in it, not a table")
    return found


def _decoding(table: TomlTable) -> Decoding:
    kind = table.text("format", "raw", FORMATS)
    found = Decoding(
        kind,
        table.text("schema", ""),
        table.text("registry", ""),
        table.text("bad_records", "fail", BAD_RECORDS),
        table.text("separator", ","),
    )
    if kind == "raw":
        odd = next((key for key in ("schema", "registry", "bad_records", "separator") if table.has(key)), None)
        if odd is not None:
            raise ConfigError(f"{table.place} needs format, since it has {odd}: json, csv, avro or protobuf")
        return found
    if not found.schema:
        raise ConfigError(f'{table.place} needs schema, the columns as SQL has them: "carrier string, delay int"')
    if (kind in ("avro", "protobuf")) != bool(found.registry):
        raise ConfigError(f"{table.place}: registry, a URL or a folder, goes with the formats avro and protobuf")
    if kind != "csv" and table.has("separator"):
        raise ConfigError(f"{table.place}: separator goes with the format csv")
    with named(table.place):
        check_separator(found.separator)
        check_columns(found.schema)
    return found


def _side_table(table: TomlTable) -> SideTable:
    decode = _decoding(table.inner("decode"))
    if decode.bad_records not in ("fail", "null"):
        raise ConfigError(f"bad_records of decode of {table.place} must be fail or null: a side table has no batches")
    return SideTable(_table_name(table), _read_options(table), decode)


def _table_name(table: TomlTable) -> str:
    name = table.text("name")
    if not _NAME.fullmatch(name):
        raise ConfigError(f"name of {table.place} must be a name for SQL, of letters, digits and _, not {name!r}")
    return name


def _rule(table: TomlTable) -> Rule:
    if "," in table.text("name"):
        raise ConfigError(f"name of {table.place} must not hold a comma: reasons are lists of such names")
    return Rule(table.text("name"), table.text("check"), table.text("otherwise", "fail", OTHERWISE))


def _sink(table: TomlTable) -> Sink:
    kind = table.text("format", None, SINKS)
    target = TARGETS.get(kind)
    return Sink(table.text("table", RECORDS), kind, table.text(target) if target else "")


def _trigger(table: TomlTable) -> Mapping[str, Any]:
    interval, is_once = table.text("interval", ""), table.flag("available_now")
    if interval and is_once:
        raise ConfigError("[trigger] takes interval or available_now, not both")
    if interval and not _INTERVAL.fullmatch(interval.strip()):
        raise ConfigError(f'interval of [trigger] must be a time like "5 seconds" or "1 minute", not {interval!r}')
    return {"availableNow": True} if is_once else {"processingTime": interval or "0 seconds"}


def _check_cluster(pipeline: Pipeline) -> None:
    if not pipeline.cluster.get("bootstrap.servers", "").strip():
        raise ConfigError("[cluster] needs bootstrap.servers: host:port of one broker or more, separated by commas")
    with named("[cluster]", "kafka."):
        check_stream(parse_source(pipeline.read_options({"subscribe": "any"})))
        parse_sink(pipeline.write_options("any"))
    known = [name.removeprefix("kafka.") for name in (*option_table.CLIENT, *option_table.CLIENT_NO_EFFECT)]
    for name in pipeline.cluster:
        if name not in known and not is_security_option(name):
            near = get_close_matches(name, known, n=1, cutoff=0.5)
            raise ConfigError(f"[cluster] has no {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))


def _check_reads(pipeline: Pipeline) -> None:
    """The options of the stream, then those of the side tables."""
    with named("[source]"):
        source = _records_only(pipeline, pipeline.source)
        check_stream(source)
        for reason in refusals(QueryShape((source,))):
            raise ConfigError(reason)
    for i, side in enumerate(pipeline.tables, 1):
        with named(f"source of [[table]] number {i}"):
            check_batch(_records_only(pipeline, side.options))


def _records_only(pipeline: Pipeline, options: Mapping[str, str]) -> SourceOptions:
    """Return the parsed options. Raises ConfigError when they read something other than records, or have no effect."""
    expected = set(parse_source(pipeline.read_options({"subscribe": "any"})).warnings)
    found = parse_source(pipeline.read_options(options))
    for warning in found.warnings:
        if warning not in expected:
            raise ConfigError(warning)
    if found.view != "records":
        raise ConfigError("a pipeline reads records; leave out view")
    if found.typed is not None:
        raise ConfigError(f"a pipeline decodes values by [decode]; leave out {found.typed.forms[0].side}Format")
    if any(name.lower() == "columns" for name in options):
        raise ConfigError("a pipeline reads every column; leave out columns")
    return found


def _check_tables(pipeline: Pipeline) -> None:
    """Check that each name is used by one table only, and by one rule only."""
    named_by = {RECORDS: "the records of a batch"}
    named_tables = [(f"[[table]] number {i}", side.name) for i, side in enumerate(pipeline.tables, 1)]
    named_tables += [(f"[[transform]] number {i}", found.name) for i, found in enumerate(pipeline.transforms, 1)]
    for place, name in named_tables:
        if name.lower() in named_by:
            raise ConfigError(f"{place}: two tables are called {name!r}; the other is {named_by[name.lower()]}")
        named_by[name.lower()] = place
    known = [RECORDS, *(side.name for side in pipeline.tables)]
    for i, found in enumerate(pipeline.transforms, 1):
        for table in map(str.lower, _READ.findall(_OTHER_FROM.sub("(", found.sql))):
            # Another name may be a table of Spark's catalog or a subquery's; only what looks like a slip is refused.
            near = get_close_matches(table, map(str.lower, known), n=1, cutoff=0.8)
            named_here = rf"(?i)\b{re.escape(table)}\s*(?:\([^()]*\)\s*)?\bas\s*\("
            if near and near[0] != table and not re.search(named_here, found.sql):
                raise ConfigError(f"sql of [[transform]] number {i} reads {table!r}; did you mean {near[0]!r}?")
        known.append(found.name)
    rules = [rule.name for rule in pipeline.rules]
    for i, name in enumerate(rules, 1):
        if name in rules[: i - 1]:
            raise ConfigError(f"[[quality]] number {i}: two rules are called {name!r}")


def _check_sinks(pipeline: Pipeline) -> None:
    """Check where each sink takes its rows from, and that no two of them write to the same place."""
    if not pipeline.sinks:
        raise ConfigError("the file needs a [[sink]]")
    known = [RECORDS, *(side.name for side in pipeline.tables), *(found.name for found in pipeline.transforms)]
    source, places = pipeline.source_options(), dict[tuple[str, str], int]()
    for i, sink in enumerate(pipeline.sinks, 1):
        if sink.table not in known:
            raise ConfigError(f"[[sink]] number {i} wants the table {sink.table!r}; known are {', '.join(known)}")
        if sink.format == "topic":
            _check_topic(pipeline, source, f"[[sink]] number {i}", sink.target)
        elif sink.format in ONE_WRITER:
            before = places.setdefault((sink.format, sink.target.rstrip("/")), i)
            if before != i:
                raise ConfigError(
                    f"[[sink]] number {i} has the path of [[sink]] number {before}: one would overwrite it"
                )


def _check_letters(pipeline: Pipeline) -> None:
    """Raises ConfigError when something is sent to the dead letters and no topic is set for them."""
    wants = [f"{rule.name!r}" for rule in pipeline.rules if rule.otherwise == "dead_letters"]
    wants += ["bad_records of [decode]"] * (pipeline.decode.bad_records == "dead_letters")
    if wants and not pipeline.dead_letters:
        raise ConfigError(f"{', '.join(wants)}: records go to dead letters; say where: [dead_letters] with topic")
    if pipeline.dead_letters:
        _check_topic(pipeline, pipeline.source_options(), "[dead_letters]", pipeline.dead_letters)


def _check_topic(pipeline: Pipeline, source: SourceOptions, place: str, topic: str) -> None:
    """Raises ConfigError for a topic that cannot be written, or that the pipeline itself reads."""
    with named(place, "kafka."):
        parse_sink(pipeline.write_options(topic))
    if source.topics.wants(topic):
        raise ConfigError(f"{place}: [source] reads the topic {topic!r}; the pipeline would read what it writes")
