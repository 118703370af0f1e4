"""Spark reads topics as typed columns, with the values that its own from_json would give."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from pyspark.sql import functions as sf

from partita import Producer
from partita.registry import AvroSerializer, FolderRegistry, ProtobufSerializer
from support.spark import csv_corpus
from support.spark.json_corpus import DIFFERENT, FORMS, GENERATED, generated
from support.spark.world import Collector

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from support.spark.world import SparkWorld

pytestmark = pytest.mark.spark

FLIGHT = '{{"carrier":"UA","delay":{0},"origin":{{"code":"EWR"}}}}'
COLUMNS = "carrier string, delay int, origin struct<code:string>"


def rows(table: DataFrame) -> list[dict[str, Any]]:
    """The rows by offset, with numbers for times that Python's types cannot hold."""
    found = table.orderBy("offset").toArrow()
    columns = {name: numbered(found.column(name).combine_chunks()) for name in found.column_names}
    as_rows: list[dict[str, Any]] = pa.table(columns).to_pylist()
    return as_rows


def numbered(column: Any) -> Any:
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64())
    return column.cast(pa.int32()) if pa.types.is_date32(column.type) else column


def by_spark(world: SparkWorld, columns: str, parse: Any) -> DataFrame:
    """The topic decoded by Spark's `from_json` or `from_csv`, with the columns of ours."""
    how = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "_corrupt"}
    parsed = parse(sf.col("value").cast("string"), f"{columns}, _corrupt string", how)
    names = [part.split()[0] for part in columns.split(", ")]
    bad = sf.col("d._corrupt").isNotNull()
    about_bad = (sf.when(bad, "bad").alias("_error"), sf.when(bad, sf.col("value")).alias("_value"))
    decoded = world.read().select("offset", "value", parsed.alias("d"))
    return decoded.select(*(f"d.{name}" for name in names), "offset", *about_bad)


def by_us(world: SparkWorld, columns: str, form: str) -> DataFrame:
    wanted = {"valueFormat": form, "valueSchema": columns, "columns": "offset", "onError": "column"}
    return world.read(**wanted)


def differing(
    world: SparkWorld, columns: str, values: Sequence[str | bytes], *, whole: bool = True, form: str = "json"
) -> list[str]:
    """The values that are decoded differently. Each group has a topic of its own."""
    world = type(world)(world.spark, world.bootstrap)
    world.create()
    world.produce(values)
    ours, theirs = rows(by_us(world, columns, form)), rows(by_spark(world, columns, getattr(sf, f"from_{form}")))
    assert len(ours) == len(theirs) == len(values)
    return [f"{v!r}: {a} {b}" for v, a, b in zip(values, ours, theirs, strict=True) if not alike(a, b, whole=whole)]


def alike(ours: dict[str, Any], theirs: dict[str, Any], *, whole: bool) -> bool:
    """Whether the rows are the same. Of a record that is no JSON, Spark may keep what came before the damage."""
    reason = ours["_error"]
    ours["_error"] = None if reason is None else "bad"
    if not whole and reason is not None and "JSON" in reason:
        return bool(theirs["_error"] == "bad")
    return repr(ours) == repr(theirs)


def test_every_form_of_json_is_read_as_spark_reads_it(world: SparkWorld) -> None:
    found = {columns: bad for columns, values in FORMS.items() if (bad := differing(world, columns, values))}
    assert not found


def test_generated_json_is_read_as_spark_reads_it(world: SparkWorld) -> None:
    assert not differing(world, GENERATED, generated(3000, seed=31), whole=False)


def test_the_documented_differences_are_differences(world: SparkWorld) -> None:
    for columns, values in DIFFERENT.items():
        assert len(differing(world, columns, values)) == len(values), columns


def test_csv_is_read_as_spark_reads_it(world: SparkWorld) -> None:
    known = {line for lines in csv_corpus.DIFFERENT.values() for line in lines}
    lines = [line for line in csv_corpus.generated(3000, seed=31) if line not in known]
    corpora = csv_corpus.FORMS | {csv_corpus.GENERATED: lines}
    found = {
        columns: bad for columns, values in corpora.items() if (bad := differing(world, columns, values, form="csv"))
    }
    assert not found
    for columns, values in csv_corpus.DIFFERENT.items():
        assert len(differing(world, columns, values, form="csv")) == len(values), columns


def test_a_stream_has_the_same_columns_and_a_bad_record_ends_it_unless_it_is_kept(world: SparkWorld) -> None:
    world.create(2)
    world.produce([FLIGHT.format(n) for n in range(50)])
    world.produce([FLIGHT.format(70), "nonsense"], partition=1)
    how = {"valueFormat": "json", "valueSchema": COLUMNS, "columns": "partition,offset"}
    sink = Collector()
    text = "concat_ws('|', delay, origin.code, substr(_error, 1, 29))"
    sink.run(world.stream(onError="column", **how).selectExpr(f"cast({text} as binary) value"))
    (values,) = sink.values
    assert values == sorted([f"{n}|EWR" for n in (*range(50), 70)] + ["value: this is no JSON object"])
    with pytest.raises(Exception, match="-1 at offset 1: value: this is no JSON object"):
        world.read(**how).collect()


def test_bad_records_go_to_a_topic_before_their_batch_counts_as_read(world: SparkWorld) -> None:
    letters = f"letters-{world.number}"
    how = {"valueFormat": "json", "valueSchema": COLUMNS, "onError": "deadLetter", "deadLetterTopic": letters}
    world.create(2)
    with pytest.raises(Exception, match=f"topic not found in the cluster: {letters}"):
        world.read(**how)
    world.create(topic=letters, max_message_bytes="400")
    world.produce([FLIGHT.format(n) for n in range(5000)] + ["nonsense"])
    kept = [("trace", b"7"), ("none", None)]
    with Producer(bootstrap_servers=world.bootstrap) as producer:
        producer.send(world.topic, b"{", key=b"k", headers=kept, partition=1).result()
    sink = Collector()
    sink.run(world.stream(**how).selectExpr("cast(carrier as binary) value"))
    assert [len(values) for values in sink.values] == [5000]
    found = world.read(subscribe=letters, includeHeaders="true").orderBy("offset").collect()
    named = {bytes(row.value): (row.key, [tuple(header) for header in row.headers]) for row in found}
    assert named.keys() == {b"nonsense", b"{"}
    key, headers = named[b"{"]
    place = [("topic", world.topic.encode()), ("partition", b"1"), ("offset", b"0")]
    assert (key, headers[:5]) == (b"k", [*kept, *((f"dead-letter-{name}", raw) for name, raw in place)])
    assert headers[5] == ("dead-letter-reason", b"value: the JSON ends at byte 1")
    world.produce(["x" * 390])
    with pytest.raises(Exception, match=r"MESSAGE_TOO_LARGE.*max.message.bytes"):
        sink.run(world.stream(**how).selectExpr("cast(carrier as binary) value"))
    assert [len(values) for values in sink.values] == [5000], "the batch with the letter that was lost is not read"


def test_a_table_of_the_catalog_has_typed_columns(world: SparkWorld) -> None:
    world.create()
    world.produce([FLIGHT.format(n) for n in range(50)])
    name = f"flights_{world.number}"
    world.spark.sql(
        f"CREATE TABLE {name} USING partita OPTIONS (`kafka.bootstrap.servers` '{world.bootstrap}', "
        f"topic '{world.topic}', valueFormat 'json', valueSchema '{COLUMNS}')"
    )
    found = world.spark.sql(f"SELECT carrier, sum(delay), max(offset) FROM {name} WHERE delay > 47 GROUP BY 1")
    assert found.collect() == [("UA", 97, 49)]
    world.spark.sql(f"DROP TABLE {name}")


def test_avro_with_a_registrys_framing_has_the_columns_of_the_newest_schema(world: SparkWorld, tmp_path: Path) -> None:
    registry = FolderRegistry(tmp_path / "schemas")
    first = {"type": "record", "name": "Flight", "fields": [{"name": "carrier", "type": "string"}]}
    delay = {"name": "delay", "type": ["null", "long"], "default": None}
    flown = {"name": "flown", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 0}
    newer = {**first, "fields": [delay, *first["fields"], flown]}
    old = AvroSerializer(registry, first).serialize(world.topic, [], {"carrier": "AA"})
    rows = [{"carrier": "UA", "delay": n, "flown": 1_700_000_000_000 + n} for n in range(50)]
    framed = [AvroSerializer(registry, newer).serialize(world.topic, [], row) for row in rows]
    world.create()
    world.produce([raw for raw in (old, *framed, b"not framed") if raw is not None])
    how = {"valueFormat": "avro", "registry": str(registry.folder), "onError": "column", "columns": "offset"}
    found = world.read(**how)
    assert found.columns == ["delay", "carrier", "flown", "offset", "_error", "_value"]
    kept = found.where("delay >= 48").selectExpr("delay", "carrier", "unix_millis(flown)", "offset").orderBy("offset")
    assert kept.collect() == [(48, "UA", 1_700_000_000_048, 49), (49, "UA", 1_700_000_000_049, 50)]
    assert [row[:2] for row in found.where("delay is null").select("carrier", "_value").collect()] == [
        *(("AA", None), (None, b"not framed"))
    ]
    some = world.read(**how | {"valueSchema": "carrier string"})
    assert some.columns == ["carrier", "offset", "_error", "_value"]
    name = f"avro_{world.number}"
    given = ", ".join(f"{key} '{value}'" for key, value in how.items())
    world.spark.sql(
        f"CREATE TABLE {name} USING partita OPTIONS (`kafka.bootstrap.servers` '{world.bootstrap}', "
        f"topic '{world.topic}', {given})"
    )
    more = {**newer, "fields": [*newer["fields"], {"name": "gate", "type": "string", "default": ""}]}
    AvroSerializer(registry, more).serialize(world.topic, [], {**rows[0], "gate": "7"})
    assert world.spark.sql(f"SELECT count(delay), count(carrier) FROM {name}").collect() == [(50, 51)]
    world.spark.sql(f"DROP TABLE {name}")


def test_bare_avro_is_read_by_the_schema_given(world: SparkWorld) -> None:
    schema = '{"type":"record","name":"F","fields":[{"name":"carrier","type":"string"},{"name":"delay","type":"int"}]}'
    world.create()
    world.produce([b"\x04UA\x0e", b"\x04AA\x01"])
    found = world.read(valueFormat="avro", valueSchema=schema, columns="offset")
    assert found.orderBy("offset").collect() == [("UA", 7, 0), ("AA", -1, 1)]


def test_protobuf_is_read_by_a_registry_or_by_a_descriptor(world: SparkWorld, tmp_path: Path) -> None:
    file = descriptor_pb2.FileDescriptorProto(name="flight.proto", package="flights", syntax="proto3")
    message = file.message_type.add(name="Flight")
    for number, (name, kind) in enumerate([("carrier", "TYPE_STRING"), ("delay", "TYPE_SINT32")], 1):
        message.field.add(name=name, number=number, type=kind, label="LABEL_OPTIONAL")
    serialized = file.SerializeToString()
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(serialized)
    flight = message_factory.GetMessageClass(pool.FindMessageTypeByName("flights.Flight"))
    registry = FolderRegistry(tmp_path / "schemas")
    flights = [flight(carrier="UA", delay=n) for n in range(50)]
    serializer = ProtobufSerializer(registry, flight)
    framed = [serializer.serialize(world.topic, [], one) for one in flights]
    world.create()
    world.produce([raw for raw in (*framed, b"not framed") if raw is not None])
    how = {"valueFormat": "protobuf", "columns": "offset"}
    found = world.read(**how, registry=str(registry.folder), onError="column")
    assert found.columns == ["carrier", "delay", "offset", "_error", "_value"]
    assert found.where("delay >= 48").select("carrier", "delay", "offset").orderBy("offset").collect() == [
        *(("UA", 48, 48), ("UA", 49, 49))
    ]
    assert [bytes(row[0]) for row in found.where("_error is not null").select("_value").collect()] == [b"not framed"]
    bare = type(world)(world.spark, world.bootstrap)
    bare.create()
    bare.produce([one.SerializeToString() for one in flights])
    given = f"flights.Flight {b64encode(serialized).decode()}"
    assert bare.read(**how, valueSchema=given).selectExpr("sum(delay)", "min(delay)", "count(*)").collect() == [
        (sum(range(50)), 1, 50)
    ]
