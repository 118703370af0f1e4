"""What administrators see of transactions and how they end them, by our admin client and our command line."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from click.testing import CliRunner

from partita import Admin
from partita.cli.commands import cli
from partita.errors import InvalidRequestError, ProducerFencedError, TransactionalIdNotFoundError
from partita.net.cluster import Cluster
from partita.protocol.messages.init_producer_id import InitProducerIdRequest
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.records.builder import build_batch
from support.producer.transaction_stories import fresh, producer_of, seen, topic_of


def called(bootstrap: str, *words: str) -> str:
    """The output of a command that succeeds."""
    result = CliRunner().invoke(cli, ["transactions", *words, "-b", bootstrap])
    assert result.exit_code == 0, result.output
    return result.output


def what_is_open_is_listed_described_and_fenced(bootstrap: str) -> None:
    """TX-L01, TX-L02, TX-L04, TX-L05, TX-L08, TX-L09: from open to aborted by an administrator."""
    topic, name = topic_of(bootstrap, 2), fresh("id.listed")
    with Admin(bootstrap_servers=bootstrap) as admin, producer_of(bootstrap, name) as producer:
        producer.begin_transaction()
        for partition in (0, 1):
            producer.send(topic, "open", partition=partition).result(60)
        (listed,) = admin.list_transactions(states=["Ongoing"], pattern=r"id\.listed.*")
        assert (listed.transactional_id, listed.state) == (name, "Ongoing")
        (told,) = admin.describe_transactions(name)
        assert told.partitions == [(topic, 0), (topic, 1)]
        assert told.started_ms is not None
        assert abs(told.started_ms - time.time() * 1000) < 60_000
        (remembered,) = admin.describe_producers([(topic, 0)])[topic, 0]
        assert (remembered.producer_id, remembered.open_since_offset) == (told.producer_id, 0)
        assert admin.find_hanging_transactions([(topic, 0)], max_transaction_timeout_ms=0) == []
        with pytest.raises(TransactionalIdNotFoundError):
            admin.describe_transactions("nobody")
        with pytest.raises(InvalidRequestError, match="no transaction is ever in state ongoing"):
            admin.list_transactions(states=["ongoing"])
        assert name in called(bootstrap, "list", "--state", "Ongoing")
        (row,) = json.loads(called(bootstrap, "describe", name, "--json"))
        assert row["partitions"] == [[topic, 0], [topic, 1]]
        assert f"{topic}:0 {topic}:1" in called(bootstrap, "describe", name)
        assert str(told.producer_id) in called(bootstrap, "producers", f"{topic}:0")
        assert "fenced 1 transactional id" in called(bootstrap, "abort", name, "--yes")
        producer.send(topic, "late", partition=0).exception(60)
        with pytest.raises(ProducerFencedError):
            end(producer)
    assert seen(bootstrap, topic, partitions=2) == []


def end(producer) -> None:  # type: ignore[no-untyped-def]  # a Producer
    """Commit, and abort if only that is left."""
    try:
        producer.commit_transaction()
    except ProducerFencedError:
        raise
    except Exception:
        producer.abort_transaction()


def a_hanging_transaction_is_found_and_ended(bootstrap: str) -> None:
    """TX-L12, TX-H01, KIP-664: for a cluster that takes transactional batches unverified."""
    topic, name = topic_of(bootstrap), fresh("id")
    asyncio.run(write_behind_the_coordinators_back(bootstrap, topic, name))
    with Admin(bootstrap_servers=bootstrap) as admin:
        while not (found := admin.find_hanging_transactions([(topic, 0)], max_transaction_timeout_ms=0)):
            pass
        assert [(one.topic, one.partition, one.start_offset) for one in found] == [(topic, 0, 0)]
        with pytest.raises(ValueError, match="no open transaction begins at offset 7"):
            admin.abort_hanging_transaction(topic, 0, 7)
    shown = called(bootstrap, "find-hanging", topic, "--max-transaction-timeout", "0")
    assert topic in shown
    words = ("--topic", topic, "--partition", "0", "--start-offset", "0", "--yes")
    assert f"in {topic}-0" in called(bootstrap, "abort", *words)
    assert "no transaction hangs" in called(bootstrap, "find-hanging", topic, "--max-transaction-timeout", "0")
    assert seen(bootstrap, topic) == []


async def write_behind_the_coordinators_back(bootstrap: str, topic: str, name: str) -> None:
    """A transactional batch in a partition that was never added to a transaction."""
    async with Cluster(bootstrap) as cluster:
        connection = await cluster.retry(lambda: cluster.coordinator_connection(name, 1))
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
        told = await connection.send(request, 5)
        batch = build_batch(
            [(int(time.time() * 1000), None, b"hanging", ())],
            producer_id=told.producer_id,
            producer_epoch=told.producer_epoch,
            base_sequence=0,
            is_transactional=True,
        )
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])
        leader = await cluster.leader_for(topic, 0)
        produce = ProduceRequest(transactional_id=name, acks=-1, timeout_ms=10_000, topic_data=[data])
        answer = await cluster.request(leader.id, produce, 11)
        assert answer.responses[0].partition_responses[0].error_code == 0
