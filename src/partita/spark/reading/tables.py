"""The columns of `format("partita")` as Spark knows them, and what a written table must look like.

The same names, order and types as Spark's own Kafka connector, everything nullable.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from partita.options import ConfigError

OPTIONS = "partita.options"
HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
READ = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
)
READ_WITH_HEADERS = StructType([*READ.fields, StructField("headers", HEADERS)])
WRITE: dict[str, tuple[type[DataType], ...]] = {
    "value": (StringType, BinaryType),
    "key": (StringType, BinaryType),
    "topic": (StringType,),
    "partition": (IntegerType,),
    "headers": (ArrayType,),
}


def read_schema(include_headers: bool) -> StructType:
    """The schema of a read."""
    return READ_WITH_HEADERS if include_headers else READ


def with_options(schema: StructType, options: Mapping[str, str]) -> StructType:
    """The schema of a table in Spark's catalog, which remembers the table's options.

    Spark keeps the options of `CREATE TABLE` but does not hand them to a Python source when the table is used; the
    schema it does hand over, with the metadata of its columns.
    """
    first = schema.fields[0]
    noted = StructField(first.name, first.dataType, first.nullable, {OPTIONS: json.dumps(dict(options))})
    return StructType([noted, *schema.fields[1:]])


def options_in(schema: StructType) -> dict[str, str]:
    """The options that the schema of a table remembers; empty for any other schema."""
    found = next((field.metadata[OPTIONS] for field in schema.fields if OPTIONS in (field.metadata or {})), "{}")
    return dict(json.loads(found))


def check_read(given: StructType, include_headers: bool) -> None:
    """Spark takes a user's `.schema(...)` for ours without comparing. Raises ConfigError when it differs."""
    ours = read_schema(include_headers)
    if [(f.name, f.dataType) for f in given.fields] != [(f.name, f.dataType) for f in ours.fields]:
        raise ConfigError(f"the schema is fixed, leave out .schema(...): {ours.simpleString()}")


def check_write(given: StructType, has_topic: bool) -> None:
    """Whether the table can be written. Other columns are ignored. Raises ConfigError."""
    fields = {field.name: field.dataType for field in given.fields if field.name in WRITE}
    if "value" not in fields:
        raise ConfigError(f"the table needs a column value; it has {', '.join(given.fieldNames()) or 'no column'}")
    if not has_topic and "topic" not in fields:
        raise ConfigError("give the option topic, or a column topic")
    for name, found in fields.items():
        if not isinstance(found, WRITE[name]) or (name == "headers" and not _are_headers(found)):
            wanted = (
                HEADERS.simpleString() if name == "headers" else " or ".join(t().simpleString() for t in WRITE[name])
            )
            raise ConfigError(f"column {name} must be {wanted}, not {found.simpleString()}")


def ignored_when_written(given: StructType) -> tuple[str, ...]:
    """Remarks on columns that look as if they mattered and do not."""
    kinds = {field.name: field.dataType for field in given.fields}
    if "timestamp" in kinds and not isinstance(kinds["timestamp"], TimestampType):
        return (f"column timestamp is ignored: it is {kinds['timestamp'].simpleString()}, not timestamp",)
    return ()


def _are_headers(found: DataType) -> bool:
    element = found.elementType if isinstance(found, ArrayType) else None
    return isinstance(element, StructType) and [(f.name, f.dataType) for f in element.fields] == [
        ("key", StringType()),
        ("value", BinaryType()),
    ]
