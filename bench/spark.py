"""2 million 100-byte records from six partitions through Spark into Parquet, beside a broker on the same cores.

The peer is Spark's own Kafka connector on the same broker. `python bench/spark.py FORMAT BOOTSTRAP JARS` is one reader.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# A folder of scripts must not hide the package of the same name from pyspark's own imports.
BENCH = Path(__file__).parent
sys.path.append(sys.path.pop(0))

from harness import left_out, partita, report  # noqa: E402

RECORDS = int(os.environ.get("BENCH_RECORDS", "2000000"))
PARTITIONS, BATCH = 6, 5000
TOPIC = "bench"
CONNECTOR = "4.2.0"
ROUNDS = 3
JARS = {
    "org.apache.spark:spark-sql-kafka-0-10_2.13": CONNECTOR,
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13": "4.0.0",
    "org.apache.kafka:kafka-clients": "3.9.2",
    "org.apache.commons:commons-pool2": "2.13.1",
}
"""All that the connector needs beside Spark itself, in the newest versions that could be had."""
DEPENDENCY = """<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>
<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>"""
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>bench</groupId><artifactId>bench</artifactId><version>1</version>
<dependencies>{dependencies}</dependencies></project>"""


async def fill(bootstrap: str) -> None:
    """Records with a short key and 100 bytes that do not compress."""
    from partita.net.cluster import Cluster
    from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
    from partita.records.batch import build_batch

    now_ms = int(time.time() * 1000)
    records = [(now_ms + i, b"key%06d" % i, os.urandom(100), ()) for i in range(BATCH)]
    batch = build_batch(records)
    async with Cluster(bootstrap) as cluster:
        await cluster.retry(lambda: cluster.leader_for(TOPIC, 0, create=True))
        for i in range(RECORDS // BATCH):
            data = [PartitionProduceData(index=i % PARTITIONS, records=batch)]
            topic = [TopicProduceData(name=TOPIC, partition_data=data)]
            request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=topic)
            answer = await cluster.request(None, request, max_version=12)
            assert not answer.responses[0].partition_responses[0].error_code, answer


def read(form: str, bootstrap: str, jars: str) -> None:
    """Write the topic to Parquet a few times; print the seconds of the best round."""
    from partita.spark import session

    config = {"spark.sql.shuffle.partitions": "2"} | ({"spark.jars": jars} if jars else {})
    spark = session("bench", master="local[2]", config=config)
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": TOPIC}
    table = spark.read.format(form).options(**options).load()
    seconds = []
    for _ in range(ROUNDS):
        folder = tempfile.mkdtemp()
        started = time.perf_counter()
        table.write.mode("overwrite").parquet(folder)
        seconds.append(time.perf_counter() - started)
        rows = spark.read.parquet(folder).count()
        assert rows == RECORDS // BATCH * BATCH, rows
        shutil.rmtree(folder)
    spark.stop()
    print(json.dumps(min(seconds)))


def connector_jars() -> str | None:
    """The jars of Spark's own connector, by Maven into the user's cache; None (reported) when they cannot be had."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "partita" / f"connector-{CONNECTOR}"
    if not list(cache.glob("spark-sql-kafka*.jar")):
        maven = shutil.which("mvn")
        if maven is None:
            left_out("spark", "Spark's own connector", "no Maven")
            return None
        with tempfile.TemporaryDirectory() as folder:
            pom = Path(folder, "pom.xml")
            pom.write_text(POM.format(dependencies="".join(map(_dependency, JARS.items()))))
            goal = ["dependency:copy-dependencies", f"-DoutputDirectory={cache}"]
            command = [maven, "-q", "-B", "-U", "-f", str(pom), *goal]
            done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            left_out("spark", "Spark's own connector", "Maven could not fetch it")
            return None
    return ",".join(str(jar) for jar in sorted(cache.glob("*.jar")))


def _dependency(jar: tuple[str, str]) -> str:
    group, _, name = jar[0].partition(":")
    return DEPENDENCY.format(group=group, name=name, version=jar[1])


def main() -> None:
    jars = connector_jars()
    with partita("--set", f"num.partitions={PARTITIONS}") as server:
        asyncio.run(fill(server.bootstrap))
        for form, extra in (("partita", ""), ("kafka", jars)):
            if extra is None:
                continue
            command = [sys.executable, __file__, form, server.bootstrap, extra]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                left_out("spark", form, done.stderr.strip().splitlines()[-1][:300])
                continue
            seconds = float(done.stdout.strip().splitlines()[-1])
            report("spark", format=form, rows=RECORDS, **{"rows/s to parquet": RECORDS / seconds})


if __name__ == "__main__":
    if len(sys.argv) == 4:
        read(*sys.argv[1:])
    else:
        main()
