"""Scripts of the clients in a simulation of transactions: writers, feeders and readers. (Copiers: `copiers`.)"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeAlias

from partita.errors import FatalTransactionError, KafkaError
from partita.log.producer_state import bytes_of
from partita.producer.transactions.calls import Member, TxnOffset
from partita.producer.transactions.core import Transactions
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from partita.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from partita.records.fetched_batches import FetchedBatches, FetchedRecords
from partita.sim.rules.rule import must
from partita.sim.transactions.bursts import send_bursts
from partita.sim.transactions.client import RETRY_MS, Client, Script, Wait
from partita.sim.transactions.ledger import Reading, Told, TopicPartition
from partita.sim.transactions.producer import SimProducer
from partita.sim.transactions.stage import COPIERS, Stage

READ_COMMITTED = 1
FETCH_VERSION, OFFSET_FETCH_VERSION = 12, 8
GROUPS = ("g0", "g1")
Level: TypeAlias = Callable[[], int]
"""Level of transaction.version that a client assumes."""
Records: TypeAlias = list[tuple[int, str]]
"""Offsets and values."""


def produce(stage: Stage, client: Client, transactional_id: str | None, level: Level, **more: object) -> SimProducer:
    """The producer of a client."""
    plan = stage.plan
    options: dict[str, object] = {
        "linger_ms": plan.linger_ms,
        "batch_size": stage.world.dice.choice((100, 16_384)),
        "request_timeout_ms": 5_000,
        "delivery_timeout_ms": stage.world.dice.choice((8_000, 60_000)),
        "max_block_ms": 20_000,
        **more,
    }
    if transactional_id is not None:
        options |= {"transactional_id": transactional_id, "transaction_timeout_ms": plan.transaction_ms}
    return SimProducer(client, level, stage.watch.answered, **options)


def write(stage: Stage, client: Client, transactional_id: str, level: Level) -> Script:
    """Write transactions until there is an error that no abort mends."""
    producer = produce(stage, client, transactional_id, level)
    dice = stage.world.dice
    try:
        yield from producer.call(Transactions.init)
        while stage.is_producing:
            yield from _transaction(stage, client, producer, transactional_id)
            if client.is_over:
                return
            if stage.plan.pause_ms:
                yield client.pause_for(dice.between(0, stage.plan.pause_ms))
    except KafkaError as error:
        client.failure = str(error)


def _transaction(stage: Stage, client: Client, producer: SimProducer, transactional_id: str) -> Script:
    dice, transactions = stage.world.dice, producer.transactions
    told = stage.ledger.begin(client.name, transactional_id)
    told.producer = transactions.producer
    transactions.begin()
    try:
        yield from _fill(stage, client, producer, told)
        end = dice.between(0, 99)
        if end < 5:
            yield client.pause_for(int(stage.plan.transaction_ms * dice.uniform(0.9, 2.5)))
        if end < 70:
            stage.ledger.ask_end(told, commit=True)
            yield from producer.call(Transactions.commit)
            told.outcome = True
            stage.world.saw("c", client.name, f"transaction {told.number} is committed")
        elif end < 92:
            stage.ledger.ask_end(told, commit=False)
            yield from producer.call(Transactions.abort)
            told.outcome = False
            stage.world.saw("c", client.name, f"transaction {told.number} is aborted")
        else:
            client.kill(quietly=dice.chance(0.5))
            client.on_end(client)
            yield lambda: False
    except FatalTransactionError:
        raise
    except KafkaError:
        stage.ledger.ask_end(told, commit=False)
        yield from producer.call(Transactions.abort)
        told.outcome = False
        stage.world.saw("c", client.name, f"transaction {told.number} is aborted after an error")


def _fill(stage: Stage, client: Client, producer: SimProducer, told: Told) -> Script:
    dice = stage.world.dice
    count = dice.between(0 if dice.chance(0.1) else 1, stage.plan.records_max)
    chosen = dice.sample(stage.written, dice.between(1, 4))
    for place in range(count):
        topic, partition = dice.choice(chosen)
        value = f"{told.number}.{place}"
        told.records.append(((topic, partition), value))
        producer.send(topic, partition, value, key=f"k{told.number % 5}")
        if dice.chance(0.2):
            yield client.pause_for(dice.between(0, 50))
    if dice.chance(0.4):
        group, where = dice.choice(GROUPS), dice.choice(stage.written)
        told.offsets[group, where] = told.number
        offsets = {where: TxnOffset(told.number)}
        yield from producer.call(lambda transactions: transactions.send_offsets(offsets, Member(group)))


def feed(stage: Stage, client: Client) -> Script:
    """Write numbered records without transactions, each once: the copiers' input, and some among the others' data."""
    producer = produce(stage, client, None, lambda: 0)
    number = 0
    while stage.is_producing:
        where = stage.world.dice.choice((*stage.inputs, *stage.inputs, stage.data[0]))
        value = f"{client.name}.{number}"
        number += 1
        delivery = producer.send(*where, value)
        yield delivery.done
        if delivery.failure() is None:
            stage.ledger.plain.append((where, value))
        yield client.pause_for(stage.world.dice.between(0, 200))


def burst(stage: Stage, client: Client) -> Script:
    """Send bursts of records, some of which are refused."""
    dice = stage.world.dice
    options: dict[str, object] = {
        "batch_size": dice.choice((100, 600, 16_384)),
        "max_in_flight_requests_per_connection": dice.choice((1, 2, 5)),
        "compression_type": dice.choice(("none", "gzip")),
    }
    return send_bursts(stage, client, produce(stage, client, None, lambda: 0, **options))


def committed(client: Client, source: TopicPartition) -> Generator[Wait, None, int]:
    """The committed position, once no transaction could change it; 0 where there is none."""
    topic, partition = source
    asked = OffsetFetchRequestGroup(
        group_id=COPIERS, topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])]
    )
    message = OffsetFetchRequest(groups=[asked], require_stable=True)
    while True:
        found: list[object] = []
        client.with_coordinator(COPIERS, 0, found.append)
        yield lambda found=found: bool(found)  # type: ignore[misc]  # mypy does not see the default
        if isinstance(found[0], int):
            slot = client.ask(found[0], message, OFFSET_FETCH_VERSION)
            yield slot.is_done
            group = None if slot.error is not None else slot.response.groups[0]
            if group is not None and not group.error_code:
                answer = group.topics[0].partitions[0]
                if not answer.error_code:
                    return max(0, int(answer.committed_offset))
            client.forget_coordinator(COPIERS, 0)
        yield client.pause_for(RETRY_MS)


def fetch(
    stage: Stage, client: Client, source: TopicPartition, position: int, max_wait_ms: int = 300
) -> Generator[Wait, None, tuple[Records, int]]:
    """Records from `position` on, as a read_committed consumer sees them, and the next position."""
    topic, partition = source
    node = yield from client.leader_of(topic, partition)
    wanted = FetchPartition(partition=partition, fetch_offset=position, partition_max_bytes=1 << 20)
    message = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        isolation_level=READ_COMMITTED,
        topics=[FetchTopic(topic=topic, partitions=[wanted])],
    )
    slot = client.ask(node, message, FETCH_VERSION)
    yield slot.is_done
    answer = slot.response.responses[0].partitions[0] if slot.response is not None else None
    if answer is not None and answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
        start = stage.watch.log_start(source)
        must(position < start, "TI2", f"{topic}-{partition}: {position} is out of range, the log begins at {start}")
        return [], start
    if answer is None or answer.error_code:
        if answer is None or ErrorCode(answer.error_code) is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            yield from _look_again(client, topic)
        must(
            answer is None or ErrorCode(answer.error_code).retriable,
            "TI2",
            f"{topic}-{partition}: a fetch from {position} is refused with {answer and answer.error_code}",
        )
        return [], position
    return _records_of(source, position, answer)


def _look_again(client: Client, topic: str) -> Script:
    done: list[bool] = []
    client.refresh([topic], lambda: done.append(True))
    yield lambda: bool(done)


def _records_of(source: TopicPartition, position: int, answer: PartitionData) -> tuple[Records, int]:
    aborted = [(one.producer_id, one.first_offset) for one in answer.aborted_transactions or ()]
    records = FetchedRecords(FetchedBatches(answer.records or b"", position, aborted=aborted), *source)
    found = records.take(1 << 20)
    return [(one.offset, bytes_of(one.value).decode()) for one in found if one.value is not None], records.next_offset


def read(stage: Stage, client: Client) -> Script:
    """Read every data partition as a read_committed consumer; now and then begin again somewhere before."""
    readings: dict[TopicPartition, Reading] = {}
    dice = stage.world.dice
    while True:
        for where in (*stage.data, ("out", 0)):
            reading = readings.get(where)
            if reading is None or dice.chance(0.05):
                start = 0 if reading is None else dice.between(0, reading.position)
                reading = readings[where] = Reading(client.name, where, start, start)
                stage.ledger.readings.append(reading)
            records, reading.position = yield from fetch(stage, client, where, reading.position, dice.choice((0, 20)))
            reading.read += records
        yield client.pause_for(dice.between(20, 400))


def write_once(stage: Stage, client: Client, transactional_id: str) -> Script:
    """Take an id, write one transaction, commit it."""
    producer = produce(stage, client, transactional_id, lambda: stage.level)
    try:
        yield from producer.call(Transactions.init)
        told = stage.ledger.begin(client.name, transactional_id)
        told.producer = producer.transactions.producer
        producer.transactions.begin()
        for place, where in enumerate(stage.data):
            told.records.append((where, f"{told.number}.{place}"))
            producer.send(*where, f"{told.number}.{place}", key="fresh")
        stage.ledger.ask_end(told, commit=True)
        yield from producer.call(Transactions.commit)
        told.outcome = True
    except KafkaError as error:
        client.failure = str(error)


def read_all(client: Client, readings: list[Reading], stage: Stage) -> Script:
    """Read each partition up to its end; and the copiers' positions."""
    for partition in range(len(stage.inputs)):
        yield from committed(client, ("in", partition))
    for reading in readings:
        end = stage.watch.model(reading.partition).next_offset
        while reading.position < end:
            before = reading.position
            records, reading.position = yield from fetch(stage, client, reading.partition, before, 0)
            reading.read += records
            if reading.position == before:
                yield client.pause_for(RETRY_MS)
