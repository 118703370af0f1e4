"""`partita groups why` about members on librdkafka, beside a broker's notes: findings F2 to F4 of the incidents."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import confluent_kafka
import pytest
from click.testing import CliRunner

from partita import Admin, Broker
from partita.cli.commands import cli

PATIENCE_S = 60


class Group:
    """A group of librdkafka's consumers in this process, which are polled in turn while something is awaited."""

    def __init__(self, broker: Broker, name: str, stack: ExitStack) -> None:
        self.broker = broker
        self.name = name
        self._stack = stack
        self.members: list[confluent_kafka.Consumer] = []

    def start(self, client: str, topics: list[str], **options: object) -> None:
        """Start a member; it is closed at the end."""
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.broker.bootstrap, "group.id": self.name, "client.id": client,
                "topic.metadata.refresh.interval.ms": 200, "heartbeat.interval.ms": 200, "session.timeout.ms": 10_000,
                "partition.assignment.strategy": "range", "log_level": 0, **options,
            }
        )  # fmt: skip
        self._stack.callback(consumer.close)
        consumer.subscribe(topics)
        self.members.append(consumer)

    def why(self) -> str:
        """Return the output of the command, with the broker's notes."""
        port, token = str(self.broker.running.admin_port), str(self.broker.admin_token)
        words = ["groups", "why", self.name, "-b", self.broker.bootstrap, "--admin-port", port, "--admin-token", token]
        return CliRunner().invoke(cli, words).output

    def until(self, holds: Callable[[], bool]) -> None:
        """Poll until it holds."""
        end = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < end, self.why()
            for member in self.members:
                member.poll(0.05)

    def settled(self, partitions: int) -> None:
        """Wait until all partitions are assigned."""
        self.until(lambda: sum(len(member.assignment()) for member in self.members) == partitions)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(admin_port=0) as running:
        yield running


@pytest.fixture
def group(broker: Broker, request: pytest.FixtureRequest) -> Iterator[Group]:
    with ExitStack() as stack:
        yield Group(broker, str(request.node.originalname), stack)


def test_topics_that_grow_go_and_come_are_named(broker: Broker, group: Group) -> None:
    broker.create_topics({"grows": 2, "goes": 1})
    group.start("w1", ["grows", "goes", "^comes-.*"])
    group.settled(3)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_partitions("grows", 4)
        group.settled(5)
        assert "Partitions were added (grows-2 and grows-3), and w1 noticed." in group.why()
        admin.delete_topics(["goes"])
        group.settled(4)
        assert "Topic goes was deleted, and w1 noticed." in group.why()
        admin.create_topic("comes-1", 1)
        group.settled(5)
        assert "Topic comes-1 was created, and w1 noticed." in group.why()


def test_a_member_that_cannot_join_is_named_with_what_is_in_common(broker: Broker, group: Group) -> None:
    broker.create_topics({"refused": 2})
    group.start("w1", ["refused"])
    group.settled(2)
    group.start("w2", ["refused"], **{"partition.assignment.strategy": "roundrobin"})
    group.until(lambda: "w2 cannot join" in group.why())
    assert "it offers roundrobin, and the members have range in common" in group.why()


def test_two_processes_with_one_instance_id_are_no_restart(broker: Broker, group: Group) -> None:
    broker.create_topics({"twins": 1})
    group.start("box", ["twins"], **{"group.instance.id": "box-2"})
    group.settled(1)
    group.start("box", ["twins"], **{"group.instance.id": "box-2"})
    group.until(lambda: "Two processes use the instance id box-2" in group.why())
