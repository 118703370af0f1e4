"""Typed columns of Avro beside Spark's own from_avro, row by row on generated records of every type."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pytest

from partita.records.typed.avro_schemas import AvroSchema
from partita.records.typed.decoding import AvroDecoder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.conformance

POM = """<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version>
<dependencies><dependency><groupId>org.apache.spark</groupId><artifactId>spark-avro_2.13</artifactId>
<version>4.2.0</version><exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
</dependency></dependencies></project>"""


def logical(kind: Any, logical_type: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical_type, **more}


INNER = {
    "type": "record",
    "name": "Inner",
    "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": ["null", "double"]}],
}
TYPES: list[Any] = [
    *("boolean", "int", "long", "float", "double", "bytes", "string"),
    {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN"]},
    {"type": "fixed", "name": "Four", "size": 4},
    *(logical("int", name) for name in ("date", "time-millis")),
    *(logical("long", f"{local}timestamp-{unit}s") for local in ("", "local-") for unit in ("milli", "micro")),
    logical("string", "uuid"),
    logical("bytes", "decimal", precision=12, scale=3),
    logical("fixed", "decimal", name="Nine", size=9, precision=20, scale=2),
    {"type": "array", "items": ["null", "string"]},
    {"type": "map", "values": {"type": "array", "items": "long"}},
    {**INNER, "fields": [*INNER["fields"], {"name": "z", "type": {"type": "array", "items": "int"}}]},
    *(["null", "int"], ["string", "null"], ["int", "long"], ["float", "double"], ["null", "int", "string"], ["int"]),
    ["null", {"type": "record", "name": "Other", "fields": [{"name": "q", "type": ["null", "string"]}]}, "boolean"],
]
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "All",
    "fields": [{"name": f"f{n}", "type": kind} for n, kind in enumerate(TYPES)],
}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from partita.spark import session
    from support.spark.world import QUICK_START

    folder = tmp_path_factory.mktemp("jars")
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip("no Maven")
    (folder / "pom.xml").write_text(POM)
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
    done = subprocess.run([maven, "-q", "-B", "-f", str(folder / "pom.xml"), *goal], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"spark-avro cannot be had: {done.stdout[-200:]}")
    (jar,) = folder.glob("*.jar")
    found = session("avro", master="local[2]", config={"spark.jars": str(jar), **QUICK_START})
    yield found
    found.stop()


def a_value(random: Random, kind: Any) -> Any:
    """A value as fastavro writes it when it does not know of logical types other than decimals."""
    if isinstance(kind, list):
        return a_value(random, random.choice(kind))
    if isinstance(kind, str):
        kind = {"type": kind}
    if kind.get("logicalType") == "decimal":
        digits = 10 ** random.randrange(1, kind["precision"] + 1)
        return Decimal((int(random.random() < 0.5), tuple(map(int, str(random.randrange(digits)))), -kind["scale"]))
    makers: dict[str, Callable[[], Any]] = {
        "null": lambda: None,
        "boolean": lambda: random.random() < 0.5,
        "int": lambda: random.randrange(-(2**31), 2**31) >> random.randrange(8, 32),
        "long": lambda: random.randrange(-(2**53), 2**53) >> random.randrange(54),
        "float": lambda: random.choice((0.0, -0.0, 1.5, float("inf"))),
        "double": lambda: random.choice((-0.0, random.uniform(-1e9, 1e9), float("-inf"))),
        "bytes": lambda: random.randbytes(random.randrange(9)),
        "string": lambda: random.choice(("", "plain", "grün", "😀" * 5)),
        "enum": lambda: random.choice(kind["symbols"]),
        "fixed": lambda: random.randbytes(kind["size"]),
        "array": lambda: [a_value(random, kind["items"]) for _ in range(random.randrange(4))],
        "map": lambda: {key: a_value(random, kind["values"]) for key in random.sample("abcd", random.randrange(4))},
        "record": lambda: {field["name"]: a_value(random, field["type"]) for field in kind["fields"]},
    }
    return makers[kind["type"]]()


def bare(kind: Any) -> Any:
    """The type without its logical one, but for decimals."""
    if isinstance(kind, dict) and kind.get("logicalType", "decimal") != "decimal":
        return kind["type"]
    return kind


def columns(table: Any) -> dict[str, list[Any]]:
    """The columns as Python has them; times as numbers, and maps by their keys: Spark does not keep their order."""
    found = {}
    for name in table.schema.names:
        column = table.column(name)
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if pa.types.is_timestamp(column.type) or pa.types.is_date32(column.type):
            column = column.cast(pa.int64() if pa.types.is_timestamp(column.type) else pa.int32())
        values = column.to_pylist()
        found[name] = [sorted(v) if pa.types.is_map(column.type) and v is not None else v for v in values]
    return found


def test_generated_records_of_every_type_have_the_values_of_from_avro(spark: SparkSession) -> None:
    from pyspark.sql.avro.functions import from_avro

    random = Random(31)
    plain = {**SCHEMA, "fields": [{**field, "type": bare(field["type"])} for field in SCHEMA["fields"]]}
    writer = fastavro.parse_schema(plain)
    raw = []
    for _ in range(2000):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, writer, a_value(random, plain))
        raw.append(out.getvalue())
    text = json.dumps(SCHEMA)
    written = pa.table({"n": pa.array(range(len(raw))), "value": pa.array(raw, pa.binary())})
    read = spark.createDataFrame(written).select("n", from_avro("value", text).alias("d"))
    theirs = columns(read.select("n", "d.*").orderBy("n").drop("n").toArrow())
    schema = AvroSchema(text)
    decoded = AvroDecoder(schema.columns(), schema).decode(pa.array(raw, pa.binary()))
    assert not decoded.faults
    ours = columns(pa.RecordBatch.from_struct_array(decoded.columns))
    assert ours.keys() == theirs.keys()
    assert not {name: rows for name, rows in ours.items() if repr(rows) != repr(theirs[name])}.keys()


def test_missing_and_unknown_fields_are_nulls_and_passed_over(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql.avro.functions import from_avro

    fields = [{"name": "s", "type": "string"}, {"name": "n", "type": "long"}]
    old, new = (
        {"type": "record", "name": "R", "fields": some}
        for some in (fields, [{"name": "more", "type": ["null", "int"], "default": None}, fields[1]])
    )
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(old), {"s": "passed over", "n": 7})
    value = pa.array([out.getvalue()], pa.binary())
    frame = spark.createDataFrame(pa.table({"value": value}))
    how = {"avroSchema": json.dumps(new)}
    (theirs,) = frame.select(from_avro("value", json.dumps(old), how).alias("d")).select("d.*").collect()
    decoder = AvroDecoder(AvroSchema(json.dumps(new)).columns(), AvroSchema(json.dumps(old)), {"more": None})
    (ours,) = decoder.decode(value).columns.to_pylist()
    assert ours == theirs.asDict() == {"more": None, "n": 7}
