"""The metrics of consumer and producer are those of Java's: the same groups, names and tags, from the start.

Java's clients run against Partita's broker, beside Partita's own.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from partita import Broker, Consumer, Producer
from partita.metrics.registry import MetricName
from support.kafka.node import jars

PROGRAM = Path(__file__).parents[1] / "support" / "kafka" / "MetricNames.java"
NOT_OURS = re.compile(r"app-info .*|producer-metrics txn-prepare-time-ns-total")
"""What is no number, and the time of preparing for two-phase commit (KIP-939), which this producer does not do."""
Seen = set[tuple[str, str, tuple[str, ...]]]

pytestmark = pytest.mark.conformance


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture(scope="module")
def of_java(broker: Broker) -> dict[str, Seen]:
    """What Java's clients have after one record, by client."""
    command = ["java", "-cp", f"{jars()}/*", str(PROGRAM), broker.bootstrap, "java"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found: dict[str, Seen] = {"consumer": set(), "producer": set()}
    for line in done.stdout.splitlines():
        client, group, name, tags, _ = line.split("\t")
        if not NOT_OURS.fullmatch(f"{group} {name}"):
            found[client].add((group, name, tuple(sorted(set(tags.split(",")) - {"client-id"}))))
    return found


def seen(names: set[MetricName]) -> Seen:
    return {
        (group, name, tuple(sorted(tag.replace("_", "-") for tag, _ in tags)))
        for group, name, tags in names
        if not group.startswith("partita-")
    }


def test_the_consumers_metrics_are_javas(broker: Broker, of_java: dict[str, Seen]) -> None:
    broker.produce("ours", "x")
    with Consumer(bootstrap_servers=broker.bootstrap, group_id="m", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["ours"])
        while not consumer.poll(1):
            pass
        consumer.commit()
        consumer.metrics()
        assert seen(consumer._calls._driver.metrics.names()) == of_java["consumer"]


def test_the_producers_metrics_are_javas(broker: Broker, of_java: dict[str, Seen]) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send("ours", b"x").result(10)
        assert seen(producer._producer._driver.measured.names()) == of_java["producer"]


def test_all_metrics_but_those_of_nodes_topics_and_partitions_are_there_from_the_start(
    broker: Broker, of_java: dict[str, Seen]
) -> None:
    consumer = Consumer(bootstrap_servers=broker.bootstrap, group_id="m")
    names = seen(consumer._calls._driver.metrics.names())
    consumer.close()
    assert names == {row for row in of_java["consumer"] if not row[2]}
