"""`format("partita")` and Spark's own Kafka connector in one session, in turns, beside a broker on the same cores.

Each case is measured by the wall clock and by the CPU time of the session: driver, JVM, Python workers. `ratio` above 1
means that Partita does more in the same time. `python bench/spark.py BOOTSTRAP JARS CASES` is the session;
BENCH_RECORDS, BENCH_ROUNDS and BENCH_CASES (count,noop,...) make it shorter, BENCH_MASTER runs it on a cluster.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

# A folder of scripts must not hide the package of the same name from pyspark's own imports.
BENCH = Path(__file__).parent
sys.path.append(sys.path.pop(0))

from harness import left_out, partita, report  # noqa: E402

RECORDS = int(os.environ.get("BENCH_RECORDS", "2000000"))
PARTITIONS, BATCH = 6, 5000
TOPIC = "bench"
CONNECTOR = "4.2.0"
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
WRITTEN = RECORDS // 4
FORMS = ("partita", "kafka")
SMALL, SMALL_BATCH = 4_400, 200
DECODED = RECORDS // 2
DECODERS_REPEAT = 50
SCHEMAS = os.environ.setdefault("BENCH_SCHEMAS", tempfile.mkdtemp(prefix="partita-bench-"))
COLUMNS = (
    "flight int, carrier string, origin string, tailnum string, dep_delay int, distance double, time timestamp, "
    "cancelled boolean"
)
AVRO = {"int": "int", "double": "double", "boolean": "boolean"}
FLIGHT = {
    "type": "record",
    "name": "Flight",
    "fields": [
        {"name": name, "type": AVRO.get(kind, "string")}
        for name, kind in (part.split() for part in COLUMNS.split(", "))
    ],
}
LATE_RECORDS, LATE_EVERY_S = 150, 0.02
JARS = {
    "org.apache.spark:spark-sql-kafka-0-10_2.13": None,
    "org.apache.spark:spark-avro_2.13": None,
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13": "4.0.0",
    "org.apache.kafka:kafka-clients": "3.9.2",
    "org.apache.commons:commons-pool2": "2.13.1",
}
"""All that the connector needs beside Spark itself, in its own release or the newest that could be had."""
DEPENDENCY = """<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>
<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>"""
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>bench</groupId><artifactId>bench</artifactId><version>1</version>
<dependencies>{dependencies}</dependencies></project>"""


def flight(number: int) -> dict[str, Any]:
    """Eight fields, in JSON about 150 bytes."""
    return {
        "flight": number % 9999, "carrier": ("UA", "AA", "DL", "B6")[number % 4], "origin": ("EWR", "JFK")[number % 2],
        "tailnum": f"N{number % 99999:05}", "dep_delay": number % 320 - 20, "distance": number % 3000 + 0.25,
        "time": f"2013-01-{number % 28 + 1:02}T{number % 24:02}:00:00Z", "cancelled": number % 10 == 0,
    }  # fmt: skip


def encoded() -> dict[str, list[bytes]]:
    """Flights by topic: as JSON, as CSV, and as Avro with the framing of the registry in the folder SCHEMAS."""
    from partita.registry import AvroSerializer, FolderRegistry

    serializer = AvroSerializer(FolderRegistry(SCHEMAS), FLIGHT)
    flights = [flight(number) for number in range(BATCH)]
    framed = [serializer.serialize(f"{TOPIC}-avro", (), row) for row in flights]
    texts = [json.dumps(row, separators=(",", ":")).encode() for row in flights]
    lines = [",".join(map(str, row.values())).encode() for row in flights]
    avro = [raw for raw in framed if raw is not None]
    return {f"{TOPIC}-json": texts, f"{TOPIC}-csv": lines, f"{TOPIC}-avro": avro}


def decoders() -> dict[str, float]:
    """Rows per CPU-second from bytes to Arrow without Spark, all eight columns."""
    import pyarrow as pa

    from partita.records.typed.avro_schemas import AvroSchema
    from partita.records.typed.ddl import columns_of
    from partita.records.typed.decoding import AvroDecoder, CsvDecoder, Decoder, JsonDecoder

    avro, columns = AvroSchema(json.dumps(FLIGHT)), columns_of(COLUMNS)
    forms: tuple[Decoder, ...] = (
        JsonDecoder(columns),
        CsvDecoder(columns),
        AvroDecoder(avro.columns(), lambda _: avro),
    )
    found: dict[str, float] = {}
    for decoder, (topic, values) in zip(forms, encoded().items(), strict=True):
        column = pa.array(values, pa.binary())
        costs = []
        for _ in range(ROUNDS + 1):
            used = time.process_time()
            for _ in range(DECODERS_REPEAT):
                assert not decoder.decode(column).faults
            costs.append(time.process_time() - used)
        found[f"{topic.rpartition('-')[2]} rows/CPU-s"] = round(BATCH * DECODERS_REPEAT / statistics.median(costs))
    return found


async def fill(bootstrap: str, topic: str, values: list[bytes], count: int) -> None:
    """A batch of records with short keys, again and again."""
    from partita.net.cluster import Cluster
    from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
    from partita.records.batch import build_batch

    now_ms = int(time.time() * 1000)
    records = [(now_ms + i, b"key%06d" % i, value, ()) for i, value in enumerate(values)]
    batch = build_batch(records)
    async with Cluster(bootstrap) as cluster:
        await cluster.retry(lambda: cluster.leader_for(topic, 0, create=True))
        for i in range(count // BATCH):
            data = [PartitionProduceData(index=i % PARTITIONS, records=batch)]
            named = [TopicProduceData(name=topic, partition_data=data)]
            request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=named)
            answer = await cluster.request(None, request, max_version=12)
            assert not answer.responses[0].partition_responses[0].error_code, answer


def delays() -> list[tuple[str, int]]:
    """What the queries over flights have to find."""
    sums: dict[str, int] = {}
    for row in map(flight, range(BATCH)):
        if row["dep_delay"] > 60:
            sums[row["carrier"]] = sums.get(row["carrier"], 0) + row["dep_delay"]
    return sorted((carrier, total * (DECODED // BATCH)) for carrier, total in sums.items())


class Session:
    """One Spark session that both formats use, and the cases measured in it."""

    def __init__(self, bootstrap: str, jars: str) -> None:
        from partita.spark import session

        config = {"spark.sql.shuffle.partitions": "2"} | ({"spark.jars": jars} if jars else {})
        self.spark = session("bench", master=os.environ.get("BENCH_MASTER", "local[2]"), config=config)
        self.brokers = {"kafka.bootstrap.servers": bootstrap}
        self.bootstrap = bootstrap
        self.rows = self.spark.range(WRITTEN).selectExpr("cast(id as string) key", "repeat('x', 100) value").cache()
        self.rows.count()

    def table(self, form: str) -> Any:
        """The topic as a batch."""
        return self.spark.read.format(form).options(**self.brokers, subscribe=TOPIC).load()

    def count(self, form: str) -> float:
        """Rows counted."""
        return float(self.table(form).count())

    def noop(self, form: str) -> float:
        """Rows read with all their columns."""
        self.table(form).write.format("noop").mode("overwrite").save()
        return RECORDS

    def parquet(self, form: str) -> float:
        """Rows stored."""
        folder = tempfile.mkdtemp()
        self.table(form).write.mode("overwrite").parquet(folder)
        shutil.rmtree(folder)
        return RECORDS

    def json(self, form: str) -> float:
        """JSON decoded, filtered and summed."""
        return self._delays(form, "json", lambda value: f"from_json(string({value}), '{COLUMNS}')")

    def csv(self, form: str) -> float:
        """CSV decoded, filtered and summed."""
        return self._delays(form, "csv", lambda value: f"from_csv(string({value}), '{COLUMNS}')")

    def avro(self, form: str) -> float:
        """Avro with the framing of a registry, which Spark knows nothing of: it leaves out the first five bytes."""
        schema = json.dumps(FLIGHT)
        return self._delays(form, "avro", lambda value: f"from_avro(substring({value}, 6), '{schema}')")

    def _delays(self, form: str, kind: str, parsed: Callable[[str], str]) -> float:
        reader = self.spark.read.format(form).options(**self.brokers, subscribe=f"{TOPIC}-{kind}")
        if form == "partita":
            # The columns of CSV are found by their order.
            schema = COLUMNS if kind == "csv" else "carrier string, dep_delay int"
            how = {"valueFormat": kind, "valueSchema": schema, "columns": "offset"}
            flights = reader.options(**how, **({"registry": SCHEMAS} if kind == "avro" else {})).load()
        else:
            flights = reader.load().selectExpr(f"{parsed('value')} as flight").select("flight.*")
        rows = flights.where("dep_delay > 60").groupBy("carrier").sum("dep_delay").collect()
        assert sorted(map(tuple, rows)) == delays(), rows
        return DECODED

    def write(self, form: str, **options: str) -> float:
        """Rows written."""
        writer = self.rows.write.format(form).options(**self.brokers, topic=f"{TOPIC}-out", **options)
        writer.mode("append").save()
        return WRITTEN

    def write_lz4(self, form: str) -> float:
        """Rows written in large compressed batches."""
        tuned = {"kafka.linger.ms": "10", "kafka.batch.size": "262144", "kafka.compression.type": "lz4"}
        return self.write(form, **tuned)

    def write_floor(self, form: str) -> float:
        """As `write_lz4`, but Partita's rows go to a Python sink that drops them: what Spark's own part of it takes."""
        if form == "kafka":
            return self.write_lz4(form)
        self.spark.dataSource.register(dropping())
        self.rows.write.format("dropped").mode("append").save()
        return WRITTEN

    def stream(self, form: str) -> float:
        """Rows of a stream with a quarter of the topic in a batch."""
        self._run(form, TOPIC, maxOffsetsPerTrigger=str(RECORDS // 4))
        return RECORDS

    def micro(self, form: str) -> float:
        """Micro-batches of 200 rows per second, by the median of what Spark says that one took."""
        progress = self._run(form, f"{TOPIC}-small", maxOffsetsPerTrigger=str(SMALL_BATCH))
        took_ms = [entry["durationMs"]["triggerExecution"] for entry in progress if entry["numInputRows"]]
        return float(1000 / statistics.median(took_ms[2:]))

    def latency(self, form: str) -> float:
        """1 divided by the median seconds from a record's timestamp to the start of its batch."""
        from partita import Producer

        waited: list[float] = []

        def begin(rows: Any, _batch: int) -> None:
            now = time.time()
            waited.extend(now - row[0] for row in rows.selectExpr("cast(timestamp as double)").collect())

        stream = self.spark.readStream.format(form).options(**self.brokers, subscribe=f"{TOPIC}-late").load()
        query = stream.writeStream.foreachBatch(begin).option("checkpointLocation", tempfile.mkdtemp()).start()
        with Producer(bootstrap_servers=self.bootstrap) as producer:
            for i in range(LATE_RECORDS):
                producer.send(f"{TOPIC}-late", b"%d" % i)
                time.sleep(LATE_EVERY_S)
        query.processAllAvailable()
        query.stop()
        return 1.0 / statistics.median(waited[len(waited) // 3 :])

    def _run(self, form: str, topic: str, **options: str) -> list[Any]:
        source = {**self.brokers, "subscribe": topic, "startingOffsets": "earliest", **options}
        folder = tempfile.mkdtemp()
        writer = self.spark.readStream.format(form).options(**source).load().writeStream.format("noop")
        query = writer.option("checkpointLocation", folder).trigger(availableNow=True).start()
        query.awaitTermination()
        shutil.rmtree(folder)
        return list(query.recentProgress)


def dropping() -> Any:
    """A data source whose sink reads its Arrow batches and keeps nothing."""
    from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

    class Sink(DataSourceArrowWriter):
        def write(self, iterator: Any) -> WriterCommitMessage:
            for _ in iterator:
                pass
            return WriterCommitMessage()

    class Dropped(DataSource):
        @classmethod
        def name(cls) -> str:
            return "dropped"

        def writer(self, schema: Any, overwrite: bool) -> Sink:
            return Sink()

    return Dropped


CASES = (
    "count",
    "noop",
    "parquet",
    "json",
    "csv",
    "avro",
    "write",
    "write_lz4",
    "write_floor",
    "stream",
    "micro",
    "latency",
)
RATED = {"micro": "batches", "latency": "1/s"}


def cpu_s() -> float:
    """CPU seconds so far of this process and all below it, those that ended included."""
    below: dict[int, tuple[int, int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            below[int(entry.name)] = (int(fields[1]), sum(map(int, fields[11:15])))
    wanted = {os.getpid()}
    while more := {pid for pid, (parent, _) in below.items() if parent in wanted} - wanted:
        wanted |= more
    return sum(below[pid][1] for pid in wanted if pid in below) / os.sysconf("SC_CLK_TCK")


def measure(case: Callable[[str], float], form: str) -> tuple[float, float, float]:
    """What the case did, wall seconds and CPU seconds."""
    started, used = time.perf_counter(), cpu_s()
    done = case(form)
    return done, time.perf_counter() - started, cpu_s() - used


def take_turns(bootstrap: str, jars: str, cases: list[str]) -> None:
    """Measure all cases, each format in turn and one round to warm up; print one JSON line for each."""
    session, forms = Session(bootstrap, jars), FORMS if jars else FORMS[:1]
    for name in cases:
        case = getattr(session, name)
        found: dict[str, list[tuple[float, float, float]]] = {form: [] for form in forms}
        for number in range(ROUNDS + 1):
            for form in forms if number % 2 else forms[::-1]:
                figures = measure(case, form)
                if number:
                    found[form].append(figures)
        if name in RATED:
            rates = {form: statistics.median(done for done, _, _ in some) for form, some in found.items()}
        else:
            rates = {form: statistics.median(done / wall for done, wall, _ in some) for form, some in found.items()}
        per_cpu = {form: statistics.median(done / cpu for done, _, cpu in some) for form, some in found.items()}
        best = {form: max(done / wall for done, wall, _ in some) for form, some in found.items()}
        line = {"case": name, **{f"{form} {RATED.get(name, 'rows')}/s": round(rate, 1) for form, rate in rates.items()}}
        if name not in RATED:
            line |= {f"{form} best rows/s": round(rate) for form, rate in best.items()}
            line |= {f"{form} rows/CPU-s": round(rate) for form, rate in per_cpu.items()}
        if len(forms) == 2:
            line["ratio"] = round(rates["partita"] / rates["kafka"], 2)
            if name not in RATED:
                line["ratio of best"] = round(best["partita"] / best["kafka"], 2)
                line["ratio per CPU-s"] = round(per_cpu["partita"] / per_cpu["kafka"], 2)
        print(json.dumps(line), flush=True)
    session.spark.stop()


def connector_jars(release: str = CONNECTOR) -> str | None:
    """The jars of Spark's own connector, by Maven into the user's cache; None (reported) when they cannot be had."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "partita" / f"connector-{release}"
    if not list(cache.glob("spark-avro*.jar")):
        maven = shutil.which("mvn")
        if maven is None:
            left_out("spark", "Spark's own connector", "no Maven")
            return None
        with tempfile.TemporaryDirectory() as folder:
            pom = Path(folder, "pom.xml")
            wanted = "".join(_dependency(name, version or release) for name, version in JARS.items())
            pom.write_text(POM.format(dependencies=wanted))
            goal = ["dependency:copy-dependencies", f"-DoutputDirectory={cache}"]
            command = [maven, "-q", "-B", "-U", "-f", str(pom), *goal]
            done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            left_out("spark", "Spark's own connector", "Maven could not fetch it")
            return None
    return ",".join(str(jar) for jar in sorted(cache.glob("*.jar")))


def _dependency(jar: str, version: str) -> str:
    group, _, name = jar.partition(":")
    return DEPENDENCY.format(group=group, name=name, version=version)


async def prepare(bootstrap: str) -> None:
    """The topics and what is in them."""
    from partita import AsyncAdmin, AsyncProducer

    async with AsyncAdmin(bootstrap_servers=bootstrap) as admin:
        for topic, partitions in ((f"{TOPIC}-out", 4), (f"{TOPIC}-small", 2), (f"{TOPIC}-late", 1)):
            await admin.create_topic(topic, partitions=partitions)
    async with AsyncProducer(bootstrap_servers=bootstrap) as producer:
        for i in range(SMALL):
            await producer.send(f"{TOPIC}-small", b"%d" % i)
    await fill(bootstrap, TOPIC, [os.urandom(100) for _ in range(BATCH)], RECORDS)
    for topic, values in encoded().items():
        await fill(bootstrap, topic, values, DECODED)


def main() -> None:
    report("spark", case="decoders alone", **decoders())
    jars = connector_jars() or ""
    cases = os.environ.get("BENCH_CASES", ",".join(CASES))
    with partita("--set", f"num.partitions={PARTITIONS}") as server:
        asyncio.run(prepare(server.bootstrap))
        command = [sys.executable, __file__, server.bootstrap, jars, cases]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as session:
            assert session.stdout is not None
            assert session.stderr is not None
            said: list[str] = []
            Thread(target=lambda: said.extend(session.stderr or ()), daemon=True).start()
            for line in session.stdout:
                if line.startswith("{"):
                    report("spark", **json.loads(line))
        if session.returncode:
            left_out("spark", "the rest", "".join(said[-5:])[:600])


if __name__ == "__main__":
    if len(sys.argv) == 4:
        take_turns(sys.argv[1], sys.argv[2], sys.argv[3].split(","))
    else:
        main()
