"""Decode the value of a record into columns, with the reason where that fails. Runs in Spark's workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from partita.lazy import later
from partita.spark.pipeline.pipeline_file import Decoding

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as sf
    from pyspark.sql import types as spark_types

    from partita import registry as partita_registry
    from partita.registry import arrow_types, protobuf
    from partita.spark import spark_api
else:
    arrow_types = later("partita.registry.arrow_types")
    pa = later("pyarrow")
    partita_registry = later("partita.registry")
    protobuf = later("partita.registry.protobuf")
    sf = later("pyspark.sql.functions")
    spark_api = later("partita.spark.spark_api")
    spark_types = later("pyspark.sql.types")

ERROR = "_error"
"""The column with the reason why a value could not be read; null for one that could."""
META = ("key", "topic", "partition", "offset", "timestamp")
"""The columns of a record that are kept besides the decoded ones, under the same names with _ in front."""


def decode_records(records: DataFrame, decoding: Decoding) -> DataFrame:
    """The records with decoded columns, `_key`, `_topic`, `_partition`, `_offset`, `_timestamp`, `_value` and `_error`.

    Raw records keep their columns, and have an `_error` that is null.
    """
    if decoding.format == "raw":
        return records.withColumn("_value", sf.col("value")).withColumn(ERROR, sf.lit(None).cast("string"))
    kept = [sf.col(name).alias(f"_{name}") for name in (*META, "value")]
    if decoding.format == "json":
        schema = f"{decoding.schema}, _corrupt string"
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "_corrupt"}
        read = records.select(*kept, sf.from_json(sf.col("value").cast("string"), schema, options).alias("d"))
        corrupt = sf.col("d._corrupt").isNotNull() | (sf.col("_value").isNotNull() & sf.col("d").isNull())
        reason = sf.when(corrupt, sf.lit("this is no JSON of the schema"))
        return (
            read.withColumn(ERROR, reason)
            .select("d.*", "_value", *(f"_{name}" for name in META), ERROR)
            .drop("_corrupt")
        )
    return _from_registry(records.select(*kept), decoding)


def _from_registry(records: DataFrame, decoding: Decoding) -> DataFrame:
    wanted = spark_types._parse_datatype_string(decoding.schema)
    assert isinstance(wanted, spark_types.StructType), "a list of columns is a struct"
    whole = spark_types.StructType(
        [*wanted.fields, *records.schema.fields, spark_types.StructField(ERROR, spark_types.StringType())]
    )
    decode = RegistryDecode(decoding.registry, wanted)
    return records.mapInArrow(decode, whole)


class RegistryDecode:
    """Decodes Avro and Protobuf with a registry's framing, value by value. Pickled to the workers."""

    def __init__(self, registry: str, wanted: spark_types.StructType) -> None:
        self._registry = registry
        self._wanted = wanted

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return each batch with the decoded columns before its own and the reasons behind them."""
        registry = (
            partita_registry.HttpRegistry(self._registry)
            if "://" in self._registry
            else partita_registry.FolderRegistry(self._registry)
        )
        deserializer = partita_registry.RegistryDeserializer(registry)
        for batch in batches:
            rows, reasons = [], []
            for value in batch.column("_value").to_pylist():
                row, reason = None, None
                try:
                    row = as_row(deserializer.deserialize("", (), value))
                except partita_registry.RegistryError as error:
                    reason = str(error)
                rows.append(row or {})
                reasons.append(reason)
            columns = fitting(rows, reasons, self._wanted)
            names = [*self._wanted.names, *batch.schema.names, ERROR]
            yield pa.RecordBatch.from_arrays([*columns, *batch.columns, pa.array(reasons, pa.string())], names=names)


def fitting(rows: list[dict[str, Any]], reasons: list[str | None], wanted: spark_types.StructType) -> list[pa.Array]:
    """Return the columns of these rows. A row with a value of a wrong type is emptied; its reason names the value."""
    unfit = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError)
    types = list(zip(wanted.fields, spark_api.arrow_schema(wanted), strict=True))
    for field, of_arrow in types:
        try:
            pa.array([row.get(field.name) for row in rows], of_arrow.type)
            continue
        except unfit:
            pass
        for i, row in enumerate(rows):
            try:
                pa.array([row.get(field.name)], of_arrow.type)
            except unfit:
                reasons[i] = f"{field.name} is {row[field.name]!r:.60}, which is no {field.dataType.simpleString()}"
                rows[i] = {}
    return [pa.array([row.get(field.name) for row in rows], of_arrow.type) for field, of_arrow in types]


def as_row(found: Any) -> dict[str, Any] | None:
    """Return a deserializer's result as a dict: Avro gives one, a Protobuf message is converted."""
    if found is None:
        return None
    if isinstance(found, dict):
        return {name: arrow_types.arrow_value(value) for name, value in found.items()}

    return dict(protobuf.as_dict(found))
