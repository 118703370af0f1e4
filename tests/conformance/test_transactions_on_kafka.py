"""Our transactional producer and read_committed consumer on Apache Kafka, at both levels of transaction.version."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from partita import Admin
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, V3AndBelowTopic
from partita.protocol.messages.end_txn import EndTxnRequest
from partita.protocol.messages.init_producer_id import InitProducerIdRequest
from support.broker.raw import Raw
from support.kafka.node import KafkaNode, KafkaUnavailable, settle
from support.producer import copier
from support.producer import transaction_admin_stories as admin_stories
from support.producer import transaction_stories as stories

WAIT = ErrorCode.CONCURRENT_TRANSACTIONS
LOOK_MS = "300"
"""How often Kafka looks for transactions that take too long."""


@pytest.fixture(scope="module", params=[2, 0])
def node(request: pytest.FixtureRequest) -> Iterator[KafkaNode]:
    try:
        kafka = KafkaNode(transaction_abort_timed_out_transaction_cleanup_interval_ms=LOOK_MS)
        with kafka.with_feature("transaction.version", request.param) as node:
            yield node
    except KafkaUnavailable as reason:
        pytest.skip(f"no Apache Kafka to compare with: {reason}")


@pytest.mark.parametrize("story", stories.STORIES, ids=lambda story: story.__name__)
def test_transactions_do_what_they_promise(node: KafkaNode, story: stories.Story) -> None:
    story(node.bootstrap)


@pytest.mark.case("TX-K01", "TX-K03", "TX-P06")
def test_a_slow_producer_learns_that_its_transaction_timed_out(node: KafkaNode) -> None:
    stories.a_slow_producer_learns_that_its_transaction_timed_out(node.bootstrap)


@pytest.mark.case("TX-P17", "TX-N01")
def test_a_restart_in_the_middle_of_a_transaction_is_not_noticed(node: KafkaNode) -> None:
    topic = stories.topic_of(node.bootstrap)
    with stories.producer_of(node.bootstrap) as producer:
        with producer.transaction():
            producer.send(topic, "before").result(20)
            node.stop()
            node.start()
            producer.send(topic, "behind")
        with producer.transaction():
            producer.send(topic, "next")
    assert stories.seen(node.bootstrap, topic) == ["before", "behind", "next"]


@pytest.mark.case("TX-L01", "TX-L02", "TX-L04", "TX-L05", "TX-L08", "TX-L09")
def test_what_is_open_is_listed_described_and_fenced(node: KafkaNode) -> None:
    admin_stories.what_is_open_is_listed_described_and_fenced(node.bootstrap)


@pytest.mark.case("TX-L12", "TX-H01")
def test_a_hanging_transaction_is_found_and_ended(node: KafkaNode) -> None:
    with Admin(bootstrap_servers=node.bootstrap) as admin:
        admin.alter_configs("broker", "1", {"transaction.partition.verification.enable": "false"})
        settle(admin)
    admin_stories.a_hanging_transaction_is_found_and_ended(node.bootstrap)


@pytest.mark.case("TX-P21")
def test_the_program_of_the_docs_is_killed_at_every_line(node: KafkaNode) -> None:
    copier.killed_at_its_lines(node.bootstrap)


@pytest.mark.case("TX-G02")
@pytest.mark.parametrize("node", [2], indirect=True)
def test_kafka_tells_a_fenced_producer_the_epoch_of_its_successor_of_version_1(node: KafkaNode) -> None:
    """Why `partita.transactions.end` differs: the old producer would go on beside the new one, with its epoch."""
    topic, name = stories.topic_of(node.bootstrap), stories.fresh("id")
    with stories.producer_of(node.bootstrap, name), Raw(int(node.bootstrap.rpartition(":")[2])) as raw:
        init = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
        while (old := raw.ask(init, 5)).error_code:
            pass
        new = raw.ask(init, 5)
        ids = {"producer_id": new.producer_id, "producer_epoch": new.producer_epoch}
        topics = [V3AndBelowTopic(name=topic, partitions=[0])]
        added = {f"v3_and_below_{field}": value for field, value in {"transactional_id": name, **ids}.items()}
        raw.ask(AddPartitionsToTxnRequest(**added, v3_and_below_topics=topics), 3)
        while raw.ask(EndTxnRequest(transactional_id=name, **ids, committed=True), 4).error_code:
            pass
        stale = {"producer_id": old.producer_id, "producer_epoch": old.producer_epoch}
        while (told := raw.ask(EndTxnRequest(transactional_id=name, **stale, committed=True), 5)).error_code == WAIT:
            pass
    assert (told.error_code, told.producer_epoch) == (0, new.producer_epoch)
