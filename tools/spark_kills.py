"""Kill parts of a Spark stream again and again under a live producer; compare its Parquet files with the log.

    python tools/spark_kills.py --what driver --rounds 30 --seed 7 --on kafka

What is killed (SIGKILL) is the driver with its JVM, the process of the source, a Python worker, the broker, or an
executor, at a random moment after the first batch of each life. A query that fails is started again, as a supervisor
does. At the end each record of the log must be in the files exactly once, each acknowledged one in the log. With
`--group-mode member` the query shares its group with a plain consumer: each record must have reached one of them, and
only records of a batch that was under way at a kill, or that the consumer failed to commit, may have been read twice.
With `share` the query reads from a share group: nothing may be lost, and records may come again. `--cluster` runs the
query on a standalone cluster of two workers, whose executors can be killed; `--connect` over a Spark Connect server,
which is the driver that is killed then.

Prints one JSON line. A round that found nothing to kill makes the run fail, as a broken promise does.
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlparse

from kill_loop import BrokerProcess

from partita import Admin, Consumer, ConsumerRecord, KafkaError, Producer, TopicPartition
from partita.demo.worker import say, watch_parent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
TOPIC, GROUP, PARTITIONS = "kills", "spark-kills", 4
WHAT = ("driver", "source", "worker", "broker", "executor")
BATCH_WITHIN_S, DELIVERY_WITHIN_S, VICTIM_WITHIN_S = 180.0, 120.0, 30.0
LOOKS = 400
"""How often workers are looked at before the list of them is made again."""
SESSION = {"kafka.session.timeout.ms": "6000", "kafka.heartbeat.interval.ms": "500"}
"""Of the query in member mode: shorter than the start of a driver, so that the partitions of a killed one move."""
OFFSETS = {"startingOffsets": "earliest", "maxRecordsPerSharedTask": "0", "queryName": "kills"}
SHARE = {"group.type": "share", "minPartitions": "4"}
"""Of the query in the other modes, and in share mode."""
Row = tuple[int, int, bytes]
"""Partition, offset and value."""
CONFIG = {
    "spark.sql.streaming.minBatchesToRetain": "100000", "spark.executor.memory": "512m", "spark.task.maxFailures": "9",
}  # fmt: skip
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a JVM that is killed before it would be worth compiling well."""


@dataclass(slots=True)
class Shared:
    """What the plain consumer of the group has read, one entry for each time; `uncommitted` failed to be committed."""

    read: Counter[Row] = field(default_factory=Counter)
    uncommitted: set[Row] = field(default_factory=set)


def job(bootstrap: str, folder: Path, group_mode: str, master: str, *, over_connect: bool) -> None:
    """The child: stream the topic into Parquet until told to end; tell each batch, and start a failed query again."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from support.spark.standalone import session_at

    told = threading.Event()
    watch_parent(told.set)
    with session_at(master, folder, CONFIG, over_connect=over_connect) as spark:
        while not told.is_set():
            try:
                stream(spark, bootstrap, folder, group_mode, told)
            except (PySparkException, Py4JError) as error:  # a planner that is killed fails load() or start()
                say("failed", why=str(error)[-300:])


def stream(spark: SparkSession, bootstrap: str, folder: Path, group_mode: str, told: threading.Event) -> None:
    """One life of the query; raises what ended it. A task for each partition: a single small one needs no worker."""
    options = {
        "kafka.bootstrap.servers": bootstrap, "subscribe": TOPIC, "group": GROUP, "maxOffsetsPerTrigger": "20000",
        "kafka.default.api.timeout.ms": "20000", **(SHARE if group_mode == "share" else OFFSETS),
        **({"groupMode": group_mode} if group_mode != "share" else {}),
        **(SESSION if group_mode == "member" else {}),
    }  # fmt: skip
    rows = spark.readStream.format("partita").options(**options).load().select("partition", "offset", "value")
    places = {"path": str(folder / "out"), "checkpointLocation": str(folder / "checkpoint")}
    writer = rows.writeStream.format("parquet").options(**places).trigger(processingTime="300 milliseconds")
    query, last = writer.start(), -1
    while query.isActive and not told.wait(0.05):
        progress: Any = query.lastProgress
        if progress and progress["batchId"] > last and progress.numInputRows:  # the key lacks a value over Connect
            last = progress["batchId"]
            say("batch", number=last)
    if query.isActive:
        query.stop()
    query.awaitTermination()


@dataclass(frozen=True, slots=True)
class Place:
    """Where the query runs: the master of its session, and whether that is behind a Connect server."""

    master: str
    over_connect: bool = False
    executors: Callable[[], list[int]] = list
    """The process ids of the executors of a cluster."""

    @property
    def is_cluster(self) -> bool:
        """Whether there are executors beside the driver."""
        return not self.master.startswith("local")

    @property
    def words(self) -> list[str]:
        """The place, for the command line of a job."""
        return [self.master, "connect" if self.over_connect else "classic"]

    @property
    def name(self) -> str:
        """The place, for the figures."""
        return f"{self.master.partition(':')[0]}, {self.words[1]}"


class Processes(Protocol):
    """What a victim is chosen from."""

    def pids(self, what: str) -> list[int]:
        """The ids of the processes of this kind."""
        ...


class Job:
    """The child process, started as often as it was killed."""

    def __init__(self, bootstrap: str, folder: Path, group_mode: str, place: Place) -> None:
        self._command = [sys.executable, __file__, "--job", bootstrap, str(folder), group_mode, *place.words]
        self._place = place
        self._log = folder / "job.log"
        self.checkpoint = folder / "checkpoint"
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
        """The driver and its JVM at once, and with it a Connect server."""
        kill_all(self.process)

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

    def tasks_failed(self) -> int:
        """How many tasks have failed, by the log of Spark."""
        return self._log.read_text(errors="replace").count("Exception in task ")

    def pids(self, what: str) -> list[int]:
        """The executors, or the processes below the driver and them that are its source or forked workers."""
        if what == "executor":
            return self._place.executors()
        below = {
            pid: found for root in (self.process.pid, *self._place.executors()) for pid, found in processes_below(root)
        }
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


def kill_all(process: subprocess.Popen[Any]) -> None:
    """The process and everything below it, at once."""
    for pid in [process.pid, *dict(processes_below(process.pid))]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


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


def consume(bootstrap: str, shared: Shared, over: threading.Event) -> None:
    """Be the plain member of the group, and commit each poll."""
    with Consumer(
        bootstrap_servers=bootstrap, group_id=GROUP, auto_offset_reset="earliest", enable_auto_commit=False,
        session_timeout_ms=6_000, heartbeat_interval_ms=500,
    ) as member:  # fmt: skip
        member.subscribe([TOPIC])
        while not over.is_set():
            rows: list[Row] = []
            try:
                rows = [row_of(record) for record in member.poll(0.1)]
                shared.read.update(rows)
                if rows:
                    member.commit(timeout=10)
            except KafkaError:
                shared.uncommitted.update(rows)


def row_of(record: ConsumerRecord[bytes, bytes]) -> Row:
    """Where a record is, and its value."""
    return record.partition, record.offset, record.value or b""


@contextmanager
def cluster(on: str, folder: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """The address of a fresh broker, and what kills it and starts it again on the same data."""
    if on == "kafka":
        from support.kafka.node import KafkaNode

        with KafkaNode() as node:
            yield node.bootstrap, node.crash
        return
    broker = BrokerProcess(folder / "data", "os")

    def crash() -> None:
        broker.end(signal.SIGKILL)
        broker.start()

    broker.start()
    try:
        yield broker.bootstrap, crash
    finally:
        broker.end(signal.SIGTERM)


def strike(what: str, job: Job, crash: Callable[[], None], random: Random) -> set[int] | None:
    """Kill one thing, and start again what has no supervisor of its own.

    Returns the numbers of the batches that were under way from shortly before the kill to shortly after it, or None
    when there was nothing to kill.
    """
    time.sleep(random.uniform(0.0, 1.5))
    pid = None
    if what in ("source", "worker", "executor") and (pid := victim_of(what, job, random)) is None:
        return None
    before = newest_batch(job.checkpoint)
    if what == "driver":
        job.kill()
    elif what == "broker":
        crash()
    elif pid is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    after = newest_batch(job.checkpoint)
    if what == "driver":
        job.start()
    return {before, after}


def victim_of(what: str, job: Processes, random: Random) -> int | None:
    """The source's process, an executor, or a worker that is at work just now; None when there is none for a while."""
    limit = time.monotonic() + VICTIM_WITHIN_S
    while time.monotonic() < limit:
        pids = sorted(job.pids(what))
        random.shuffle(pids)
        if pids and what != "worker":
            return pids[0]
        for _ in range(LOOKS):
            for pid in pids:
                if is_at_work(pid):
                    return pid
            time.sleep(0.0005)
    return None


def is_at_work(pid: int) -> bool:
    """Whether the process runs on a core or wants one; an idle worker waits for its next task."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] == "R"
    except OSError:
        return False


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


def wait_until_read(bootstrap: str, out: Path) -> bool:
    """Whether the files hold every record of the log; not when no file comes for three minutes."""
    wanted = {(*place, value) for place, value in in_the_log(bootstrap).items()}
    limit, before = time.monotonic() + 180, 0
    while time.monotonic() < limit:
        found = in_the_files(out)
        if wanted <= found.keys():
            return True
        if len(found) > before:
            limit, before = time.monotonic() + 180, len(found)
        time.sleep(1.0)
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


def newest_batch(checkpoint: Path) -> int:
    """The number of the batch that was logged last; -1 before the first."""
    return max((int(entry.name) for entry in (checkpoint / "offsets").glob("*") if entry.name.isdecimal()), default=-1)


def rows_of_batch(checkpoint: Path, number: int, log: dict[tuple[int, int], bytes]) -> set[Row]:
    """The records of one batch, by the offset log; none when it was never logged."""
    entry = checkpoint / "offsets" / str(number)
    if not entry.exists():
        return set()
    ranges = json.loads(entry.read_text().splitlines()[2])["t"].get(TOPIC, {})
    places = [(int(key), offset) for key, (begin, end, *_) in ranges.items() for offset in range(begin, end)]
    return {(*place, log[place]) for place in places if place in log}


def compare(
    acknowledged: dict[tuple[int, int], bytes], log: dict[tuple[int, int], bytes], rows: Counter[Row],
    may_repeat: set[Row],
) -> dict[str, int]:  # fmt: skip
    """What is missing, read more than once, or strange."""
    last = {partition: offset for partition, offset, _ in sorted(rows)}
    read = {(*place, value) for place, value in log.items() if place[1] <= last.get(place[0], -1)}
    repeated = {row for row, times in rows.items() if times > 1}
    return {
        "acknowledged": len(acknowledged),
        "log": len(log),
        "rows": rows.total(),
        "lost by the broker": sum(log.get(place) != value for place, value in acknowledged.items()),
        "not read yet": len(log) - len(read),
        "lost by the stream": len(read - rows.keys()),
        "duplicates": rows.total() - len(rows),
        "duplicates not allowed": len(repeated - may_repeat),
        "strangers": len(rows.keys() - read),
    }


@contextmanager
def place_of(folder: Path, *, on_cluster: bool, over_connect: bool) -> Iterator[Place]:
    """Where the query runs, until the end of the rounds."""
    if not on_cluster:
        yield Place("local[2,9]", over_connect)
        return
    from support.spark.standalone import standalone_cluster

    (folder / "cluster").mkdir()
    with standalone_cluster(folder / "cluster") as found:
        yield Place(found.url, over_connect, found.executors)


def run(
    what: list[str], rounds: int, seed: int, folder: Path, on: str, group_mode: str, place: Place
) -> dict[str, object]:
    """Do the rounds, taking turns over `what`; return the figures."""
    random, acknowledged, shared = Random(seed), dict[tuple[int, int], bytes](), Shared()
    over = threading.Event()
    with cluster(on, folder) as (bootstrap, crash):
        with Admin(bootstrap_servers=bootstrap) as admin:
            admin.create_topic(TOPIC, PARTITIONS)
            if group_mode == "share":
                admin.alter_configs("group", GROUP, {"share.auto.offset.reset": "earliest"})
        threads = [threading.Thread(target=produce, args=(bootstrap, acknowledged, over))]
        read_all = threading.Event()
        if group_mode == "member":
            threads.append(threading.Thread(target=consume, args=(bootstrap, shared, read_all)))
        for thread in threads:
            thread.start()
        job, kills, under_way = Job(bootstrap, folder, group_mode, place), Counter[str](), set[int]()
        try:
            for number in range(rounds):
                job.wait_for_batch()
                victim = what[number % len(what)]
                batches = strike(victim, job, crash, random)
                kills[victim] += batches is not None
                under_way |= batches or set()
                print(
                    f"round {number + 1} of {rounds}: {victim}, {job.batches} batches so far",
                    file=sys.stderr, flush=True,
                )  # fmt: skip
            job.wait_for_batch()
            over.set()
            threads[0].join()
            is_share = group_mode == "share"
            is_read = wait_until_read(bootstrap, folder / "out") if is_share else wait_until_committed(bootstrap)
            job.end()
            read_all.set()
            threads[-1].join()
            log, rows = in_the_log(bootstrap), in_the_files(folder / "out")
        finally:
            over.set()
            read_all.set()
            if job.process.poll() is None:
                job.kill()
            for thread in threads:
                thread.join()
    may_repeat = set(rows) if group_mode == "share" else set[Row]()
    if group_mode == "member":
        may_repeat = shared.uncommitted.union(*(rows_of_batch(job.checkpoint, number, log) for number in under_way))
    return {
        "on": on, "spark": place.name, "group mode": group_mode, "seed": seed, "kills": kills,
        "rounds without a victim": rounds - kills.total(), "batches": job.batches,
        "queries failed": len(job.failures), "tasks failed": job.tasks_failed(),
        "read by the consumer": shared.read.total(), **compare(acknowledged, log, rows + shared.read, may_repeat),
        "group is at the end": is_read,
    }  # fmt: skip


WRONG = (
    "rounds without a victim", "lost by the broker", "not read yet", "lost by the stream", "duplicates not allowed",
    "strangers",
)  # fmt: skip
"""The figures that have to be 0."""


def is_right(figures: dict[str, object]) -> bool:
    """Whether every round had its victim and every promise was kept."""
    return bool(figures["group is at the end"]) and not any(figures[name] for name in WRONG)


def main() -> int:
    """Run, print, and return 1 when a promise was broken."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--what", choices=WHAT, action="append", help="may be given again; all of them by default")
    parser.add_argument("--rounds", type=int, default=8, help="how many kills, taking turns")
    parser.add_argument("--seed", type=int, default=7, help="of the moments and the choice of workers")
    parser.add_argument("--on", choices=("partita", "kafka"), default="partita", help="our broker or Apache Kafka's")
    parser.add_argument(
        "--group-mode", choices=("commit", "member", "share"), default="commit",
        help="member: with a plain consumer beside it; share: from a share group",
    )  # fmt: skip
    parser.add_argument("--cluster", action="store_true", help="on a standalone cluster of two workers")
    parser.add_argument("--connect", action="store_true", help="over a Spark Connect server, which is the driver then")
    parser.add_argument("--job", nargs=5, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.job:
        bootstrap, folder, group_mode, master, kind = given.job
        job(bootstrap, Path(folder), group_mode, master, over_connect=kind == "connect")
        return 0
    what = given.what or [kind for kind in WHAT if given.cluster or kind != "executor"]
    if "executor" in what and not given.cluster:
        parser.error("executors are processes of their own on a cluster only: give --cluster")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        try:
            with place_of(folder, on_cluster=given.cluster, over_connect=given.connect) as place:
                figures = run(what, given.rounds, given.seed, folder, given.on, given.group_mode, place)
        except (RuntimeError, KafkaError) as error:
            print(error, file=sys.stderr)
            return 1
    print(json.dumps(figures))
    return int(not is_right(figures))


if __name__ == "__main__":
    sys.exit(main())
