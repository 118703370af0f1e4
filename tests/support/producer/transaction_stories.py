"""What transactions promise, told with our clients: each story runs on Apache Kafka and on our own broker.

A story takes a bootstrap address and makes what it needs under names of its own.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any
from unittest.mock import ANY

import pytest

from partita import Admin, Consumer, Producer
from partita.errors import AbortableTransactionError, FatalTransactionError, ProducerFencedError
from partita.offsets.topic_partition import GroupMetadata, OffsetAndMetadata
from partita.producer.errors import TransactionAbortedError, TransactionMisuseError, UndeliveredError
from partita.producer.transactions.calls import State

Story = Callable[[str], None]
_NUMBERS = itertools.count()


def fresh(name: str) -> str:
    """A name that no other story uses."""
    return f"{name}-{next(_NUMBERS)}"


def topic_of(bootstrap: str, partitions: int = 1) -> str:
    """A topic of its own for a story."""
    topic = fresh("story")
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, partitions)
    return topic


def producer_of(bootstrap: str, name: str | None = None, **options: object) -> Producer:
    """A producer that has taken its transactional id."""
    producer = Producer(bootstrap_servers=bootstrap, transactional_id=name or fresh("id"), **options)  # type: ignore[arg-type]  # options of a test, passed through
    producer.init_transactions()
    return producer


def consumer_of(bootstrap: str, **options: Any) -> Consumer[bytes, bytes]:
    """A read_committed consumer that begins at the beginning and commits only when it is told to."""
    plain = {"isolation_level": "read_committed", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    return Consumer({"bootstrap_servers": bootstrap, **plain, **options})


def await_markers(bootstrap: str) -> None:
    """Wait until no marker is on its way: the answer to a commit comes before its markers, as on Kafka."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        while admin.list_transactions(states=("PrepareCommit", "PrepareAbort")):
            pass


def seen(bootstrap: str, topic: str, isolation: str = "read_committed", partitions: int = 1) -> list[str]:
    """The values of a topic, as a consumer of this isolation level reads them to the end."""
    await_markers(bootstrap)
    with consumer_of(bootstrap, isolation_level=isolation) as consumer:
        consumer.assign([(topic, p) for p in range(partitions)])
        return sorted((record.value or b"").decode() for record in consumer.until_end())


def commits_and_aborts(bootstrap: str) -> None:
    """TX-J04, TX-J05, TX-J14, TX-P01, TX-P02, TX-P22: committed records are seen, aborted ones are not."""
    topic = topic_of(bootstrap, 3)
    expected = []
    with producer_of(bootstrap) as producer:
        for turn in range(8):
            producer.begin_transaction()
            for number in range(5):
                producer.send(topic, f"{turn}-{number}", partition=number % 3)
            if turn % 3 == 1:
                producer.flush()
                producer.abort_transaction()
            else:
                producer.commit_transaction()
                expected += [f"{turn}-{number}" for number in range(5)]
    assert seen(bootstrap, topic, partitions=3) == sorted(expected)
    assert len(seen(bootstrap, topic, "read_uncommitted", 3)) == 40


def arrow_skips_what_was_aborted(bootstrap: str) -> None:
    """TX-J14: poll_arrow drops aborted batches and control batches too, and its position passes them."""
    topic = topic_of(bootstrap)
    with producer_of(bootstrap) as producer:
        for turn in range(4):
            producer.begin_transaction()
            producer.send(topic, f"{turn}")
            producer.flush()
            (producer.abort_transaction if turn % 2 else producer.commit_transaction)()
    with consumer_of(bootstrap) as consumer:
        consumer.assign([(topic, 0)])
        values: list[bytes] = []
        while consumer.position((topic, 0)) < 8:
            batch = consumer.poll_arrow(5)
            values += [] if batch is None else batch.column("value").to_pylist()
    assert values == [b"0", b"2"]


def an_open_transaction_holds_readers_back(bootstrap: str) -> None:
    """TX-J01 to TX-J03: nothing behind the first open record is read; ends and lags are those of the level."""
    topic = topic_of(bootstrap)
    with Producer(bootstrap_servers=bootstrap) as plain, producer_of(bootstrap) as producer:
        plain.send(topic, "before").result(60)
        producer.begin_transaction()
        producer.send(topic, "inside").result(60)
        plain.send(topic, "behind").result(60)
        assert seen(bootstrap, topic) == ["before"]
        assert seen(bootstrap, topic, "read_uncommitted") == ["before", "behind", "inside"]
        for isolation, end in (("read_committed", 1), ("read_uncommitted", 3)):
            with consumer_of(bootstrap, isolation_level=isolation) as consumer:
                assert consumer.end_offsets([(topic, 0)]) == {(topic, 0): end}
        producer.commit_transaction()
    assert seen(bootstrap, topic) == ["before", "behind", "inside"]


def a_parked_reader_wakes_with_the_commit(bootstrap: str) -> None:
    """TX-J10, KAFKA-5376: a long poll at the last stable offset is answered by the end, aborted records left out."""
    topic = topic_of(bootstrap)
    with (
        producer_of(bootstrap) as aborted,
        producer_of(bootstrap) as committed,
        consumer_of(bootstrap, fetch_max_wait_ms=20_000) as consumer,
    ):
        consumer.assign([(topic, 0)])
        for producer, value in ((aborted, "no"), (committed, "yes")):
            producer.begin_transaction()
            producer.send(topic, value).result(60)
        assert not consumer.poll(0.3)
        aborted.abort_transaction()
        committed.commit_transaction()
        got: list[bytes | None] = []
        while not got:
            got = [record.value for record in consumer.poll(20)]
    assert got == [b"yes"]


def a_second_producer_fences_the_first(bootstrap: str) -> None:
    """TX-P07, TX-C06, TX-C07: what the first left open is aborted, and every later call of it raises."""
    topic, name = topic_of(bootstrap), fresh("id")
    first = producer_of(bootstrap, name)
    first.begin_transaction()
    first.send(topic, "first").result(60)
    with producer_of(bootstrap, name) as second:
        with pytest.raises(ProducerFencedError):
            end_fenced(first, topic)
        with pytest.raises(FatalTransactionError):
            first.begin_transaction()
        with second.transaction():
            second.send(topic, "second")
    first.close()
    assert seen(bootstrap, topic) == ["second"]


def end_fenced(producer: Producer, topic: str) -> None:
    """Go on as a zombie does: the record fails, and the end tells that the id is taken."""
    try:
        producer.send(topic, "late").exception(60)
        producer.commit_transaction()
    except AbortableTransactionError:
        producer.abort_transaction()


def offsets_are_committed_with_the_records(bootstrap: str) -> None:
    """TX-E05, TX-J08, TX-P03: a committed transaction moves the group, an aborted one does not."""
    source, target, group = topic_of(bootstrap), topic_of(bootstrap), fresh("group")
    with Producer(bootstrap_servers=bootstrap) as plain:
        for number in range(6):
            plain.send(source, f"{number}").result(60)
    with consumer_of(bootstrap, max_poll_records=2, group_id=group) as consumer:
        consumer.subscribe([source])
        with producer_of(bootstrap) as producer:
            for number in range(3):
                records = consumer.poll(20)
                producer.begin_transaction()
                for record in records:
                    producer.send(target, (record.value or b"").decode())
                producer.send_offsets_to_transaction(records, consumer.group_metadata())
                (producer.abort_transaction if number == 1 else producer.commit_transaction)()
        assert consumer.committed([(source, 0)]) == {(source, 0): OffsetAndMetadata(6, leader_epoch=ANY)}
    assert seen(bootstrap, target) == ["0", "1", "4", "5"]


def a_consumer_that_was_replaced_is_kept_out(bootstrap: str) -> None:
    """TX-E10, KIP-447: offsets in the name of an old generation are refused, and the transaction can be aborted."""
    source, target, group = topic_of(bootstrap), topic_of(bootstrap), fresh("group")
    with consumer_of(bootstrap, group_id=group) as consumer, producer_of(bootstrap) as producer:
        consumer.subscribe([source])
        while not consumer.assignment():
            consumer.poll(0.2)
        now = consumer.group_metadata()
        old = GroupMetadata(group, now.generation_id - 1, now.member_id)
        with pytest.raises(AbortableTransactionError), producer.transaction():
            copy_one(producer, target, source, old)
        assert producer.transaction_state is State.READY
        with producer.transaction():
            producer.send(target, "member")
            producer.send_offsets_to_transaction({(source, 0): OffsetAndMetadata(1, metadata="note")}, now)
        assert consumer.committed([(source, 0)]) == {(source, 0): OffsetAndMetadata(1, metadata="note")}
    assert seen(bootstrap, target) == ["member"]


def copy_one(producer: Producer, target: str, source: str, member: GroupMetadata) -> None:
    """Send one record and commit one offset for it."""
    producer.send(target, "zombie").result(60)
    producer.send_offsets_to_transaction({(source, 0): 1}, member)


def a_block_that_raises_leaves_nothing(bootstrap: str) -> None:
    """TX-P14, TX-P11: the exception comes out, records fail or vanish, the next transaction works."""
    topic = topic_of(bootstrap)
    with producer_of(bootstrap, linger_ms=10_000) as producer:
        producer.begin_transaction()
        unsent = producer.send(topic, "unsent")
        producer.abort_transaction()
        assert isinstance(unsent.exception(60), TransactionAbortedError)
        with pytest.raises(ZeroDivisionError), producer.transaction():
            producer.send(topic, f"{1 / 0}")
        with producer.transaction():
            producer.send(topic, "kept")
        with producer.transaction():
            pass
        with pytest.raises(TransactionMisuseError, match="no transaction is open"):
            producer.send(topic, "outside")
    assert seen(bootstrap, topic) == ["kept"]


def close_aborts_what_is_open(bootstrap: str) -> None:
    """TX-P16: close says that a transaction was open, and nobody waits for its timeout."""
    topic = topic_of(bootstrap)
    producer = producer_of(bootstrap, transaction_timeout_ms=600_000)
    producer.begin_transaction()
    producer.send(topic, "open").result(60)
    with pytest.raises(UndeliveredError, match="a transaction was open"):
        producer.close()
    with Producer(bootstrap_servers=bootstrap) as plain:
        plain.send(topic, "plain").result(60)
    assert seen(bootstrap, topic) == ["plain"]


def a_cancelled_task_aborts(bootstrap: str) -> None:
    """TX-P15: the transaction of a cancelled task is aborted before the cancellation comes out."""
    topic = topic_of(bootstrap)

    async def run() -> None:
        name = fresh("id")
        async with Producer(bootstrap_servers=bootstrap, transactional_id=name) as producer:
            await producer.init_transactions()
            sent = asyncio.Event()

            async def work() -> None:
                async with producer.transaction():
                    await producer.send(topic, "cancelled")
                    sent.set()
                    await asyncio.Event().wait()

            task = asyncio.create_task(work())
            await sent.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert producer.transaction_state is State.READY
            async with producer.transaction():
                producer.send(topic, "kept")

    asyncio.run(run())
    assert seen(bootstrap, topic) == ["kept"]


def many_partitions_end_together(bootstrap: str) -> None:
    """TX-J07: one transaction over many partitions is seen everywhere or nowhere."""
    topic = topic_of(bootstrap, 12)
    with producer_of(bootstrap, batch_size=200) as producer:
        for end in (producer.abort_transaction, producer.commit_transaction):
            producer.begin_transaction()
            for number in range(240):
                producer.send(topic, f"{end.__name__}-{number}", partition=number % 12)
            end()
    assert seen(bootstrap, topic, partitions=12) == sorted(f"commit_transaction-{number}" for number in range(240))


STORIES: tuple[Story, ...] = (
    commits_and_aborts,
    arrow_skips_what_was_aborted,
    an_open_transaction_holds_readers_back,
    a_parked_reader_wakes_with_the_commit,
    a_second_producer_fences_the_first,
    offsets_are_committed_with_the_records,
    a_consumer_that_was_replaced_is_kept_out,
    a_block_that_raises_leaves_nothing,
    close_aborts_what_is_open,
    a_cancelled_task_aborts,
    many_partitions_end_together,
)


def a_slow_producer_learns_that_its_transaction_timed_out(bootstrap: str) -> None:
    """TX-K01, TX-K03, TX-P06: at version 2 it aborts and goes on; at version 1 its end is refused for good.

    For a cluster that looks at timeouts every second or more often.
    """
    topic = topic_of(bootstrap)
    producer = producer_of(bootstrap, transaction_timeout_ms=1_500)
    producer.begin_transaction()
    producer.send(topic, "slow").result(60)
    with consumer_of(bootstrap) as consumer:
        consumer.assign([(topic, 0)])
        while consumer.end_offsets([(topic, 0)]) == {(topic, 0): 0}:
            consumer.poll(0.1)
    assert seen(bootstrap, topic) == []
    producer.send(topic, "late").exception(60)
    with pytest.raises((AbortableTransactionError, FatalTransactionError)) as caught:
        producer.commit_transaction()
    if caught.value.txn_requires_abort:
        try:
            producer.abort_transaction()
        except FatalTransactionError:
            producer.close()
            return
        with producer.transaction():
            producer.send(topic, "next")
        assert seen(bootstrap, topic) == ["next"]
    producer.close()
