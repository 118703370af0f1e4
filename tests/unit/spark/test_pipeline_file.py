"""Pipeline files are checked before anything starts; a plan needs no Spark. Issue 13, item 3."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from partita.options import ConfigError
from partita.spark.pipeline.column_list import check_columns
from partita.spark.pipeline.outlook import look_ahead
from partita.spark.pipeline.pipeline_file import Decoding, Rule, Sink, parse
from partita.spark.pipeline.runner import Batches
from support.spark.cluster import MemoryCluster

WHOLE = """
checkpoint = "cp"

[cluster]
bootstrap.servers = "h:1"

[source]
subscribe = "a"
startingOffsets = "earliest"
maxOffsetsPerTrigger = 10
includeHeaders = true

[decode]
format = "json"
schema = "carrier string, delay int"
bad_records = "dead_letters"

[[table]]
name = "weather"
source = { subscribe = "weather" }
decode = { format = "json", schema = "origin string" }

[[quality]]
name = "no carrier"
check = "carrier is not null"
otherwise = "dead_letters"

[[transform]]
name = "late"
sql = "select * from records where delay > 30"

[[sink]]
table = "late"
format = "parquet"
path = "out"

[[sink]]
format = "topic"
topic = "copy"

[dead_letters]
topic = "letters"
max_ratio = 0.5

[trigger]
interval = "5 seconds"
"""
LEAST = (
    'checkpoint = "cp"\n[cluster]\nbootstrap.servers = "h:1"\n[source]\nsubscribe = "a"\n[[sink]]\nformat = "console"\n'
)


def test_a_file_with_every_section_is_parsed() -> None:
    found = parse(WHOLE, "delays")
    assert found.name == "delays"
    assert found.read_options(found.source) == {
        "kafka.bootstrap.servers": "h:1", "subscribe": "a", "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "10", "includeHeaders": "true",
    }  # fmt: skip
    assert found.decode == Decoding("json", "carrier string, delay int", "", "dead_letters")
    assert found.rules == (Rule("no carrier", "carrier is not null", "dead_letters"),)
    assert found.sinks == (Sink("late", "parquet", "out"), Sink("records", "topic", "copy"))
    assert (found.tables[0].name, found.bad_ratio_max) == ("weather", 0.5)
    assert found.trigger == {"processingTime": "5 seconds"}
    assert parse(LEAST + "[trigger]\navailable_now = true\n", "x").trigger == {"availableNow": True}


@pytest.mark.parametrize(
    ("was", "becomes", "said"),
    [
        ("[[sink]]", "[[sink", "this is no TOML"),
        ('checkpoint = "cp"', "", "the file needs checkpoint"),
        ('checkpoint = "cp"', 'chekpoint = "cp"', "the file needs checkpoint, a text; is 'chekpoint' meant"),
        ("[[sink]]", "[[sinks]]", r"needs a \[\[sink\]\]|did you mean 'sink'"),
        ("format = \"console\"", 'format = "consol"', r"format of \[\[sink\]\] number 1 must be one of parquet"),
        ("format = \"console\"", 'format = "parquet"', r"\[\[sink\]\] number 1 needs path"),
        ("format = \"console\"", 'format = "console"\ntable = "x"', "wants the table 'x'; known are records"),
        ("format = \"console\"", 'format = "console"\nfolder = "x"', r"\[\[sink\]\] number 1 has no 'folder'"),
        ('subscribe = "a"', 'subscrib = "a"', "unknown option 'subscrib'; did you mean 'subscribe'"),
        ('subscribe = "a"', 'subscribe = "a"\nendingOffsets = "latest"', "endingOffsets has no meaning in a stream"),
        ('subscribe = "a"', 'view = "lag"', "reads records; leave out view"),
        ("[[sink]]", '[decode]\nformat = "json"\n[[sink]]', r"\[decode\] needs schema"),
        ("[[sink]]", '[decode]\nformat = "avro"\nschema = "a int"\n[[sink]]', r"registry, a URL or a folder"),
        ("[[sink]]", '[decode]\nformat = "csv"\nschema = "a int"\nseparator = "ab"\n[[sink]]', "separator must be"),
        ("[[sink]]", '[decode]\nformat = "json"\nschema = "a int"\nseparator = ";"\n[[sink]]', "the format csv"),
        ("[[sink]]", '[[quality]]\nname = "q"\ncheck = "x"\notherwise = "dead_letters"\n[[sink]]', "say where"),
        ("[[sink]]", '[[quality]]\nname = "q, r"\ncheck = "x"\n[[sink]]', "must not hold a comma"),
        ("[[sink]]", '[[transform]]\nname = "records"\nsql = "x"\n[[sink]]', "two tables are called 'records'"),
        ("[[sink]]", '[[transform]]\nname = "t"\nsql = "select 1 FROM recrods"\n[[sink]]', "did you mean 'records'"),
        ("[[sink]]", '[trigger]\ninterval = "1 second"\navailable_now = true\n[[sink]]', "not both"),
        ('"cp"', "3", "checkpoint of the file must be a text in quotes, not 3"),
        ('bootstrap.servers = "h:1"', "", r"\[cluster\] needs bootstrap.servers"),
        ('"h:1"', '["h:1", "i:1"]', r'bootstrap.servers of \[cluster\] must be one text, not a list: "h:1,i:1"'),
        ("bootstrap.servers", "kafka.bootstrap.servers", "write bootstrap.servers, without the prefix kafka"),
        ('"h:1"', '"h:1"\nfetch.max.byte = 1', r"\[cluster\] has no 'fetch.max.byte'; did you mean 'fetch.max.bytes'"),
        ('"h:1"', '"h:1"\nsecurity.protocol = "SASL"', r"\[cluster\]: security.protocol must be one of PLAINTEXT"),
        ('"h:1"', '"h:1"\nrequest.timeout.ms = "soon"', r"\[cluster\]: request.timeout.ms must be a whole number"),
        ('subscribe = "a"', 'subscribe = ["a", "b"]', r'subscribe of \[source\] must be one text, not a list: "a,b"'),
        ('subscribe = "a"', 'subscribe = 2026-01-01', r"subscribe of \[source\] must be a text, a number"),
        ('"a"', '"a"\nstartingOffsets = { a = { 0 = 3 } }', r"startingOffsets of \[source\] must be a text with JSON"),
        ('"a"', '"a"\ngroup.id = "g"', r"\[source\]: unknown option 'group.id'; did you mean 'group'"),
        ('"a"', '"a"\ngroup = "g"', r"\[source\]: group has no effect without groupMode"),
        ('"a"', '"a"\ncolumns = "offset"', r"\[source\]: a pipeline reads every column"),
        ('"a"', '"a"\nvalueFormat = "json"\nvalueSchema = "b int"\nonError = "column"',
         r"\[source\]: a pipeline decodes values by \[decode\]; leave out valueFormat"),
        ("[[sink]]", '[decode]\nschema = "a int"\n[[sink]]', r"\[decode\] needs format, since it has schema"),
        ("[[sink]]", '[[decode]]\nformat = "json"\n[[sink]]', r"\[decode\] must be one table, not a list"),
        ("[[sink]]", '[decode]\nformat = "jsn"\n[[sink]]', "did you mean 'json'"),
        ("[[sink]]", "[sink]", r"there may be several of sink: write \[\[sink\]\]"),
        ('"console"', '"topic"\ntopic = ""', r"topic of \[\[sink\]\] number 1 must not be empty"),
        ('"console"', '"topic"\ntopic = "a"', "the pipeline would read what it writes"),
        ('"console"', '"topic"\ntopic = "a b"', r"\[\[sink\]\] number 1: topic names 'a b'"),
        ('"console"', '"parquet"\npath = "o"\n[[sink]]\nformat = "parquet"\npath = "o/"',
         r"\[\[sink\]\] number 2 has the path of \[\[sink\]\] number 1"),
        ("[[sink]]", '[[quality]]\nname = "q"\ncheck = "x"\n' * 2 + "[[sink]]", "two rules are called 'q'"),
        ("[[sink]]", '[[transform]]\nname = "q r"\nsql = "x"\n[[sink]]', "must be a name for SQL"),
        ("[[sink]]", '[[table]]\nname = "t"\nsource = { subscrib = "b" }\n[[sink]]',
         r"source of \[\[table\]\] number 1: unknown option 'subscrib'"),
        ("[[sink]]", '[[table]]\nname = "t"\nsource = { subscribe = "b" }\ndecode = { format = "jso" }\n[[sink]]',
         r"format of decode of \[\[table\]\] number 1 must be one of"),
        ("[[sink]]", '[[table]]\nname = "t"\nsource = { subscribe = "b" }\ndecode = { format = "json", schema = '
         '"a int", bad_records = "dead_letters" }\n[[sink]]', "must be fail or null: a side table has no batches"),
        ("[[sink]]", '[[table]]\nname = "Records"\nsource = { subscribe = "b" }\n[[sink]]', "called 'Records'"),
        ("[[sink]]", '[dead_letters]\nmax_ratio = "high"\n[[sink]]', "must be a number from 0 to 1, not 'high'"),
        ("[[sink]]", "[dead_letters]\nmax_ratio = 50\n[[sink]]", "must be a number from 0 to 1, not 50"),
        ("[[sink]]", '[dead_letters]\ntopic = "a"\n[[sink]]', r"\[dead_letters\]: \[source\] reads the topic 'a'"),
        ("[[sink]]", '[trigger]\ninterval = "often"\n[[sink]]', 'must be a time like "5 seconds"'),
        ("[[sink]]", '[trigger]\navailable_now = "yes"\n[[sink]]', "must be true or false without quotes"),
        ("[[sink]]", "[trigger]\nonce = true\n[[sink]]", "has no 'once'; it may have available_now, interval"),
        ("[[sink]]", '[spark]\nspark.executor.memory = "1g"\n[[sink]]', "without the prefix spark"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(was: str, becomes: str, said: str) -> None:
    assert was in LEAST
    with pytest.raises(ConfigError, match=said):
        parse(LEAST.replace(was, becomes), "x")


@pytest.mark.parametrize(
    "sql",
    [
        "select extract(hour from record) from records",
        "select trim(leading '0' FROM record_s), 1 is distinct from record from records",
        "with record(a) as (select 1 from records) select a from record",
        "select * from record.s join from_json(records)",
    ],
)
def test_a_column_like_a_table_is_no_slip(sql: str) -> None:
    assert parse(WHOLE.replace("select * from records where delay > 30", sql), "p.toml").transforms[0].sql == sql


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("carrier strng", "column carrier has the type 'strng', which Spark does not know; did you mean 'string'"),
        ("a int, A string", "schema names the column a twice"),
        ("_offset int", "schema names the column _offset, which every record has already"),
        ("carrier", "'carrier' is not a name and a type"),
        ("a int,", "'' is not a name and a type"),
    ],
)
def test_a_wrong_list_of_columns_is_named_before_spark_starts(schema: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check_columns(schema)


@pytest.mark.parametrize(
    "schema",
    [
        "carrier string, delay int",
        "a: BIGINT, `b c` decimal(10, 2), m map<string, array<int>>",
        "s struct<a: int, b: string>, t timestamp_ntz not null",
        "a int comment 'one, two', b string",
        "d interval day to second",
    ],
)
def test_a_right_list_of_columns_is_left_to_spark(schema: str) -> None:
    check_columns(schema)


def test_the_topics_of_a_file_beside_those_of_the_stream() -> None:
    assert parse(WHOLE, "x").other_topics() == {
        "weather": "table weather", "copy": "sink of records", "letters": "dead letters"
    }  # fmt: skip


def test_what_a_sink_lacks_in_the_settings_of_spark_is_named() -> None:
    for kind, target, lacks in (
        ("delta", 'path = "d"', "sql.extensions of Delta Lake"),
        ("iceberg", 'name = "local.db.t"', "sql.catalog for the table"),
    ):
        text = LEAST + f'[[sink]]\nformat = "{kind}"\n{target}\n'
        console, sink = parse(text, "x").sinks
        assert lacks in parse(text, "x").lacking(sink)
        assert not parse(text, "x").lacking(console)
    found = parse(text + '[spark]\nsql.catalog.local = "org.apache.iceberg.spark.SparkCatalog"\n', "x")
    assert not found.lacking(sink)


class Recorder:
    """A table that notes what is called on it, as text."""

    def __init__(self, calls: list[str], path: str = "") -> None:
        self._calls = calls
        self._path = path

    def __getattr__(self, name: str) -> Recorder:
        return Recorder(self._calls, f"{self._path}.{name}" if self._path else name)

    def __call__(self, *values: object, **named: object) -> Recorder:
        shown = ", ".join([*map(repr, values), *(f"{name}={value!r}" for name, value in named.items())])
        self._calls.append(f"{self._path}({shown})")
        return Recorder(self._calls, f"{self._path}({shown})")


@pytest.mark.parametrize(
    ("sink", "called"),
    [
        (Sink("t", "parquet", "out"), "write.mode('overwrite').parquet('out/query=q/batch=7')"),
        (
            Sink("t", "delta", "tab"),
            "write.format('delta').options(txnAppId='q', txnVersion='7').mode('append').save('tab')",
        ),
        (Sink("t", "iceberg", "local.db.t"), "writeTo('local.db.t').append()"),
        (
            Sink("t", "topic", "copy"),
            "write.format('partita').options(kafka.bootstrap.servers='h:1', topic='copy').mode('append').save()",
        ),
        (Sink("t", "console"), "show(truncate=False)"),
    ],
)
def test_each_sink_is_written_so_that_a_batch_that_runs_again_does_the_least_harm(sink: Sink, called: str) -> None:
    """Parquet overwrites its folder and Delta is told the batch: both take it once. The others append."""
    calls: list[str] = []
    Batches(parse(LEAST, "p"), lambda report: None)._write(sink, Recorder(calls), "q", 7)  # type: ignore[arg-type]  # a table
    assert calls[-1] == called


def outlook(cluster: MemoryCluster, checkpoint: Path, **options: str):  # type: ignore[no-untyped-def]  # a short-cut
    text = LEAST.replace('subscribe = "a"', 'subscribe = "a"\n' + "\n".join(f"{k} = {v!r}" for k, v in options.items()))
    return look_ahead(parse(text, "x").source_options(), cluster, checkpoint, now_ms=0)


def test_a_plan_counts_ranges_lag_and_batches(tmp_path: Path) -> None:
    cluster = MemoryCluster()
    cluster.create("a", 25, 5)
    ahead = outlook(cluster, tmp_path, startingOffsets="earliest", maxOffsetsPerTrigger="6")
    assert (ahead.lag, ahead.batches, ahead.unfinished) == (30, 5, False)
    assert set(ahead.came_from.values()) == {"startingOffsets"}
    assert outlook(cluster, tmp_path).lag == 0


def test_a_plan_goes_on_from_checkpoint_and_group(tmp_path: Path) -> None:
    cluster = MemoryCluster()
    cluster.create("a", 25, 5)
    for folder in ("commits", "offsets"):
        (tmp_path / folder).mkdir()
    end = json.dumps({"v": 1, "t": {"a": {"0": [0, 20, 0]}}, "n": 0})
    (tmp_path / "offsets" / "0").write_text(f"v1\n{{}}\n{end}")
    (tmp_path / "offsets" / ".1.crc").write_text("")
    ahead = outlook(cluster, tmp_path, startingOffsets="earliest")
    assert (ahead.lag, ahead.unfinished) == (30, True)
    (tmp_path / "commits" / "0").write_text("v1\n{}")
    ahead = outlook(cluster, tmp_path, startingOffsets="earliest")
    assert (ahead.lag, ahead.unfinished, ahead.came_from["a", 0], ahead.came_from["a", 1]) == (
        10, False, "checkpoint", "new",
    )  # fmt: skip
    from partita.spark.planning.lookups import Committed

    cluster.groups["g"] = {("a", 0): Committed(24), ("a", 1): Committed(4)}
    shared = outlook(cluster, tmp_path, startingOffsets="earliest", group="g", groupMode="member")
    assert (shared.lag, shared.came_from["a", 0], shared.came_from["a", 1]) == (2, "group", "group")
