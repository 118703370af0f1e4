"""The same framing in Spark: columns of a topic decoded as they are read, in the executors.

decoded(spark.readStream.format("partita")..., {"value": deserializer}, "key binary, value struct<id: long>, ...")
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from partita.registry.deserializer import RegistryDeserializer

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


def decoded(frame: DataFrame, columns: Mapping[str, RegistryDeserializer], schema: StructType | str) -> DataFrame:
    """The frame with these columns decoded; `schema` is that of the result, its columns are kept by name."""
    chosen = dict(columns)
    return frame.mapInArrow(lambda batches: decode_batches(batches, chosen), schema)


def decode_batches(
    batches: Iterator[pa.RecordBatch], columns: Mapping[str, RegistryDeserializer]
) -> Iterator[pa.RecordBatch]:
    """Each batch with these columns decoded."""
    for batch in batches:
        for name, deserializer in columns.items():
            place = batch.schema.get_field_index(name)
            batch = batch.set_column(place, name, deserializer.to_arrow(batch.column(place)))
        yield batch
