"""The core programs of `format("partita")` on whatever Spark is installed: batch, filter, sink, streams, restart.

    python core_programs.py BOOTSTRAP FOLDER

Reads topic `in` of three partitions, writes `out` and `copy`. Prints one JSON object of what was seen.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from io import StringIO
from typing import Any

import pyspark

from partita import Producer
from partita.spark import session
from partita.spark.spark_api import HAS_FILTERS, HAS_LIMITS

RECORDS, LIMIT, WAIT_S = 90, 12, 240


def main() -> None:
    """Run the programs one after the other."""
    bootstrap, folder = sys.argv[1:]
    java = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xverify:none"  # for a short job
    settings = {"spark.sql.shuffle.partitions": "2", "spark.driver.extraJavaOptions": java}
    spark = session("core", master="local[2]", config=settings)
    produced = 0
    said = StringIO()
    logging.getLogger("partita.spark").addHandler(logging.StreamHandler(said))

    def produce(count: int) -> None:
        nonlocal produced
        with Producer(bootstrap_servers=bootstrap) as producer:
            for number in range(produced, produced + count):
                producer.send("in", value=b"%d" % number, partition=number % 3)
        produced += count

    def read(topic: str) -> Any:
        return spark.read.format("partita").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)

    def copied() -> list[int]:
        return sorted(int(row.v) for row in read("copy").load().selectExpr("cast(value as string) v").collect())

    def copy(**options: str) -> Any:
        rows = spark.readStream.format("partita").option("kafka.bootstrap.servers", bootstrap)
        rows = rows.options(subscribe="in", startingOffsets="earliest", group="g", groupMode="commit", **options)
        out = rows.load().select("value").writeStream.format("partita").option("topic", "copy")
        return out.option("kafka.bootstrap.servers", bootstrap).option("checkpointLocation", folder)

    def run_until(query: Any, holds: Callable[[], bool]) -> list[int]:
        """Rows of each batch, once it holds; an error of the query is raised."""
        for _ in range(WAIT_S * 2):
            if holds():
                break
            query.awaitTermination(0.5)
        if query.isActive:
            query.processAllAvailable()  # the last batch may be visible before it is committed
        sizes = [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]
        query.stop()
        return sizes

    produce(RECORDS)
    found: dict[str, Any] = {"spark": pyspark.__version__, "batch": read("in").load().count()}
    found["filtered"] = read("in").load().where("partition = 1 and offset >= 10").count()
    out = read("in").load().select("key", "value").write.mode("append").format("partita")
    out.options(topic="out", **{"kafka.bootstrap.servers": bootstrap}).save()
    found["written"] = read("out").load().count()
    query = copy().trigger(availableNow=True).start()
    assert query.awaitTermination(WAIT_S)
    found["available_now"] = copied() == list(range(RECORDS))
    limit = {"maxOffsetsPerTrigger": str(LIMIT)}
    produce(60)
    found["limited"] = run_until(copy(**limit).start(), lambda: len(copied()) >= produced)
    query = copy(**limit).trigger(availableNow=True).start()
    assert query.awaitTermination(WAIT_S)
    found["limits with Trigger.AvailableNow"] = "with Trigger.AvailableNow needs Spark 4.2" not in said.getvalue()
    produce(30)
    found["after_a_restart"] = run_until(copy(**limit).start(), lambda: len(copied()) >= produced)
    found["filters"], found["lag in progress"] = HAS_FILTERS, HAS_LIMITS
    found["each_once"] = copied() == list(range(produced))
    spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
