"""Reads a pipeline file and checks all of it before anything starts. Pure.

Names of options are those of `format("partita")`; client options stand in `[cluster]` without the prefix `kafka.`,
settings of the Spark session in `[spark]` without the prefix `spark.`.
`parse` raises ConfigError that names the place in the file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from partita.options import ConfigError
from partita.spark.options import SinkOptions, SourceOptions, check_batch, check_stream, parse_sink, parse_source
from partita.spark.query_shape import QueryShape, refusals

FORMATS = ("raw", "json", "avro", "protobuf")
SINKS = ("parquet", "delta", "iceberg", "topic", "console")
OTHERWISE = ("drop", "fail", "dead_letters")
BAD_RECORDS = ("fail", "null", "dead_letters")
RECORDS = "records"
"""The name by which SQL knows the decoded records of a batch."""


@dataclass(frozen=True, slots=True)
class Decoding:
    """How the value becomes columns. `registry` is a URL or a folder; `bad_records` one of `BAD_RECORDS`."""

    format: str = "raw"
    schema: str = ""
    registry: str = ""
    bad_records: str = "fail"


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
    """What has to hold for every record, as SQL; `otherwise` is one of `OTHERWISE`."""

    name: str
    check: str
    otherwise: str


@dataclass(frozen=True, slots=True)
class Sink:
    """Where a table goes; `target` is a folder, a table or a topic, by the format."""

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

    def lacking(self, sink: Sink) -> str:
        """What the settings of Spark lack for this sink; empty if nothing that can be seen from here."""
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
    file = _Table("the file", document)
    pipeline = Pipeline(
        name=file.text("name", name),
        checkpoint=file.text("checkpoint"),
        cluster=_flat(file.table("cluster")),
        source=_flat(file.table("source")),
        decode=_decoding(file.inner("decode")),
        tables=tuple(_side_table(table) for table in file.several("table")),
        rules=tuple(_rule(table) for table in file.several("quality")),
        transforms=tuple(Transform(t.text("name"), t.text("sql")) for t in file.several("transform")),
        sinks=tuple(_sink(table) for table in file.several("sink")),
        dead_letters=file.inner("dead_letters").text("topic", ""),
        bad_ratio_max=float(file.inner("dead_letters").value("max_ratio", 1.0)),
        trigger=_trigger(file.inner("trigger")),
        spark=_flat(file.table("spark"), "spark."),
    )
    file.refuse_others()
    _check(pipeline)
    return pipeline


class _Table:
    """One table of the file; remembers what was asked for, so that the rest can be refused."""

    def __init__(self, place: str, values: Mapping[str, Any]) -> None:
        self.place = place
        self._values = values
        self._asked: set[str] = set()
        self._inner: list[_Table] = []

    def value(self, name: str, default: Any = None) -> Any:
        self._asked.add(name)
        return self._values.get(name, default)

    def text(self, name: str, default: str | None = None, choices: tuple[str, ...] = ()) -> str:
        found = self.value(name, default)
        if not isinstance(found, str) or (default is None and not found):
            raise ConfigError(f"{self.place} needs {name}, a text" + (f": {', '.join(choices)}" if choices else ""))
        if choices and found not in choices:
            raise ConfigError(f"{name} of {self.place} must be one of {', '.join(choices)}, not {found!r}")
        return found

    def table(self, name: str) -> Mapping[str, Any]:
        found = self.value(name, {})
        if not isinstance(found, Mapping):
            raise ConfigError(f"{name} of {self.place} must be a table: [{name}]")
        return found

    def inner(self, name: str) -> _Table:
        known = next((table for table in self._inner if table.place == f"[{name}]"), None)
        if known is None:
            known = _Table(f"[{name}]", self.table(name))
            self._inner.append(known)
        return known

    def several(self, name: str) -> list[_Table]:
        found = self.value(name, [])
        if not isinstance(found, list) or not all(isinstance(one, Mapping) for one in found):
            raise ConfigError(f"{name} of {self.place} must be a list of tables: [[{name}]]")
        tables = [_Table(f"[[{name}]] number {i}", one) for i, one in enumerate(found, 1)]
        self._inner += tables
        return tables

    def refuse_others(self) -> None:
        for name in self._values:
            if name not in self._asked:
                near = get_close_matches(name, self._asked, n=1, cutoff=0.5)
                raise ConfigError(f"{self.place} has no {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        for table in self._inner:
            table.refuse_others()


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Dotted names that TOML took for tables, put together again; every value as Spark wants it: a text."""
    found: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def _decoding(table: _Table) -> Decoding:
    kind = table.text("format", "raw", FORMATS)
    found = Decoding(
        kind, table.text("schema", ""), table.text("registry", ""), table.text("bad_records", "fail", BAD_RECORDS)
    )
    if kind != "raw" and not found.schema:
        raise ConfigError(f'{table.place} needs schema, the columns as SQL has them: "carrier string, delay int"')
    if (kind in ("avro", "protobuf")) != bool(found.registry):
        raise ConfigError(f"{table.place}: registry, a URL or a folder, goes with the formats avro and protobuf")
    return found


def _side_table(table: _Table) -> SideTable:
    name, options = table.text("name"), _flat(table.table("source"))
    return SideTable(name, options, _decoding(table.inner("decode")))


def _rule(table: _Table) -> Rule:
    if "," in table.text("name"):
        raise ConfigError(f"name of {table.place} must not hold a comma: reasons are lists of such names")
    return Rule(table.text("name"), table.text("check"), table.text("otherwise", "fail", OTHERWISE))


def _sink(table: _Table) -> Sink:
    kind = table.text("format", None, SINKS)
    named = {"parquet": "path", "delta": "path", "iceberg": "name", "topic": "topic"}
    return Sink(table.text("table", RECORDS), kind, table.text(named[kind]) if kind in named else "")


def _trigger(table: _Table) -> Mapping[str, Any]:
    interval, is_once = table.text("interval", ""), table.value("available_now", False)
    if interval and is_once:
        raise ConfigError("[trigger] takes interval or available_now, not both")
    return {"availableNow": True} if is_once else {"processingTime": interval or "0 seconds"}


def _check(pipeline: Pipeline) -> None:
    """What no single table can know."""
    if not pipeline.sinks:
        raise ConfigError("the file needs a [[sink]]")
    source = pipeline.source_options()
    check_stream(source)
    for reason in refusals(QueryShape((source,))):
        raise ConfigError(f"[source]: {reason}")
    if source.view != "records":
        raise ConfigError("[source] of a pipeline reads records; leave out view")
    for side in pipeline.tables:
        check_batch(parse_source(pipeline.read_options(side.options)))
    known = {RECORDS, *(side.name for side in pipeline.tables)}
    for transform in pipeline.transforms:
        if transform.name in known:
            raise ConfigError(f"two tables are called {transform.name!r}")
        known.add(transform.name)
    for sink in pipeline.sinks:
        if sink.table not in known:
            raise ConfigError(f"a [[sink]] wants the table {sink.table!r}; known are {', '.join(sorted(known))}")
    wants = [rule.name for rule in pipeline.rules if rule.otherwise == "dead_letters"]
    wants += ["bad records"] * (pipeline.decode.bad_records == "dead_letters")
    if wants and not pipeline.dead_letters:
        raise ConfigError(f"{', '.join(wants)} go to dead letters; say where: [dead_letters] with topic")
    for _ in _topics_written(pipeline):
        pass


def _topics_written(pipeline: Pipeline) -> Iterator[SinkOptions]:
    """The options of every topic that is written; parsing them checks them."""
    topics = [sink.target for sink in pipeline.sinks if sink.format == "topic"]
    for topic in (*topics, *filter(None, [pipeline.dead_letters])):
        yield parse_sink(pipeline.write_options(topic))
