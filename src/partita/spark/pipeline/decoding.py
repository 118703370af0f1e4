"""Decode the value of a record into columns, with the reason where that fails. Runs in Spark's workers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from partita.lazy import later
from partita.options import ConfigError
from partita.spark.pipeline.pipeline_file import Decoding
from partita.spark.settings.typed import ERROR, Form, Typed

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as sf
    from pyspark.sql import types as spark_types

    from partita.records.typed import ddl
    from partita.spark import spark_api
    from partita.spark.reading import typed_columns
else:
    ddl = later("partita.records.typed.ddl")
    pa = later("pyarrow")
    sf = later("pyspark.sql.functions")
    spark_api = later("partita.spark.spark_api")
    spark_types = later("pyspark.sql.types")
    typed_columns = later("partita.spark.reading.typed_columns")

META = ("key", "topic", "partition", "offset", "timestamp")
"""The columns of a record that are kept besides the decoded ones, under the same names with _ in front."""


def decode_records(records: DataFrame, decoding: Decoding) -> DataFrame:
    """The records with decoded columns, `_key`, `_topic`, `_partition`, `_offset`, `_timestamp`, `_value` and `_error`.

    Raw records keep their columns, and have an `_error` that is null. Raises ConfigError for columns without decoder.
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
    return _in_workers(records.select(*kept), decoding)


def _in_workers(records: DataFrame, decoding: Decoding) -> DataFrame:
    wanted = spark_types._parse_datatype_string(decoding.schema)
    assert isinstance(wanted, spark_types.StructType), "a list of columns is a struct"
    whole = spark_types.StructType(
        [*wanted.fields, *records.schema.fields, spark_types.StructField(ERROR, spark_types.StringType())]
    )
    zone = records.sparkSession.conf.get("spark.sql.session.timeZone") or "UTC"
    try:
        columns = ddl.columns_text(spark_api.arrow_schema(wanted))
        form = Form("value", decoding.format, columns, registry=decoding.registry or None)
        decode = WorkerDecode(Typed((form,), zone=zone, separator=decoding.separator))
        if decoding.format == "csv":
            typed_columns.decoder_of(form, decode.typed)
    except ddl.SchemaError as error:
        raise ConfigError(str(error)) from error
    return records.mapInArrow(decode, whole)


@dataclass(frozen=True, slots=True)
class WorkerDecode:
    """Decodes CSV, and Avro and Protobuf with a registry's framing. Pickled to the workers."""

    typed: Typed

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return each batch with the decoded columns before its own and the reasons behind them."""
        decoder = typed_columns.decoder_of(self.typed.forms[0], self.typed)
        for batch in batches:
            decoded = decoder.decode(batch.column("_value"))
            faults = dict(decoded.faults)
            reasons = pa.array([faults.get(row) for row in range(len(batch))], pa.string())
            names = [*decoded.columns.type.names, *batch.schema.names, ERROR]
            yield pa.RecordBatch.from_arrays([*decoded.columns.flatten(), *batch.columns, reasons], names=names)
