"""Kill parts of a Spark stream again and again under a live producer; compare its Parquet files with the log.

    python tools/spark_kills.py --what driver --rounds 30 --seed 7

What is killed (SIGKILL) is the driver with its JVM, the process of the source, a Python worker, or the broker, at a
random moment after the first batch of each life. A query that fails is started again, as a supervisor does. At the end
each record of the log must be in the files exactly once, each acknowledged one in the log. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from kill_loop import BrokerProcess

from partita import Admin, Consumer, KafkaError, Producer, TopicPartition
from partita.demo.worker import say, watch_parent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC, GROUP, PARTITIONS = "kills", "spark-kills", 4
WHAT = ("driver", "source", "worker", "broker")
BATCH_WITHIN_S, DELIVERY_WITHIN_S = 180.0, 120.0
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a JVM that is killed before it would be worth compiling well."""


def job(bootstrap: str, folder: Path) -> None:
    """The child: stream the topic into Parquet until told to end; tell each batch, and start a failed query again."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from partita.spark import session

    told = threading.Event()
    watch_parent(told.set)
    spark = session("spark-kills", master="local[2,4]")
    while not told.is_set():
        try:
            stream(spark, bootstrap, folder, told)
        except (PySparkException, Py4JError) as error:  # a planner that is killed fails load() or start()
            say("failed", why=str(error)[-300:])
    spark.stop()


def stream(spark: SparkSession, bootstrap: str, folder: Path, told: threading.Event) -> None:
    """One life of the query; raises what ended it."""
    options = {
        "kafka.bootstrap.servers": bootstrap, "subscribe": TOPIC, "startingOffsets": "earliest", "group": GROUP,
        "groupMode": "commit", "maxOffsetsPerTrigger": "20000", "kafka.default.api.timeout.ms": "20000",
    }  # fmt: skip
    rows = spark.readStream.format("partita").options(**options).load().select("partition", "offset", "value")
    places = {"path": str(folder / "out"), "checkpointLocation": str(folder / "checkpoint")}
    writer = rows.writeStream.format("parquet").options(**places).trigger(processingTime="300 milliseconds")
    query, last = writer.start(), -1
    while query.isActive and not told.wait(0.05):
        progress: Any = query.lastProgress
        if progress and progress["batchId"] > last and progress["numInputRows"]:
            last = progress["batchId"]
            say("batch", number=last)
    if query.isActive:
        query.stop()
    query.awaitTermination()


class Job:
    """The child process, started as often as it was killed."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self._command = [sys.executable, __file__, "--job", bootstrap, str(folder)]
        self._log = folder / "job.log"
        self.batches = 0
        self.failures: list[str] = []
        self.start()

    def start(self) -> None:
        """Start it in a process group of its own."""
        environment = {**os.environ, "JDK_JAVA_OPTIONS": QUICK_START}
        with self._log.open("a") as errors:
            self.process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
                start_new_session=True, env=environment,
            )  # fmt: skip
        self._listener = threading.Thread(target=self._listen, args=(self.process.stdout,), daemon=True)
        self._listener.start()

    def _listen(self, lines: Any) -> None:
        for line in lines:
            if line.startswith("{"):
                fact = json.loads(line)
                self.batches += fact["event"] == "batch"
                if fact["event"] == "failed":
                    self.failures.append(fact["why"])

    def wait_for_batch(self) -> None:
        """Return when a batch more is done. Raises RuntimeError when none comes or the process ends."""
        before, limit = self.batches, time.monotonic() + BATCH_WITHIN_S
        while self.batches == before:
            if self.process.poll() is not None or time.monotonic() > limit:
                raise RuntimeError(f"no batch: {self.failures[-1:]} {self._log.read_text()[-2000:]}")
            time.sleep(0.02)

    def kill(self) -> None:
        """The driver and its JVM at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def end(self) -> None:
        """Tell it to end and wait; killed when it does not."""
        if self.process.poll() is None:
            assert self.process.stdin is not None
            self.process.stdin.write("end\n")
            self.process.stdin.flush()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.kill()

    def pids(self, what: str) -> list[int]:
        """The processes below the driver that are its source or its forked workers."""
        below = dict(processes_below(self.process.pid))
        if what == "source":
            return [pid for pid, (_, command) in below.items() if "python_streaming_source_runner" in command]
        return [pid for pid, (parent, _) in below.items() if "pyspark.daemon" in below.get(parent, (0, ""))[1]]


def processes_below(root: int) -> Iterator[tuple[int, tuple[int, str]]]:
    """(process id, (parent, command line)) of everything that descends from this process."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                found[int(entry.name)] = (parent, (entry / "cmdline").read_text().replace("\0", " "))
            except OSError:
                continue
    wanted = {root}
    while more := {pid for pid, (parent, _) in found.items() if parent in wanted} - wanted:
        wanted |= more
    yield from ((pid, found[pid]) for pid in wanted if pid != root and pid in found)


def produce(bootstrap: str, acknowledged: dict[tuple[int, int], bytes], over: threading.Event) -> None:
    """Send numbered values in small bursts; write down where each was acknowledged."""
    number = 0
    with Producer(bootstrap_servers=bootstrap, delivery_timeout_ms=int(DELIVERY_WITHIN_S * 1000)) as producer:
        while not over.wait(0.05):
            burst = []
            for _ in range(20):
                value = b"%d" % number
                burst.append((value, producer.send(TOPIC, value, partition=number % PARTITIONS)))
                number += 1
            for value, future in burst:
                done = future.result(DELIVERY_WITHIN_S)
                acknowledged[done.partition, done.offset] = value


def strike(what: str, job: Job, broker: BrokerProcess, random: Random) -> bool:
    """Kill one thing, and start again what has no supervisor of its own; whether there was something to kill."""
    time.sleep(random.uniform(0.0, 1.5))
    if what == "driver":
        job.kill()
        job.start()
    elif what == "broker":
        broker.end(signal.SIGKILL)
        broker.start()
    else:
        limit = time.monotonic() + 5
        while not (pids := job.pids(what)):
            if time.monotonic() > limit:
                return False
            time.sleep(0.01)
        os.kill(random.choice(sorted(pids)), signal.SIGKILL)
    return True


def wait_until_committed(bootstrap: str) -> bool:
    """Whether the group has committed the end of every partition; not when it stands still for three minutes."""
    limit, before = time.monotonic() + 180, 0
    with Admin(bootstrap_servers=bootstrap) as admin:
        while time.monotonic() < limit:
            ends = admin.list_offsets({(TOPIC, number): "latest" for number in range(PARTITIONS)})
            found = {c.partition: c.offset for c in admin.group_offsets(GROUP)}
            if all(found.get(partition) == end.offset for (_, partition), end in ends.items()):
                return True
            if sum(found.values()) > before:
                limit, before = time.monotonic() + 180, sum(found.values())
            time.sleep(0.2)
    return False


def in_the_log(bootstrap: str) -> dict[tuple[int, int], bytes]:
    """Every record of the topic."""
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False) as reader:
        reader.assign([TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)])
        return {(record.partition, record.offset): record.value or b"" for record in reader.until_end()}


def in_the_files(out: Path) -> Counter[tuple[int, int, bytes]]:
    """Every row of the files that the sink's own log lists: others are leftovers of tasks that never ended."""
    import pyarrow.parquet as pq

    found: Counter[tuple[int, int, bytes]] = Counter()
    for path in sorted(listed(out / "_spark_metadata")):
        table = pq.read_table(path, columns=["partition", "offset", "value"])
        found.update(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return found


def listed(log: Path) -> set[str]:
    """The files of the newest compacted entry of a file sink's log and of the entries after it."""
    numbers = {entry.name: int(entry.name.partition(".")[0]) for entry in log.iterdir() if entry.name[0].isdecimal()}
    compacted = max((number for name, number in numbers.items() if name.endswith(".compact")), default=-1)
    kept = [name for name, number in numbers.items() if number > compacted or name == f"{compacted}.compact"]
    lines = (line for name in kept for line in (log / name).read_text().splitlines()[1:])
    return {unquote(urlparse(json.loads(line)["path"]).path) for line in lines}


def compare(
    acknowledged: dict[tuple[int, int], bytes], log: dict[tuple[int, int], bytes], rows: Counter[tuple[int, int, bytes]]
) -> dict[str, int]:
    """What is missing, double or strange."""
    last = {partition: offset for partition, offset, _ in sorted(rows)}
    read = {(*place, value) for place, value in log.items() if place[1] <= last.get(place[0], -1)}
    return {
        "acknowledged": len(acknowledged),
        "log": len(log),
        "rows": rows.total(),
        "lost by the broker": sum(log.get(place) != value for place, value in acknowledged.items()),
        "not read yet": len(log) - len(read),
        "lost by the stream": len(read - rows.keys()),
        "duplicates": rows.total() - len(rows),
        "strangers": len(rows.keys() - read),
    }


def run(what: list[str], rounds: int, seed: int, folder: Path) -> dict[str, object]:
    """Do the rounds, taking turns over `what`; return the figures."""
    random, acknowledged, over = Random(seed), dict[tuple[int, int], bytes](), threading.Event()
    broker = BrokerProcess(folder / "data", "os")
    broker.start()
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topic(TOPIC, PARTITIONS)
    producer = threading.Thread(target=produce, args=(broker.bootstrap, acknowledged, over))
    producer.start()
    job, kills = Job(broker.bootstrap, folder), Counter[str]()
    try:
        for number in range(rounds):
            job.wait_for_batch()
            victim = what[number % len(what)]
            kills[victim] += strike(victim, job, broker, random)
            print(
                f"round {number + 1} of {rounds}: {victim}, {job.batches} batches so far", file=sys.stderr, flush=True
            )
        job.wait_for_batch()
        over.set()
        producer.join()
        is_committed = wait_until_committed(broker.bootstrap)
        job.end()
        figures = compare(acknowledged, in_the_log(broker.bootstrap), in_the_files(folder / "out"))
    finally:
        over.set()
        if job.process.poll() is None:
            job.kill()
        broker.end(signal.SIGTERM)
        producer.join()
    failures = len(job.failures)
    return {"seed": seed, "kills": kills, "batches": job.batches, "queries failed": failures, **figures} | {
        "group is at the end": is_committed
    }


def main() -> int:
    """Run, print, and return 1 when a promise was broken."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--what", choices=WHAT, action="append", help="may be given again; all of them by default")
    parser.add_argument("--rounds", type=int, default=8, help="how many kills, taking turns")
    parser.add_argument("--seed", type=int, default=7, help="of the moments and the choice of workers")
    parser.add_argument("--job", nargs=2, metavar=("BOOTSTRAP", "FOLDER"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.job:
        job(given.job[0], Path(given.job[1]))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        try:
            figures = run(given.what or list(WHAT), given.rounds, given.seed, Path(folder))
        except (RuntimeError, KafkaError) as error:
            print(error, file=sys.stderr)
            return 1
    print(json.dumps(figures))
    wrong = ("lost by the broker", "lost by the stream", "duplicates", "strangers")
    return int(any(figures[name] for name in wrong) or not figures["group is at the end"])


if __name__ == "__main__":
    sys.exit(main())
