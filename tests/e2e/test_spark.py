"""Spark reads and writes topics in batches, as a user writes it: format("partita"), nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import pytest

from partita import Consumer, Producer
from partita.options import ConfigError
from partita.registry import AvroSerializer, FolderRegistry, RegistryDeserializer
from partita.registry.spark import decoded
from partita.spark import read, session

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from support.spark.world import SparkWorld

pytestmark = pytest.mark.spark

SCHEMA = (
    "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int,"
    "headers:array<struct<key:string,value:binary>>>"
)


def test_what_is_written_is_read_back_with_the_columns_of_sparks_connector(world: SparkWorld) -> None:
    world.create(2)
    headers = (
        "array(struct('h' as key, cast('1' as binary) as value), struct('h' as key, cast(null as binary) as value))"
    )
    world.write(
        world.spark.sql(
            f"select 'foobar' key, 'v' value, {headers} headers, 1 partition union all "
            "select null, null, null, 0 union all select 'k', '', null, 0"
        ).coalesce(1)
    )
    found = world.read(includeHeaders="true")
    assert found.schema.simpleString() == SCHEMA
    rows = {(row.partition, row.offset): row for row in found.collect()}
    assert rows.keys() == {(1, 0), (0, 0), (0, 1)}
    first = rows[1, 0]
    assert (first.key, first.value, first.topic, first.timestampType) == (b"foobar", b"v", world.topic, 0)
    assert [(h.key, h.value) for h in first.headers] == [("h", b"1"), ("h", None)]
    assert (rows[0, 0].key, rows[0, 0].value, rows[0, 0].headers) == (None, None, None)
    assert (rows[0, 1].value, rows[0, 1].headers) == (b"", None)


def test_every_column_is_nullable_and_headers_come_on_demand(world: SparkWorld) -> None:
    world.create()
    schema = world.read().schema
    assert schema.names == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert all(field.nullable for field in schema)


def test_an_empty_topic_is_an_empty_table(world: SparkWorld) -> None:
    world.create(3)
    assert world.read().count() == 0


def test_a_batch_reads_between_offsets_and_between_timestamps(world: SparkWorld) -> None:
    world.create()
    world.produce([str(i) for i in range(10)], timestamp_ms=1000)
    name = world.topic
    ends = {"startingOffsets": f'{{"{name}":{{"0":2}}}}', "endingOffsets": f'{{"{name}":{{"0":5}}}}'}
    assert world.values(**ends) == ["2", "3", "4"]
    assert world.values(startingTimestamp="1007", endingTimestamp="1009") == ["7", "8"]


def test_splits_become_tasks(world: SparkWorld) -> None:
    world.create(2)
    world.produce(map(str, range(90)))
    world.produce(map(str, range(90, 100)), partition=1)
    wide = world.read(minPartitions="4")
    assert wide.rdd.getNumPartitions() == 4
    assert wide.select("value").distinct().count() == 100
    assert world.read(maxRecordsPerPartition="50").rdd.getNumPartitions() == 3


def test_pushed_filters_leave_partitions_unread(world: SparkWorld) -> None:
    world.create(4)
    for partition in range(4):
        world.produce([f"p{partition}"], partition)
    chosen = world.read().where("partition in (1, 3) and offset >= 0")
    assert chosen.rdd.getNumPartitions() == 2
    assert world.read(pushdown="false").where("partition in (1, 3)").rdd.getNumPartitions() == 4
    assert sorted(row.value for row in chosen.collect()) == [b"p1", b"p3"]


@pytest.mark.case("BM-176")
def test_workers_import_the_installed_pyspark_and_not_the_zip_of_its_sources(world: SparkWorld) -> None:
    """Each process compiles what it imports from the zip. Issue 13, item 6."""

    def place(_batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa
        import pyspark

        yield pa.RecordBatch.from_pydict({"place": [pyspark.__file__]})

    ((found,),) = world.spark.range(1, numPartitions=1).mapInArrow(place, "place string").collect()
    assert Path(found) == Path(import_module("pyspark").__file__ or "")


def test_one_topic_twice_in_a_query_is_read_twice(world: SparkWorld) -> None:
    world.create(2)
    world.produce(map(str, range(50)))
    world.produce(map(str, range(50, 100)), partition=1)
    left, right = world.read(), world.read()
    assert left.union(left).count() == 200
    assert left.join(right, ["partition", "offset"]).count() == 100


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"startingOffset": "earliest"}, "did you mean 'startingOffsets'"),
        ({"groupMode": "member"}, "groupMode=member needs the option group"),
        ({"view": "gruops"}, "view=gruops is not available in this release"),
        ({"assign": '{"t":[0]}', "subscribe": "t"}, "exactly one of subscribe, subscribePattern, assign"),
    ],
)
def test_wrong_options_fail_at_load(world: SparkWorld, options: dict[str, str], said: str) -> None:
    with pytest.raises(Exception, match=said):
        world.read(**options)


def test_what_fails_when_the_batch_is_planned(world: SparkWorld) -> None:
    world.create()
    with pytest.raises(Exception, match="nothing would be read"):
        world.read(startingOffsets="latest").collect()
    with pytest.raises(Exception, match="not found in the cluster: no-such-topic"):
        world.read(subscribe="no-such-topic").collect()
    with pytest.raises(Exception, match="the schema is fixed"):
        world.spark.read.format("partita").options(**world.options()).schema("value string").load().collect()


@pytest.mark.parametrize(
    ("query", "mode", "said"),
    [
        ("select 1 other", "append", "needs a column value"),
        ("select 1 value", "append", "column value must be string or binary, not int"),
        ("select 'v' value", "overwrite", "cannot be overwritten"),
    ],
)
def test_tables_that_cannot_be_written_are_refused_before_any_task(
    world: SparkWorld, query: str, mode: str, said: str
) -> None:
    with pytest.raises(Exception, match=said):
        world.write(world.spark.sql(query), mode)


def test_the_format_is_found_without_registering_it(world: SparkWorld) -> None:
    world.create()
    world.produce(["x"])
    other = world.spark.newSession()
    assert other.read.format("partita").options(**world.options()).load().count() == 1


def test_batches_too_large_for_a_topic_are_split(world: SparkWorld) -> None:
    """findings/spark.md 3: 20,000 small rows failed with MessageTooLargeError; Spark's connector writes them."""
    world.create(2, max_message_bytes="65536")
    world.write(world.spark.range(20_000).selectExpr("cast(id as string) value", "repeat('k', 20) key"))
    assert sorted(map(int, world.values())) == list(range(20_000))


def test_tables_of_the_catalog_are_read_and_written(world: SparkWorld) -> None:
    """findings/spark.md 7: CREATE TABLE ... USING partita failed when it was used, and so did INSERT INTO."""
    world.create()
    name = f"flights_{world.number}"
    options = f"`kafka.bootstrap.servers` '{world.bootstrap}', topic '{world.topic}', includeHeaders 'true'"
    sql = world.spark.sql
    sql(f"CREATE TABLE {name} USING partita OPTIONS ({options})")
    try:
        sql(f"INSERT INTO {name} (key, value) SELECT binary('k'), binary('one')")
        sql(f"INSERT INTO {name} (value, timestamp) VALUES (binary('two'), timestamp '2020-02-02 00:00:00')")
        found = sql(f"SELECT string(value) v, unix_millis(timestamp) ms, headers FROM {name} ORDER BY offset").collect()
        assert [row.v for row in found] == ["one", "two"]
        assert found[1].ms == 1_580_601_600_000
        narrow = sql(f'SELECT string(value) v FROM {name} WITH (endingOffsets = \'{{"{world.topic}":{{"0":1}}}}\')')
        assert [row.v for row in narrow.collect()] == ["one"]
        with pytest.raises(Exception, match=r"cannot be overwritten|TRUNCATE"):
            sql(f"INSERT OVERWRITE {name} (value) SELECT binary('three')")
    finally:
        sql(f"DROP TABLE {name}")
    sql(f"CREATE TEMPORARY VIEW {name} USING partita OPTIONS ({options}, subscribe '{world.topic}')")
    sql(f"INSERT INTO {name} SELECT * FROM {name}")
    assert world.values() == ["one", "one", "two", "two"]


def test_files_given_to_a_session_reach_the_workers_of_its_sources(world: SparkWorld, tmp_path: Path) -> None:
    """findings/spark.md 9: what was added after the source was registered is missing in its workers."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

    archive = tmp_path / "brought.zip"
    with ZipFile(archive, "w") as opened:
        opened.writestr("brought_along.py", "WORD = 'brought'")

    class Probe(DataSource):
        @classmethod
        def name(cls) -> str:
            return "partita_probe"

        def schema(self) -> str:
            return "word string"

        def reader(self, schema: StructType) -> DataSourceReader:
            return Reader()

    class Reader(DataSourceReader):
        def read(self, partition: InputPartition) -> Iterator[tuple[str]]:
            yield (import_module("brought_along").WORD,)

    session(py_files=[str(archive)])
    world.spark.dataSource.register(Probe)
    assert [row.word for row in world.spark.read.format("partita_probe").load().collect()] == ["brought"]


def test_only_the_columns_asked_for_are_read(world: SparkWorld) -> None:
    world.create()
    world.produce(["one", "three"])
    found = world.read(columns="valueSize,keySize,leaderEpoch,offset")
    assert [tuple(row) for row in found.collect()] == [(3, None, 0, 0), (5, None, 0, 1)]
    assert read(world.spark, world.options(), columns=["offset", "value"]).columns == ["offset", "value"]
    assert len(read(world.spark, world.options()).columns) == 7
    with pytest.raises(ConfigError, match=r"list of names, as in columns=\['key', 'offset'\], not 'offset'"):
        read(world.spark, world.options(), columns="offset")


def test_a_filter_on_the_timestamp_leaves_older_records_unread(world: SparkWorld) -> None:
    world.create(2)
    world.produce(["old", "older"], timestamp_ms=1_000)
    world.produce(["old", "young", "middle"], partition=1, timestamp_ms=2_000_000)
    young = world.read().where("timestamp >= timestamp_millis(2000001)")
    assert young.rdd.getNumPartitions() == 1
    assert [row.value for row in young.collect()] == [b"young", b"middle"]


def test_filters_do_no_harm_where_spark_does_not_offer_them(world: SparkWorld) -> None:
    world.create()
    world.produce(["a", "b"])
    world.spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    try:
        assert [row.value for row in world.read().where("offset = 1").collect()] == [b"b"]
    finally:
        world.spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")


def test_committed_offsets_are_a_table(world: SparkWorld) -> None:
    """Every commit of every group, decoded from the log of the brokers, in batches and streams."""
    world.create()
    world.produce("abc")
    world.commit(2, "first")
    world.commit(3, "second")
    options = {"kafka.bootstrap.servers": world.bootstrap, "view": "offset_commits"}
    commits = world.spark.read.format("partita").options(**options).load().where(f"group = '{world.group}'")
    rows = commits.orderBy("logOffset").collect()
    assert [(r.topic, r.partition, r.offset, r.metadata, r.isTombstone) for r in rows] == [
        (world.topic, 0, 2, "first", False),
        (world.topic, 0, 3, "second", False),
    ]
    assert rows[0].commitTime <= rows[1].commitTime
    narrow = world.spark.read.format("partita").options(**options, columns="offset,group").load()
    assert narrow.where(f"group = '{world.group}' and offset = 3").count() == 1


def test_records_with_schemas_become_columns(world: SparkWorld, tmp_path: Path) -> None:
    registry = FolderRegistry(tmp_path / "schemas")
    flight = {
        "type": "record",
        "name": "Flight",
        "fields": [{"name": "carrier", "type": "string"}, {"name": "delay", "type": ["null", "long"]}],
    }
    world.create(1)
    with Producer(bootstrap_servers=world.bootstrap, value_serializer=AvroSerializer(registry, flight)) as producer:
        producer.send(world.topic, {"carrier": "UA", "delay": 7})
        producer.send(world.topic, {"carrier": "AA", "delay": None})
        producer.send(world.topic, None)
    columns = {"value": RegistryDeserializer(registry)}
    found = decoded(
        world.read().select("offset", "value"), columns, "offset long, value struct<carrier: string, delay: long>"
    )
    rows = found.select("value.carrier", "value.delay").orderBy("offset").collect()
    assert [(row.carrier, row.delay) for row in rows] == [("UA", 7), ("AA", None), (None, None)]


def test_groups_are_tables(world: SparkWorld) -> None:
    """Issue 13, item 2: on Partita and, with --on-kafka, on Apache Kafka."""
    world.create(2)
    world.produce("abc")
    options: dict[str, Any] = {
        "bootstrap_servers": world.bootstrap, "group_id": world.group, "heartbeat_interval_ms": 200,
    }  # fmt: skip
    first, second = (Consumer(**options, group_instance_id=name, enable_auto_commit=False) for name in ("one", "two"))
    with first, second:
        first.subscribe([world.topic])
        while len(first.assignment()) < 2:
            first.poll(0.05)
        second.subscribe([world.topic])
        while not (len(first.assignment()) == len(second.assignment()) == 1):
            first.poll(0.05)
            second.poll(0.05)
        (mine,) = second.assignment()
        second.commit({mine: 1})
        lags = {row["partition"]: row for row in world.view("lag")}
        assert (lags[mine.partition]["groupInstanceId"], lags[mine.partition]["committedOffset"]) == ("two", 1)
        assert {row["state"] for row in lags.values()} == {"Stable"}
    (newest, *_) = sorted(world.view("groups"), key=lambda row: -row["logOffset"])
    members = {row["groupInstanceId"] for row in world.view("members") if row["generation"] == newest["generation"]}
    assert members == {"one", "two"}
    held = {row["partition"] for row in world.view("assignments") if row["generation"] == newest["generation"]}
    assert held == {0, 1}
    assert any("two" in row["added"] and row["moved"] for row in world.view("rebalances"))
    assert {row["keyVersion"] for row in world.view("group_log")} == {1, 2}
    assert world.view("commit_lineage") == []
