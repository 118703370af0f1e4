"""The Java clients of Apache Kafka 4.4.0 on our broker: plain, transactional, of both group protocols, and sharing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from partita import Admin, Broker
from support.kafka.node import KafkaUnavailable, jars

pytestmark = pytest.mark.conformance

PROGRAM = Path(__file__).parents[1] / "support" / "kafka" / "Clients.java"
RELEASE = "4.4.0"


def test_every_client_of_the_release_does_its_work() -> None:
    try:
        command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{jars(RELEASE)}/*", str(PROGRAM)]
    except KafkaUnavailable as reason:
        pytest.skip(f"no Java clients: {reason}")
    with Broker() as broker:
        broker.create_topics({"t": 1})
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            options = {"share.auto.offset.reset": "earliest", "share.isolation.level": "read_committed"}
            admin.alter_configs("group", "shared", options)
        done = subprocess.run([*command, broker.bootstrap, "t"], capture_output=True, text=True, timeout=300)
    plain = [f"plain{number}" for number in range(3)]
    everything = ",".join([*plain, *(f"copied {value}" for value in plain)])
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.splitlines() == [
        "copier 3", f"classic {everything}", f"consumer {everything}", f"static {everything}",
        f"shared {everything}",
    ]  # fmt: skip
