"""From the value of a record to columns, with the reason where it cannot be read. Runs in Spark's workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from partita.spark.pipeline.pipeline_file import Decoding

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

ERROR = "_error"
"""The column that says why a value could not be read; null for one that could."""
META = ("key", "topic", "partition", "offset", "timestamp")
"""The columns of a record that are kept beside the decoded ones, under the same names with _ in front."""


def decode_records(records: DataFrame, decoding: Decoding) -> DataFrame:
    """The records with decoded columns, `_key`, `_topic`, `_partition`, `_offset`, `_timestamp`, `_value` and `_error`.

    Raw records keep their columns, and have an `_error` that is null.
    """
    from pyspark.sql.functions import col, lit

    if decoding.format == "raw":
        return records.withColumn("_value", col("value")).withColumn(ERROR, lit(None).cast("string"))
    kept = [col(name).alias(f"_{name}") for name in (*META, "value")]
    if decoding.format == "json":
        from pyspark.sql.functions import from_json, when

        schema = f"{decoding.schema}, _corrupt string"
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "_corrupt"}
        read = records.select(*kept, from_json(col("value").cast("string"), schema, options).alias("d"))
        corrupt = col("d._corrupt").isNotNull() | (col("_value").isNotNull() & col("d").isNull())
        reason = when(corrupt, lit("this is no JSON of the schema"))
        return (
            read.withColumn(ERROR, reason)
            .select("d.*", "_value", *(f"_{name}" for name in META), ERROR)
            .drop("_corrupt")
        )
    return _from_registry(records.select(*kept), decoding)


def _from_registry(records: DataFrame, decoding: Decoding) -> DataFrame:
    from pyspark.sql.types import StringType, StructField, StructType, _parse_datatype_string

    wanted = _parse_datatype_string(decoding.schema)
    assert isinstance(wanted, StructType), "a list of columns is a struct"
    whole = StructType([*wanted.fields, *records.schema.fields, StructField(ERROR, StringType())])
    decode = RegistryDecode(decoding.registry, wanted)
    return records.mapInArrow(decode, whole)


class RegistryDecode:
    """Decodes Avro and Protobuf with a registry's framing, value by value. Pickled to the workers."""

    def __init__(self, registry: str, wanted: StructType) -> None:
        self._registry = registry
        self._wanted = wanted

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Each batch with the decoded columns before its own, and the reasons behind them."""
        import pyarrow as pa

        from partita.registry import FolderRegistry, HttpRegistry, RegistryDeserializer, RegistryError

        registry = HttpRegistry(self._registry) if "://" in self._registry else FolderRegistry(self._registry)
        deserializer = RegistryDeserializer(registry)
        for batch in batches:
            rows, reasons = [], []
            for value in batch.column("_value").to_pylist():
                row, reason = None, None
                try:
                    row = as_row(deserializer.deserialize("", (), value))
                except RegistryError as error:
                    reason = str(error)
                rows.append(row or {})
                reasons.append(reason)
            columns = fitting(rows, reasons, self._wanted)
            names = [*self._wanted.names, *batch.schema.names, ERROR]
            yield pa.RecordBatch.from_arrays([*columns, *batch.columns, pa.array(reasons, pa.string())], names=names)


def fitting(rows: list[dict[str, Any]], reasons: list[str | None], wanted: StructType) -> list[pa.Array]:
    """The columns of these rows. A row with a value of another type is emptied, and its reason says which value."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    unfit = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError)
    types = list(zip(wanted.fields, to_arrow_schema(wanted, timezone="UTC"), strict=True))
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
    """What a deserializer made, as a dict: Avro gives one, a Protobuf message is turned into one."""
    if found is None:
        return None
    if isinstance(found, dict):
        from partita.registry.arrow_types import arrow_value

        return {name: arrow_value(value) for name, value in found.items()}
    from partita.registry.protobuf import as_dict

    return dict(as_dict(found))
