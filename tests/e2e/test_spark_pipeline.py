"""Pipelines from a TOML file on a real session: decoding, rules, dead letters, SQL, sinks, the command line.

Issue 13, item 3.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from partita import Producer
from partita.cli.commands import cli
from partita.cli.pipeline import cause_of
from partita.options import ConfigError
from partita.registry import AvroSerializer, FolderRegistry, ProtobufSerializer
from partita.spark.pipeline.pipeline_file import BAD_RECORDS, FORMATS, OTHERWISE, SINKS, parse
from partita.spark.pipeline.runner import BatchReport, QualityError, start
from support.registry_service import proto_classes

if TYPE_CHECKING:
    from support.spark.world import SparkWorld

pytestmark = pytest.mark.spark


def pipeline_text(world: SparkWorld, folder: Path, rest: str) -> str:
    return f"""
name = "p-{world.number}"
checkpoint = "{folder}/checkpoint"
[cluster]
bootstrap.servers = "{world.bootstrap}"
[source]
subscribe = "{world.topic}"
startingOffsets = "earliest"
group = "{world.group}"
groupMode = "commit"
{rest}"""


def run(world: SparkWorld, text: str) -> list[BatchReport]:
    reports: list[BatchReport] = []
    query = start(world.spark, parse(text, "p"), once=True, on_batch=reports.append)
    assert query.awaitTermination(180)
    return reports


JSON = """
[decode]
format = "json"
schema = "carrier string, delay int"
bad_records = "dead_letters"
[[quality]]
name = "no carrier"
check = "carrier is not null"
otherwise = "dead_letters"
[[quality]]
name = "early"
check = "delay >= 0"
otherwise = "drop"
[[table]]
name = "airlines"
source = { subscribe = "airlines-NUMBER" }
decode = { format = "csv", schema = "code string, name string", separator = ";" }
[[transform]]
name = "late"
sql = "select name, delay, _offset from records join airlines on carrier = code where delay > 30"
[[sink]]
table = "late"
format = "parquet"
path = "FOLDER/late"
[[sink]]
table = "copies"
format = "topic"
topic = "copies-NUMBER"
[[transform]]
name = "copies"
sql = "select carrier as key, cast(delay as string) as value from records"
[dead_letters]
topic = "letters-NUMBER"
"""


def test_json_with_rules_a_side_table_and_dead_letters(world: SparkWorld, tmp_path: Path) -> None:
    side, letters, copies = (f"{name}-{world.number}" for name in ("airlines", "letters", "copies"))
    for topic in (world.topic, side, letters, copies):
        world.create(topic=topic)
    with Producer(bootstrap_servers=world.bootstrap) as producer:
        producer.send(side, 'UA;"United;Airlines"')
    world.produce(['{"carrier":"UA","delay":40}', "no json", '{"delay":50}', '{"carrier":"UA","delay":-3}',
                   '{"carrier":"UA","delay":5}'])  # fmt: skip
    text = pipeline_text(world, tmp_path, JSON.replace("NUMBER", str(world.number)).replace("FOLDER", str(tmp_path)))
    (report,) = run(world, text)
    assert (report.rows, report.good, report.dead_letters) == (5, 2, 2)
    assert report.broken == {"no carrier": 1, "early": 1, "unreadable": 1}
    rows = world.spark.read.parquet(str(tmp_path / "late")).collect()
    assert [(row["name"], row["delay"], row["_offset"]) for row in rows] == [("United;Airlines", 40, 0)]
    assert world.values(subscribe=copies) == ["40", "5"]
    found = world.read(subscribe=letters, includeHeaders="true").collect()
    told = {row.value.decode(): {h.key: h.value.decode() for h in row.headers} for row in found}
    assert told["no json"]["reason"] == "this is no JSON of the schema"
    assert told['{"delay":50}'] == {"reason": "no carrier", "topic": world.topic, "partition": "0", "offset": "2"}
    assert world.committed()[0][0] == 5


def test_a_new_checkpoint_replaces_nothing_of_an_old_table(world: SparkWorld, tmp_path: Path) -> None:
    world.create()
    sink = f'[[sink]]\nformat = "parquet"\npath = "{tmp_path}/out"\n'
    text = pipeline_text(world, tmp_path, f"{sink}[trigger]\navailable_now = true\n")
    for values in (["a", "b"], ["c"]):
        world.produce(values)
        run(world, text)
    world.produce(["d"])
    run(world, text.replace("/checkpoint", "/another"))
    rows = world.spark.read.parquet(str(tmp_path / "out"))
    found = sorted((row["value"].decode(), row["batch"]) for row in rows.collect())
    assert found == [("a", 0), ("b", 0), ("c", 1), ("d", 0)], "the group says where the new checkpoint goes on"
    assert rows.select("query").distinct().count() == 2


BAD_ASIDE = """
[[quality]]
name = "readable or with its bytes"
check = "_error is null or _value is not null"
[[sink]]
"""


def test_avro_of_a_registry_and_a_rule_that_fails(world: SparkWorld, tmp_path: Path) -> None:
    world.create()
    registry = FolderRegistry(tmp_path / "schemas")
    schema = (
        '{"type":"record","name":"Flight","fields":[{"name":"tail","type":"string"},{"name":"delay","type":"long"}]}'
    )
    encode = AvroSerializer(registry, schema)
    with Producer(bootstrap_servers=world.bootstrap, value_serializer=encode) as producer:
        producer.send(world.topic, {"tail": "N1", "delay": 7}, partition=0)
    world.produce(["\x00not framed"])
    rest = f"""
[decode]
format = "avro"
schema = "tail string, delay bigint"
registry = "{tmp_path}/schemas"
bad_records = "CHOICE"
[[sink]]
format = "parquet"
path = "{tmp_path}/out"
"""
    with pytest.raises(Exception, match=r"1 of 2 records cannot be read") as raised:
        run(world, pipeline_text(world, tmp_path, rest.replace("CHOICE", "fail")))
    assert cause_of(str(raised.value)).startswith("batch 0: 1 of 2 records cannot be read: ")
    assert not (tmp_path / "out").exists(), "nothing of a batch that fails is written"
    (report,) = run(world, pipeline_text(world, tmp_path, rest.replace("CHOICE", "null")))
    assert (report.rows, report.good) == (2, 2)
    rows: list[Any] = world.spark.read.parquet(str(tmp_path / "out")).orderBy("_offset").collect()
    assert [(row["tail"], row["delay"]) for row in rows] == [("N1", 7), (None, None)]
    aside = rest.replace("CHOICE", "column").replace("/out", "/aside").replace("[[sink]]", BAD_ASIDE)
    run(world, pipeline_text(world, tmp_path / "new", aside).replace(world.group, f"{world.group}-aside"))
    kept: list[Any] = world.spark.read.parquet(str(tmp_path / "aside")).orderBy("_offset").collect()
    assert [(row["tail"], row["delay"], row["_value"]) for row in kept] == [
        *(("N1", 7, None), (None, None, b"\x00not framed"))
    ]
    assert [row["_error"] is None for row in kept] == [True, False]


RAW = """
[[quality]]
name = "not empty"
check = "length(value) > 0"
[[transform]]
name = "numbered"
sql = "select cast(value as string) as value, offset as place from records where value != 'x'"
[[sink]]
format = "console"
table = "numbered"
[trigger]
interval = "200 milliseconds"
"""


def test_raw_records_at_an_interval_until_a_rule_fails(
    world: SparkWorld, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    world.create()
    world.produce(["first", "x"])
    reports: list[BatchReport] = []
    query = start(world.spark, parse(pipeline_text(world, tmp_path, RAW), "p"), on_batch=reports.append)
    query.processAllAvailable()
    world.produce(["second"])
    query.processAllAvailable()
    assert [(report.rows, report.good) for report in reports] == [(2, 2), (1, 1)]
    assert query.isActive
    world.produce(["never shown", ""])
    with pytest.raises(Exception, match="batch 2: 1 of 2 records break 'not empty'"):
        query.awaitTermination(180)
    shown = capfd.readouterr().out
    assert re.search(r"\|first *\|0 ", shown)
    assert re.search(r"\|second *\|2 ", shown)
    assert "never shown" not in shown
    assert world.committed()[0][0] == 3


def test_protobuf_and_a_batch_with_too_many_bad_records(world: SparkWorld, tmp_path: Path) -> None:
    letters = f"letters-{world.number}"
    world.create()
    world.create(topic=letters)
    leg = proto_classes()[1]
    encode = ProtobufSerializer(FolderRegistry(tmp_path / "schemas"), leg)
    with Producer(bootstrap_servers=world.bootstrap, value_serializer=encode) as producer:
        producer.send(world.topic, leg(carrier="UA", delay_minutes=7), partition=0)
    world.produce(["\x00not framed"])
    rest = f"""
[decode]
format = "protobuf"
schema = "carrier string, delay_minutes int"
registry = "{tmp_path}/schemas"
bad_records = "dead_letters"
[[sink]]
format = "parquet"
path = "{tmp_path}/out"
[dead_letters]
topic = "{letters}"
max_ratio = RATIO
[trigger]
available_now = true
"""
    with pytest.raises(Exception, match=r"1 of 2 records are unusable, max_ratio is 0\.4"):
        run(world, pipeline_text(world, tmp_path, rest.replace("RATIO", "0.4")))
    assert not (tmp_path / "out").exists()
    assert world.values(subscribe=letters) == []
    query = start(world.spark, parse(pipeline_text(world, tmp_path, rest.replace("RATIO", "0.5")), "p"))
    assert query.awaitTermination(180), "available_now ends by itself"
    (row,) = world.spark.read.parquet(str(tmp_path / "out")).collect()
    assert (row["carrier"], row["delay_minutes"], row["_offset"]) == ("UA", 7, 0)
    assert world.values(subscribe=letters) == ["\x00not framed"]


def test_the_command_line_plans_and_checks_without_spark(world: SparkWorld, tmp_path: Path) -> None:
    world.create(2)
    world.produce("abc")
    file = tmp_path / "copy.toml"
    text = pipeline_text(world, tmp_path, '[[sink]]\nformat = "console"\n')
    file.write_text(text)
    found = CliRunner().invoke(cli, ["pipeline", "plan", str(file), "--json"])
    assert found.exit_code == 0, found.output
    plan = json.loads(found.output)
    assert (plan["lag"], plan["batches"], [row["lag"] for row in plan["partitions"]]) == (3, 1, [3, 0])
    assert "3 offsets to read, in 1 batch" in CliRunner().invoke(cli, ["pipeline", "plan", str(file)]).output
    checked = CliRunner().invoke(cli, ["pipeline", "doctor", str(file)])
    assert (checked.exit_code, "2 partitions to read: good" in checked.output) == (0, True), checked.output
    file.write_text(text.replace(world.topic, "nosuch"))
    checked = CliRunner().invoke(cli, ["pipeline", "doctor", str(file)])
    assert checked.exit_code == 1
    assert "topic not found in the cluster: nosuch" in checked.output
    file.write_text(f'{text}\n[dead_letters]\ntopic = "letterz"\n')
    checked = CliRunner().invoke(cli, ["pipeline", "doctor", str(file)])
    assert (checked.exit_code, "dead letters, topic letterz: not found" in checked.output) == (1, True), checked.output
    file.write_text(text.replace("[source]", 'security.protocol = "SSL"\nssl.truststore.location = "none"\n[source]'))
    for command, code in (("plan", 2), ("doctor", 1)):
        checked = CliRunner().invoke(cli, ["pipeline", command, str(file)])
        assert (checked.exit_code, "ssl.truststore.location: no such file: none" in checked.output) == (code, True)
    file.write_text(f'{text}\n[[quality]]\nname = "q"\ncheck = "lenth(value) > 0"\n')
    checked = CliRunner().invoke(cli, ["pipeline", "plan", "--sql", str(file)])
    assert (checked.exit_code, "check of [[quality]] number 1" in checked.output) == (2, True), checked.output
    file.write_text(text.replace(world.bootstrap, '127.0.0.1:1"\ndefault.api.timeout.ms = "500'))
    checked = CliRunner().invoke(cli, ["pipeline", "plan", str(file)])
    assert (checked.exit_code, "127.0.0.1:1" in checked.output) == (1, True), checked.output
    file.write_text("checkpoint = 1")
    assert CliRunner().invoke(cli, ["pipeline", "plan", str(file)]).exit_code == 2


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ('[decode]\nformat = "json"\nschema = "s struct<a: itn>"', r"\[decode\]: schema: \[PARSE_SYNTAX_ERROR\]"),
        ('[[quality]]\nname = "q"\ncheck = "vallue > 1"', r"check of \[\[quality\]\] number 1: .*`vallue`"),
        ('[[quality]]\nname = "q"\ncheck = "value >"', r"check of \[\[quality\]\] number 1: \[PARSE_SYNTAX"),
        ('[[transform]]\nname = "t"\nsql = "select x from records"', r"sql of \[\[transform\]\] number 1: .*`x`"),
        ('[[transform]]\nname = "t"\nsql = "select * from recods"', "number 1 reads 'recods'; did you mean 'records'"),
        ('[[transform]]\nname = "t"\nsql = "select 1 as n"\n[[sink]]\ntable = "t"\nformat = "topic"\ntopic = "o"',
         r"\[\[sink\]\] number 2: the table needs a column value; it has n"),
    ],
)  # fmt: skip
def test_wrong_sql_is_named_before_anything_is_read(world: SparkWorld, tmp_path: Path, rest: str, said: str) -> None:
    world.create()
    file = pipeline_text(world, tmp_path, f'[[sink]]\nformat = "console"\n{rest}\n')
    with pytest.raises(ConfigError, match=said):
        start(world.spark, parse(file, "p"))


def test_a_side_table_with_a_record_that_cannot_be_read_fails_unless_told_otherwise(
    world: SparkWorld, tmp_path: Path
) -> None:
    """It became a row of nulls, whatever bad_records said."""
    world.create()
    world.produce(['{"code": "UA"}', "no json"])
    side = f'''
[[sink]]
format = "console"
[[table]]
name = "side"
source = {{ subscribe = "{world.topic}" }}
decode = {{ format = "json", schema = "code string" }}
'''
    with pytest.raises(QualityError, match=f"table side: a record cannot be read: {world.topic}-0 at offset 1"):
        start(world.spark, parse(pipeline_text(world, tmp_path, side), "p"))


def test_the_cause_of_a_failure_is_ours_or_the_innermost_of_java() -> None:
    told = "[STREAM_FAILED] Query terminated with exception: Traceback:\n  File x\n"
    assert cause_of(f"{told}partita.spark.QualityError: batch 0: no\nCaused by: a.b.C: d") == "batch 0: no"
    java = (
        "Py4JJavaError: An error occurred while calling o1.parquet.\n: org.apache.spark.SparkException: Job aborted\n"
    )
    inner = "Caused by: java.io.IOException: Mkdirs failed\nCaused by: py4j.Py4JException: Traceback"
    assert cause_of(f"{told}{java}{inner}") == "Mkdirs failed"
    assert cause_of(told + java) == "Job aborted"
    assert cause_of("  one\ntwo") == "one"
    python = "prepareForTriggerAvailableNow: Traceback (most recent call last):\n  File x\n    y\n"
    failure = f"{told}{python}partita.errors.KafkaError: no answer\n\n\tat org.a.B(C.java)\n"
    assert cause_of(failure) == "KafkaError: no answer"


def test_the_files_of_the_page_are_right() -> None:
    page = (Path(__file__).parents[2] / "docs" / "spark-pipelines.md").read_text()
    whole, spark = re.findall(r"```toml\n(.*?)```", page, re.S)
    assert parse(whole, "x").name == "delays"
    with_delta = parse(f'{whole}[[sink]]\nformat = "delta"\npath = "d"\n{spark}', "x")
    assert with_delta.spark["spark.sql.extensions"] == "io.delta.sql.DeltaSparkSessionExtension"
    assert [with_delta.lacking(sink) for sink in with_delta.sinks] == ["", ""]
    for name in (*SINKS, *FORMATS, *OTHERWISE, *BAD_RECORDS):
        assert re.search(rf"\b{name}\b", page), f"the page does not know {name}"
