"""The columns of `format("partita")` as Spark knows them, and the form of a written table.

The same names, order and types as Spark's own Kafka connector, everything nullable.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from partita.lazy import later
from partita.options import ConfigError
from partita.spark.settings.typed import Typed, typed_fields, with_columns
from partita.spark.spark_api import arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import compute as pc

    from partita.records.typed import ddl
else:
    ddl = later("partita.records.typed.ddl")
    pa = later("pyarrow")
    pc = later("pyarrow.compute")

OPTIONS = "partita.options"
DECODED = {"timestampType": "timestamp_type", "leaderEpoch": "leader_epoch", "deliveryCount": "delivery_count"}
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
    "deliveryCount": ShortType(),
    "_error": StringType(),
    "_key": BinaryType(),
    "_value": BinaryType(),
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
    "lagSeconds": DoubleType(),
    "error": StringType(),
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
    "timestamp": (TimestampType,),
}


def read_schema(columns: Sequence[str], typed: Typed | None = None) -> StructType:
    """The schema of a read: decoded columns, then the record's or the view's, then those about bad records."""
    plain = [StructField(name, KINDS[name]) for name in columns]
    if typed is None:
        return StructType(plain)
    decoded = from_arrow_schema(typed_fields(typed, columns)).fields
    return StructType([*decoded, *plain, *(StructField(name, KINDS[name]) for name in typed.error_columns)])


def typed_by(given: StructType, columns: Sequence[str], typed: Typed) -> Typed:
    """The same, with the columns of a schema that `read_schema` gave where none are named: there may be a newer one."""
    known = {*columns, *typed.error_columns}
    known.update(field.name for form in typed.forms if form.columns for field in ddl.columns_of(form.columns))
    found = StructType([StructField(f.name, f.dataType) for f in given.fields if f.name not in known])
    return with_columns(typed, lambda form: arrow_schema(found))


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


def check_read(given: StructType, columns: Sequence[str], typed: Typed | None = None) -> None:
    """Spark takes a user's `.schema(...)` for ours without comparing. Raises ConfigError when it differs."""
    ours = read_schema(columns, typed)
    if [(f.name, f.dataType) for f in given.fields] != [(f.name, f.dataType) for f in ours.fields]:
        hint = "" if typed is None else "; valueSchema and keySchema choose the decoded columns"
        raise ConfigError(f"the schema is fixed, leave out .schema(...): {ours.simpleString()}{hint}")


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


def _are_headers(found: DataType) -> bool:
    element = found.elementType if isinstance(found, ArrayType) else None
    return isinstance(element, StructType) and [(f.name, f.dataType) for f in element.fields] == [
        ("key", StringType()),
        ("value", BinaryType()),
    ]
