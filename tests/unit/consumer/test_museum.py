"""Bugs that other consumers had, each as the shortest history that showed it (faults.md 5.6)."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from partita.protocol.messages import offset_fetch
from partita.protocol.messages.heartbeat import HeartbeatResponse
from partita.protocol.messages.join_group import JoinGroupResponseMember
from partita.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from support.consumer.members import member
from support.consumer.world import DROP, HOLD, Delay, World

T0 = ("t", 0)


def offsets(records: Any) -> list[int]:
    return [r.offset for r in records]


def reading(world: World, **options: Any) -> Any:
    consumer = world.consumer(**options)
    consumer.assign([T0])
    return consumer


@pytest.mark.case("BM-123")
def test_a_silent_coordinator_is_survived_while_polling_and_committing() -> None:
    world = World({"t": 1})
    world.append("t", 0, 100)
    consumer, _ = member(world, request_timeout_ms=1_000, max_poll_records=1, auto_commit_interval_ms=300)
    for name in ("Heartbeat", "OffsetCommit", "FindCoordinator"):
        world.always[name] = HOLD
    for _ in range(60):
        consumer.poll(0.1)
        world.run(100)
    for name in ("Heartbeat", "OffsetCommit", "FindCoordinator"):
        del world.always[name]
    for _ in range(30):
        consumer.poll(0.1)
        world.run(100)
    consumer.commit()
    assert consumer.committed([T0])[T0].offset == consumer.position(T0)


@pytest.mark.case("BM-139")
def test_a_slow_handler_is_told_that_others_wait_and_can_still_commit() -> None:
    world = World({"t": 2})
    first, _ = member(world, enable_auto_commit=False)
    world.append("t", 0, 5)
    records = first.poll(1)
    second, _ = member(world, poll=0, enable_auto_commit=False)
    with first.hold(records) as hold:
        assert len(records) == 5
        for _ in range(70):
            second.poll(0.05)
        assert hold.others_wait
        assert [record.offset for record in hold] == [0, 1, 2, 3, 4]
        first.commit(records)
    for _ in range(70):
        first.poll(0.05)
        second.poll(0.05)
    assert len(first.assignment()) == len(second.assignment()) == 1
    assert second.committed([T0])[T0].offset == 5


@pytest.mark.case("BM-145")
def test_a_seek_before_pause_and_resume_is_not_forgotten() -> None:
    world = World({"t": 1})
    world.append("t", 0, 20)
    consumer = reading(world, max_poll_records=5)
    consumer.poll(1)
    consumer.seek(T0, 12)
    consumer.pause([T0])
    consumer.poll(0.1)
    consumer.resume([T0])
    assert offsets(consumer.poll(1))[0] == 12


@pytest.mark.case("BM-146")
def test_an_answer_that_arrives_during_validation_is_not_delivered_twice() -> None:
    world = World({"t": 1})
    world.logs[T0].epoch = 5
    world.append("t", 0, 10)
    consumer = reading(world, metadata_max_age_ms=300)
    assert offsets(consumer.poll(1)) == list(range(10))
    world.append("t", 0, 5)
    world.logs[T0].epoch = 6
    world.script("OffsetForLeaderEpoch", Delay(200))
    seen = [o for _ in range(12) for o in offsets(consumer.poll(0.1))]
    assert seen == list(range(10, 15))


@pytest.mark.case("BM-147")
def test_an_assigned_consumer_finds_a_coordinator_that_moved() -> None:
    world = World({"t": 1}, nodes=2)
    consumer = reading(world, group_id="g")
    consumer.commit({T0: 1})
    world.coordinator_node = 1
    one = OffsetCommitResponsePartition(partition_index=0, error_code=16)
    world.script("OffsetCommit", OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=[one])]))
    consumer.commit({T0: 2})
    assert {s.node for s in world.sent("OffsetCommit")} == {1, 2}


@pytest.mark.case("BM-148")
@pytest.mark.parametrize(
    "metadata", [b"", b"\x00", b"\xff\xff", b"\x00\x01\x00\x00\x00\x02", b"\x00\x03" + b"\xff" * 40]
)
def test_malformed_members_do_not_stop_the_leader(metadata: bytes) -> None:
    world = World({"t": 1})
    deliver = world._arrive

    def arrive(io: Any, request: Any, reply: Any) -> None:
        if type(reply).__name__ == "JoinGroupResponse" and reply.members:
            reply.members.append(JoinGroupResponseMember(member_id="evil", metadata=metadata))
        deliver(io, request, reply)

    world._arrive = arrive  # type: ignore[method-assign]  # the test steps in between
    consumer, _ = member(world)
    assert consumer.assignment() == {T0}


@pytest.mark.case("BM-157")
def test_two_questions_about_the_same_offsets_share_one_request() -> None:
    world = World({"t": 1})
    part = offset_fetch.OffsetFetchResponsePartitions(committed_offset=-1, metadata="", error_code=88)
    topics = [offset_fetch.OffsetFetchResponseTopics(name="t", partitions=[part])]
    group = offset_fetch.OffsetFetchResponseGroup(group_id="g", topics=topics)
    world.script("OffsetFetch", offset_fetch.OffsetFetchResponse(groups=[group]))
    consumer = reading(world, group_id="g")
    consumer.poll(0.02)
    assert consumer.committed([T0]) == {T0: None}
    consumer.poll(0.2)
    assert len(world.sent("OffsetFetch")) == 2


@pytest.mark.case("CC-195")
def test_a_day_with_one_record_an_hour() -> None:
    world = World({"t": 1})
    options = {"fetch_max_wait_ms": 60_000, "heartbeat_interval_ms": 20_000, "enable_auto_commit": False}
    consumer, heard = member(world, request_timeout_ms=120_000, **options)
    delays: list[int] = []
    for _ in range(24):
        world.after(1_800_000, lambda: world.append("t", 0, 1))
        sent_at, end = world.now + 1_800_000, world.now + 3_600_000
        while world.now < end:
            if len(consumer.poll(60)):
                delays.append(world.now - sent_at)
    assert len(delays) == 24
    assert max(delays) < 1_000
    assert [name for name, _ in heard.calls] == ["assigned"]
    core = consumer._calls._core
    assert len(core.member.events) + len(core.buffer) + len(consumer._driver.io.in_flight) < 10


@pytest.mark.case("CC-074")
@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_lost_in_whatever_order_the_member_comes_back(seed: int) -> None:
    random = Random(seed)
    world = World({"t": 1}, nodes=2)
    consumer, _ = member(world, poll=0, request_timeout_ms=500, max_poll_interval_ms=5_000)
    names = ["FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat", "OffsetFetch", "OffsetCommit", "Metadata"]
    for _ in range(25):
        world.script(random.choice(names), random.choice([DROP, HOLD, Delay(random.randrange(700)), None]))
        if random.random() < 0.2:
            world.coordinator_node = random.choice([1, 2])
        consumer.poll(random.random() / 2)
        world.run(random.randrange(300))
    for name in names:
        world.scripts[name].clear()
    for _ in range(200):
        consumer.poll(0.3)
    assert consumer.assignment() == {T0}
    generation = consumer.group_metadata().generation_id
    for _ in range(20):
        consumer.poll(0.5)
    assert consumer.group_metadata().generation_id == generation


@pytest.mark.case("BM-126", "CC-067")
def test_answers_that_come_after_everything_changed_change_nothing() -> None:
    world = World({"t": 1})
    consumer, heard = member(world)
    world.script("Heartbeat", HOLD, HOLD)
    world.run(6_500)
    consumer.unsubscribe()
    consumer.subscribe(["t"], listener=heard)
    consumer.poll(0.2)
    world.answer_held(HeartbeatResponse(error_code=25))
    world.run(20)
    consumer.poll(0.1)
    assert consumer.assignment() == {T0}
    assert [name for name, _ in heard.calls] == ["assigned", "revoked", "assigned"]
