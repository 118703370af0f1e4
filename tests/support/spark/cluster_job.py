"""A driver of its own for a Spark cluster: `python cluster_job.py MASTER BOOTSTRAP TOPIC FOLDER`; tells facts as JSON.

It reads the topic in a batch, writes it to another, then streams it in small batches, telling each.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from partita.spark import session
from partita.spark.executor_probe import probe

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


TASKS = 30
"""So many that a worker can be killed in the middle of them."""


def tell(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


def main(master: str, bootstrap: str, topic: str, folder: str) -> None:
    config = {
        "spark.executor.memory": "512m", "spark.task.maxFailures": "8", "spark.sql.shuffle.partitions": "2",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0", "spark.cores.max": "2",
    }  # fmt: skip
    spark = session("cluster-job", master=master, config=config)
    brokers = {"kafka.bootstrap.servers": bootstrap}
    host, _, port = bootstrap.partition(":")
    reports = probe(spark, [(host, int(port)), (host, 1)])
    tell(probe=[{"fault": r.fault, "packages": dict(r.packages)} for r in reports])
    read = spark.read.format("partita").options(**brokers, subscribe=topic, minPartitions="8").load()
    tell(rows=read.count(), tasks=read.rdd.getNumPartitions())
    tell(writing=True)
    pieces = spark.read.format("partita").options(**brokers, subscribe=topic, minPartitions=str(TASKS)).load()
    pieces.select("key", "value").write.format("partita").options(**brokers, topic=f"{topic}-copy").mode(
        "append"
    ).save()
    copy = spark.read.format("partita").options(**brokers, subscribe=f"{topic}-copy").load()
    tell(copied=copy.count(), different=copy.select("value").distinct().count())

    def store(rows: DataFrame, batch: int) -> None:
        rows.select("partition", "offset").write.mode("overwrite").parquet(f"{folder}/out/batch={batch}")
        tell(batch=batch)

    options = {
        **brokers, "subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "400",
        "group": f"{topic}-group", "groupMode": "commit",
    }  # fmt: skip
    stream = spark.readStream.format("partita").options(**options).load()
    writer = stream.writeStream.foreachBatch(store).option("checkpointLocation", f"{folder}/checkpoint")
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    found = spark.read.parquet(f"{folder}/out")
    tell(streamed=found.count(), distinct=found.select("partition", "offset").distinct().count())
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:5])
