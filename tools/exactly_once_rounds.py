"""Kill a Spark query that writes exactly once, round after round, under a live producer; then count every row.

    python tools/exactly_once_rounds.py --rounds 30 --kafka

A producer writes numbered records into one topic; a streaming query copies them to another with exactlyOnce=true. In
each round some of its Python workers are killed (SIGKILL), or all of it: JVM, driver and workers. At the end the query
runs to the end of its source. Every number has to be there once for a reader with read_committed. Prints one JSON
line; exits with 1 if anything is lost or twice. With --kafka the cluster is Apache Kafka, else our own broker. With
--cluster the query runs on a standalone cluster of two workers, and executors are killed; with --connect over a Spark
Connect server, which is the driver then.
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
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

from spark_kills import Place, kill_all, place_of, processes_below

from partita import Admin, Broker, Consumer, Producer

SOURCE, TARGET, PARTITIONS = "rounds-in", "rounds-out", 4
PAUSE_S = 0.005
START_LIMIT_S = 400.0
FAILURES_MAX = 10
"""How often the query may end by itself: Spark gives up when a planner, rather than a task's worker, is killed."""
WHOLE_QUERY = 0.35
"""The share of rounds that kill the whole query."""


class LiveProducer:
    """Writes numbers until it is stopped; `acknowledged` counts what the brokers have."""

    def __init__(self, bootstrap: str) -> None:
        self.acknowledged = 0
        self._stop = threading.Event()
        self._bootstrap = bootstrap
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        with Producer(bootstrap_servers=self._bootstrap) as producer:
            while not self._stop.wait(PAUSE_S):
                producer.send(SOURCE, f"{number}", partition=number % PARTITIONS)
                number += 1
        self.acknowledged = number

    def stop(self) -> int:
        """How many numbers there are."""
        self._stop.set()
        self._thread.join()
        return self.acknowledged


class Query:
    """The streaming query, in processes below one of its own."""

    def __init__(self, bootstrap: str, checkpoint: Path, place: Place, *, to_the_end: bool = False) -> None:
        words = [sys.executable, __file__, "--job", bootstrap, str(checkpoint), *place.words]
        self._place = place
        self._log = checkpoint.with_suffix(".log").open("ab")
        self._process = subprocess.Popen(
            words + ["--to-the-end"] * to_the_end, stdout=self._log, stderr=self._log, start_new_session=True
        )

    def victims(self) -> list[int]:
        """The process ids of its executors, or without a cluster of its Python workers but for their daemon."""
        if self._place.is_cluster:
            return self._place.executors()
        below = dict(processes_below(self._process.pid))
        return [pid for pid, (parent, _) in below.items() if "pyspark.daemon" in below.get(parent, (0, ""))[1]]

    def kill(self) -> None:
        """All of it, at once, but for executors, which end by themselves."""
        kill_all(self._process)

    def wait(self) -> int:
        """Its exit code, at its own end."""
        return self._process.wait()

    @property
    def has_ended(self) -> bool:
        """True if it ended without being killed."""
        return self._process.poll() is not None


def run_query(bootstrap: str, checkpoint: str, master: str, *, over_connect: bool, to_the_end: bool) -> None:
    """What the query's process does."""
    from support.spark.standalone import session_at

    config = {"spark.sql.shuffle.partitions": "3", "spark.task.maxFailures": "9", "spark.executor.memory": "512m"}
    brokers = {"kafka.bootstrap.servers": bootstrap}
    with session_at(master, Path(checkpoint).parent, config, over_connect=over_connect) as spark:
        numbers = (
            spark.readStream.format("partita")
            .options(**brokers, subscribe=SOURCE, startingOffsets="earliest", maxOffsetsPerTrigger="400")
            .load()
        )
        writer = (
            numbers.select("key", "value")
            .writeStream.format("partita")
            .options(**brokers, topic=TARGET, exactlyOnce="true", sinkName="rounds")
            .option("checkpointLocation", checkpoint)
        )
        trigger = writer.trigger(availableNow=True) if to_the_end else writer.trigger(processingTime="50 milliseconds")
        trigger.start().awaitTermination()


@contextmanager
def cluster(*, is_kafka: bool) -> Iterator[str]:
    """The address of a fresh cluster with both topics."""
    if is_kafka:
        from support.kafka.node import KafkaNode

        with KafkaNode() as node:
            yield node.bootstrap
    else:
        with Broker() as broker:
            yield broker.bootstrap


def end_of(bootstrap: str) -> int:
    """How far the target has come, for readers with read_committed."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        ends = admin.list_offsets({(TARGET, p): "latest" for p in range(PARTITIONS)}, isolation_level="read_committed")
        return sum(end.offset for end in ends.values())


def numbers_in(bootstrap: str) -> Counter[int]:
    """Each number of the target and how often it is there, once the markers of all transactions are written."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        while admin.list_transactions(states=("PrepareCommit", "PrepareAbort")):
            time.sleep(0.05)
    with Consumer(
        bootstrap_servers=bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([(TARGET, p) for p in range(PARTITIONS)])
        return Counter(int(record.value or b"-1") for record in consumer.until_end())


def progress(bootstrap: str, query: Query, before: int, log: Path) -> bool:
    """Wait until the query has written something new; False if it has ended, as it does without its planner."""
    limit = time.monotonic() + START_LIMIT_S
    while end_of(bootstrap) == before:
        if query.has_ended:
            return False
        if time.monotonic() > limit:
            query.kill()
            raise SystemExit(f"the query makes no progress:\n{log.read_text(errors='replace')[-3000:]}")
        time.sleep(0.05)
    return True


def kill_some(query: Query, random: Random) -> int:
    """Kill some of its executors or workers, one after the other; how many it were."""
    killed = 0
    for _ in range(random.randrange(1, 4)):
        time.sleep(random.uniform(0, 0.7))
        victims = query.victims()
        if victims:
            with suppress(ProcessLookupError):
                os.kill(random.choice(victims), signal.SIGKILL)
                killed += 1
    return killed


def run(rounds: int, minutes: float, seed: int, folder: Path, place: Place, *, is_kafka: bool) -> dict[str, object]:
    """All rounds that fit the time, and the count at the end."""
    random, started, killed, whole, failed, done = Random(seed), time.monotonic(), 0, 0, 0, 0
    checkpoint, query = folder / "checkpoint", None
    log = checkpoint.with_suffix(".log")
    with cluster(is_kafka=is_kafka) as bootstrap:
        with Admin(bootstrap_servers=bootstrap) as admin:
            admin.create_topic(SOURCE, PARTITIONS)
            admin.create_topic(TARGET, PARTITIONS)
            while not {SOURCE, TARGET} <= {topic.name for topic in admin.list_topics()}:
                time.sleep(0.05)
        producer = LiveProducer(bootstrap)
        try:
            while done < rounds and time.monotonic() - started < minutes * 60:
                query = query or Query(bootstrap, checkpoint, place)
                if not progress(bootstrap, query, end_of(bootstrap), log):
                    query, failed = None, failed + 1
                    if failed > FAILURES_MAX:
                        raise SystemExit(f"the query fails too often:\n{log.read_text(errors='replace')[-3000:]}")
                    continue
                if random.random() < WHOLE_QUERY:
                    time.sleep(random.uniform(0, 1.0))
                    query.kill()
                    query, whole = None, whole + 1
                else:
                    killed += kill_some(query, random)
                done += 1
                print(f"round {done}: {end_of(bootstrap)} offsets", file=sys.stderr, flush=True)
        finally:
            if query is not None:
                query.kill()
            written = producer.stop()
        code = Query(bootstrap, checkpoint, place, to_the_end=True).wait()
        found = numbers_in(bootstrap)
    return {
        "cluster": "Apache Kafka" if is_kafka else "partita",
        "spark": place.name,
        "rounds": done,
        "seed": seed,
        "queries_killed": whole,
        "queries_failed": failed,
        "executors_killed" if place.is_cluster else "workers_killed": killed,
        "written": written,
        "lost": sum(number not in found for number in range(written)),
        "twice": sum(count > 1 for count in found.values()),
        "exit_code": code,
        "seconds": round(time.monotonic() - started),
    }


def main() -> None:
    """Parse the arguments and run; or be the query of one round."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--minutes", type=float, default=60, help="begin no round after this")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kafka", action="store_true", help="Apache Kafka instead of our own broker")
    parser.add_argument("--cluster", action="store_true", help="Spark on a standalone cluster of two workers")
    parser.add_argument("--connect", action="store_true", help="over a Spark Connect server, which is the driver then")
    parser.add_argument("--job", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--to-the-end", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.job:
        bootstrap, checkpoint, master, kind = given.job
        run_query(bootstrap, checkpoint, master, over_connect=kind == "connect", to_the_end=given.to_the_end)
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        place_of(Path(folder), on_cluster=given.cluster, over_connect=given.connect) as place,
    ):
        result = run(given.rounds, given.minutes, given.seed, Path(folder), place, is_kafka=given.kafka)
    print(json.dumps(result))
    sys.exit(bool(result["lost"] or result["twice"] or result["exit_code"]))


if __name__ == "__main__":
    main()
