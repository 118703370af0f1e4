"""Copiers: consume, transform, produce, with the position in the transaction; alone with a partition, or as members."""

from __future__ import annotations

from collections.abc import Generator

from partita.errors import FatalTransactionError, KafkaError
from partita.log.producer_state import bytes_of
from partita.producer.transactions.calls import Member, TxnOffset
from partita.producer.transactions.core import Transactions
from partita.records.batch import Record
from partita.sim.transactions.client import RETRY_MS, Client, Script, Wait
from partita.sim.transactions.consumer import SimConsumer
from partita.sim.transactions.ledger import TopicPartition
from partita.sim.transactions.producer import SimProducer
from partita.sim.transactions.scripts import Level, Records, committed, fetch, produce
from partita.sim.transactions.stage import COPIERS, Stage

_POLL_MS = 300


def copy(stage: Stage, client: Client, partition: int, level: Level) -> Script:
    """Copy an input partition, as its only copier, until the input ends."""
    source: TopicPartition = ("in", partition)
    producer = produce(stage, client, f"copy{partition}", level)
    try:
        yield from producer.call(Transactions.init)
        position = yield from committed(client, source)
        while stage.is_producing or position < stage.input_end(partition):
            records, _ = yield from fetch(stage, client, source, position)
            if not records:
                yield client.pause_for(RETRY_MS)
                continue
            records = records[: stage.world.dice.between(1, 5)]
            if (yield from _copy(stage, producer, {source: records}, Member(COPIERS))):
                position = records[-1][0] + 1
            else:
                position = yield from committed(client, source)
    except KafkaError as error:
        client.failure = str(error)


def copy_as_member(stage: Stage, client: Client, transactional_id: str, level: Level) -> Script:
    """Copy what the group gives to this member, until all of the input is copied. (KIP-447)"""
    producer = produce(stage, client, transactional_id, level)
    try:
        yield from producer.call(Transactions.init)
        consumer = SimConsumer(client, ("in",), **_options(stage))
        while stage.is_producing or not stage.is_copied():
            found = yield from consumer.poll(_POLL_MS)
            batch = {(at.topic, at.partition): _texts(records) for at, records in found.items()}
            if batch and not (yield from _copy(stage, producer, batch, consumer.member())):
                consumer.go_back()
    except KafkaError as error:
        client.failure = str(error)


def _options(stage: Stage) -> dict[str, object]:
    protocol = stage.plan.group_protocol
    own = {} if protocol == "consumer" else {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 1_000}
    # A JoinGroup whose answer is lost is asked again 5 s after this, which has to come before the patience of TL6 ends.
    return {
        "group_id": COPIERS,
        "group_protocol": protocol,
        "isolation_level": "read_committed",
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "max_poll_records": 5,
        "max_poll_interval_ms": 45_000,
        "fetch_max_wait_ms": 100,
        "request_timeout_ms": 5_000,
        **own,
    }


def _texts(records: list[Record]) -> Records:
    return [(one.offset, bytes_of(one.value).decode()) for one in records if one.value is not None]


def _copy(
    stage: Stage, producer: SimProducer, batch: dict[TopicPartition, Records], member: Member
) -> Generator[Wait, None, bool]:
    """One transaction of copies and positions; False if it had to be aborted. Raises FatalTransactionError."""
    transactions, client = producer.transactions, producer.client
    told = stage.ledger.begin(client.name, transactions.transactional_id)
    told.producer = transactions.producer
    transactions.begin()
    try:
        for (_, partition), records in batch.items():
            for offset, value in records:
                copied = f"{partition}:{offset}:{value}#{told.number}"
                told.records.append((("out", 0), copied))
                producer.send("out", 0, copied)
        offsets = {source: TxnOffset(records[-1][0] + 1) for source, records in batch.items()}
        yield from producer.call(lambda of: of.send_offsets(offsets, member))
        stage.ledger.ask_end(told, commit=True)
        yield from producer.call(Transactions.commit)
    except FatalTransactionError:
        raise
    except KafkaError:
        stage.ledger.ask_end(told, commit=False)
        yield from producer.call(Transactions.abort)
        told.outcome = False
    else:
        told.outcome = True
    return told.outcome is True
