"""A client of Spark Connect whose server lacks partita: `python uploaded_job.py REMOTE BOOTSTRAP ZIP FOLDER`.

Tells facts as JSON: what works before and after the zip of docs/spark-clusters.md is uploaded.
"""

from __future__ import annotations

import json
import sys

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from partita.spark import register


def main(remote: str, bootstrap: str, archive: str, folder: str) -> None:
    spark = SparkSession.builder.remote(remote).getOrCreate()
    brokers = {"kafka.bootstrap.servers": bootstrap}

    def count(topic: str) -> int:
        return spark.read.format("partita").options(**brokers, subscribe=topic).load().count()

    def run(rows: DataFrame, name: str) -> None:
        """Stream the rows into a topic of this name, and say how many got there."""
        writer = rows.writeStream.format("partita").options(**brokers, topic=name).trigger(availableNow=True)
        writer.option("checkpointLocation", f"{folder}/{name}").start().awaitTermination(120)
        facts[name] = count(name)

    facts: dict[str, object] = {}
    try:
        count("t")
    except PySparkException as error:
        facts["before"] = error.getCondition()
    spark.addArtifacts(archive, pyfile=True)
    register(spark)
    facts["read"] = count("t")
    rows = spark.read.format("partita").options(**brokers, subscribe="t").load().select("key", "value")
    rows.write.format("partita").options(**brokers, topic="copy").mode("append").save()
    facts["written"] = count("copy")

    rows.write.parquet(f"{folder}/rows")
    run(spark.readStream.schema("key binary, value binary").parquet(f"{folder}/rows"), "from-files")
    options = brokers | {"subscribe": "t", "startingOffsets": "earliest"}
    run(spark.readStream.format("partita").options(**options).load().select("value"), "from-plan")
    options["maxRecordsPerSharedTask"] = "0"  # a task for each partition: its rows do not come with the plan
    run(spark.readStream.format("partita").options(**options).load().select("value"), "from-tasks")
    print(json.dumps(facts), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:5])
