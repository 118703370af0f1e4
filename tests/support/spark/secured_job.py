"""A driver of its own that reads and writes a secured cluster: `python secured_job.py FOLDER`; tells facts as JSON.

FOLDER holds `options.json`: the options as a user writes them, with the password. Everything that Spark prints and
keeps goes to FOLDER, where a test looks for the password.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from partita.spark import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EXPLAIN_MODES = ("simple", "extended", "codegen", "cost", "formatted")


def tell(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


def explained(table: DataFrame) -> int:
    """Print every plan; return how many."""
    for mode in EXPLAIN_MODES:
        table.explain(mode=mode)
    return len(EXPLAIN_MODES)


def said(table: DataFrame) -> str:
    """The message of the error that this read ends with."""
    try:
        table.collect()
    except Exception as error:
        print(error, flush=True)
        return str(error)
    return ""


def stream(spark: SparkSession, folder: Path, name: str, **options: str) -> None:
    """One topic to another until there is no more; tells the progress, and prints the plan."""
    table = spark.readStream.format("partita").options(startingOffsets="earliest", **options).load()
    sink = {key: value for key, value in options.items() if key.startswith("kafka.")}
    writer = table.select("value").writeStream.format("partita").options(topic="copied", **sink).queryName(name)
    query = writer.option("checkpointLocation", str(folder / f"checkpoint-{name}")).trigger(availableNow=True).start()
    query.awaitTermination()
    query.explain(True)
    tell(streamed=name, progress=[json.loads(p.json) for p in query.recentProgress], ended=str(query.exception()))


def main(folder: Path) -> None:
    given: dict[str, str] = json.loads((folder / "options.json").read_text())
    (folder / "events").mkdir()
    config = {
        "spark.eventLog.enabled": "true", "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xverify:none",
    }  # fmt: skip
    spark = session("secured-job", master="local[2]", config=config)
    spark.sparkContext.setLogLevel("INFO")
    read = spark.read.format("partita").options(subscribe="in", **given).load()
    tell(read=sorted(bytes(row.value).decode() for row in read.select("value").collect()), plans=explained(read))
    read.select("value").write.format("partita").options(topic="copied", **given).mode("append").save()
    stream(spark, folder, "allowed", subscribe="in", group="mine", groupMode="commit", **given)
    stream(spark, folder, "without-group", subscribe="in", group="theirs", groupMode="commit", **given)
    tell(copied=spark.read.format("partita").options(subscribe="copied", **given).load().count())
    wrong = given | {"kafka.sasl.jaas.config": given["kafka.sasl.jaas.config"].replace("password='", "password='not-")}
    tell(wrong=said(spark.read.format("partita").options(subscribe="in", **wrong).load()))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
