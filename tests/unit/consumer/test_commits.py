"""Commits: by call, by timer, before a rebalance, of what is done (consumer.md 11)."""

from __future__ import annotations

from typing import Any

import pytest

from partita.assignors.payloads import decode_subscription
from partita.consumer.done_tracker import DoneTracker
from partita.consumer.errors import (
    ApiTimeoutError,
    CommitFailedError,
    RebalanceRunningError,
    RetriableCommitFailedError,
)
from partita.errors import FencedInstanceIdError, OffsetMetadataTooLargeError, TopicAuthorizationFailedError
from partita.offsets.topic_partition import OffsetAndMetadata, TopicPartition
from partita.protocol.messages import find_coordinator
from partita.protocol.messages.heartbeat import HeartbeatResponse
from partita.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from support.consumer.members import member
from support.consumer.world import DROP, HOLD, Delay, World

T0, T1 = ("t", 0), ("t", 1)


def refused(code: int, topic: str = "t", partition: int = 0) -> OffsetCommitResponse:
    one = OffsetCommitResponsePartition(partition_index=partition, error_code=code)
    return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name=topic, partitions=[one])])


def committed(sent: Any) -> dict[tuple[str, int], int]:
    return {(t.name, p.partition_index): p.committed_offset for t in sent.message.topics for p in t.partitions}


@pytest.mark.case("CC-166")
def test_auto_commit_takes_what_earlier_polls_returned_once_per_interval() -> None:
    world = World({"t": 1})
    world.append("t", 0, 100)
    consumer, _ = member(world, poll=0.05, max_poll_records=10)
    world.forget()
    start, returned = world.now, [10]
    for _ in range(11):
        returned.append(returned[-1] + len(consumer.poll(0)))
        world.run(1_000)
    commits = world.sent("OffsetCommit")
    assert len(commits) == 2
    assert committed(commits[0])[T0] <= returned[-1]
    assert 4_900 <= commits[0].at_ms - start <= 6_100
    assert 4_900 <= commits[1].at_ms - commits[0].at_ms <= 6_100
    assert committed(commits[0])[T0] % 10 == 0


@pytest.mark.case("CC-167")
def test_what_the_last_poll_returned_is_not_committed_before_the_next() -> None:
    world = World({"t": 1})
    consumer, _ = member(world, auto_commit_interval_ms=100)
    world.append("t", 0, 5)
    assert len(consumer.poll(1)) == 5
    world.forget()
    world.run(5_000)
    assert not [s for s in world.sent("OffsetCommit") if committed(s)[T0] == 5]


@pytest.mark.case("CC-168", "BM-150")
def test_before_an_eager_rebalance_nothing_is_returned_once_the_commit_is_built() -> None:
    world = World({"t": 1})
    world.append("t", 0, 100)
    consumer, _ = member(world, poll=0.05, max_poll_records=10)
    world.script("OffsetCommit", Delay(1_000))
    consumer.enforce_rebalance()
    world.forget()
    for _ in range(9):
        assert len(consumer.poll(0.1)) == 0
    assert not world.sent("JoinGroup")
    assert len(world.sent("OffsetCommit")) == 1
    for _ in range(10):
        consumer.poll(0.1)
    assert len(world.sent("JoinGroup")) == 1


@pytest.mark.case("CC-208")
def test_before_a_cooperative_rebalance_records_keep_coming() -> None:
    world = World({"t": 1})
    world.append("t", 0, 100)
    consumer, _ = member(world, poll=0.05, max_poll_records=10, partition_assignment_strategy=["cooperative-sticky"])
    world.script("OffsetCommit", Delay(1_200))
    consumer.enforce_rebalance()
    world.forget()
    got = sum(len(consumer.poll(0.1)) for _ in range(5))
    assert got == 50
    assert not world.sent("JoinGroup")
    world.run(1_500)
    consumer.poll(0.1)
    assert len(world.sent("JoinGroup")) == 1


@pytest.mark.case("CC-169")
def test_a_commit_that_fails_for_good_does_not_stop_the_rebalance() -> None:
    world = World({"t": 1})
    consumer, _ = member(world)
    world.script("OffsetCommit", refused(12))
    consumer.enforce_rebalance()
    consumer.poll(0.2)
    assert consumer.group_metadata().generation_id == 2


@pytest.mark.case("CC-207")
@pytest.mark.parametrize(
    ("code", "callback", "generation", "member_id"),
    [(22, "lost", -1, "c1-1"), (25, "lost", -1, ""), (27, "revoked", 1, "c1-1")],
)
def test_what_a_refused_commit_before_a_rebalance_means(
    code: int, callback: str, generation: int, member_id: str
) -> None:
    world = World({"t": 1})
    consumer, heard = member(world)
    world.script("OffsetCommit", refused(code))
    consumer.enforce_rebalance()
    world.forget()
    consumer.poll(0.3)
    assert heard.calls[1] == (callback, [T0])
    join = world.sent("JoinGroup")[0].message
    assert join.member_id == member_id
    assert decode_subscription(join.protocols[0].metadata).generation_id == generation


@pytest.mark.case("CC-207", "BM-151")
def test_a_commit_before_a_rebalance_is_not_repeated_for_a_topic_that_is_gone() -> None:
    world = World({"t": 1})
    consumer, _ = member(world)
    world.script("OffsetCommit", refused(3))
    consumer.enforce_rebalance()
    world.forget()
    consumer.poll(0.5)
    assert world.names()[:2] == ["OffsetCommit", "JoinGroup"]
    world.always["OffsetCommit"] = refused(3)
    consumer.enforce_rebalance()
    consumer.poll(0.5)
    assert consumer.group_metadata().generation_id == 3


@pytest.mark.case("CC-170", "CC-171", "BM-158")
@pytest.mark.parametrize("offsets", [None, {}])
def test_callbacks_of_earlier_commits_run_before_commit_returns(offsets: Any) -> None:
    world = World({"t": 1})
    consumer, _ = member(world)
    heard: list[int] = []
    for i in range(3):
        consumer.commit_async({T0: i}, lambda done, error, i=i: heard.append(i))
    consumer.commit(offsets)
    assert heard == [0, 1, 2]


@pytest.mark.case("CC-172", "BM-132", "BM-154")
def test_an_asynchronous_commit_looks_for_the_coordinator_once() -> None:
    world = World({"t": 1})
    heard: list[Any] = []
    consumer = world.consumer(group_id="g")
    consumer.assign([T0])
    consumer.commit_async({T0: 5}, lambda offsets, error: heard.append(error))
    world.run(50)
    consumer.poll(0)
    assert heard == [None]
    assert [n for n in world.names() if n in ("FindCoordinator", "OffsetCommit")] == ["FindCoordinator", "OffsetCommit"]
    consumer._calls._core.coordinator.mark_unknown()
    world.script("FindCoordinator", find_coordinator.FindCoordinatorResponse(
        coordinators=[find_coordinator.Coordinator(key="g", error_code=15)]))  # fmt: skip
    consumer.commit_async({T0: 6}, lambda offsets, error: heard.append(error))
    world.run(50)
    consumer.poll(0)
    assert isinstance(heard[1], RetriableCommitFailedError)


@pytest.mark.case("CC-173")
def test_commit_waits_for_a_loading_coordinator() -> None:
    world = World({"t": 1})
    consumer, _ = member(world)
    world.always["OffsetCommit"] = refused(14)
    start = world.now
    with pytest.raises(ApiTimeoutError, match="LOAD_IN_PROGRESS"):
        consumer.commit({T0: 1}, timeout=1)
    assert world.now - start == 1_000
    world.after(2_000, lambda: world.always.pop("OffsetCommit"))
    consumer.commit({T0: 1}, timeout=5)


@pytest.mark.case("CC-174", "BM-134")
def test_a_commit_by_a_forgotten_member_fails_and_joins_again() -> None:
    world = World({"t": 1})
    consumer, heard = member(world, enable_auto_commit=False)
    world.group.evict_member("g", "c1-1", world.clock.now())
    with pytest.raises(CommitFailedError):
        consumer.commit({T0: 1})
    world.forget()
    consumer.poll(0.2)
    assert [name for name, _ in heard.calls] == ["assigned", "lost", "assigned"]
    assert world.sent("JoinGroup")[0].message.member_id == ""


@pytest.mark.case("CC-175")
def test_a_commit_after_being_kicked_out_fails_here() -> None:
    world = World({"t": 1})
    consumer, _ = member(world)
    world.script("Heartbeat", HeartbeatResponse(error_code=25))
    world.run(3_100)
    world.forget()
    with pytest.raises(CommitFailedError):
        consumer.commit({T0: 1})
    assert not world.sent("OffsetCommit")


@pytest.mark.case("CC-175")
def test_explicit_offsets_before_the_first_join_fail_here() -> None:
    consumer = World({"t": 1}).consumer(group_id="g")
    consumer.subscribe(["t"])
    with pytest.raises(CommitFailedError):
        consumer.commit({T0: 1})


@pytest.mark.case("CC-176")
def test_too_much_metadata_is_raised_without_retries() -> None:
    world = World({"t": 1})
    consumer, _ = member(world)
    world.forget()
    with pytest.raises(OffsetMetadataTooLargeError):
        consumer.commit({T0: OffsetAndMetadata(1, metadata="x" * 5_000)})
    assert len(world.sent("OffsetCommit")) == 1


@pytest.mark.case("CC-177")
def test_a_forbidden_topic_is_named_and_the_other_is_committed() -> None:
    world = World({"t": 1, "u": 1})
    consumer, _ = member(world, "t", "u")
    answer = refused(29, "u")
    answer.topics += refused(0, "t").topics
    world.script("OffsetCommit", answer)
    with pytest.raises(TopicAuthorizationFailedError, match="u"):
        consumer.commit({T0: 1, ("u", 0): 1})


@pytest.mark.case("CC-178")
def test_negative_offsets_are_argument_errors() -> None:
    world = World({"t": 1})
    consumer, _ = member(world)
    world.forget()
    for call in (consumer.commit, consumer.commit_async):
        with pytest.raises(ValueError, match="offset"):
            call({T0: -1})
    assert not world.sent("OffsetCommit")


@pytest.mark.case("CC-179")
def test_an_assigned_consumer_commits_as_nobody() -> None:
    world = World({"t": 1})
    consumer = world.consumer(group_id="g")
    consumer.assign([T0])
    consumer.commit({T0: 7})
    message = world.sent("OffsetCommit")[0].message
    assert (message.generation_id_or_member_epoch, message.member_id) == (-1, "")
    assert consumer.committed([T0, T1]) == {T0: OffsetAndMetadata(7), T1: None}


@pytest.mark.case("CC-180")
def test_revoked_can_commit_and_lost_cannot() -> None:
    world = World({"t": 1})
    consumer, heard = member(world, enable_auto_commit=False)
    outcomes: list[Any] = []

    def commit(partitions: Any) -> None:
        try:
            consumer.commit({T0: 3})
            outcomes.append("committed")
        except CommitFailedError:
            outcomes.append("failed")

    heard.on_partitions_revoked = commit  # type: ignore[method-assign]  # one callback for this test
    heard.on_partitions_lost = commit  # type: ignore[method-assign]  # one callback for this test
    consumer.enforce_rebalance()
    consumer.poll(0.2)
    world.script("Heartbeat", HeartbeatResponse(error_code=25))
    world.run(3_100)
    consumer.poll(0.2)
    assert outcomes == ["committed", "failed"]
    assert world.sent("OffsetCommit")[0].message.generation_id_or_member_epoch == 1


@pytest.mark.case("CC-086", "BM-142", "BM-116")
def test_a_late_refusal_during_the_next_join_resets_nothing() -> None:
    world = World({"t": 1})
    consumer, heard = member(world, enable_auto_commit=False, partition_assignment_strategy=["cooperative-sticky"])
    errors: list[Any] = []
    world.script("OffsetCommit", HOLD)
    consumer.commit_async({T0: 1}, lambda offsets, error: errors.append(error))
    consumer.enforce_rebalance()
    consumer.poll(0.2)
    consumer.enforce_rebalance()
    world.script("JoinGroup", HOLD)
    consumer.poll(0.05)
    held = [h for h in world.held if type(h[1].message).__name__ == "OffsetCommitRequest"]
    world._reply(*held[0], refused(22))
    world.run(5)
    world.held = [h for h in world.held if h not in held]
    world.answer_held()
    consumer.poll(0.2)
    assert [type(e) for e in errors] == [RebalanceRunningError]
    assert "lost" not in [name for name, _ in heard.calls]
    assert consumer.group_metadata().generation_id == 3


@pytest.mark.case("BM-116", "BM-113")
@pytest.mark.parametrize("code", [22, 25])
def test_a_late_refusal_after_the_next_join_resets_nothing(code: int) -> None:
    world = World({"t": 1})
    consumer, heard = member(world, enable_auto_commit=False)
    errors: list[Any] = []
    world.script("OffsetCommit", HOLD)
    consumer.commit_async({T0: 1}, lambda offsets, error: errors.append(error))
    consumer.enforce_rebalance()
    consumer.poll(0.5)
    joined = consumer.group_metadata()
    world.answer_held(refused(code))
    consumer.poll(0.5)
    assert [type(e) for e in errors] == [CommitFailedError]
    assert consumer.group_metadata() == joined
    assert "lost" not in [name for name, _ in heard.calls]
    consumer.commit({T0: 2})


@pytest.mark.case("CC-087")
def test_a_commit_during_a_rebalance_asks_to_poll_and_keeps_the_generation() -> None:
    world = World({"t": 1})
    consumer, _ = member(world, enable_auto_commit=False)
    world.script("OffsetCommit", refused(27))
    with pytest.raises(RebalanceRunningError):
        consumer.commit({T0: 1})
    world.forget()
    consumer.poll(0.2)
    join = world.sent("JoinGroup")[0].message
    assert decode_subscription(join.protocols[0].metadata).generation_id == 1


@pytest.mark.case("CC-204")
def test_a_fenced_asynchronous_commit_is_raised_by_everything_after_it() -> None:
    world = World({"t": 1})
    heard: list[Any] = []
    consumer, _ = member(world, group_instance_id="i")
    world.script("OffsetCommit", refused(82))
    consumer.commit_async({T0: 1}, lambda offsets, error: heard.append(error))
    world.run(10)
    world.forget()
    for _ in range(2):
        with pytest.raises(FencedInstanceIdError):
            consumer.poll(0.1)
        with pytest.raises(FencedInstanceIdError):
            consumer.commit({T0: 1})
    assert heard == []
    assert not world.sent("OffsetCommit")


@pytest.mark.case("CC-204")
def test_a_fenced_synchronous_commit_is_raised_by_itself_only() -> None:
    world = World({"t": 1})
    consumer, _ = member(world, group_instance_id="i")
    world.script("OffsetCommit", refused(82))
    with pytest.raises(FencedInstanceIdError):
        consumer.commit({T0: 1})
    world.forget()
    consumer.poll(0.2)
    assert not world.sent("JoinGroup")
    consumer.commit({T0: 1})


@pytest.mark.case("BM-121")
@pytest.mark.parametrize("end", [refused(16), refused(15), refused(7), DROP])
def test_a_failing_auto_commit_is_repeated_elsewhere_and_never_raised(end: Any) -> None:
    world = World({"t": 1}, nodes=2)
    world.append("t", 0, 5)
    consumer, _ = member(world, auto_commit_interval_ms=1_000)
    world.coordinator_node = 1
    world.script("OffsetCommit", end)
    for _ in range(25):
        consumer.poll(0.1)
    assert {committed(s)[T0] for s in world.sent("OffsetCommit")} == {5}
    assert [s.node for s in world.sent("OffsetCommit")][:2] == [2, 1]
    assert consumer.committed([T0])[TopicPartition(*T0)].offset == 5


@pytest.mark.case("BM-154")
def test_without_a_coordinator_auto_commit_does_not_flood() -> None:
    world = World({"t": 1})
    world.append("t", 0, 5)
    consumer, _ = member(world, auto_commit_interval_ms=100)
    world.always["FindCoordinator"] = DROP
    world.always["OffsetCommit"] = DROP
    world.always["Heartbeat"] = DROP
    world.forget()
    for _ in range(200):
        consumer.poll(0.1)
    assert len(world.sent("FindCoordinator")) <= 2 + 20_000 // 1_000 + 6


@pytest.mark.case("BM-156")
def test_a_commit_sent_while_stable_succeeds_whatever_comes_after() -> None:
    world = World({"t": 1})
    consumer, _ = member(world, enable_auto_commit=False)
    outcomes: list[Any] = []
    world.latency_ms = 20
    consumer.commit_async({T0: 1}, lambda offsets, error: outcomes.append(error))
    consumer.enforce_rebalance()
    consumer.poll(0.5)
    assert outcomes == [None]


def test_only_a_prefix_without_gaps_counts_as_done() -> None:
    tp = TopicPartition("t", 0)
    done = DoneTracker()
    done.handed_out(tp, [0, 1, 2, 5], 6, 3)
    assert done.committable([tp]) == {tp: OffsetAndMetadata(0, 3)}
    assert done.done(tp, 2)
    assert done.done(tp, 0)
    assert not done.done(tp, 0)
    assert done.committable([tp]) == {tp: OffsetAndMetadata(1, 3)}
    done.done(tp, 1)
    assert done.committable([tp]) == {tp: OffsetAndMetadata(5, 3)}
    done.done(tp, 5)
    assert done.committable([tp]) == {tp: OffsetAndMetadata(6, 3)}
    done.keep([])
    assert done.committable([tp]) == {}


def test_work_that_finishes_out_of_order_is_committed_without_gaps() -> None:
    world = World({"t": 1})
    world.append("t", 0, 4)
    consumer, _ = member(world, poll=0, commit_done_only=True, auto_commit_interval_ms=500)
    records = list(consumer.poll(1))
    for record in (records[0], records[2], records[3]):
        assert consumer.done(record)
    consumer.commit()
    assert committed(world.sent("OffsetCommit")[-1]) == {T0: 1}
    consumer.done(records[1])
    consumer.close()
    assert committed(world.sent("OffsetCommit")[-1]) == {T0: 4}


def test_done_of_another_ownership_commits_nothing() -> None:
    world = World({"t": 1})
    world.append("t", 0, 4)
    consumer, _ = member(world, poll=0, commit_done_only=True, enable_auto_commit=False)
    records = list(consumer.poll(1))
    consumer.enforce_rebalance()
    consumer.poll(0.3)
    assert not consumer.done(records[0]) or consumer.position(T0) == 0
