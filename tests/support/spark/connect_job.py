"""A client of Spark Connect: `python connect_job.py REMOTE BOOTSTRAP TOPIC FOLDER`; tells facts as JSON.

Nothing is registered at first: the server finds the format by itself.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

from pyspark.sql import SparkSession

from partita.spark import commit_stopped, commit_when_stopped, lag, metrics_text, register
from partita.spark.cluster.broker_link import link_to
from partita.spark.cluster.cluster_lookups import ClusterLookups


def tell(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


def eventually(holds: Callable[[], object]) -> bool:
    """Whether a fact of the server becomes true within a minute."""
    limit = time.monotonic() + 60
    while not (found := holds()) and time.monotonic() < limit:
        time.sleep(0.1)
    return bool(found)


def main(remote: str, bootstrap: str, topic: str, folder: str) -> None:
    brokers = {"kafka.bootstrap.servers": bootstrap}
    lookups = ClusterLookups(link_to({"bootstrap.servers": bootstrap}))

    def committed(group: str) -> list[int]:
        found = lookups.committed(group, [(topic, 0), (topic, 1)])
        return [found[key].offset for key in sorted(found)]

    spark = SparkSession.builder.remote(remote).getOrCreate()
    read = spark.read.format("partita").options(**brokers, subscribe=topic).load()
    tell(rows=read.count(), later=read.where("offset >= 3").count())
    read.select("key", "value").write.format("partita").options(**brokers, topic=f"{topic}-copy").mode("append").save()
    tell(copied=spark.read.format("partita").options(**brokers, subscribe=f"{topic}-copy").load().count())

    options = {
        **brokers, "subscribe": topic, "startingOffsets": "earliest", "group": "commits", "groupMode": "commit",
        "maxOffsetsPerTrigger": "4",
    }  # fmt: skip
    stream = spark.readStream.format("partita").options(**options).load()
    writer = stream.writeStream.format("noop").queryName("commits").trigger(processingTime="1 hour")
    query = writer.option("checkpointLocation", f"{folder}/commits").start()
    told = eventually(lambda: query.lastProgress is not None)
    tell(told=told, lag=lag(query)[topic], has_metrics='records_lag{query="commits"' in metrics_text(spark))
    query.stop()
    tell(before=committed("commits"))
    commit_stopped(query, options)
    tell(after=committed("commits"))

    options |= {"group": "watched"}
    stream = spark.readStream.format("partita").options(**options).load()
    writer = stream.writeStream.format("noop").trigger(processingTime="1 hour")
    query = writer.option("checkpointLocation", f"{folder}/watched").start()
    commit_when_stopped(query, options)
    eventually(lambda: query.lastProgress is not None)
    query.stop()
    tell(watched=eventually(lambda: committed("watched") == [2, 2]))

    register(spark)
    options |= {"group": "members", "groupMode": "member", "queryName": "members", "leaveOnStop": "true"}
    shared = spark.readStream.format("partita").options(**options).load()
    writer = shared.writeStream.format("parquet").option("path", f"{folder}/out").trigger(availableNow=True)
    query = writer.option("checkpointLocation", f"{folder}/members").start()
    query.awaitTermination(120)
    tell(shared=spark.read.parquet(f"{folder}/out").count(), group=committed("members"))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:5])
