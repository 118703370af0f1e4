"""Tasks of Spark fetch from the replica in their rack, on two brokers of Apache Kafka. findings/spark.md section 5."""

from __future__ import annotations

import pytest

from partita import Producer
from partita.admin import Admin, NewTopic
from partita.spark.cluster.broker_link import BrokerLink
from partita.spark.planning.planner import RangeTask
from partita.spark.reading.range_reader import FetchSettings, RangeReader
from support.kafka.node import KafkaNode

pytestmark = pytest.mark.conformance
SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
RECORDS = 500


def test_the_replica_in_the_rack_serves_and_nothing_is_missing() -> None:
    east = KafkaNode(broker_rack="east", replica_selector_class=SELECTOR)
    with KafkaNode(broker_rack="west", replica_selector_class=SELECTOR) as west:
        east.joins = west
        with east:
            check(west, east)


def check(west: KafkaNode, east: KafkaNode) -> None:
    with Admin(bootstrap_servers=[west.bootstrap, east.bootstrap]) as admin:
        while len(admin.describe_cluster().nodes) < 2:
            pass
        admin.create_topics(NewTopic("racked", replicas={0: [1, 2]}))
    with Producer(bootstrap_servers=west.bootstrap) as producer:
        for i in range(RECORDS):
            producer.send("racked", str(i))
    for rack, serving in (("west", {1}), ("east", {2}), ("", {1}), ("nowhere", {1})):
        offsets, nodes = read(west.bootstrap, rack)
        assert offsets == list(range(RECORDS))
        assert nodes == serving, f"rack {rack!r}"


def read(bootstrap: str, rack: str) -> tuple[list[int], set[int]]:
    """The offsets that a task reads, and which brokers gave records; the first fetch of the leader gives none."""
    link = BrokerLink({"bootstrap.servers": bootstrap})
    reader = RangeReader(link, RangeTask("racked", 0, 0, RECORDS), FetchSettings(rack=rack, partition_max_bytes=4_000))
    gave: set[int] = set()
    ask = reader._ask

    async def noted(node_id: int, position: int):  # type: ignore[no-untyped-def]  # as the method it stands for
        told = await ask(node_id, position)
        if told.records:
            gave.add(node_id)
        return told

    reader._ask = noted  # type: ignore[method-assign]  # to see which broker serves
    return [offset for batch in reader.batches() for offset in batch.column("offset").to_pylist()], gave
