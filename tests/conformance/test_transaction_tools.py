"""Kafka's tools of transactions on Partita and on Apache Kafka: the copier of its system tests, its administration."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from partita import Admin, Broker
from support.clients.broker import fresh
from support.kafka.node import KafkaNode, settle
from support.kafka.tools import Output, Twins
from support.producer.transaction_admin_stories import write_behind_the_coordinators_back
from support.producer.transaction_stories import producer_of, seen

UNVERIFIED = "transaction.partition.verification.enable"
COPIED = 400


@pytest.fixture(scope="module")
def places(kafka: KafkaNode) -> Iterator[tuple[str, str]]:
    """Where Apache Kafka and Partita are."""
    with Broker({"group.initial.rebalance.delay.ms": 0}) as broker:
        yield kafka.bootstrap, broker.bootstrap


@pytest.fixture(scope="module")
def twins(places: tuple[str, str]) -> Twins:
    return Twins(*places)


def created(twins: Twins, partitions: int = 1) -> str:
    name = fresh("transactions")
    twins.same("TopicCommand", "--create", "--topic", name, "--partitions", str(partitions))
    return name


def administered(twins: Twins, *words: str) -> tuple[Output, Output]:
    """What TransactionsCommand says on both."""
    both = twins.both("TransactionsCommand", "--bootstrap-server", "BOOTSTRAP", *words)
    assert [output.code for output in both] == [0, 0], both
    return both


@pytest.mark.case("TX-R06")
@pytest.mark.parametrize("mode", [(), ("--group-mode", "--use-group-metadata")], ids=["assigned", "subscribed"])
def test_javas_copier_copies_every_record_once_although_it_aborts_at_random(
    twins: Twins, places: tuple[str, str], mode: tuple[str, ...]
) -> None:
    """Run twice, as a process that ended in the middle and was started again; the second one fences the first."""
    source, target, group, name = created(twins), created(twins), fresh("group"), fresh("id")
    words = ("--bootstrap-server", "BOOTSTRAP", "--topic", source, "--max-messages", f"{COPIED}", "--acks", "-1")
    assert [output.code for output in twins.both("VerifiableProducer", *words)] == [0, 0]
    for more in (("--max-messages", f"{COPIED // 2}"), ()):
        done = twins.both(
            "TransactionalMessageCopier",
            *("--broker-list", "BOOTSTRAP", "--transactional-id", name, "--consumer-group", group),
            *("--input-topic", source, "--input-partition", "0", "--output-topic", target),
            *("--transaction-size", "15", "--enable-random-aborts", *mode, *more),
        )
        assert [output.code for output in done] == [0, 0], done
    for bootstrap in places:
        assert seen(bootstrap, target) == seen(bootstrap, source) == sorted(f"{n}" for n in range(COPIED))


@pytest.mark.case("TX-L12", "TX-H01", "TX-L09")
def test_a_hanging_transaction_is_found_and_aborted_by_javas_tool(twins: Twins, places: tuple[str, str]) -> None:
    topic = created(twins)
    looking = ("find-hanging", "--topic", topic, "--partition", "0", "--max-transaction-timeout", "0")
    for bootstrap in places:
        with Admin(bootstrap_servers=bootstrap) as admin:
            admin.alter_configs("broker", "1", {UNVERIFIED: "false"})
            settle(admin)
            asyncio.run(write_behind_the_coordinators_back(bootstrap, topic, fresh("id")))
            admin.alter_configs("broker", "1", {UNVERIFIED: "true"})
    for output in administered(twins, *looking):
        assert any(line.startswith(f"{topic} 0 ") for line in output.lines), output
    administered(twins, "abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    for output in administered(twins, *looking):
        assert not any(topic in line for line in output.lines), output
    assert [seen(bootstrap, topic) for bootstrap in places] == [[], []]


@pytest.mark.case("TX-L12", "TX-L01")
def test_an_open_transaction_is_described_and_terminated_by_javas_tool(twins: Twins, places: tuple[str, str]) -> None:
    topic, name = created(twins), fresh("id")
    producers = [producer_of(bootstrap, name) for bootstrap in places]
    for producer in producers:
        producer.begin_transaction()
        producer.send(topic, "never seen").result(20)
    for output in administered(twins, "describe", "--transactional-id", name):
        assert any("Ongoing" in line and f"{topic}-0" in line for line in output.lines), output
    administered(twins, "forceTerminateTransaction", "--transactionalId", name)
    for output in administered(twins, "describe", "--transactional-id", name):
        assert not any("Ongoing" in line for line in output.lines), output
    for producer in producers:
        with pytest.raises(Exception, match=r"newer epoch|init_transactions"):
            producer.commit_transaction()
        producer.close()
    assert [seen(bootstrap, topic) for bootstrap in places] == [[], []]
