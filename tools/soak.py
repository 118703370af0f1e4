"""A day of a broker's life in some minutes, with every record counted: `python tools/soak.py --minutes 60`.

A broker process keeps topics with retention and compaction in a data directory. Thirty members, of both group protocols
and two clients, come and go: killed, stopped, asked to leave, static ones replaced. Copiers move each record into
another topic in a transaction, and abort some. Idempotent producers, an admin client, a dashboard and a canary go on
all the while; `--kills N` also kills the broker itself N times.

Prints one line a minute (memory, descriptors, threads, CPU and the canary's waits) and a verdict as JSON. Ends with
status 1 if a record is lost, doubled or wrong, or if anything ended that was not asked to.
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
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "bench")]

from append_workload import await_ends  # noqa: E402
from canary import Canary  # noqa: E402
from harness import Server  # noqa: E402
from kill_loop import BrokerProcess  # noqa: E402
from soak_judge import CASTS, EVENTS, FADING, KEYS, Found, Ledger, Seen, judge  # noqa: E402

from partita import Admin, Consumer, KafkaError, Producer  # noqa: E402
from partita.designs.zookeeper.ports import free_ports  # noqa: E402
from support.clients.member import COPIES  # noqa: E402
from support.clients.member_processes import Member, MemberProcesses  # noqa: E402

TOPICS = {EVENTS: 12, EVENTS + COPIES: 6, FADING: 3, KEYS: 3}
PRODUCERS, KEYS_EACH, BURST_PAUSE_S = 3, 150, 0.1
SESSION_MS, PAUSE_S = 6_000, 8.0
"""A paused member is silent for longer than its session."""
WITHIN_S, END_WITHIN_S = 60.0, 180.0
LONG_MINUTES = 5.0
"""From here on, retention and compaction must have shown an effect."""
SETTINGS = (
    "offsets.topic.num.partitions=4", "offsets.topic.segment.bytes=1048576",
    "transaction.state.log.segment.bytes=1048576", "log.cleaner.backoff.ms=1000",
    "log.retention.check.interval.ms=2000", "group.consumer.min.session.timeout.ms=6000",
    "group.consumer.session.timeout.ms=6000", "group.consumer.min.heartbeat.interval.ms=500",
    "group.consumer.heartbeat.interval.ms=500",
)  # fmt: skip


def produce(bootstrap: str, name: str, ledger: Ledger, over: threading.Event) -> None:
    """Send events, records that fade, and new values of keys; write down what was acknowledged where."""
    dice, number = Random(name), 0
    with Producer(bootstrap_servers=bootstrap, delivery_timeout_ms=int(WITHIN_S * 1000)) as producer:
        while not over.wait(BURST_PAUSE_S):
            burst = []
            for topic in (EVENTS, EVENTS, FADING):
                value = f"{name}-{number}".encode()
                burst.append((topic, value, producer.send(topic, value, partition=dice.randrange(TOPICS[topic]))))
                number += 1
            key = f"{name}-{dice.randrange(KEYS_EACH)}".encode()
            state = None if dice.random() < 0.1 else f"{number}".encode()
            changed = producer.send(KEYS, state, key=key)
            for topic, value, future in burst:
                try:
                    done = future.result(WITHIN_S)
                except KafkaError:
                    ledger.unknown.add(value)
                else:
                    ledger.acknowledged[topic][done.partition, done.offset] = value
            try:
                changed.result(WITHIN_S)
            except KafkaError:
                ledger.unknown.add(key)
            else:
                ledger.key_writes += 1
                ledger.keys[key] = state


def poll_admin(bootstrap: str, ledger: Ledger, over: threading.Event, pause_s: float, *, may_fail: bool) -> None:
    """Ask what an operator's tools ask, again and again."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        while not over.wait(pause_s):
            try:
                for group in admin.list_groups():
                    admin.describe_group(group.group_id)
                    admin.group_lag(group.group_id)
                admin.describe_topics([topic.name for topic in admin.list_topics()])
                admin.list_transactions()
                ledger.polls["admin"] += 1
            except KafkaError as error:
                ledger.polls["admin refused"] += 1
                if not may_fail:
                    ledger.problems.append(f"the admin client was refused: {error!r}")


def poll_dashboard(url: str, ledger: Ledger, over: threading.Event, pause_s: float) -> None:
    """Ask for the dashboard's pages, as browsers and scrapers do."""
    pages = ("/", "/overview.json", "/groups/classic", "/groups/epochs.json", "/metrics", "/healthz")
    while not over.wait(pause_s):
        for page in pages:
            try:
                with urllib.request.urlopen(url + page, timeout=WITHIN_S) as answer:
                    answer.read()
                ledger.polls["dashboard"] += 1
            except OSError as error:
                ledger.problems.append(f"the dashboard answered {page} with {error}")


@contextmanager
def actors(bootstrap: str, ledger: Ledger, scale: float, *, may_fail: bool) -> Iterator[Callable[[], None]]:
    """Producers, the admin client and the dashboard's readers; what is yielded ends them, as the block's end does."""
    over = threading.Event()
    work = [threading.Thread(target=produce, args=(bootstrap, f"p{n}", ledger, over)) for n in range(PRODUCERS)]
    pause_s = 10 * scale
    more = {"may_fail": may_fail}
    work.append(threading.Thread(target=poll_admin, args=(bootstrap, ledger, over, pause_s), kwargs=more))
    with dashboard(bootstrap) as url:
        if url is not None:
            work.append(threading.Thread(target=poll_dashboard, args=(url, ledger, over, pause_s)))

        def end() -> None:
            over.set()
            for thread in work:
                thread.join()

        for thread in work:
            thread.start()
        try:
            yield end
        finally:
            end()


@contextmanager
def dashboard(bootstrap: str) -> Iterator[str | None]:
    """`partita dashboard` in a process of its own; None where the extra is not installed."""
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        yield None
        return
    (port,) = free_ports(1)
    url, limit = f"http://127.0.0.1:{port}", time.monotonic() + WITHIN_S
    command = [sys.executable, "-m", "partita.cli.main", "dashboard", "--bootstrap", bootstrap, "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while True:
            with suppress(OSError), urllib.request.urlopen(f"{url}/healthz", timeout=WITHIN_S):
                break
            if time.monotonic() > limit or process.poll() is not None:
                raise SystemExit("the dashboard does not start")
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(WITHIN_S)
        process.kill()
        process.wait()


class Crowd:
    """All members of all groups, who come and go."""

    def __init__(self, bootstrap: str, count: int, ledger: Ledger, stack: ExitStack, dice: Random) -> None:
        self._ledger, self._dice = ledger, dice
        self._paused: list[tuple[float, Member]] = []
        self._late: list[tuple[float, MemberProcesses, str]] = []
        self._clients: dict[str, str] = {}
        self.groups: dict[str, MemberProcesses] = {}
        for cast in CASTS:
            group = MemberProcesses("partita", bootstrap, cast.group, cast.topic, cast.assignor, SESSION_MS)
            self.groups[cast.group] = stack.enter_context(group)
            for number in range(max(1, round(count * cast.share))):
                self._start(group, cast.clients[number % len(cast.clients)], f"{cast.group}-{number}")

    def _start(self, group: MemberProcesses, client: str, name: str) -> None:
        self._clients[name] = client
        self._ledger.lives += 1
        group.start(name, client=client)

    def come_and_go(self, now: float) -> None:
        """One member goes, or falls silent, and another comes; a static one and every second copier under its name."""
        group = self.groups[self._dice.choice(list(self.groups))]
        if not group.members:
            return
        name = self._dice.choice(sorted(group.members))
        member, client = group.members[name], self._clients[name]
        if any(member is paused for _, paused in self._paused):
            return
        way = self._dice.choice(("kill", "leave", "pause"))
        if way == "pause":
            member.process.send_signal(signal.SIGSTOP)
            self._paused.append((now + PAUSE_S, member))
            return
        if way == "kill":
            group.kill(name)
        else:
            self.leave(group, name)
        stem, _, life = name.partition("+")
        again = client.endswith("/static") or (client == "copier" and self._dice.random() < 0.5)
        if way == "kill" and client.endswith("/consumer/static"):  # who died keeps the instance id for a session
            self._late.append((now + PAUSE_S, group, name))
        else:
            self._start(group, client, name if again else f"{stem}+{int(life or 0) + 1}")

    def leave(self, group: MemberProcesses, name: str) -> None:
        """Ask a member to go, which must work."""
        try:
            group.stop(name)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            self._ledger.problems.append(f"{name} ({self._clients[name]}) did not leave: {error}")
            group.kill(name)

    def look(self, now: float) -> None:
        """Let paused and late members go on when their time has come; no member may have ended by itself."""
        for late in [late for late in self._late if now >= late[0]]:
            self._late.remove(late)
            self._start(late[1], self._clients[late[2]], late[2])
        for entry in [entry for entry in self._paused if now >= entry[0]]:
            self._paused.remove(entry)
            entry[1].process.send_signal(signal.SIGCONT)
        for group in self.groups.values():
            for name, member in list(group.members.items()):
                if member.process.poll() is not None:
                    problem = f"{name} ({self._clients[name]}) ended by itself with status {member.process.returncode}"
                    self._ledger.problems.append(problem)
                    group.kill(name)
                    self._start(group, self._clients[name], name)

    def broker_was_killed(self, now: float) -> None:
        """Sessions begin anew, so who waits for the end of one waits longer."""
        self._late = [(now + PAUSE_S, group, name) for _, group, name in self._late]

    def settle(self, ledger: Ledger) -> None:
        """Wait until every acknowledged event, and its copy, was seen by each group that reads it."""
        self.look(float("inf"))
        limit = time.monotonic() + END_WITHIN_S
        wanted = {value.decode() for value in ledger.acknowledged[EVENTS].values()}
        for cast in CASTS[:-1]:
            while missing := len(wanted - {v.partition("@")[0] for v in self.groups[cast.group].values()}):
                if time.monotonic() > limit:
                    ledger.problems.append(f"{missing} events did not reach {cast.group} within {END_WITHIN_S:.0f} s")
                    break
                self.look(time.monotonic())
                time.sleep(0.5)

    def end(self) -> dict[str, Seen]:
        """Ask all to leave; return what each group saw."""
        for group in self.groups.values():
            for name in list(group.members):
                self.leave(group, name)
        return {name: _seen(group) for name, group in self.groups.items()}


def _seen(group: MemberProcesses) -> Seen:
    times = Counter(group.seen)
    aborted = {fact["attempt"] for member in group.gone for fact in member.log if fact["event"] == "aborted"}
    return Seen(set(times), times.total() - len(times), len(group.unexplained()), aborted)


@dataclass(frozen=True, slots=True)
class Sample:
    """One line of the table."""

    minute: float
    memory_mb: float
    descriptors: int
    threads: int
    cpu_percent: float
    p99_ms: float
    max_ms: float
    queued_ms: float
    """How long the broker waited for a core: the machine's fault."""
    acknowledged: int
    lives: int

    HEAD = "minute  anon MB  fds  threads  cpu %  p99 ms  max ms  queued ms  acknowledged  lives"

    def line(self) -> str:
        """The columns of HEAD."""
        return (
            f"{self.minute:6.1f} {self.memory_mb:8.1f} {self.descriptors:4} {self.threads:8} {self.cpu_percent:6.1f} "
            f"{self.p99_ms:7.1f} {self.max_ms:7.0f} {self.queued_ms:10.0f} {self.acknowledged:13} {self.lives:6}"
        )


class Watch:
    """Measures the broker's process and a canary beside it, from one `sample` to the next."""

    def __init__(self, broker: BrokerProcess, ledger: Ledger) -> None:
        self._broker, self._ledger = broker, ledger
        self._begun = time.monotonic()
        self.samples: list[Sample] = []
        self.begin()

    def begin(self) -> None:
        """Watch this life of the broker."""
        assert self._broker.process is not None
        self._server = Server("soak", self._broker.process.pid, self._broker.port)
        self._canary = Canary(self._server, pause_s=0.05)
        self._canary.start()
        self._since, self._cpu_s = time.monotonic(), self._server.cpu_s()

    def end(self) -> None:
        """Let the canary go, if it has not gone with the broker."""
        with suppress(OSError, EOFError):
            self._canary.stop()
            self._canary.close()

    def sample(self) -> Sample:
        """Measure since the last one, and keep the line."""
        seen, now, cpu_s = self._canary.stop(), time.monotonic(), self._server.cpu_s()
        if seen.refused:
            self._ledger.problems.append(f"the canary was refused: {seen.refused}")
        status = dict(line.split(":", 1) for line in Path(f"/proc/{self._server.pid}/status").read_text().splitlines())
        sample = Sample(
            (now - self._begun) / 60, int(status["RssAnon"].split()[0]) / 1024,
            len(os.listdir(f"/proc/{self._server.pid}/fd")), int(status["Threads"]),
            100 * (cpu_s - self._cpu_s) / (now - self._since), seen.p99_ms, seen.max_ms, seen.queued_ms,
            sum(map(len, self._ledger.acknowledged.values())), self._ledger.lives,
        )  # fmt: skip
        self._since, self._cpu_s = now, cpu_s
        self._canary.start()
        self.samples.append(sample)
        print(sample.line(), flush=True)
        return sample


def make_topics(admin: Admin, scale: float) -> None:
    """The topics: one kept whole and its copies, one that fades within a minute, one that is compacted."""
    segments = {"segment.ms": int(10_000 * scale)}
    configs: dict[str, dict[str, str | int]] = {
        FADING: {"retention.ms": int(60_000 * scale), **segments},
        KEYS: {
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "0.1",
            "delete.retention.ms": 1000,
            **segments,
        },
    }
    for name, partitions in TOPICS.items():
        admin.create_topic(name, partitions, configs=configs.get(name, {}))


def read_logs(bootstrap: str) -> Found:
    """Read every topic from its start."""
    found = Found({topic: {} for topic in TOPICS}, {}, 0, {})
    with Consumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as reader:
        reader.assign([(topic, partition) for topic, count in TOPICS.items() for partition in range(count)])
        for record in reader.until_end():
            if record.topic == KEYS:
                found.key_records += 1
                found.last[record.key or b""] = record.value
            else:
                found.values[record.topic][record.partition, record.offset] = record.value or b""
        starts = reader.beginning_offsets([(FADING, partition) for partition in range(TOPICS[FADING])])
        found.starts = {where.partition: offset for where, offset in starts.items()}
    return found


def kill_broker(broker: BrokerProcess, watch: Watch) -> None:
    """SIGKILL, and the same data again."""
    watch.end()
    broker.end(signal.SIGKILL)
    broker.start()
    watch.begin()


def live(minutes: float, kills: int, watch: Watch, broker: BrokerProcess, crowd: Crowd, dice: Random) -> None:
    """The day itself: members come and go, the broker is killed when it is time, and each minute has its line."""
    begun = time.monotonic()
    end, every_s = begun + minutes * 60, min(60.0, minutes * 60 / 6)
    deaths, next_change, next_sample = 1, begun, begun + every_s
    assert broker.process is not None
    while (now := time.monotonic()) < end:
        if broker.process.poll() is not None:
            raise SystemExit(f"the broker ended by itself: {broker.errors.read_text()[-2000:]}")
        crowd.look(now)
        if now >= next_change:
            crowd.come_and_go(now)
            next_change = now + dice.uniform(1.0, 8.0) * min(1.0, minutes)
        if now >= begun + deaths * minutes * 60 / (kills + 1) and deaths <= kills:
            kill_broker(broker, watch)
            crowd.broker_was_killed(time.monotonic())
            next_sample = max(next_sample, time.monotonic() + every_s / 2)
            deaths += 1
        if now >= next_sample:
            watch.sample()
            next_sample += every_s
        time.sleep(0.1)


def run(minutes: float, members: int, kills: int, durability: str, seed: int, folder: Path) -> dict[str, object]:
    """One soak; the figures of its verdict, problems among them."""
    ledger, dice, scale = Ledger(), Random(seed), min(1.0, minutes / LONG_MINUTES)
    broker = BrokerProcess(folder / "data", durability, SETTINGS)
    with ExitStack() as stack:
        stack.callback(_end_hard, broker)
        broker.start()
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            make_topics(admin, scale)
            print(Sample.HEAD, flush=True)
            watch = Watch(broker, ledger)
            stack.callback(watch.end)
            crowd = Crowd(broker.bootstrap, members, ledger, stack, dice)
            end_actors = stack.enter_context(actors(broker.bootstrap, ledger, scale, may_fail=kills > 0))
            live(minutes, kills, watch, broker, crowd, dice)
            end_actors()
            crowd.settle(ledger)
            seen = crowd.end()
            await_ends(admin)
            found = read_logs(broker.bootstrap)
        at_rest = watch.sample()
        ledger.problems += judge(ledger, found, seen, is_long=minutes >= LONG_MINUTES)
        watch.end()
        if (status := broker.end(signal.SIGTERM)) != 0:
            ledger.problems.append(f"the broker stopped with status {status}")
        ledger.problems += [f"the broker logged: {line}" for line in _tracebacks(broker.errors)]
    return figures(ledger, found, seen, watch.samples, at_rest)


def _end_hard(broker: BrokerProcess) -> None:
    if broker.process is not None and broker.process.poll() is None:
        broker.end(signal.SIGKILL)


def _tracebacks(log: Path) -> list[str]:
    return [line for line in log.read_text(errors="replace").splitlines() if "Traceback" in line or " ERROR " in line]


def figures(
    ledger: Ledger, found: Found, seen: dict[str, Seen], samples: list[Sample], at_rest: Sample
) -> dict[str, object]:
    """The verdict: counts, what grew from the first third to the last, and the problems."""
    third = max(1, len(samples) // 3)

    def grew(measure: Callable[[Sample], float]) -> str:
        first, last = (max(map(measure, part)) for part in (samples[:third], samples[-third - 1 : -1] or samples))
        return f"{first:.0f} -> {last:.0f}"

    aborted = seen["copiers"].aborted
    return {
        "events": len(found.values[EVENTS]), "acknowledged": len(ledger.acknowledged[EVENTS]),
        "copies": len(found.values[EVENTS + COPIES]), "transactions aborted": len(aborted),
        "seen": {name: len(one.records) for name, one in seen.items() if one.records},
        "seen again after kills": {name: one.again for name, one in seen.items() if one.records},
        "faded": sum(found.starts.values()), "fading kept": len(found.values[FADING]),
        "key writes": ledger.key_writes, "key records": found.key_records, "unknown": len(ledger.unknown),
        "lives": ledger.lives, "polls": dict(ledger.polls),
        "anon MB": grew(lambda one: one.memory_mb), "fds": grew(lambda one: one.descriptors),
        "threads": grew(lambda one: one.threads), "cpu %": grew(lambda one: one.cpu_percent),
        "fds at rest": at_rest.descriptors, "p99 ms, worst": round(max(one.p99_ms for one in samples), 1),
        "problems": ledger.problems[:20],
    }  # fmt: skip


def main() -> int:
    """Run, print, and return 1 when a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--members", type=int, default=30)
    parser.add_argument("--kills", type=int, default=0, help="how often the broker is killed")
    parser.add_argument("--durability", choices=("os", "sync"), default="os")
    parser.add_argument("--seed", type=int, default=1, help="of who comes and goes")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        verdict = run(given.minutes, given.members, given.kills, given.durability, given.seed, Path(folder))
    print(json.dumps(verdict))
    return int(bool(verdict["problems"]))


if __name__ == "__main__":
    sys.exit(main())
