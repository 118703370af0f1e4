"""Heartbeats, the poll interval, leaving and closing (consumer.md 5.8 to 5.11)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from partita.assignors.payloads import decode_subscription
from partita.consumer.errors import ApiTimeoutError, CommitFailedError, RebalanceListenerError, RebalanceRunningError
from partita.consumer.request import Failed
from partita.errors import FencedInstanceIdError, KafkaError
from partita.protocol.messages.heartbeat import HeartbeatResponse
from partita.protocol.messages.join_group import JoinGroupResponse
from partita.protocol.messages.sync_group import SyncGroupResponse
from support.consumer.members import Heard, member
from support.consumer.world import DROP, HOLD, Delay, World

T0 = ("t", 0)


def beat(code: int) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=code)


@pytest.mark.case("CC-061", "BM-117")
def test_heartbeats_go_on_without_polls() -> None:
    world = World({"t": 1})
    member(world)
    world.forget()
    world.run(10_000)
    times = [s.at_ms for s in world.sent("Heartbeat")]
    assert len(times) == 3
    assert {b - a for a, b in itertools.pairwise(times)} == {3_000}


def test_heartbeats_are_sent_as_often_as_the_option_says() -> None:
    world = World({"t": 1})
    member(world, heartbeat_interval_ms=2_000)
    world.forget()
    world.run(10_000)
    times = [s.at_ms for s in world.sent("Heartbeat")]
    assert {b - a for a, b in itertools.pairwise(times)} == {2_000}


def test_a_call_without_timeout_ends_after_the_default_one() -> None:
    world = World({"t": 1})
    consumer, _ = member(world, default_api_timeout_ms=4_000)
    world.always["OffsetFetch"] = HOLD
    began = world.now
    with pytest.raises(ApiTimeoutError):
        consumer.committed([T0])
    assert world.now - began == 4_000


def test_a_poll_that_waits_wakes_for_news_alone() -> None:
    world = World({"t": 1})
    consumer, _ = member(world)
    (io,) = world.consumers
    world.run(600)
    news, turns, walk = io.news, io.activity, io.core.poll
    walks: list[Any] = []

    def counted(*arguments: Any) -> Any:
        walks.append(arguments)
        return walk(*arguments)

    io.core.poll = counted
    assert not consumer.poll(4.0)
    assert io.activity - turns >= 8  # fetches that bring nothing, heartbeats
    assert io.news == news
    assert len(walks) == io.activity - turns + 1  # and one of the poll itself
    world.after(1_000, lambda: world.append("t", 0, 1))
    began = world.now
    assert len(consumer.poll(4.0)) == 1
    assert world.now - began <= 1_010


@pytest.mark.parametrize(
    "fail",
    [
        lambda core, error: core.metadata.errors.append(error),
        lambda core, error: core.validation.errors.append(error),
        lambda core, error: core.positions._errors.append(error),
        lambda core, error: setattr(core.member, "fenced", error),
        lambda core, error: core.events.append(Failed(error)),
    ],
)
def test_an_error_that_a_poll_raises_is_news(fail: Callable[[Any, KafkaError], None]) -> None:
    world = World({"t": 1})
    member(world)
    (io,) = world.consumers
    world.run(600)
    io.core.begin_poll(world.clock.now())
    assert not io.core.has_news
    error = KafkaError("unreadable")
    fail(io.core, error)
    assert io.core.has_news
    assert io.core.next_error() is error


@pytest.mark.case("CC-062", "BM-153")
def test_an_application_busy_for_a_minute_stays_a_member() -> None:
    world = World({"t": 1})
    consumer, heard = member(world)
    world.run(60_000)
    assert 19 <= len(world.sent("Heartbeat")) <= 20
    world.forget()
    consumer.poll(0.1)
    assert not world.sent("JoinGroup")
    assert [name for name, _ in heard.calls] == ["assigned"]


@pytest.mark.case("CC-063", "BM-114")
def test_a_member_that_does_not_poll_leaves_by_itself() -> None:
    world = World({"t": 1})
    consumer, heard = member(world, max_poll_interval_ms=20_000)
    notes: list[Any] = []
    consumer.on_note(notes.append)
    world.run(25_000)
    assert len(world.sent("LeaveGroup")) == 1
    assert consumer.group_metadata().generation_id == 1
    world.forget()
    consumer.poll(0.2)
    assert [name for name, _ in heard.calls] == ["assigned", "lost", "assigned"]
    assert world.sent("JoinGroup")[0].message.member_id == ""
    text = next(n.text for n in notes if n.kind == "poll_interval_exceeded")
    assert "20000" in text
    assert "generation 1" in text


@pytest.mark.case("CC-064")
def test_a_static_member_that_does_not_poll_falls_silent() -> None:
    world = World({"t": 1})
    member(world, max_poll_interval_ms=20_000, group_instance_id="i")
    world.run(25_000)
    assert not world.sent("LeaveGroup")
    world.forget()
    world.run(10_000)
    assert not world.sent("Heartbeat")


@pytest.mark.case("CC-065")
def test_an_unreachable_coordinator_does_not_end_the_membership() -> None:
    world = World({"t": 1})
    consumer, heard = member(world, session_timeout_ms=10_000, enable_auto_commit=False)
    world.always["Heartbeat"] = HOLD
    world.forget()
    world.run(14_000)
    assert world.sent("FindCoordinator")
    consumer.poll(0.05)
    assert consumer.assignment() == {T0}
    assert [name for name, _ in heard.calls] == ["assigned"]


@pytest.mark.case("CC-066", "BM-129")
def test_a_rebalance_signal_counts_as_alive() -> None:
    world = World({"t": 1})
    consumer, _ = member(world, session_timeout_ms=10_000)
    world.always["Heartbeat"] = beat(27)
    world.forget()
    world.run(30_000)
    assert not world.sent("FindCoordinator")
    assert len(world.sent("Heartbeat")) == 10
    world.script("JoinGroup", HOLD)
    consumer.poll(0.01)
    assert len(world.sent("JoinGroup")) == 1


@pytest.mark.case("CC-066")
def test_a_rebalance_signal_during_the_join_is_ignored() -> None:
    world = World({"t": 1})
    world.script("SyncGroup", HOLD)
    consumer, _ = member(world, poll=0.1)
    world.script("Heartbeat", beat(27))
    world.run(4_000)
    assert len(world.sent("Heartbeat")) == 1
    world.answer_held()
    world.forget()
    consumer.poll(0.2)
    assert not world.sent("JoinGroup")


@pytest.mark.case("CC-067", "BM-113")
def test_an_answer_to_an_older_generation_is_ignored() -> None:
    world = World({"t": 1})
    consumer, heard = member(world)
    world.script("Heartbeat", HOLD)
    world.run(3_100)
    consumer.enforce_rebalance()
    consumer.poll(0.2)
    assert consumer.group_metadata().generation_id == 2
    world.answer_held(beat(25))
    world.forget()
    world.run(10)
    consumer.poll(0.1)
    assert not world.sent("JoinGroup")
    assert "lost" not in [name for name, _ in heard.calls]


@pytest.mark.case("CC-068")
def test_a_fenced_member_hears_it_once_and_then_joins_anew() -> None:
    world = World({"t": 1})
    consumer, heard = member(world, group_instance_id="i")
    world.script("Heartbeat", beat(82))
    world.run(3_100)
    with pytest.raises(CommitFailedError):
        consumer.commit({T0: 1})
    with pytest.raises(FencedInstanceIdError):
        consumer.poll(0.1)
    world.forget()
    consumer.poll(0.2)
    assert [name for name, _ in heard.calls] == ["assigned", "lost", "assigned"]
    assert world.sent("JoinGroup")[0].message.member_id == ""


@pytest.mark.case("CC-069", "CC-201", "BM-137")
@pytest.mark.parametrize("reply", [beat(30), beat(24), beat(-1)])
def test_failing_heartbeats_back_off_and_are_never_raised(reply: Any) -> None:
    world = World({"t": 1})
    consumer, _ = member(world)
    world.script("Heartbeat", *[reply] * 5)
    world.forget()
    world.run(12_000)
    times = [s.at_ms for s in world.sent("Heartbeat")]
    waits = [b - a for a, b in itertools.pairwise(times)][:6]
    assert waits == [pytest.approx(w, abs=10) for w in (100, 200, 400, 800, 1_000, 3_000)]
    consumer.poll(0.05)
    assert consumer.assignment() == {T0}


@pytest.mark.case("CC-069")
def test_an_unanswered_heartbeat_does_not_hold_back_the_next() -> None:
    world = World({"t": 1})
    member(world)
    world.script("Heartbeat", HOLD)
    world.forget()
    world.run(10_000)
    assert len(world.sent("Heartbeat")) == 3


@pytest.mark.case("CC-070")
def test_polls_count_even_while_there_is_no_coordinator() -> None:
    world = World({"t": 1})
    consumer, heard = member(world, max_poll_interval_ms=2_000)
    world.always["Heartbeat"] = DROP
    world.always["FindCoordinator"] = DROP
    for _ in range(60):
        consumer.poll(0.1)
    assert not world.sent("LeaveGroup")
    assert "lost" not in [name for name, _ in heard.calls]


@pytest.mark.case("CC-071")
def test_unsubscribe_revokes_and_leaves_with_a_reason() -> None:
    world = World({"t": 1})
    consumer, heard = member(world)
    consumer.unsubscribe()
    assert heard.calls[-1] == ("revoked", [T0])
    assert "unsubscribed" in world.sent("LeaveGroup")[0].message.members[0].reason


@pytest.mark.case("CC-071")
def test_unsubscribe_during_a_rebalance_loses() -> None:
    world = World({"t": 1})
    consumer, heard = member(world, partition_assignment_strategy=["cooperative-sticky"])
    world.script("JoinGroup", HOLD)
    consumer.enforce_rebalance()
    consumer.poll(0.05)
    consumer.unsubscribe()
    assert heard.calls[-1] == ("lost", [T0])


@pytest.mark.case("CC-072", "CC-181")
def test_close_commits_before_it_leaves_and_unsubscribe_does_not_commit() -> None:
    world = World({"t": 1})
    consumer, _ = member(world)
    world.forget()
    consumer.close()
    assert world.names()[:2] == ["OffsetCommit", "LeaveGroup"]
    second, _ = member(World({"t": 1}))
    second._driver.io.world.forget()
    second.unsubscribe()
    assert "OffsetCommit" not in second._driver.io.world.names()


@pytest.mark.case("CC-205")
def test_a_static_member_leaves_when_told_to() -> None:
    world = World({"t": 1})
    consumer, _ = member(world, group_instance_id="i")
    consumer.close(membership="leave_group")
    (gone,) = world.sent("LeaveGroup")[0].message.members
    assert gone.member_id.startswith("i-")
    assert gone.group_instance_id is None


@pytest.mark.case("CC-205")
def test_a_dynamic_member_stays_when_told_to() -> None:
    world = World({"t": 1})
    consumer, heard = member(world)
    consumer.close(membership="remain_in_group")
    assert heard.calls[-1] == ("revoked", [T0])
    assert world.sent("OffsetCommit")
    assert not world.sent("LeaveGroup")


def test_a_static_member_stays_by_default() -> None:
    world = World({"t": 1})
    consumer, _ = member(world, group_instance_id="i")
    consumer.close()
    assert not world.sent("LeaveGroup")


@pytest.mark.case("CC-216")
def test_a_callback_that_fails_on_unsubscribe_is_raised_after_everything_is_done() -> None:
    world = World({"t": 1})
    consumer, heard = member(world)
    heard.fail_on["revoked"] = RuntimeError("on purpose")
    with pytest.raises(RuntimeError, match="on purpose"):
        consumer.unsubscribe()
    assert world.sent("LeaveGroup")
    assert consumer.subscription() == set()


@pytest.mark.case("BM-122", "BM-140", "BM-143")
@pytest.mark.parametrize("silent", ["OffsetCommit", "LeaveGroup"])
def test_close_ends_within_its_time_whatever_is_silent(silent: str) -> None:
    world = World({"t": 1})
    consumer, _ = member(world)
    world.always[silent] = HOLD
    start = world.now
    consumer.close(1.5)
    assert world.now - start == 1_500


@pytest.mark.case("BM-122", "BM-159")
def test_close_with_every_broker_gone() -> None:
    world = World({"t": 1})
    consumer, _ = member(world)
    for name in ("Metadata", "FindCoordinator", "Heartbeat", "OffsetCommit", "LeaveGroup", "Fetch"):
        world.always[name] = DROP
    start = world.now
    consumer.close(2)
    assert world.now - start <= 2_000


@pytest.mark.case("BM-143")
def test_close_while_a_sync_is_under_way() -> None:
    world = World({"t": 1})
    world.script("SyncGroup", HOLD)
    consumer, heard = member(world, poll=0.1)
    start = world.now
    consumer.close(1)
    assert world.now - start < 1_000
    assert world.sent("LeaveGroup")
    assert heard.calls == []


@pytest.mark.case("BM-118")
def test_a_member_without_partitions_stays() -> None:
    world = World({"t": 1})
    first, _ = member(world, max_poll_interval_ms=10_000)
    second, _heard = member(world, poll=0, max_poll_interval_ms=10_000)
    for _ in range(400):
        first.poll(0.05)
        second.poll(0.05)
    world.forget()
    for _ in range(100):
        first.poll(0.5)
        second.poll(0.5)
    assert not world.sent("LeaveGroup")
    assert not world.sent("JoinGroup")
    first.close()
    for _ in range(20):
        second.poll(0.2)
    assert second.assignment() == {T0}


@pytest.mark.case("BM-124")
def test_a_coordinator_that_comes_back_elsewhere_is_found() -> None:
    world = World({"t": 1}, nodes=2)
    consumer, _ = member(world)
    world.script("Heartbeat", DROP)
    world.script("FindCoordinator", *[DROP] * 5)
    world.coordinator_node = 1
    for _ in range(30):
        consumer.poll(0.5)
    world.forget()
    consumer.poll(4)
    assert {s.node for s in world.sent("Heartbeat")} == {1}


@pytest.mark.case("BM-112")
def test_a_join_that_fails_while_metadata_flips_back_is_sent_again() -> None:
    world = World({"t": 1})
    consumer, _ = member(world, metadata_max_age_ms=300)
    world.create("t", 2)
    world.script("JoinGroup", DROP)
    consumer.poll(0.4)
    del world.logs["t", 1]
    consumer.poll(3)
    assert consumer.assignment() == {T0}
    assert consumer.group_metadata().generation_id >= 2


@pytest.mark.case("BM-160")
def test_a_broken_rule_is_raised_and_does_not_spin() -> None:
    world = World({"t": 1})
    consumer, _ = member(world)
    consumer._driver.io.failure = RuntimeError("on purpose")
    with pytest.raises(RuntimeError, match="on purpose"):
        consumer.poll(1)


def test_holding_the_rebalance_keeps_everything_until_the_block_ends() -> None:
    world = World({"t": 1})
    consumer, heard = member(world)
    world.script("Heartbeat", beat(27))
    with consumer.hold(consumer.poll(0)) as hold:
        assert not hold.others_wait
        world.run(3_100)
        assert hold.others_wait
        consumer.poll(0.2)
        assert [name for name, _ in heard.calls] == ["assigned"]
    consumer.poll(0.2)
    assert [name for name, _ in heard.calls] == ["assigned", "revoked", "assigned"]


@pytest.mark.case("CC-085", "BM-133")
def test_a_commit_between_join_and_sync_of_what_an_eager_member_gave_up_fails_here_and_now() -> None:
    world = World({"t": 1})
    consumer, _heard = member(world, partition_assignment_strategy=["range"])
    consumer.enforce_rebalance()
    world.script("JoinGroup", HOLD)
    consumer.poll(0.05)
    world.forget()
    with pytest.raises(RebalanceRunningError):
        consumer.commit({T0: 0})
    assert not world.sent("OffsetCommit")
    consumer.commit()


def in_a_cooperative_round(held: str) -> tuple[World, Any, Any]:
    """A member that waits for the answer to JoinGroup or SyncGroup, and has a record to commit."""
    world = World({"t": 1})
    options: dict[str, Any] = {"enable_auto_commit": False, "partition_assignment_strategy": ["cooperative-sticky"]}
    consumer, heard = member(world, **options)
    consumer.enforce_rebalance()
    world.script(held, HOLD)
    consumer.poll(0.05)
    world.forget()
    return world, consumer, heard


@pytest.mark.case("CC-085", "BM-133")
@pytest.mark.parametrize("held", ["JoinGroup", "SyncGroup"])
def test_a_commit_in_a_cooperative_round_waits_for_its_end(held: str) -> None:
    """Finding D13: 528 of 1,000 commits raised RebalanceRunningError while members came and went."""
    world, consumer, _ = in_a_cooperative_round(held)
    outcomes: list[Any] = []
    consumer.commit_async({T0: 3}, lambda offsets, error: outcomes.append(error))
    world.after(2_000, world.answer_held)
    consumer.commit({T0: 4})
    commits = [sent.message.generation_id_or_member_epoch for sent in world.sent("OffsetCommit")]
    assert commits == [2, 2], "in the name of the new generation, before any poll"
    assert outcomes == [None]
    assert consumer.committed([T0])[T0].offset == 4


@pytest.mark.case("BM-133")
def test_a_commit_in_a_round_that_does_not_end_says_so_at_its_timeout() -> None:
    _world, consumer, _ = in_a_cooperative_round("JoinGroup")
    with pytest.raises(ApiTimeoutError, match="the group is rebalancing") as failure:
        consumer.commit({T0: 0}, timeout=5)
    assert isinstance(failure.value.__cause__, RebalanceRunningError)
    assert consumer.assignment() == {T0}


def test_a_round_that_begins_again_goes_on_while_a_commit_waits_for_it() -> None:
    """Finding D13: SyncGroup is answered REBALANCE_IN_PROGRESS when the next member comes too early."""
    world, consumer, heard = in_a_cooperative_round("SyncGroup")
    world.after(500, lambda: world.answer_held(SyncGroupResponse(error_code=27)))
    consumer.commit({T0: 4})
    names = [name for name in world.names() if name != "Fetch"]
    assert names == ["JoinGroup", "SyncGroup", "OffsetCommit"]
    assert [name for name, _ in heard.calls] == ["assigned"], "no callback outside a poll"


def test_a_commit_that_waited_is_refused_when_the_membership_has_ended() -> None:
    world, consumer, _ = in_a_cooperative_round("JoinGroup")
    world.after(500, lambda: world.answer_held(JoinGroupResponse(error_code=25)))
    with pytest.raises(CommitFailedError):
        consumer.commit({T0: 4})
    assert not world.sent("OffsetCommit")


def test_a_commit_of_a_partition_that_was_never_ours_does_not_wait() -> None:
    _world, consumer, _ = in_a_cooperative_round("JoinGroup")
    with pytest.raises(RebalanceRunningError):
        consumer.commit({("t", 7): 4})


def test_close_does_not_wait_for_a_round() -> None:
    world, consumer, _ = in_a_cooperative_round("JoinGroup")
    outcomes: list[Any] = []
    consumer.commit_async({T0: 3}, lambda offsets, error: outcomes.append(error))
    started = world.now
    consumer.close()
    assert world.now - started < 1_000
    assert [type(error) for error in outcomes] == [RebalanceRunningError]


def test_hold_ends_a_rebalance_under_way_before_its_first_record() -> None:
    """Finding D13: the block began between JoinGroup and SyncGroup, and partitions were taken away inside."""
    world = World({"t": 2})
    options: dict[str, Any] = {"enable_auto_commit": False, "partition_assignment_strategy": ["cooperative-sticky"]}
    first, heard = member(world, max_poll_records=4, heartbeat_interval_ms=100, **options)
    for partition in (0, 1):
        world.append("t", partition, 50)
    world.run(1_000)
    world.script("JoinGroup", Delay(1_000))
    first.enforce_rebalance()
    while world.names()[-1] != "JoinGroup":
        first.poll(0.01, max_records=0)
    records = first.poll(0.5)
    assert len(records) == 4
    assert first._driver.core.membership.is_joining
    with first.hold(records) as held:
        assert not first._driver.core.membership.is_joining
        calls = len(heard.calls)
        for record in held:
            first.commit(record)
        assert len(heard.calls) == calls
    assert len(world.sent("OffsetCommit")) == 4


@pytest.mark.case("CC-082", "BM-149")
def test_a_reset_member_loses_all_and_claims_nothing() -> None:
    world = World({"t": 2})
    consumer, heard = member(world, partition_assignment_strategy=["cooperative-sticky"])
    world.script("Heartbeat", beat(25))
    world.run(3_100)
    world.forget()
    consumer.poll(0.2)
    assert heard.calls[1] == ("lost", [("t", 0), ("t", 1)])
    claim = decode_subscription(world.sent("JoinGroup")[0].message.protocols[0].metadata)
    assert (list(claim.owned_partitions), claim.generation_id) == ([], -1)


def test_errors_of_close_are_raised_at_its_end() -> None:
    world = World({"t": 1})
    consumer, heard = member(world)
    heard.fail_on["revoked"] = RuntimeError("on purpose")
    with pytest.raises(RuntimeError, match="on purpose"):
        consumer.close()
    assert world.sent("LeaveGroup")


def test_the_join_refused_for_ever_is_no_endless_loop() -> None:
    world = World({"t": 1})
    world.always["JoinGroup"] = JoinGroupResponse(error_code=14)
    _consumer, _ = member(world, poll=20)
    assert len(world.sent("JoinGroup")) <= 25


def test_errors_of_callbacks_are_wrapped() -> None:
    world = World({"t": 1})
    heard = Heard()
    heard.fail_on["assigned"] = ValueError("on purpose")
    consumer = world.consumer(group_id="g")
    consumer.subscribe(["t"], listener=heard)
    with pytest.raises(RebalanceListenerError) as caught:
        consumer.poll(1)
    assert isinstance(caught.value.__cause__, ValueError)


class Slow(Heard):
    """Sits in its revoked-callback for a while."""

    def __init__(self, world: World, ms: int) -> None:
        super().__init__()
        self._world, self._ms = world, ms

    def on_partitions_revoked(self, partitions: Any) -> None:
        self._world.run(self._ms)
        super().on_partitions_revoked(partitions)


def test_what_was_revoked_is_not_lost_again_when_the_callback_outlasts_the_poll_interval() -> None:
    world = World({"t": 1})
    consumer, _ = member(world, max_poll_interval_ms=20_000)
    heard = Slow(world, 25_000)
    consumer.subscribe(["t"], listener=heard)
    consumer.enforce_rebalance()
    consumer.poll(1)
    consumer.poll(1)
    assert [name for name, _ in heard.calls] == ["revoked", "assigned"]
    assert consumer.assignment() == {T0}


def test_a_consumer_that_knows_no_coordinator_is_not_asked_every_millisecond() -> None:
    world = World({"t": 1})
    consumer, _ = member(world, enable_auto_commit=False, fetch_max_wait_ms=10_000)
    core = consumer._calls._core
    world.always["FindCoordinator"] = HOLD
    core.coordinator.mark_unknown()
    world.run(4_000)
    turns = 0
    poll = core.poll

    def counted(now: Any) -> Any:
        nonlocal turns
        turns += 1
        return poll(now)

    core.poll = counted
    world.run(1_000)
    assert turns < 20


@pytest.mark.case("BM-118")
def test_a_member_that_waits_inside_poll_longer_than_the_poll_interval_stays() -> None:
    """Waiting for records is polling: nobody without partitions or records is taken for stuck."""
    world = World({"t": 1})
    consumer, _ = member(world, session_timeout_ms=6_000, max_poll_interval_ms=8_000)
    world.forget()
    consumer.poll(30)
    assert not world.sent("LeaveGroup")
    assert not world.sent("JoinGroup")
    assert len(consumer.assignment()) == 1
