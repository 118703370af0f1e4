"""The columns of `format("partita")` as Spark knows them, and the form of a written table.

The same names, order and types as Spark's own Kafka connector, everything nullable.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from partita.lazy import later
from partita.options import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import compute as pc
else:
    pa = later("pyarrow")
    pc = later("pyarrow.compute")

OPTIONS = "partita.options"
DECODED = {"timestampType": "timestamp_type", "leaderEpoch": "leader_epoch"}
"""Decoded columns that Spark names differently."""
HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
KINDS: dict[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": HEADERS,
    "leaderEpoch": IntegerType(),
    "keySize": IntegerType(),
    "valueSize": IntegerType(),
    "group": StringType(),
    "metadata": StringType(),
    "commitTime": TimestampType(),
    "expireTime": TimestampType(),
    "isTombstone": BooleanType(),
    "unknownValue": BinaryType(),
    "logPartition": IntegerType(),
    "logOffset": LongType(),
    "logTimestamp": TimestampType(),
    "state": StringType(),
    "committedOffset": LongType(),
    "endOffset": LongType(),
    "lag": LongType(),
    "isInterpolated": BooleanType(),
    "memberId": StringType(),
    "groupInstanceId": StringType(),
    "clientId": StringType(),
    "clientHost": StringType(),
    "sampledAt": TimestampType(),
    "query": StringType(),
    "batch": LongType(),
    "protocolType": StringType(),
    "protocol": StringType(),
    "generation": IntegerType(),
    "previousGeneration": IntegerType(),
    "leader": StringType(),
    "memberCount": IntegerType(),
    "stateTime": TimestampType(),
    "sincePreviousMs": LongType(),
    "isLeader": BooleanType(),
    "sessionTimeoutMs": IntegerType(),
    "rebalanceTimeoutMs": IntegerType(),
    "topics": ArrayType(StringType()),
    "partitionCount": IntegerType(),
    "userDataBytes": IntegerType(),
    "added": ArrayType(StringType()),
    "removed": ArrayType(StringType()),
    "moved": ArrayType(StringType()),
    "unassigned": ArrayType(StringType()),
    "keyVersion": IntegerType(),
    "valueVersion": IntegerType(),
}
"""The type of each column, the same in every view."""
WRITE: dict[str, tuple[type[DataType], ...]] = {
    "value": (StringType, BinaryType),
    "key": (StringType, BinaryType),
    "topic": (StringType,),
    "partition": (IntegerType,),
    "headers": (ArrayType,),
}


def read_schema(columns: Sequence[str]) -> StructType:
    """The schema of a read of these columns."""
    return StructType([StructField(name, KINDS[name]) for name in columns])


def chosen(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the columns of `schema` from the decoded ones.

    Sizes are in bytes, null for a null key or value.
    """
    sizes = {"keySize": "key", "valueSize": "value"}
    arrays = [
        pc.binary_length(batch.column(sizes[name])) if name in sizes else batch.column(DECODED.get(name, name))
        for name in schema.names
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


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


def check_read(given: StructType, columns: Sequence[str]) -> None:
    """Spark takes a user's `.schema(...)` for ours without comparing. Raises ConfigError when it differs."""
    ours = read_schema(columns)
    if [(f.name, f.dataType) for f in given.fields] != [(f.name, f.dataType) for f in ours.fields]:
        raise ConfigError(f"the schema is fixed, leave out .schema(...): {ours.simpleString()}")


def check_write(given: StructType, has_topic: bool) -> None:
    """Check that the table can be written; other columns are ignored. Raises ConfigError."""
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
    """Return remarks on columns that look as if they mattered and do not."""
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
