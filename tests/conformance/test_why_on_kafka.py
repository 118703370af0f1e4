"""Why a group rebalanced, read from the log of Apache Kafka, with librdkafka's members. Issue 17, items 1 and 2."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from partita import Admin, Producer
from partita.explain import Account, Sure, What, explain
from partita.observe.follow_group_log import GroupLog
from partita.observe.kept import Kept
from support.kafka.node import KafkaNode

pytestmark = pytest.mark.conformance

MEMBER = Path(__file__).parent.parent / "support" / "explain" / "foreign_member.py"
PATIENCE_S = 60
SESSION_MS = 6_000
_numbers = count()


class Group:
    """A group of processes on topics of its own, into which records flow all the time."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.name = f"why-{next(_numbers)}"
        self.topics = [f"{self.name}-a", f"{self.name}-b"]
        self._members: dict[str, subprocess.Popen[str]] = {}

    def start(self, name: str, *, instance: str | None = None) -> None:
        """Start a member that reads both topics."""
        options = {
            "bootstrap.servers": self.bootstrap, "group.id": self.name, "client.id": name,
            "session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 1_000, "auto.commit.interval.ms": 500,
            "topic.metadata.refresh.interval.ms": 1_000,
        }  # fmt: skip
        if instance is not None:
            options["group.instance.id"] = instance
        command = [sys.executable, str(MEMBER), json.dumps(options), *self.topics]
        self._members[name] = subprocess.Popen(command, stdin=subprocess.PIPE, text=True)

    def kill(self, name: str) -> None:
        """kill -9."""
        process = self._members.pop(name)
        process.kill()
        process.wait()

    def stop(self, name: str) -> None:
        """Let it leave."""
        process = self._members.pop(name)
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=PATIENCE_S)

    def subscribe(self, name: str, *topics: str) -> None:
        """Another subscription."""
        stdin = self._members[name].stdin
        assert stdin is not None
        stdin.write(" ".join(topics) + "\n")
        stdin.flush()

    def end(self) -> None:
        """Kill whoever is left."""
        for name in list(self._members):
            self.kill(name)

    def accounts(self) -> tuple[Account, ...]:
        """What the log says now."""
        kept = Kept()
        asyncio.run(GroupLog({"bootstrap.servers": self.bootstrap}, kept, groups=[self.name]).read())
        return explain(kept.of(self.name))

    def wait(self, what: str, holds: Callable[[Account], bool]) -> Account:
        """The newest account for which this holds; other threads let time pass meanwhile."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            found = self.accounts()
            if found and holds(found[-1]):
                return found[-1]
        raise AssertionError(f"{what}: {[a.headline for a in self.accounts()]}")

    def settled(self, members: int) -> Account:
        """Wait until so many members share the partitions, and have committed for a while."""
        account = self.wait(f"{members} members", lambda a: len(a.members) == members and all_hold(a))
        before = self._committed()
        self.wait(
            "six commits by each", lambda _: all(now - before.get(at, 0) > 30 for at, now in self._committed().items())
        )
        return account

    def _committed(self) -> dict[tuple[str, int], int]:
        with Admin(bootstrap_servers=self.bootstrap) as admin:
            return {(row.topic, row.partition): row.committed_offset or 0 for row in admin.group_lag(self.name)}


def all_hold(account: Account) -> bool:
    return all(member.partitions for member in account.members)


@pytest.fixture
def group(kafka: KafkaNode) -> Iterator[Group]:
    """A group with a producer that sends to all of its partitions, ten times a second."""
    made = Group(kafka.bootstrap)
    is_over = threading.Event()
    with Admin(bootstrap_servers=kafka.bootstrap) as admin, Producer(bootstrap_servers=kafka.bootstrap) as producer:
        for topic in made.topics:
            admin.create_topic(topic, 3)

        def produce() -> None:
            while not is_over.wait(0.1):
                for topic in made.topics:
                    for partition in range(3):
                        producer.send(topic, b"x", partition=partition)

        sending = threading.Thread(target=produce)
        sending.start()
        try:
            yield made
        finally:
            is_over.set()
            sending.join()
            made.end()


def only(account: Account, what: What) -> tuple[Sure, str]:
    (cause,) = [cause for cause in account.causes if cause.what is what]
    assert cause.evidence
    return cause.sure, cause.who


def test_a_killed_member_and_one_that_left(group: Group) -> None:
    for name in ("a", "b", "c"):
        group.start(name)
    before = group.settled(3)
    group.kill("b")
    killed = group.wait("b is gone", lambda a: len(a.members) == 2)
    assert only(killed, What.EXPIRED) == (Sure.INFERRED, "b"), killed.causes
    assert SESSION_MS <= killed.unread_ms <= 3 * SESSION_MS
    assert killed.generation > before.generation
    group.settled(2)
    group.stop("c")
    left = group.wait("c is gone", lambda a: len(a.members) == 1)
    assert only(left, What.LEFT) == (Sure.INFERRED, "c"), left.causes
    assert left.unread_ms < SESSION_MS


def test_a_static_member_that_is_restarted(group: Group) -> None:
    group.start("a", instance="i-a")
    group.start("b", instance="i-b")
    before = group.settled(2)
    group.kill("b")
    group.start("b", instance="i-b")
    replaced = group.wait("i-b is back", lambda a: a.cause.what is What.STATIC_REPLACED)
    assert only(replaced, What.STATIC_REPLACED) == (Sure.SEEN, "i-b")
    assert replaced.generation == before.generation
    assert "without a rebalance" in replaced.headline


def test_another_subscription_and_more_partitions(group: Group) -> None:
    group.start("a")
    group.start("b")
    group.settled(2)
    group.subscribe("b", group.topics[0])
    changed = group.wait("b reads less", lambda a: any(m.topics == (group.topics[0],) for m in a.members))
    assert only(changed, What.SUBSCRIPTION_CHANGED) == (Sure.SEEN, "b"), changed.causes
    with Admin(bootstrap_servers=group.bootstrap) as admin:
        admin.create_partitions(group.topics[0], 5)
    more = group.wait("more partitions", lambda a: any((group.topics[0], 4) in m.partitions for m in a.members))
    assert only(more, What.PARTITIONS_CHANGED)[0] is Sure.INFERRED
    assert more.causes[0].detail == f"{group.topics[0]}-3 and {group.topics[0]}-4"
