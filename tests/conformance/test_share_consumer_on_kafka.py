"""Partita's share consumer on Apache Kafka, alone and beside Java's share consumer in one group."""

from __future__ import annotations

import subprocess
import threading
from collections import Counter
from collections.abc import Iterator

import pytest

from partita import IllegalStateError, InvalidRecordStateError
from partita.offsets.topic_partition import TopicPartition
from support.kafka.node import KafkaNode, java_command
from support.share.jobs import WITHIN_S, Jobs, eventually, jobs, number, take

pytestmark = pytest.mark.conformance

CONSOLE = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"


@pytest.fixture
def work(kafka: KafkaNode) -> Iterator[Jobs]:
    with jobs(kafka.bootstrap) as made:
        yield made


@pytest.mark.case("SG-P02", "SG-P04", "SG-P06", "SG-P07")
def test_implicit_mode_accepts_with_the_next_poll_and_not_on_close(work: Jobs) -> None:
    work.put(*range(10))
    with work.consumer("implicit", max_poll_records=5, share_acquire_mode="record_limit") as first:
        assert len(take(first, 10)) == 10
    again = take(work.consumer("implicit"), 5)
    assert {record.delivery_count for record in again} == {2}


@pytest.mark.case("SG-P08", "SG-P10", "SG-P12", "SG-P14", "SG-P17")
def test_explicit_mode_accepts_releases_rejects_and_renews(work: Jobs) -> None:
    work.put(*range(4))
    consumer = work.consumer(max_poll_records=4, share_acquire_mode="record_limit")
    accepted, released, rejected, renewed = take(consumer, 4)
    accepted.accept()
    released.release()
    rejected.reject()
    renewed.renew()
    assert consumer.commit_sync() == {TopicPartition(work.topic, 0): None}
    assert consumer.commit_sync() == {}
    found = {number(record): record.delivery_count for record in take(consumer, 2, then="accept")}
    assert found == {1: 2, 3: 1}
    assert set(consumer.commit_sync().values()) == {None}
    eventually(lambda: work.lag() == 0)


@pytest.mark.case("SG-P09", "SG-P11", "SG-P13")
def test_wrong_uses_are_refused(work: Jobs) -> None:
    work.put(1)
    consumer = work.consumer()
    (record,) = take(consumer, 1)
    with pytest.raises(IllegalStateError, match="is not acknowledged"):
        consumer.poll()
    record.accept()
    consumer.commit_sync()
    with pytest.raises(IllegalStateError, match="cannot be acknowledged"):
        record.accept()


def test_locks_are_renewed_while_a_block_works_and_end_without(kafka: KafkaNode) -> None:
    """The shortest lock that Kafka allows by default, 15 s, goes by in full."""
    with jobs(kafka.bootstrap, share_record_lock_duration_ms=15_000) as work:
        work.put(1, 2)
        holder, other = work.consumer(), work.consumer()
        kept, left = take(holder, 2)
        with kept:
            (given,) = take(other, 1, then="accept")
            assert other.commit_sync() == {TopicPartition(work.topic, 0): None}
            left.accept()
            errors = {type(error) for error in holder.commit_sync().values()}
        assert errors == {InvalidRecordStateError}
        assert (number(given), given.delivery_count) == (number(left), 2)
        holder.commit_sync()
        eventually(lambda: work.lag() == 0)


def test_a_group_shared_with_javas_consumer_loses_nothing_and_gives_nothing_twice(work: Jobs) -> None:
    count = 400
    ours = work.consumer(max_poll_records=10, share_acquire_mode="record_limit")
    java = subprocess.Popen(
        java_command(
            CONSOLE, "--bootstrap-server", work.bootstrap, "--topic", work.topic, "--group", work.group
        ),
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    theirs: list[int] = []
    assert java.stdout is not None
    stdout = java.stdout
    reader = threading.Thread(target=lambda: theirs.extend(int(line) for line in stdout))
    reader.start()
    mine: list[int] = []
    try:
        sent = 0
        while not theirs or len(theirs) + len(mine) < count:  # until Java's has some, and all are there
            if sent < count or not theirs:
                work.put(*range(sent, sent + 20))
                sent, count = sent + 20, max(count, sent + 20)
            for record in ours.poll(0.2):
                with record:
                    mine.append(number(record))
        ours.commit_sync()
    finally:
        java.terminate()
        java.wait(WITHIN_S)
        reader.join(WITHIN_S)
    assert Counter([*mine, *theirs]) == Counter(range(count))
    assert mine
    eventually(lambda: work.lag() == 0)
