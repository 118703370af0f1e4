"""Partita's clients meet the releases of Apache Kafka that are still run, one node of each: 2.8 with ZooKeeper, to 4.4.

Each call takes the newest version that both speak; what a release lacks is said in one line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from partita import Admin, Consumer, GroupMetadata, Producer
from partita.errors import UnsupportedVersionError
from partita.spark import session
from support.kafka.node import KafkaNode, KafkaUnavailable, numbers

pytestmark = [pytest.mark.conformance, pytest.mark.spark]

RELEASES = ("2.8.2", "3.9.2", "4.3.1", "4.4.0")
"""The newest 2, the newest 3, and the two that the rest of these tests can ask."""


@pytest.fixture(scope="module", params=RELEASES)
def node(request: pytest.FixtureRequest) -> Iterator[KafkaNode]:
    try:
        with KafkaNode().of_release(request.param) as node:
            yield node
    except KafkaUnavailable as reason:
        pytest.skip(f"no Apache Kafka to ask: {reason}")


def refusal(call: Callable[[], object]) -> str:
    """The one line in which a call is refused that this release does not serve."""
    with pytest.raises(UnsupportedVersionError) as refused:
        call()
    assert "\n" not in str(refused.value)
    return str(refused.value)


def read(node: KafkaNode, topic: str, count: int, protocol: str) -> list[tuple[int, bytes | None]]:
    """Read so many records in a group of this protocol, and commit."""
    with Consumer(
        bootstrap_servers=node.bootstrap, group_id=f"{topic}-{protocol}", group_protocol=protocol,
        auto_offset_reset="earliest", isolation_level="read_committed",
    ) as consumer:  # fmt: skip
        consumer.subscribe([topic])
        found: list[tuple[int, bytes | None]] = []
        while len(found) < count:
            found += [(record.partition, record.value) for record in consumer.poll(1)]
        consumer.commit()
        return sorted(found)


def test_clients_do_their_work_and_say_what_is_missing(node: KafkaNode) -> None:
    release = numbers(node.release)
    committed = [(0, b"idempotent"), (1, b"committed")]
    with Admin(bootstrap_servers=node.bootstrap) as admin:
        admin.create_topic("t", 2, configs={"retention.ms": "-1"})
        admin.wait_for_topics("t")
        with Producer(bootstrap_servers=node.bootstrap, compression_type="zstd") as producer:
            assert producer.send("t", b"idempotent", partition=0).result(60).offset == 0
        with Producer(bootstrap_servers=node.bootstrap, transactional_id="x") as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send("t", b"aborted", partition=1)
            producer.abort_transaction()
            producer.begin_transaction()
            producer.send("t", b"committed", partition=1)
            producer.send_offsets_to_transaction({("t", 0): 1}, GroupMetadata("beside"))
            producer.commit_transaction()
        assert read(node, "t", 2, "classic") == committed
        assert [offset.offset for offset in admin.group_offsets("beside")] == [1]
        assert {row.partition: row.lag for row in admin.group_lag("t-classic")} == {0: 0, 1: 0}
        assert admin.describe_group("t-classic").type == "classic"
        admin.alter_configs("topic", "t", {"retention.ms": "86400000"})
        assert admin.delete_records({("t", 0): 1}) == {("t", 0): 1}
        if release < (4,):
            assert "use group_protocol='classic'" in refusal(lambda: read(node, "t", 1, "consumer"))
        else:
            assert read(node, "t", 1, "consumer") == committed[1:]
        if release < (3,):
            said = f"the broker at {node.bootstrap} does not serve ListTransactions; it takes another release of Kafka"
            assert refusal(admin.list_transactions) == f"UNSUPPORTED_VERSION: {said}"
        else:
            assert [found.transactional_id for found in admin.list_transactions()] == ["x"]


def test_spark_reads_and_writes(node: KafkaNode) -> None:
    with Admin(bootstrap_servers=node.bootstrap) as admin:
        for topic in ("in", "out"):
            admin.create_topic(topic, 2)
        admin.wait_for_topics(["in", "out"])
    with Producer(bootstrap_servers=node.bootstrap) as producer:
        for number in range(10):
            producer.send("in", b"%d" % number, partition=number % 2)
    address = {"kafka.bootstrap.servers": node.bootstrap}
    spark = session("other releases", master="local[2]")
    rows = spark.read.format("partita").options(subscribe="in", **address).load().select("value")
    rows.write.mode("append").format("partita").options(topic="out", **address).save()
    out = spark.read.format("partita").options(subscribe="out", **address).load()
    assert sorted(int(row.value) for row in out.collect()) == list(range(10))
