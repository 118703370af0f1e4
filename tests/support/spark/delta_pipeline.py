"""A pipeline into a Delta table: twice with one checkpoint, then with a new one. Spark and Delta come from outside.

    python delta_pipeline.py BOOTSTRAP FOLDER JARS

Prints the values in the table as JSON.
"""

from __future__ import annotations

import json
import sys

from partita import Producer
from partita.cli.pipeline import session_of
from partita.spark.pipeline.pipeline_file import parse
from partita.spark.pipeline.runner import start

TEXT = """
name = "delta"
checkpoint = "FOLDER/CHECKPOINT"
[cluster]
bootstrap.servers = "BOOTSTRAP"
[source]
subscribe = "in"
startingOffsets = "earliest"
group = "g"
groupMode = "commit"
[[sink]]
format = "delta"
path = "FOLDER/table"
[spark]
jars = "JARS"
sql.extensions = "io.delta.sql.DeltaSparkSessionExtension"
sql.catalog.spark_catalog = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
sql.shuffle.partitions = 2
"""


def main() -> None:
    """Run the pipeline for each handful of records."""
    bootstrap, folder, jars = sys.argv[1:]
    text = TEXT.replace("BOOTSTRAP", bootstrap).replace("FOLDER", folder).replace("JARS", jars)
    spark = session_of(parse(text, "p"), "local[2]")
    for checkpoint, values in (("first", "ab"), ("first", "c"), ("second", "d")):
        with Producer(bootstrap_servers=bootstrap) as producer:
            for value in values:
                producer.send("in", value=value.encode())
        query = start(spark, parse(text.replace("CHECKPOINT", checkpoint), "p"), once=True)
        assert query.awaitTermination(240)
    rows = spark.read.format("delta").load(f"{folder}/table").collect()
    print(json.dumps(sorted(bytes(row.value).decode() for row in rows)))


if __name__ == "__main__":
    main()
