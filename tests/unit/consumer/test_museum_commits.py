"""Bugs that other consumers had with what they commit, each as the shortest history that showed it (faults.md 5.5)."""

from __future__ import annotations

from typing import Any

import crc32c
import pytest

from partita.consumer.errors import CommitFailedError
from partita.consumer.group.commits import Kind
from partita.offsets.topic_partition import OffsetAndMetadata, TopicPartition
from partita.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from partita.protocol.messages.heartbeat import HeartbeatResponse
from partita.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from partita.records.batch import build_batch
from support.consumer.members import member
from support.consumer.world import DROP, HOLD, World

T0 = TopicPartition("t", 0)


def refused(code: int) -> OffsetCommitResponse:
    one = OffsetCommitResponsePartition(partition_index=0, error_code=code)
    return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=[one])])


def committed(world: World) -> list[int]:
    """Every offset sent to be committed for partition 0, in order."""
    sent = [s.message for s in world.sent("OffsetCommit")]
    return [p.committed_offset for m in sent for t in m.topics for p in t.partitions if p.partition_index == 0]


def stored(world: World) -> int | None:
    found = world.group.hard_state.committed("g", ("t", 0))
    return None if found is None else found.offset


def core(consumer: Any) -> Any:
    return consumer._calls._core


def begin(consumer: Any, kind: Kind, offset: int) -> Any:
    """A commit as another task of the same application makes it: begun, and not waited for here."""
    operation = core(consumer).commits.commit(kind, {T0: OffsetAndMetadata(offset)})
    consumer._driver.step()
    return operation


def alone(world: World, **options: Any) -> Any:
    return member(world, **{"enable_auto_commit": False, **options})[0]


def read(consumer: Any, seconds: float) -> list[int]:
    return [r.offset for _ in range(int(seconds * 5)) for r in consumer.poll(0.2)]


@pytest.mark.case("BM-082", "BM-081")
@pytest.mark.parametrize("commits", [True, False])
def test_a_recreated_topic_is_read_from_its_start(commits: bool) -> None:
    world = World({"t": 1})
    world.append("t", 0, 10)
    consumer = alone(world)
    if commits:
        consumer.commit()
    assert consumer.position(T0) == 10
    world.recreate("t")
    world.append("t", 0, 30)
    assert read(consumer, 5) == list(range(30))


@pytest.mark.case("BM-082", "BM-081")
@pytest.mark.parametrize("commits_by_id", [True, False])
def test_an_automatic_commit_before_the_consumer_knows_counts_for_no_other_topic(commits_by_id: bool) -> None:
    """Decisions 0331 and 0326. Version 9 speaks of names: where brokers offer no more, the window stays."""
    world = World({"t": 1})
    world.max_versions["OffsetCommit"] = 10 if commits_by_id else 9
    world.append("t", 0, 10)
    consumer, _ = member(world, auto_commit_interval_ms=600)
    consumer.poll(0.2)
    world.run(700)
    world.recreate("t")
    world.append("t", 0, 30)
    consumer.poll(0)  # the commit is due, and the fetch that is under way has not been refused yet
    assert read(consumer, 5) == list(range(0 if commits_by_id else 10, 30))
    assert committed(world)[0] == 10
    assert world.sent("OffsetCommit")[0].version == (10 if commits_by_id else 9)


@pytest.mark.case("BM-082")
def test_what_is_buffered_of_the_old_topic_is_not_handed_out() -> None:
    world = World({"t": 1})
    world.append("t", 0, 10)
    consumer = alone(world, max_poll_records=4, metadata_max_age_ms=300)
    consumer.pause([T0])
    world.recreate("t")
    world.append("t", 0, 3, value=b"new ")
    world.run(1_000)
    consumer.poll(0)
    assert consumer.paused() == {T0}
    consumer.resume([T0])
    assert [r.value for _ in range(10) for r in consumer.poll(0.2)] == [b"new 0", b"new 1", b"new 2"]


@pytest.mark.case("BM-083")
def test_commits_leave_in_the_order_they_were_made() -> None:
    world = World({"t": 1})
    consumer = alone(world)
    core(consumer).coordinator.mark_unknown()
    for offset in (11, 21):
        consumer.commit_async({T0: offset})
    world.run(500)
    assert committed(world) == [11, 21]
    assert {s.node for s in world.sent("OffsetCommit") if s.to_coordinator} == {1}
    assert stored(world) == 21


@pytest.mark.case("BM-083", "BM-085")
@pytest.mark.parametrize("later", [Kind.SYNC, Kind.ASYNC, Kind.AUTO])
def test_a_repeated_commit_does_not_turn_back_a_newer_one(later: Kind) -> None:
    world = World({"t": 1})
    consumer = alone(world)
    world.script("OffsetCommit", refused(14))
    first = begin(consumer, Kind.SYNC, 11)
    second = begin(consumer, later, 21)
    consumer.poll(2)
    assert first.is_done
    assert first.error is None
    assert second.error is None
    assert committed(world) == [11, 21]
    assert stored(world) == 21


@pytest.mark.case("BM-083")
def test_a_repeated_commit_still_commits_what_no_newer_one_did() -> None:
    world = World({"t": 2})
    consumer = alone(world)
    world.script("OffsetCommit", refused(14), HOLD)
    both = {T0: OffsetAndMetadata(11), TopicPartition("t", 1): OffsetAndMetadata(7)}
    first = core(consumer).commits.commit(Kind.SYNC, both)
    second = begin(consumer, Kind.ASYNC, 21)
    consumer.poll(1)
    assert not first.is_done
    assert committed(world) == [11, 21]
    world.answer_held()
    consumer.poll(1)
    assert first.is_done
    assert second.is_done
    assert stored(world) == 21
    assert consumer.committed([("t", 1)])[TopicPartition("t", 1)].offset == 7


@pytest.mark.case("BM-084")
@pytest.mark.parametrize("end", [refused(16), refused(14), DROP])
def test_a_commit_nobody_waits_for_any_more_is_not_repeated(end: Any) -> None:
    world = World({"t": 1})
    consumer = alone(world)
    world.script("OffsetCommit", HOLD)
    with pytest.raises(Exception, match="commit did not finish"):
        consumer.commit({T0: 11}, timeout=0.5)
    if end is DROP:
        world.drop(*world.held.pop())
    else:
        world.answer_held(end)
    consumer.poll(3)
    assert committed(world) == [11]
    consumer.commit({T0: 21})
    assert stored(world) == 21


@pytest.mark.case("BM-085")
def test_the_timer_between_two_overlapping_commits_turns_nothing_back() -> None:
    world = World({"t": 1})
    world.append("t", 0, 21)
    consumer = alone(world, enable_auto_commit=True, auto_commit_interval_ms=200, max_poll_records=30)
    consumer.poll(0.1)
    world.script("OffsetCommit", refused(14), refused(16))
    begin(consumer, Kind.SYNC, 5)
    begin(consumer, Kind.SYNC, 9)
    seen = []
    for _ in range(20):
        consumer.poll(0.1)
        seen.append(stored(world) or 0)
    assert seen == sorted(seen)
    assert seen[-1] == 21


@pytest.mark.case("BM-086", "BM-087")
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_what_is_done_after_a_partition_went_away_is_never_committed(strategy: str) -> None:
    world = World({"t": 2})
    world.append("t", 0, 20)
    world.append("t", 1, 20)
    options = {"commit_done_only": True, "partition_assignment_strategy": [strategy], "auto_commit_interval_ms": 300}
    first, _ = member(world, poll=0, max_poll_records=100, **options)
    records = [r for _ in range(10) for r in first.poll(0.1)]
    assert len(records) == 40
    for record in records:
        if record.offset < 10:
            first.done(record)
    second, _ = member(world, poll=0, enable_auto_commit=False, partition_assignment_strategy=[strategy])
    for _ in range(60):
        first.poll(0.1)
        second.poll(0.1)
    (gone,) = second.assignment()
    second.commit({gone: 18})
    late = next(r for r in records if r.partition == gone.partition and r.offset == 11)
    assert not first.done(late)
    world.forget()
    second.close()
    for _ in range(60):
        first.poll(0.1)
    assert gone in first.assignment()
    assert not first.done(late)
    first.poll(1)
    sent = [s.message for s in world.sent("OffsetCommit", who=1)]
    back = [p.committed_offset for m in sent for t in m.topics for p in t.partitions if p.partition_index == gone[1]]
    assert min(back, default=18) >= 18
    assert first.committed([gone])[gone].offset >= 18


@pytest.mark.case("BM-087")
def test_a_commit_of_an_earlier_generation_is_not_sent_in_the_name_of_a_later_one() -> None:
    world = World({"t": 1})
    consumer = alone(world, retry_backoff_ms=3_000, retry_backoff_max_ms=3_000)
    generation = consumer.group_metadata().generation_id
    world.script("OffsetCommit", refused(14))
    operation = begin(consumer, Kind.SYNC, 5)
    consumer.enforce_rebalance()
    for _ in range(50):
        consumer.poll(0.1)
    assert consumer.group_metadata().generation_id > generation
    assert [s.message.generation_id_or_member_epoch for s in world.sent("OffsetCommit")] == [generation]
    assert isinstance(operation.error, CommitFailedError)


@pytest.mark.case("BM-088")
def test_after_a_crash_everything_behind_the_first_gap_comes_again() -> None:
    world = World({"t": 1})
    world.append("t", 0, 5)
    consumer, _ = member(world, poll=0, commit_done_only=True, auto_commit_interval_ms=200, session_timeout_ms=6_000)
    records = list(consumer.poll(1))
    for record in (records[0], records[1], records[3]):
        consumer.done(record)
    for _ in range(5):
        consumer.poll(0.2)
    consumer._driver.io.stop()
    second = alone(world)
    assert read(second, 20) == [2, 3, 4]


@pytest.mark.case("BM-089")
@pytest.mark.parametrize("error", [None, -1, 1, 3, 6, 74])
def test_neither_the_end_nor_an_error_moves_the_position(error: int | None) -> None:
    """Nothing but records handed out: not empty answers at the end, nor what a fetch went wrong with."""
    world = World({"t": 1})
    world.append("t", 0, 5)
    consumer, _ = member(world, poll=0.2, auto_commit_interval_ms=100)
    if error is not None:
        part = PartitionData(partition_index=0, error_code=error, high_watermark=99, records=b"")
        topic = FetchableTopicResponse(topic="t", topic_id=world.ids["t"], partitions=[part])
        for session in world._sessions:
            world.script("Fetch", FetchResponse(session_id=session, responses=[topic]))
            world._session_epochs[session] += 1
    for _ in range(60):
        consumer.poll(0.1)
    assert set(committed(world)) <= {0, 5}
    assert stored(world) == 5


@pytest.mark.case("BM-094")
@pytest.mark.parametrize("done_only", [True, False])
def test_a_stop_right_after_a_batch_commits_it(done_only: bool) -> None:
    world = World({"t": 1})
    world.append("t", 0, 5)
    consumer, _ = member(world, poll=0, commit_done_only=done_only)
    for record in consumer.poll(1):
        assert not done_only or consumer.done(record)
    consumer.close()
    assert stored(world) == 5


@pytest.mark.case("BM-094")
@pytest.mark.parametrize("done_only", [True, False])
def test_the_hole_behind_the_last_record_is_committed_with_it(done_only: bool) -> None:
    world = World({"t": 1})
    batch = bytearray(build_batch([(0, b"k", b"v%d" % i, ()) for i in range(3)]))
    batch[23:27] = (9).to_bytes(4, "big")
    batch[17:21] = crc32c.crc32c(bytes(batch[21:])).to_bytes(4, "big")
    world.append_batch("t", 0, bytes(batch), 0, 9)
    consumer, _ = member(world, poll=0, commit_done_only=done_only)
    for record in consumer.poll(1):
        assert not done_only or consumer.done(record)
    consumer.close()
    assert stored(world) == 10


@pytest.mark.case("BM-094")
def test_what_is_done_is_remembered_over_a_rejoin_that_takes_nothing_away() -> None:
    world = World({"t": 1})
    world.append("t", 0, 6)
    options = {"commit_done_only": True, "partition_assignment_strategy": ["cooperative-sticky"]}
    consumer, heard = member(world, poll=0, **options)
    records = list(consumer.poll(1))
    for record in records[:4]:
        consumer.done(record)
    consumer.enforce_rebalance()
    for _ in range(5):
        consumer.poll(0.2)
    consumer.done(records[4])
    consumer.close()
    assert [call for call in heard.calls if call[1]] == [("assigned", [T0]), ("revoked", [T0])]
    assert stored(world) == 5


@pytest.mark.case("BM-094")
def test_without_auto_commit_a_seek_commits_nothing() -> None:
    world = World({"t": 1})
    world.append("t", 0, 9)
    consumer = alone(world)
    consumer.commit({T0: 9})
    consumer.seek(T0, 3)
    assert consumer.position(T0) == 3
    consumer.enforce_rebalance()
    consumer.poll(0.5)
    world.script("Heartbeat", HeartbeatResponse(error_code=27))
    world.run(4_000)
    consumer.poll(0.5)
    consumer.close()
    assert committed(world) == [9]
