"""Nothing waits for ever, and nothing spins: findings clients 3.1 to 3.5, 1 and 5, and issue 11's deleted topic."""

from __future__ import annotations

from typing import Any

import pytest

from partita.consumer.deserializers import deserializer
from partita.consumer.errors import ApiTimeoutError
from partita.errors import GroupAuthorizationFailedError
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages import offset_commit
from partita.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from partita.protocol.messages.join_group import JoinGroupResponse
from partita.wording import Note
from support.consumer.members import member
from support.consumer.world import DROP, HOLD, World

T0, U0 = ("t", 0), ("u", 0)


def refused_lookup(code: int) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(coordinators=[Coordinator(key="g", error_code=code)], error_code=code)


def test_committed_with_a_timeout_leaves_the_question_to_those_who_still_wait() -> None:
    """Clients 3.1: it used to stop the consumer for good."""
    world = World({"t": 1})
    world.append("t", 0, 10)
    world.always["FindCoordinator"] = refused_lookup(15)
    consumer = world.consumer(group_id="g")
    consumer.assign([T0])
    consumer.poll(0.1)
    with pytest.raises(ApiTimeoutError):
        consumer.committed([T0], timeout=0.3)
    del world.always["FindCoordinator"]
    assert len(consumer.poll(15.0)) == 10


def test_commit_returns_with_its_own_answer_however_long_an_earlier_asynchronous_one_is_out() -> None:
    """Clients 3.2: it used to wait for its whole timeout, every time."""
    world = World({"t": 1})
    consumer, _ = member(world, enable_auto_commit=False)
    world.script("OffsetCommit", HOLD)
    consumer.commit_async({T0: 1})
    before = world.now
    consumer.commit({T0: 2}, timeout=8.0)
    assert world.now - before < 100


def test_a_final_lookup_error_is_raised_once_per_lookup_and_heals() -> None:
    """Clients 3.4: 71,445 times in three seconds, for five requests."""
    world = World({"t": 1})
    world.append("t", 0, 1)
    world.always["FindCoordinator"] = refused_lookup(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    consumer, _ = member(world, poll=0)
    end, raised = world.now + 3_000, 0
    while world.now < end:
        try:
            consumer.poll(1.0)
        except GroupAuthorizationFailedError:
            raised += 1
    assert raised == len(world.sent("FindCoordinator"))
    assert raised <= 36
    del world.always["FindCoordinator"]
    while not consumer.assignment() and world.now < end + 2_000:
        consumer.poll(0.5)
    assert consumer.assignment() == {T0}


def test_a_coordinator_that_is_being_elected_is_found_soon() -> None:
    """Clients 1: four refusals took 2.3 s over polls of 50 ms; the Java client's 0.2 s."""
    world = World({"t": 1})
    world.script("FindCoordinator", *[refused_lookup(15)] * 4)
    consumer, _ = member(world, poll=0)
    started = world.now
    while not world.sent("JoinGroup"):
        consumer.poll(0.05)
    assert world.now - started <= 400


def test_failed_heartbeats_back_off_although_the_coordinator_is_found_each_time() -> None:
    """Clients 1: heartbeats 0.1 s apart, 44 connections in 5 s; Java waits 0.5 to 0.9 s."""
    world = World({"t": 1})
    consumer, _ = member(world, heartbeat_interval_ms=500)
    world.always["Heartbeat"] = DROP
    world.forget()
    for _ in range(50):
        consumer.poll(0.1)
    assert 3 <= len(world.sent("Heartbeat")) <= 10


def test_group_metadata_inside_on_assigned_is_the_new_one() -> None:
    """Clients 1: it was the generation before, (-1, "") at first."""
    world = World({"t": 1})
    consumer = world.consumer(group_id="g")
    seen: list[Any] = []
    consumer.subscribe(["t"], on_assigned=lambda _: seen.append(consumer.group_metadata()))
    consumer.poll(0.5)
    assert (seen[0].generation_id, seen[0].member_id) == (1, "c1-1")


def test_a_repeated_join_says_what_went_wrong_last() -> None:
    """Clients 1: it repeated the first reason."""
    world = World({"t": 1})
    consumer, _ = member(world)
    world.script("JoinGroup", JoinGroupResponse(error_code=ErrorCode.NOT_COORDINATOR))
    consumer.enforce_rebalance("by hand")
    world.forget()
    consumer.poll(1.0)
    assert [s.message.reason for s in world.sent("JoinGroup")] == ["by hand", "the coordinator moved"]


@pytest.mark.parametrize("static", [True, False])
def test_a_member_that_was_silent_for_too_long_fetches_nothing_until_it_polls(static: bool) -> None:
    """Clients 1, case 64: a static one went on, one long poll after the other."""
    world = World({"t": 1})
    options: dict[str, Any] = {"group_instance_id": "i"} if static else {}
    consumer, _ = member(world, max_poll_interval_ms=5_000, enable_auto_commit=False, **options)
    consumer.poll(0.5)
    world.run(6_000)
    world.forget()
    world.run(5_000)
    assert not world.sent("Fetch")
    world.append("t", 0, 1)
    assert len(consumer.poll(1.0)) + len(consumer.poll(3.0)) == 1


def test_a_deleted_topic_holds_up_no_rebalance_and_no_close() -> None:
    """Issue 11.2, BM-151: with auto-commit on, 20 s to 5 min went by before the others got their partitions."""
    world = World({"t": 1, "u": 1})
    for topic in ("t", "u"):
        world.append(topic, 0, 5)
    notes: list[Note] = []
    consumer, _ = member(world, "t", "u", auto_commit_interval_ms=100)
    consumer.on_note(notes.append)
    consumer.poll(0.5)
    consumer.poll(0.5)

    def gone(message: Any) -> Any:
        topics = [
            offset_commit.OffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    offset_commit.OffsetCommitResponsePartition(
                        partition_index=0, error_code=3 if topic.name == "u" else 0
                    )
                ],
            )
            for topic in message.topics
        ]
        return offset_commit.OffsetCommitResponse(topics=topics)

    world.always["OffsetCommit"] = gone
    consumer.enforce_rebalance()
    started = world.now
    world.forget()
    consumer.poll(1.0)
    assert world.sent("JoinGroup")[0].at_ms - started < 100
    for _ in range(30):
        consumer.poll(0.1)
    told = [note for note in notes if note.kind == "commit_failed"]
    assert len(told) == 1
    assert "topic u does not exist" in told[0].text
    before = world.now
    consumer.close()
    assert world.now - before < 1_000


def test_a_topic_that_does_not_exist_is_told_once_and_asked_for_with_back_off() -> None:
    """Clients 5: nothing was said, and metadata was asked for ten times a second for ever."""
    world = World({"t": 1})
    notes: list[Note] = []
    consumer = world.consumer(group_id="g", allow_auto_create_topics=False)
    consumer.on_note(notes.append)
    consumer.subscribe(["t", "typo"])
    for _ in range(100):
        consumer.poll(0.1)
    assert [note.text for note in notes if note.kind == "unknown_topic"] == [
        "topic typo does not exist; looking for it again until it does"
    ]
    assert len(world.sent("Metadata")) <= 16
    world.create("typo")
    world.append("typo", 0, 1)
    assert len(consumer.poll(3.0) or consumer.poll(3.0)) == 1


def test_poll_says_that_its_time_is_in_seconds(caplog: pytest.LogCaptureFixture) -> None:
    """Clients 5, issue 11.8: poll(None) waited for a minute, poll(100) for a hundred seconds."""
    world = World({"t": 1})
    consumer, _ = member(world)
    with pytest.raises(TypeError, match="a number of seconds, not None"):
        consumer.poll(None)
    for _ in range(2):
        consumer.poll(100)
    assert [r.getMessage() for r in caplog.records if "milliseconds" in r.getMessage()] == [
        "c1: poll(100) waits up to 100 seconds; the time is in seconds, not milliseconds"
    ]


def test_kafkas_string_deserializer_replaces_malformed_text_and_str_refuses_it() -> None:
    """Clients 1: scenes 49, 53, 57 and 58."""
    kafkas = deserializer("org.apache.kafka.common.serialization.StringDeserializer")
    ours = deserializer("str")
    assert kafkas is not None
    assert ours is not None
    assert kafkas("t", (), b"a\xff") == "a\ufffd"
    with pytest.raises(UnicodeDecodeError):
        ours("t", (), b"a\xff")
