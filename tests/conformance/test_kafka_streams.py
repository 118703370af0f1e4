"""Applications of Kafka Streams with `group.protocol=streams` on our broker: every word is counted, over kill -9."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from partita import Broker, Consumer, Producer
from support.kafka.node import KafkaNode, KafkaUnavailable, jars
from support.kafka.shop import AT_LEAST_ONCE, ONCE, joins

pytestmark = pytest.mark.conformance

PROGRAM = Path(__file__).parents[1] / "support" / "kafka" / "WordCount.java"
PATIENCE_S = 120


@contextmanager
def application(bootstrap: str, folder: Path, release: str, guarantee: str) -> Iterator[subprocess.Popen[str]]:
    """One process of the application, which runs once this is entered."""
    try:
        classes = f"{jars(release, 'streams')}/*"
    except KafkaUnavailable as reason:
        pytest.skip(f"no Kafka Streams: {reason}")
    command = ["java", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classes, str(PROGRAM)]
    with subprocess.Popen(
        [*command, bootstrap, str(folder), guarantee], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            states = iter(process.stdout.readline, "")
            assert any(state.strip() == "RUNNING" for state in states), process.stderr and process.stderr.read()[-3000:]
            yield process
        finally:
            process.kill()


def feed(bootstrap: str, lines: int) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(lines):
            producer.send("lines", f"all w{number % 7}".encode(), partition=number % 3)


def counted(bootstrap: str, words: int) -> dict[str, int]:
    """The last count of each word, once they are as many as there were words."""
    found: dict[str, int] = {}
    until = time.monotonic() + PATIENCE_S
    with Consumer(
        bootstrap_servers=bootstrap,
        group_id=f"reader-{words}",
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as consumer:
        consumer.subscribe(["counts"])
        while sum(found.values()) < words and time.monotonic() < until:
            for record in consumer.poll(1.0):
                assert record.key is not None and record.value is not None  # noqa: PT018
                found[record.key.decode()] = int(record.value)
    return found


@pytest.mark.parametrize(
    ("release", "guarantee"),
    [("4.3.1", "at_least_once"), ("4.4.0", "exactly_once_v2")],
)
def test_every_word_is_counted_once_over_a_kill(tmp_path: Path, release: str, guarantee: str) -> None:
    with Broker(
        group_streams_num_standby_replicas=1,
        group_streams_initial_rebalance_delay_ms=500,
        group_streams_session_timeout_ms=6_000,
        group_streams_min_session_timeout_ms=6_000,
    ) as broker:
        broker.create_topics({"lines": 3, "counts": 1})
        with application(broker.bootstrap, tmp_path / "one", release, guarantee) as first:
            feed(broker.bootstrap, 700)
            assert sum(counted(broker.bootstrap, 1_400).values()) == 1_400
            with application(broker.bootstrap, tmp_path / "two", release, guarantee):
                first.kill()
                feed(broker.bootstrap, 700)
                found = counted(broker.bootstrap, 2_800)
    assert found == {"all": 1_400, **{f"w{number}": 200 for number in range(7)}}


SOON = {
    "auto.create.topics.enable": "false",
    "group.streams.min.session.timeout.ms": "4000",
    "group.streams.session.timeout.ms": "4000",
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.initial.rebalance.delay.ms": "500",
}
"""An instance that was killed is missed soon."""


def test_joins_windows_and_queries_are_right_while_two_instances_die(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """On ours; with `--slow` the older release and Apache Kafka, too."""
    runs = [("ours", "4.4.0", ONCE)]
    if pytestconfig.getoption("--slow"):
        runs += [("ours", "4.3.1", ONCE), ("ours", "4.3.1", AT_LEAST_ONCE), ("kafka", "4.4.0", ONCE)]
    for place, (side, release, guarantee) in enumerate(runs):
        folder = tmp_path / str(place)
        folder.mkdir()
        try:
            with KafkaNode(None, **SOON) if side == "kafka" else Broker(SOON) as cluster:
                passed = list(joins(cluster.bootstrap, folder, release, guarantee))
        except KafkaUnavailable as reason:
            pytest.skip(f"no Kafka Streams: {reason}")
        assert len(passed) == (4 if release == "4.3.1" else 7)
