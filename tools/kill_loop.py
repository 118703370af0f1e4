"""Kill a real broker again and again under producers and a committing group; check a ledger of what was acknowledged.

    python tools/kill_loop.py --rounds 100 --durability os

Each round a broker process serves for a while and is killed (SIGKILL; sometimes SIGTERM, sometimes while it starts).
Idempotent producers and a group member go on through it all. Nothing acknowledged may be missing or elsewhere, nothing
may be there twice or out of order, no committed offset may go back, no deleted topic may return. The first reader after
each start sees all of it, and one that begins at `latest` none of it. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from partita import Admin, Consumer, KafkaError, Producer, TopicPartition
from partita.designs.zookeeper.ports import free_ports

TOPIC, GROUP, PARTITIONS = "kills", "kill-loop", 3
QUIET = "quiet"
"""A topic that only the main thread uses, so that its reader is the first one after a start."""
WITHIN_S = 60.0
SETTINGS = ("offsets.topic.num.partitions=4", "offsets.topic.segment.bytes=65536", "log.cleaner.backoff.ms=200")


@dataclass
class Ledger:
    """What clients were told. One thread writes each field; counts are read by all."""

    acknowledged: dict[tuple[int, int], bytes] = field(default_factory=dict)
    """Values by partition and offset."""
    unknown: int = 0
    """Records whose producer gave up: they may be there once, or not."""
    committed: dict[int, int] = field(default_factory=dict)
    attempted: dict[int, int] = field(default_factory=dict)
    topics: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


class BrokerProcess:
    """`partita broker` on one port and one data directory, started as often as it was killed."""

    def __init__(self, data_dir: Path, durability: str, settings: Iterable[str] = SETTINGS) -> None:
        (self.port,) = free_ports(1)
        self.bootstrap = f"127.0.0.1:{self.port}"
        words = [word for setting in settings for word in ("--set", setting)]
        options = ["--port", str(self.port), "--data-dir", str(data_dir), "--durability", durability, *words]
        self._command = [sys.executable, "-m", "partita.cli.main", "broker", *options]
        self.errors = data_dir.with_suffix(".log")
        self.process: subprocess.Popen[str] | None = None

    def start(self, *, wait: bool = True) -> None:
        """Start it; with `wait`, return once it is ready. Raises RuntimeError when it ends instead."""
        with self.errors.open("a") as errors:
            self.process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=errors, text=True)
        assert self.process.stdout is not None
        if wait and not any(line.startswith("bootstrap") for line in self.process.stdout):
            raise RuntimeError(f"the broker does not start: {self.errors.read_text()[-2000:]}")

    def end(self, how: signal.Signals) -> int:
        """Send the signal and wait; return the exit status."""
        assert self.process is not None
        self.process.send_signal(how)
        status = self.process.wait(WITHIN_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status


def produce(bootstrap: str, name: str, ledger: Ledger, over: threading.Event) -> None:
    """Send numbered values in small bursts; write down where each was acknowledged."""
    number = 0
    with Producer(bootstrap_servers=bootstrap, delivery_timeout_ms=int(WITHIN_S * 1000)) as producer:
        while not over.wait(0.002):
            burst = []
            for _ in range(10):
                value = f"{name}-{number}".encode()
                burst.append((value, producer.send(TOPIC, value, partition=number % PARTITIONS)))
                number += 1
            for value, future in burst:
                try:
                    done = future.result(WITHIN_S)
                except KafkaError:
                    ledger.unknown += 1
                else:
                    ledger.acknowledged[done.partition, done.offset] = value


def consume(bootstrap: str, ledger: Ledger, over: threading.Event) -> None:
    """Read as the only member of the group and commit each poll; write down what was tried and what was answered."""
    with Consumer(
        bootstrap_servers=bootstrap, group_id=GROUP, auto_offset_reset="earliest", enable_auto_commit=False
    ) as member:
        member.subscribe([TOPIC])
        while not over.is_set():
            with suppress(KafkaError):
                commit_next(member, ledger)


def commit_next(member: Consumer[bytes, bytes], ledger: Ledger) -> None:
    """Poll once and commit what came."""
    ends: dict[int, int] = {}
    for record in member.poll(0.1):
        ends[record.partition] = record.offset + 1
    if ends:
        ledger.attempted.update(ends)
        member.commit({TopicPartition(TOPIC, partition): end for partition, end in ends.items()}, timeout=WITHIN_S)
        ledger.committed.update(ends)


def change_topics(admin: Admin, number: int, ledger: Ledger) -> None:
    """A topic more, and an older one less."""
    with suppress(KafkaError):
        admin.create_topic(f"round-{number}", 2)
        ledger.topics.add(f"round-{number}")
        if number % 2:
            doomed = f"round-{number - 1}"
            was_known = doomed in ledger.topics
            ledger.topics.discard(doomed)
            admin.delete_topics([doomed])
            if was_known:
                ledger.gone.add(doomed)


def check_first_reader(bootstrap: str, ledger: Ledger, sent: int) -> None:
    """Ask partitions that were not touched since the start for an end, for records, and for where `latest` begins."""
    places = [TopicPartition(QUIET, partition) for partition in range(3)]
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as reader:
        (end,) = reader.end_offsets(places[:1]).values()
        reader.assign(places[1:2])
        read = len(list(reader.until_end()))
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="latest") as newcomer:
        newcomer.assign(places[2:])
        begins = newcomer.position(places[2])
    if (end, read, begins) != (sent, sent, sent):
        ledger.problems.append(f"of {sent} the first reader is told {end}, reads {read}, and latest begins at {begins}")


def check_after_start(admin: Admin, ledger: Ledger, told: dict[int, int], topics: set[str], gone: set[str]) -> None:
    """What was told before the kill still holds."""
    found = {entry.partition: entry.offset for entry in admin.group_offsets(GROUP) if entry.topic == TOPIC}
    for partition, offset in told.items():
        if not offset <= found.get(partition, -1) <= ledger.attempted[partition]:
            ledger.problems.append(f"committed {offset} on {partition}, found {found.get(partition)}")
    names = {topic.name for topic in admin.list_topics()}
    ledger.problems += [f"topic {name} is lost" for name in sorted(topics - names)]
    ledger.problems += [f"deleted topic {name} is back" for name in sorted(gone & names)]


def check_records(bootstrap: str, ledger: Ledger) -> int:
    """Read everything; return how many records there are."""
    found: dict[tuple[int, int], bytes] = {}
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as reader:
        reader.assign([TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)])
        for record in reader.until_end():
            found[record.partition, record.offset] = record.value
    wrong = [where for where, value in ledger.acknowledged.items() if found.get(where) != value]
    if wrong:
        ledger.problems.append(f"{len(wrong)} acknowledged records are missing or elsewhere, as {wrong[:3]}")
    if len(set(found.values())) != len(found):
        ledger.problems.append(f"{len(found) - len(set(found.values()))} records are there twice")
    last: dict[tuple[int, bytes], int] = {}
    for (partition, _), value in sorted(found.items()):
        name, _, number = value.partition(b"-")
        if int(number) < last.get((partition, name), -1):
            ledger.problems.append(f"{value!r} is behind a later one on {partition}")
        last[partition, name] = int(number)
    surplus = len(found) - len(ledger.acknowledged)
    if not 0 <= surplus <= ledger.unknown:
        ledger.problems.append(f"{surplus} records more than acknowledged, {ledger.unknown} are unknown")
    return len(found)


@contextmanager
def clients(bootstrap: str, ledger: Ledger) -> Iterator[None]:
    """Two producers and a member until the block ends."""
    over = threading.Event()
    threads = [threading.Thread(target=produce, args=(bootstrap, name, ledger, over)) for name in ("a", "b")]
    threads.append(threading.Thread(target=consume, args=(bootstrap, ledger, over)))
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def run(rounds: int, durability: str, seed: int, data_dir: Path) -> dict[str, object]:
    """Do the rounds; return the figures, problems among them."""
    random, ledger = Random(seed), Ledger()
    broker = BrokerProcess(data_dir, durability)
    broker.start()
    kills = stops = starts_cut = 0
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topic(TOPIC, PARTITIONS, configs={"segment.bytes": 1 << 20})
        admin.create_topic(QUIET, PARTITIONS)
        with clients(broker.bootstrap, ledger), Producer(bootstrap_servers=broker.bootstrap) as quiet:
            for number in range(rounds):
                change_topics(admin, number, ledger)
                for partition in range(PARTITIONS):
                    quiet.send(QUIET, b"quiet", partition=partition).result(WITHIN_S)
                time.sleep(random.uniform(0.1, 1.0))
                told, topics, gone = dict(ledger.committed), set(ledger.topics), set(ledger.gone)
                if number % 8 == 7:
                    stops += 1
                    if (status := broker.end(signal.SIGTERM)) != 0:
                        ledger.problems.append(f"an orderly stop ended with status {status}")
                else:
                    kills += 1
                    broker.end(signal.SIGKILL)
                if number % 4 == 3:
                    starts_cut += 1
                    broker.start(wait=False)
                    time.sleep(random.uniform(0.05, 0.4))
                    broker.end(signal.SIGKILL)
                broker.start()
                check_first_reader(broker.bootstrap, ledger, number + 1)
                check_after_start(admin, ledger, told, topics, gone)
        records = check_records(broker.bootstrap, ledger)
    if (status := broker.end(signal.SIGTERM)) != 0:
        ledger.problems.append(f"the last stop ended with status {status}")
    return {
        "durability": durability, "rounds": rounds, "kills": kills, "stops": stops, "killed while starting": starts_cut,
        "acknowledged": len(ledger.acknowledged), "unknown": ledger.unknown, "found": records,
        "committed": sum(ledger.committed.values()), "topics deleted": len(ledger.gone),
        "problems": ledger.problems[:20],
    }  # fmt: skip


def main() -> int:
    """Run, print, and return 1 when a promise was broken."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=20, help="how often the broker is killed")
    parser.add_argument("--durability", choices=("os", "sync"), default="os")
    parser.add_argument("--seed", type=int, default=7, help="of the pauses between kills")
    parser.add_argument("--data-dir", type=Path, help="kept afterwards; by default a temporary one")
    given = parser.parse_args()
    if given.data_dir is not None:
        figures = run(given.rounds, given.durability, given.seed, given.data_dir)
    else:
        with tempfile.TemporaryDirectory() as folder:
            figures = run(given.rounds, given.durability, given.seed, Path(folder) / "data")
    print(json.dumps(figures))
    return int(bool(figures["problems"]))


if __name__ == "__main__":
    sys.exit(main())
