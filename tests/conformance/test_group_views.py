"""Groups as tables say what Kafka's own tool says, on Apache Kafka and on Partita.

The groups are made with Java's, confluent's and our consumer. Issue 13, item 2. The source is read as Spark reads it,
without a JVM of Spark's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from typing import Any

import confluent_kafka
import pytest

from partita import Broker, Consumer, Producer
from partita.admin import Admin
from partita.spark.cluster.broker_link import link_to
from partita.spark.cluster.cluster_lookups import ClusterLookups
from partita.spark.planning.lookups import Committed
from partita.spark.source import GroupSource
from support.clients.exported import exported
from support.kafka.node import KafkaNode, run_tool

pytestmark = pytest.mark.conformance

TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"
TOPIC, PARTITIONS, RECORDS = "viewed", 3, 12
GROUPS = ("by-java", "by-confluent", "by-partita", "by-epochs", "by-spark")
Row = dict[str, Any]


@pytest.fixture(scope="module", params=["kafka", "partita"])
def bootstrap(request: pytest.FixtureRequest) -> Iterator[str]:
    """A cluster whose groups are still alive."""
    with ExitStack() as alive:
        if request.param == "kafka":
            kafka: KafkaNode = request.getfixturevalue("kafka")
            address = kafka.bootstrap
        else:
            address = alive.enter_context(Broker()).bootstrap
        _make_groups(address, alive)
        yield address


def _make_groups(bootstrap: str, alive: ExitStack) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(TOPIC, partitions=PARTITIONS)
    with Producer(bootstrap_servers=bootstrap) as producer:
        for i in range(RECORDS):
            producer.send(TOPIC, str(i), partition=i % PARTITIONS)
    words = ["--topic", TOPIC, "--group", "by-java", "--from-beginning", "--max-messages", "7"]
    done = run_tool(CONSOLE, "--bootstrap-server", bootstrap, *words)
    assert "Processed a total of 7 messages" in done.stderr, done.stderr
    settings = {"bootstrap.servers": bootstrap, "group.id": "by-confluent", "enable.auto.commit": False}
    theirs = [
        confluent_kafka.Consumer(settings | {"client.id": f"c{i}", "group.protocol": "classic"}) for i in range(2)
    ]
    for consumer in theirs:
        alive.callback(consumer.close)
        consumer.subscribe([TOPIC])
    while not all(len(consumer.assignment()) in (1, 2) for consumer in theirs):
        for consumer in theirs:
            consumer.poll(0.1)
    for consumer in theirs:
        offsets = [confluent_kafka.TopicPartition(TOPIC, p.partition, p.partition + 1) for p in consumer.assignment()]
        consumer.commit(offsets=offsets, asynchronous=False)
    ours = alive.enter_context(
        Consumer(bootstrap_servers=bootstrap, group_id="by-partita", group_instance_id="desk", enable_auto_commit=False)
    )
    ours.subscribe([TOPIC])
    while len(ours.assignment()) < PARTITIONS:
        ours.poll(0.1)
    ours.commit({(TOPIC, 1): 2})
    newer = alive.enter_context(
        Consumer(bootstrap_servers=bootstrap, group_id="by-epochs", group_protocol="consumer", enable_auto_commit=False)
    )
    newer.subscribe([TOPIC])
    while len(newer.assignment()) < PARTITIONS:
        newer.poll(0.1)
    newer.commit({(TOPIC, 2): 1})
    lookups = ClusterLookups(link_to({"bootstrap.servers": bootstrap}))
    lookups.commit("by-spark", {(TOPIC, 0): Committed(3, 0, "spark:delays:41")})


def rows_of(bootstrap: str, view: str, **options: str) -> list[Row]:
    """The rows of a batch read."""
    source = GroupSource({"kafka.bootstrap.servers": bootstrap, "view": view} | options)
    reader = source.reader(source.schema())
    read = [batch for partition in reader.partitions() for batch in reader.read(partition)]
    return [row for batch in read for row in batch.to_pylist() if row["group"] in GROUPS]  # type: ignore[union-attr]  # Arrow


def told(bootstrap: str, *words: str) -> list[Row]:
    """What the tool prints for all groups, by the names of its columns; "-" is None."""
    done = run_tool(TOOL, "--bootstrap-server", bootstrap, "--describe", "--all-groups", *words)
    names: list[str] = []
    found = []
    for line in done.stdout.splitlines():
        if line.startswith("GROUP"):
            names = line.replace("COORDINATOR (ID)", "COORDINATOR ID").split()
        elif line.strip() and line.split()[0] in GROUPS:
            values = [None if value == "-" else value for value in line.split()]
            found.append(dict(zip(names, values, strict=False)))
    assert found, done.stdout + done.stderr
    return found


def number(text: str | None) -> int | None:
    return None if text is None else int(text)


def test_lag_in_a_batch_and_in_a_stream_is_what_the_tool_says(bootstrap: str) -> None:
    expected = {
        (row["GROUP"], row["TOPIC"], int(row["PARTITION"])): (
            number(row["CURRENT-OFFSET"]), number(row["LOG-END-OFFSET"]), number(row["LAG"]), row["CONSUMER-ID"],
            row["CLIENT-ID"], row["HOST"],
        )
        for row in told(bootstrap)
    }  # fmt: skip
    source = GroupSource({"kafka.bootstrap.servers": bootstrap, "view": "lag"})
    stream: Any = source.streamReader(source.schema())
    stream.prepareForTriggerAvailableNow()
    start = stream.initialOffset()
    (partition,) = stream.partitions(start, stream.latestOffset(start, stream.getDefaultReadLimit()))
    sampled = [row for batch in stream.read(partition) for row in batch.to_pylist() if row["group"] in GROUPS]
    for rows in (rows_of(bootstrap, "lag"), sampled):
        found = {
            (row["group"], row["topic"], row["partition"]): (
                row["committedOffset"], row["endOffset"], row["lag"], row["memberId"] or None, row["clientId"] or None,
                row["clientHost"] or None,
            )
            for row in rows
        }  # fmt: skip
        assert found == expected


def test_the_exporter_serves_the_lag_that_the_tool_prints(bootstrap: str) -> None:
    rows = [row for row in told(bootstrap) if row["LAG"] is not None]
    partitions, members = exported(bootstrap, GROUPS)
    assert partitions == {(row["GROUP"], row["TOPIC"], row["PARTITION"]): int(row["LAG"]) for row in rows}
    assert {group for group, *_ in partitions} == set(GROUPS)
    expected: dict[tuple[str, ...], float] = {}
    for row in rows:
        if row["CONSUMER-ID"] is not None:
            member = "desk" if row["GROUP"] == "by-partita" else row["CONSUMER-ID"]
            expected[row["GROUP"], member] = expected.get((row["GROUP"], member), 0) + int(row["LAG"])
    assert members == expected != {}


def test_the_log_of_commits_ends_where_the_groups_are(bootstrap: str) -> None:
    committed = {(r["GROUP"], int(r["PARTITION"])): number(r["CURRENT-OFFSET"]) for r in told(bootstrap)}
    expected = {key: offset for key, offset in committed.items() if offset is not None}
    newest = {(r["group"], r["partition"]): r for r in rows_of(bootstrap, "offset_commits") if not r["isTombstone"]}
    assert {key: row["offset"] for key, row in newest.items()} == expected
    assert all(row["unknownValue"] is None for row in newest.values())
    history = {(r["group"], r["partition"]): r for r in rows_of(bootstrap, "lag_history")}
    lags = {(r["GROUP"], int(r["PARTITION"])): number(r["LAG"]) for r in told(bootstrap) if r["LAG"] is not None}
    assert {key: row["lag"] for key, row in history.items()} == lags, "nothing was written since the commits"
    (lineage,) = rows_of(bootstrap, "commit_lineage")
    assert (lineage["group"], lineage["query"], lineage["batch"], lineage["offset"]) == ("by-spark", "delays", 41, 3)


def test_members_assignments_and_states_are_what_the_tool_says(bootstrap: str) -> None:
    states = {row["GROUP"]: row for row in told(bootstrap, "--state")}
    generations = {row["group"]: row for row in rows_of(bootstrap, "groups")}
    assert {name: row["memberCount"] for name, row in generations.items() if row["generation"]} == {
        name: int(row["#MEMBERS"]) for name, row in states.items() if name != "by-spark"
    }
    live = ("by-confluent", "by-partita", "by-epochs")
    expected = {
        row["CONSUMER-ID"]: (row["GROUP"], row["HOST"], row["CLIENT-ID"], int(row["#PARTITIONS"]))
        for row in told(bootstrap, "--members")
    }
    current = [r for r in rows_of(bootstrap, "members") if r["generation"] == generations[r["group"]]["generation"]]
    assert {
        row["memberId"]: (row["group"], row["clientHost"], row["clientId"], row["partitionCount"])
        for row in current
        if row["group"] in live
    } == expected
    holders = {(r["GROUP"], int(r["PARTITION"])): r["CONSUMER-ID"] for r in told(bootstrap) if r["CONSUMER-ID"]}
    held = {
        (r["group"], r["partition"]): r["memberId"]
        for r in rows_of(bootstrap, "assignments")
        if r["group"] in live and r["generation"] == generations[r["group"]]["generation"]
    }
    assert held == holders


def test_rebalances_lead_from_one_logged_state_to_the_next(bootstrap: str) -> None:
    states = [row for row in rows_of(bootstrap, "groups") if not row["isTombstone"]]
    for name in ("by-java", "by-confluent", "by-partita"):
        generations = [row["generation"] for row in states if row["group"] == name]
        steps = [row for row in rows_of(bootstrap, "rebalances") if row["group"] == name]
        assert [(row["previousGeneration"], row["generation"]) for row in steps] == list(pairwise(generations))
    ours = [row for row in rows_of(bootstrap, "rebalances") if row["group"] == "by-partita"]
    assert [row["added"] for row in ours if row["added"]] in ([["desk"]], []), (
        "one static member, known by its own name"
    )
    (first,) = [row for row in rows_of(bootstrap, "rebalances") if row["group"] == "by-epochs"]
    assert (first["memberCount"], len(first["added"]), first["moved"], first["unassigned"]) == (1, 1, [], [])
    (protocol,) = {row["protocol"] for row in states if row["group"] == "by-epochs"}
    assert protocol == "consumer"
    kinds = {row["keyVersion"] for row in rows_of(bootstrap, "group_log")}
    assert kinds >= {1, 2, 3, 5, 8}
