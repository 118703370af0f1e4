"""Child process: the Spark side. Reads the topic in its own group, joins the weather, writes Parquet and dead letters.

Run as `python -m partita.demo.spark_job BOOTSTRAP FOLDER`. Ends when told, after computing the delay table from the
Parquet files it wrote.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from partita.demo.flights import NO_DEPARTURE, NO_TAIL_NUMBER
from partita.demo.worker import ANALYSTS, DEAD_LETTERS, FLIGHTS, WEATHER, say, until_told
from partita.spark import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FLIGHT_SCHEMA = (
    "carrier string, flight int, tailnum string, origin string, dest string, dep_time int, dep_delay int, hour int,"
    " time_hour string"
)
WEATHER_SCHEMA = "origin string, time_hour string, temp double, wind_speed double, precip double, visib double"


def weather(spark: SparkSession, bootstrap: str) -> DataFrame:
    """The weather topic as a table: one batch read."""
    from pyspark.sql.functions import broadcast, col, from_json, lit

    raw = spark.read.format("partita").options(**{"kafka.bootstrap.servers": bootstrap, "subscribe": WEATHER}).load()
    table = raw.select(from_json(col("value").cast("string"), WEATHER_SCHEMA).alias("w")).select("w.*")
    return broadcast(table.withColumn("has_weather", lit(True)).cache())


class BatchWriter:
    """Splits each micro-batch into usable flights (Parquet, one folder a batch) and dead letters (topic).

    A replayed batch overwrites its own folder, so the Parquet files hold every flight once; dead letters are at least
    once.
    """

    def __init__(self, spark: SparkSession, bootstrap: str, folder: Path) -> None:
        self.weather = weather(spark, bootstrap)
        self.bootstrap = bootstrap
        self.folder = folder

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        from pyspark.sql.functions import array, array_compact, col, concat_ws, from_json, lit, when

        reason = concat_ws(
            ", ",
            array_compact(
                array(
                    when(col("f.dep_time").isNull(), lit(NO_DEPARTURE)),
                    when(col("f.tailnum").isNull(), lit(NO_TAIL_NUMBER)),
                )
            ),
        )
        parsed = rows.withColumn("f", from_json(col("value").cast("string"), FLIGHT_SCHEMA)).withColumn(
            "reason", reason
        )
        parsed.cache()
        usable = parsed.where("reason = ''").select("f.*").join(self.weather, ["origin", "time_hour"], "left")
        usable.write.mode("overwrite").parquet(str(self.folder / f"batch={batch_id}"))
        self._dead_letters(parsed.where("reason != ''"))
        say("batch", number=batch_id, rows=parsed.count())
        parsed.unpersist()

    def _dead_letters(self, unusable: DataFrame) -> None:
        from pyspark.sql.functions import array, col, lit, struct

        header = array(struct(lit("reason").alias("key"), col("reason").cast("binary").alias("value")))
        out = unusable.select("key", "value", header.alias("headers"), lit(DEAD_LETTERS).alias("topic"))
        options = {"kafka.bootstrap.servers": self.bootstrap, "includeHeaders": "true"}
        out.write.format("partita").options(**options).mode("append").save()


def tell_results(spark: SparkSession, bootstrap: str, folder: Path) -> None:
    """Compute the delay table from the Parquet files and the dead letters from their topic."""
    usable = spark.read.parquet(str(folder / "usable"))
    cells = (
        usable.groupBy("carrier", "hour").agg({"*": "count", "dep_delay": "sum"}).toDF("carrier", "hour", "n", "sum")
    )
    cells.coalesce(1).write.mode("overwrite").parquet(str(folder / "delays"))
    rows = [[r["carrier"], r["hour"], r["n"], r["sum"]] for r in spark.read.parquet(str(folder / "delays")).collect()]
    with_weather = usable.where("has_weather").count()
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": DEAD_LETTERS, "includeHeaders": "true"}
    letters = spark.read.format("partita").options(**options).load()
    reasons = letters.selectExpr("cast(headers[0].value as string) as reason").groupBy("reason").count().collect()
    say(
        "results", delays=rows, usable=usable.count(), with_weather=with_weather,
        dead_letters={r["reason"]: r["count"] for r in reasons},
    )  # fmt: skip


def main(bootstrap: str, folder: Path) -> None:
    """Run the stream until told to stop, then report the results."""
    told = until_told()
    spark = session("partita-demo", master="local[2]")
    spark.sparkContext.setLogLevel("ERROR")
    say("spark-ready", version=spark.version)
    options = {
        "kafka.bootstrap.servers": bootstrap, "subscribe": FLIGHTS, "startingOffsets": "earliest",
        "group": ANALYSTS, "groupMode": "commit", "queryName": "delays", "maxOffsetsPerTrigger": "60000",
    }  # fmt: skip
    stream = spark.readStream.format("partita").options(**options).load()
    query = (
        stream.writeStream.foreachBatch(BatchWriter(spark, bootstrap, folder / "usable"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime="1 second")
        .start()
    )
    while not told.wait(0.2):
        if not query.isActive:
            raise SystemExit(f"the Spark query ended early: {query.exception()}")
    query.stop()
    tell_results(spark, bootstrap, folder)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
