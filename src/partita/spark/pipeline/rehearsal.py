"""Asks Spark, before a pipeline starts, whether it understands the SQL of the file. Nothing is read or written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from partita.lazy import later
from partita.options import ConfigError
from partita.spark.pipeline.pipeline_file import RECORDS, Pipeline
from partita.spark.reading.tables import check_write

if TYPE_CHECKING:
    from pyspark import errors as spark_errors
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType
else:
    spark_errors = later("pyspark.errors")


def rehearse(spark: SparkSession, pipeline: Pipeline, decoded: StructType, sides: Mapping[str, StructType]) -> None:
    """Analyse every rule and transform on empty tables, and the rows that each topic gets.

    `decoded` are the columns of a decoded batch, `sides` those of the side tables. A session of its own keeps the
    names. Raises ConfigError with the place in the file and Spark's message.
    """
    own = spark.newSession()
    batch = own.createDataFrame([], decoded)
    batch.drop(*pipeline.decode.hidden).createOrReplaceTempView(RECORDS)
    for name, schema in sides.items():
        own.createDataFrame([], schema).createOrReplaceTempView(name)
    for i, rule in enumerate(pipeline.rules, 1):
        with spark_says(f"check of [[quality]] number {i}"):
            batch.selectExpr(f"cast(({rule.check}) as boolean)")
    for i, transform in enumerate(pipeline.transforms, 1):
        with spark_says(f"sql of [[transform]] number {i}"):
            own.sql(transform.sql).createOrReplaceTempView(transform.name)
    for i, sink in enumerate(pipeline.sinks, 1):
        if sink.format == "topic":
            with spark_says(f"[[sink]] number {i}"):
                check_write(own.table(sink.table).schema, has_topic=True)


@contextmanager
def spark_says(place: str) -> Iterator[None]:
    """Turn an error of Spark's analysis, or a ConfigError, into a ConfigError with the place in front."""
    try:
        yield
    except (spark_errors.PySparkException, ConfigError) as error:
        said = str(error).strip().partition("\n")[0]
        raise ConfigError(f"{place}: {said}") from None
