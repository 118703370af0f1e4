"""Run a pipeline: one streaming query whose every batch is decoded, judged, transformed by SQL and written.

A batch that runs again after a crash has the same id and rows: Parquet folders and Delta tables take it once; topics,
dead letters and Iceberg at least once. Numbers of batches begin at 0 with each new checkpoint, so folders and Delta
also hold the query's id, which is the checkpoint's. SQL sees one batch at a time, so no state moves with partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql.functions import (
    array,
    array_compact,
    array_contains,
    col,
    concat_ws,
    count,
    expr,
    lit,
    split,
    struct,
    when,
)
from pyspark.sql.functions import coalesce as first_of

from partita.spark.pipeline.decoding import META, decode_records
from partita.spark.pipeline.pipeline_file import RECORDS, Pipeline, Rule, SideTable, Sink
from partita.spark.pipeline.rehearsal import rehearse, spark_says
from partita.spark.settings.typed import ERROR

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

REASON = "_reason"


class QualityError(Exception):
    """A record broke a rule whose `otherwise` is fail, or too many records of a batch are bad."""


@dataclass(frozen=True, slots=True)
class BatchReport:
    """Outcome of one batch; `broken` counts the records that broke each rule, bad records among them."""

    batch: int
    rows: int
    good: int
    dead_letters: int
    broken: Mapping[str, int]


def start(
    spark: SparkSession,
    pipeline: Pipeline,
    *,
    once: bool = False,
    on_batch: Callable[[BatchReport], None] = lambda report: None,
) -> StreamingQuery:
    """Start the pipeline's query. With `once` it ends when it has read everything present. The driver calls `on_batch`.

    Raises ConfigError for SQL that Spark does not understand, QualityError for a side table with unreadable records.
    """
    records, sides = prepare(spark, pipeline)
    for side in pipeline.tables:
        # The session of a query is a copy of this one, with its views.
        _columns(_readable(sides[side.name].cache(), side)).createOrReplaceTempView(side.name)
    batches = Batches(pipeline, on_batch)
    trigger: dict[str, Any] = {"availableNow": True} if once else dict(pipeline.trigger or {})
    writer = records.writeStream.queryName(pipeline.name).foreachBatch(batches)
    return writer.option("checkpointLocation", pipeline.checkpoint).trigger(**trigger).start()


def prepare(spark: SparkSession, pipeline: Pipeline) -> tuple[DataFrame, dict[str, DataFrame]]:
    """Return the stream of records and the decoded side tables, after Spark has checked all SQL on empty tables.

    Raises ConfigError for SQL that Spark does not understand.
    """
    records = spark.readStream.format("partita").options(**pipeline.read_options(pipeline.source)).load()
    with spark_says("[decode]: schema"):
        decoded = decode_records(records, pipeline.decode)
    sides = {side.name: _side(spark, pipeline, i) for i, side in enumerate(pipeline.tables)}
    rehearse(spark, pipeline, decoded.schema, {name: _columns(side).schema for name, side in sides.items()})
    return records, sides


def _side(spark: SparkSession, pipeline: Pipeline, number: int) -> DataFrame:
    """Return the decoded records of a side table, with their positions and reading errors."""
    side = pipeline.tables[number]
    found = spark.read.format("partita").options(**pipeline.read_options(side.options)).load()
    with spark_says(f"decode of [[table]] number {number + 1}: schema"):
        return decode_records(found, side.decode).drop("_value", "_key", "_timestamp")


def _readable(decoded: DataFrame, side: SideTable) -> DataFrame:
    """Raise QualityError for a record that cannot be read, unless the file takes such ones as nulls."""
    if side.decode.format != "raw" and side.decode.bad_records == "fail":
        example = decoded.where(f"{ERROR} is not null").first()
        if example is not None:
            raise QualityError(f"table {side.name}: a record cannot be read: {_described(example)}")
    return decoded


def _columns(decoded: DataFrame) -> DataFrame:
    """Return the columns of a side table that SQL sees."""
    return decoded.drop(ERROR, *(f"_{name}" for name in META))


class Batches:
    """The `foreachBatch` function of the pipeline: decodes, judges and writes each batch."""

    def __init__(self, pipeline: Pipeline, on_batch: Callable[[BatchReport], None]) -> None:
        self._pipeline = pipeline
        self._on_batch = on_batch

    def __call__(self, records: DataFrame, batch: int) -> None:
        """Raises QualityError before anything of the batch is written."""
        judged = self._judged(records).cache()
        try:
            report = self._report(judged, batch)
            good = judged.where(f"{REASON} is null or {REASON} = ''").drop(REASON, *self._pipeline.decode.hidden)
            if not self._pipeline.decode.hidden:
                good = good.withColumn("_value", when(col(ERROR).isNotNull(), col("_value")))
            query = records.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
            self._write_all(good, f"{query}", batch)
            if report.dead_letters:
                self._dead_letters(judged)
        finally:
            judged.unpersist()
        self._on_batch(report)

    def _judged(self, records: DataFrame) -> DataFrame:
        """Return the decoded records with the names of the rules they break, separated by commas."""
        decoded = decode_records(records, self._pipeline.decode)
        is_kept = self._pipeline.decode.keeps_bad
        broken = [] if is_kept else [when(col(ERROR).isNotNull(), col(ERROR))]
        for rule in self._pipeline.rules:
            holds = first_of(expr(rule.check).cast("boolean"), lit(False))
            readable = lit(True) if is_kept else col(ERROR).isNull()
            broken.append(when(readable & ~holds, lit(rule.name)))
        none = lit("") if not broken else concat_ws(", ", array_compact(array(*broken)))
        return decoded.withColumn(REASON, none)

    def _report(self, judged: DataFrame, batch: int) -> BatchReport:
        pipeline = self._pipeline
        broken = {rule.name: count(when(_breaks(rule), lit(1))) for rule in pipeline.rules}
        bad = count(when(col(ERROR).isNotNull(), lit(1)))
        whole = count(when(col(REASON) != "", lit(1)))
        row = judged.agg(count(lit(1)), whole, bad, *broken.values()).collect()[0]
        rows, unusable, unreadable = int(row[0]), int(row[1]), int(row[2])
        counts = dict(zip(broken, map(int, row[3:]), strict=True))
        if unreadable and pipeline.decode.bad_records == "fail":
            example = judged.where(f"{ERROR} is not null").first()
            raise QualityError(f"batch {batch}: {unreadable} of {rows} records cannot be read: {_described(example)}")
        for rule in pipeline.rules:
            if rule.otherwise == "fail" and counts[rule.name]:
                raise QualityError(f"batch {batch}: {counts[rule.name]} of {rows} records break {rule.name!r}")
        if rows and unusable / rows > pipeline.bad_ratio_max:
            raise QualityError(
                f"batch {batch}: {unusable} of {rows} records are unusable, max_ratio is {pipeline.bad_ratio_max}"
            )
        letters = judged.where(self._is_letter()).count() if pipeline.dead_letters and unusable else 0
        return BatchReport(batch, rows, rows - unusable, letters, counts | {"unreadable": unreadable})

    def _is_letter(self) -> Any:
        """Whether a record goes to the dead letters: it breaks a rule that does not just drop it."""
        kept = [_breaks(rule) for rule in self._pipeline.rules if rule.otherwise == "dead_letters"]
        if self._pipeline.decode.bad_records == "dead_letters":
            kept.append(col(ERROR).isNotNull())
        return reduce(lambda a, b: a | b, kept, lit(False))

    def _write_all(self, good: DataFrame, query: str, batch: int) -> None:
        spark = good.sparkSession
        good.createOrReplaceTempView(RECORDS)
        for transform in self._pipeline.transforms:
            spark.sql(transform.sql).createOrReplaceTempView(transform.name)
        for sink in self._pipeline.sinks:
            self._write(sink, spark.table(sink.table), query, batch)

    def _write(self, sink: Sink, table: DataFrame, query: str, batch: int) -> None:
        pipeline = self._pipeline
        match sink.format:
            case "parquet":
                table.write.mode("overwrite").parquet(f"{sink.target}/query={query}/batch={batch}")
            case "delta":
                once = {"txnAppId": query, "txnVersion": str(batch)}
                table.write.format("delta").options(**once).mode("append").save(sink.target)
            case "iceberg":
                table.writeTo(sink.target).append()
            case "topic":
                table.write.format("partita").options(**pipeline.write_options(sink.target)).mode("append").save()
            case _:
                table.show(truncate=False)

    def _dead_letters(self, judged: DataFrame) -> None:
        """Write the original records, with the reason and their position as headers."""
        prefix = "" if self._pipeline.decode.format == "raw" else "_"
        places = {"reason": REASON, **{name: f"{prefix}{name}" for name in ("topic", "partition", "offset")}}
        headers = [
            struct(lit(name).alias("key"), col(column).cast("string").cast("binary").alias("value"))
            for name, column in places.items()
        ]
        letters = judged.where(self._is_letter()).select(
            col(f"{prefix}key").alias("key"), col("_value").alias("value"), array(*headers).alias("headers")
        )
        options = self._pipeline.write_options(self._pipeline.dead_letters)
        letters.write.format("partita").options(**options).mode("append").save()


def _breaks(rule: Rule) -> Any:
    return array_contains(split(col(REASON), ", "), rule.name)


def _described(row: Any) -> str:
    return f"{row['_topic']}-{row['_partition']} at offset {row['_offset']}: {row[ERROR]}"
