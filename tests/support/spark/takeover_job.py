"""One run of a query, by the connector or by ours: `python takeover_job.py FORM BOOTSTRAP FOLDER JARS`.

It reads topic `t` to its end into the Parquet files of FOLDER/out, and prints their rows as JSON: partition, offset.
Ours runs twice, since before Spark 4.2 a run that finds an unfinished batch ends with that batch.
"""

from __future__ import annotations

import json
import sys

from partita.spark import session


def main(form: str, bootstrap: str, folder: str, jars: str) -> None:
    """Run to the end of the topic. Only the connector's run is given jars."""
    spark = session("takeover", master="local[2]", config={"spark.jars": jars} if jars else {})
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": "t", "startingOffsets": "earliest"}
    if form == "kafka":
        options["maxOffsetsPerTrigger"] = "50"
    for _ in range(1 if form == "kafka" else 2):
        rows = spark.readStream.format(form).options(**options).load().select("partition", "offset")
        writer = rows.writeStream.format("parquet").trigger(availableNow=True)
        writer.option("checkpointLocation", f"{folder}/checkpoint").start(f"{folder}/out").awaitTermination()
    print(json.dumps([[row.partition, row.offset] for row in spark.read.parquet(f"{folder}/out").collect()]))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:5])
