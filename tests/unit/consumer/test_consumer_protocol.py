"""The consumer protocol (KIP-848) at the client: heartbeats, reconciliation, errors, leaving (consumer.md 12)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from partita import SubscriptionPattern
from partita.consumer.errors import CommitFailedError, IllegalStateError, RebalanceListenerError
from partita.errors import (
    InvalidRegularExpressionError,
    KafkaError,
    TopicAuthorizationFailedError,
    UnreleasedInstanceIdError,
    UnsupportedVersionError,
)
from partita.options import ConfigError
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages import offset_fetch
from support.consumer.epochs import EPOCHS, EpochGroup, epoch_member
from support.consumer.world import DROP, HOLD, Delay, World


def begin(count: int = 4, **options: Any) -> tuple[World, EpochGroup, Any, Any]:
    """A world, its group, and a member that holds the whole of topic t."""
    world = World({"t": count})
    group = EpochGroup(world)
    group.assign(*(("t", p) for p in range(count)))
    consumer, heard = epoch_member(world, **options)
    return world, group, consumer, heard


def owned(message: Any) -> list[tuple[bytes, int]] | None:
    topics = message.topic_partitions
    return None if topics is None else [(topic.topic_id, p) for topic in topics for p in topic.partitions]


def until(world: World, consumer: Any, condition: Any, seconds: float = 20) -> None:
    deadline = world.now + seconds * 1000
    while not condition():
        assert world.now < deadline, "it never came"
        consumer.poll(0.05)


# Heartbeats


@pytest.mark.case("CC-182")
def test_a_joining_heartbeat_says_everything_and_later_ones_only_what_is_new() -> None:
    world, group, consumer, _ = begin(2, client_rack="r1", group_remote_assignor="range", max_poll_interval_ms=60_000)
    world.run(11_000)
    first, second, *rest = group.beats()
    assert (first.member_epoch, first.subscribed_topic_names, owned(first)) == (0, ["t"], [])
    assert (first.rack_id, first.server_assignor, first.rebalance_timeout_ms) == ("r1", "range", 60_000)
    assert len(first.member_id) == 22
    assert (second.member_epoch, second.member_id) == (group.epoch, first.member_id)
    assert owned(second) == [(world.ids["t"], 0), (world.ids["t"], 1)]
    assert (second.subscribed_topic_names, second.rebalance_timeout_ms, second.rack_id) == (None, -1, None)
    assert len(rest) == 2
    assert all(owned(one) is None and one.subscribed_topic_names is None for one in rest)
    assert consumer.assignment() == {("t", 0), ("t", 1)}


def test_heartbeats_keep_the_interval_that_the_broker_gives() -> None:
    world, _, _, _ = begin()
    world.forget()
    world.run(30_500)
    times = [sent.at_ms for sent in world.sent("ConsumerGroupHeartbeat")]
    assert [after - before for before, after in pairwise(times)] == [5_000] * (len(times) - 1)
    assert len(times) == 6


@pytest.mark.case("CC-191")
def test_the_heartbeat_after_an_error_says_everything_again() -> None:
    world, group, consumer, _ = begin(1)
    group.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    world.forget()
    until(world, consumer, lambda: len(group.beats()) == 2)
    refused, again = group.beats()
    assert refused.subscribed_topic_names is None
    assert (again.subscribed_topic_names, owned(again)) == (["t"], [(world.ids["t"], 0)])
    assert again.member_epoch == group.epoch


def test_another_subscription_is_told_at_once() -> None:
    world, group, consumer, _ = begin(1)
    world.create("u")
    world.forget()
    consumer.subscribe(["t", "u"])
    consumer.poll(0.05)
    assert [one.subscribed_topic_names for one in group.beats()] == [["t", "u"]]


def test_repeated_refusals_back_off() -> None:
    world = World({"t": 1})
    group = EpochGroup(world)
    for _ in range(4):
        group.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    consumer, _ = epoch_member(world, poll=0)
    until(world, consumer, lambda: len(group.beats()) > 4)
    times = [sent.at_ms for sent in world.sent("ConsumerGroupHeartbeat")][:5]
    waits = [after - before for before, after in pairwise(times)]
    assert waits == sorted(waits)
    assert waits[0] >= 100
    assert waits[-1] >= 800


@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_a_moved_coordinator_is_looked_up_and_asked_again_without_waiting(code: ErrorCode) -> None:
    world, group, consumer, heard = begin(1)
    heard.calls.clear()
    group.refuse(code)
    world.forget()
    until(world, consumer, lambda: len(group.beats()) == 2)
    names = [sent.name for sent in world.sent() if sent.name in ("ConsumerGroupHeartbeat", "FindCoordinator")]
    assert names == ["ConsumerGroupHeartbeat", "FindCoordinator", "ConsumerGroupHeartbeat"]
    times = [sent.at_ms for sent in world.sent("ConsumerGroupHeartbeat")]
    assert times[1] - times[0] < 100
    assert heard.calls == []


# Reconciliation


@pytest.mark.case("CC-183")
def test_a_topic_that_is_not_known_yet_waits_while_the_rest_goes_ahead() -> None:
    world = World({"t": 1})
    group = EpochGroup(world)
    new_id = b"\7" * 16
    group.assign(("t", 0), (new_id, 0))
    consumer, heard = epoch_member(world, "t", "late")
    assert heard.calls == [("assigned", [("t", 0)])]
    assert owned(group.beats()[1]) == [(world.ids["t"], 0)]
    assert not consumer.is_settled()
    world.ids["late"] = new_id
    world.create("late")
    until(world, consumer, consumer.is_settled)
    assert heard.calls[1:] == [("assigned", [("late", 0)])]
    assert ("late", 0) in [(t.name, 0) for t in world.metadata().topics]
    assert sorted(owned(group.beats()[-1]) or []) == sorted([(world.ids["t"], 0), (new_id, 0)])


@pytest.mark.case("CC-184", "BM-135")
def test_what_stays_never_stops_while_the_rest_changes_hands() -> None:
    world, group, consumer, heard = begin(3, auto_commit_interval_ms=100_000)
    group.assign(("t", 0), ("t", 1))
    until(world, consumer, lambda: consumer.assignment() == {("t", 0), ("t", 1)})
    for p in range(3):
        world.append("t", p, 3)
    until(world, consumer, lambda: consumer.position(("t", 0)) == 3)
    heard.calls.clear()
    world.forget()
    group.assign(("t", 1), ("t", 2))
    until(world, consumer, lambda: consumer.assignment() == {("t", 1), ("t", 2)})
    assert heard.calls == [("revoked", [("t", 0)]), ("assigned", [("t", 2)])]
    assert group.committed["t", 0] == 3
    told, acknowledged = group.beats()[:2]
    assert owned(told) is None
    assert owned(acknowledged) == [(world.ids["t"], 1), (world.ids["t"], 2)]
    times = [sent.at_ms for sent in world.sent("ConsumerGroupHeartbeat")]
    assert times[1] - times[0] < 50
    asked = {
        (topic.name, p)
        for sent in world.sent("OffsetFetch")
        for topic in sent.message.groups[0].topics
        for p in topic.partition_indexes
    }
    assert asked == {("t", 2)}


@pytest.mark.case("CC-185")
def test_heartbeats_go_on_while_the_application_hears_of_its_partitions() -> None:
    world = World({"t": 1})
    group = EpochGroup(world, interval_ms=1_000)
    group.assign(("t", 0))
    world.append("t", 0, 5)
    consumer = world.consumer(**EPOCHS)
    consumer.subscribe(["t"], on_assigned=lambda _: world.run(10_000))
    consumer.poll(0)
    until(world, consumer, lambda: len(group.beats()) > 8)
    fetched_before = [sent for sent in world.sent("Fetch") if sent.at_ms < 10_000]
    assert len(group.beats()) >= 10
    assert fetched_before == []
    until(world, consumer, lambda: consumer.position(("t", 0)) == 5)


def test_a_callback_that_raises_is_called_again_for_the_same_partitions() -> None:
    world = World({"t": 2})
    group = EpochGroup(world)
    group.assign(("t", 0), ("t", 1))
    world.append("t", 0, 1)
    consumer, heard = epoch_member(world, poll=0)
    heard.fail_on["assigned"] = ValueError("not yet")
    with pytest.raises(RebalanceListenerError, match="not yet"):
        consumer.poll(0.5)
    assert len(group.beats()) == 1, "nothing is acknowledged before the callback has succeeded"
    assert world.sent("Fetch") == []
    until(world, consumer, consumer.is_settled)
    assert heard.calls == [("assigned", [("t", 0), ("t", 1)])] * 2
    assert len(group.beats()) == 2
    until(world, consumer, lambda: consumer.position(("t", 0)) == 1)


def test_a_revocation_that_raises_keeps_the_partition_until_it_succeeds() -> None:
    world, group, consumer, heard = begin(2)
    group.assign(("t", 0))
    heard.calls.clear()
    heard.fail_on["revoked"] = ValueError("not yet")
    with pytest.raises(RebalanceListenerError, match="not yet"):
        until(world, consumer, lambda: False)
    assert consumer.assignment() == {("t", 0), ("t", 1)}
    until(world, consumer, consumer.is_settled)
    assert consumer.assignment() == {("t", 0)}
    assert heard.calls == [("revoked", [("t", 1)]), ("revoked", [("t", 1)]), ("assigned", [])]


def test_a_partition_that_comes_back_before_it_is_revoked_is_read_again() -> None:
    world, group, consumer, heard = begin(2)
    heard.fail_on["revoked"] = ValueError("no")
    group.assign(("t", 0))
    with pytest.raises(RebalanceListenerError):
        until(world, consumer, lambda: False)
    consumer._calls._core.membership.is_held = True
    group.assign(("t", 0), ("t", 1))
    before = len(group.beats())
    until(world, consumer, lambda: len(group.beats()) > before)
    consumer.poll(0.01)
    consumer._calls._core.membership.is_held = False
    until(world, consumer, consumer.is_settled)
    world.append("t", 1, 2)
    until(world, consumer, lambda: consumer.position(("t", 1)) == 2)


@pytest.mark.case("CC-194")
def test_a_newer_target_waits_until_the_reconciliation_under_way_is_over() -> None:
    """What it adds is reported with the acknowledgement: it may be taken before the coordinator's answer comes."""
    world = World({"t": 3})
    group = EpochGroup(world, interval_ms=500)
    group.assign(("t", 0))
    consumer = world.consumer(**EPOCHS)
    told: list[tuple[str, list[int]]] = []

    def assigned(partitions: Any) -> None:
        told.append(("assigned", [p for _, p in partitions]))
        if len(told) == 1:
            group.assign(("t", 1))
            world.run(2_000)
        told.append(("end", []))

    consumer.subscribe(["t"], on_assigned=assigned, on_revoked=lambda ps: told.append(("revoked", [p for _, p in ps])))
    until(world, consumer, lambda: consumer.assignment() == {("t", 1)} and consumer.is_settled())
    assert told == [("assigned", [0]), ("end", []), ("revoked", [0]), ("assigned", [1]), ("end", [])]
    acknowledged = [one for one in (owned(message) for message in group.beats()) if one]
    assert acknowledged == [[(world.ids["t"], 0), (world.ids["t"], 1)], [(world.ids["t"], 1)]]


@pytest.mark.parametrize("left", [[("t", 0)], [("t", 0), ("t", 2)]], ids=["nothing else", "something else"])
@pytest.mark.parametrize("added", ["t", b"\7" * 16], ids=["known", "unknown"])
def test_what_is_taken_back_before_the_application_got_it_is_reported_at_once(
    added: str | bytes, left: list[tuple[str, int]]
) -> None:
    """The coordinator gives it to no other member before it hears so, or before the rebalance timeout is over."""
    world = World({"t": 3})
    group = EpochGroup(world)
    group.assign(("t", 0))
    consumer, heard = epoch_member(world)
    world.append("t", 0, 1)
    consumer.poll(1.0)
    heard.calls.clear()
    group.assign(*left, (added, 1))
    world.run(5_500)  # the application works on its record and does not poll
    world.forget()
    group.assign(*left)
    world.run(5_500)
    assert [owned(one) for one in group.beats()] == [None, [(world.ids["t"], p) for _, p in left]]
    until(world, consumer, consumer.is_settled)
    assert heard.calls == ([] if len(left) == 1 else [("assigned", [("t", 2)])])


def test_what_a_callback_is_told_of_is_reported_until_it_is_given_up() -> None:
    world = World({"t": 2})
    group = EpochGroup(world, interval_ms=500)
    group.assign(("t", 0))
    consumer, _ = epoch_member(world, poll=0)
    told: list[int] = []

    def assigned(partitions: Any) -> None:
        if ("t", 1) in partitions:
            group.assign(("t", 0))
            world.run(1_000)
            group.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)  # the next heartbeat says everything
            world.run(1_000)
            told.extend(p for one in group.beats()[-2:] for _, p in owned(one) or ())

    consumer.subscribe(["t"], on_assigned=assigned)
    until(world, consumer, consumer.is_settled)
    group.assign(("t", 0), ("t", 1))
    until(world, consumer, lambda: told and consumer.is_settled())
    assert told == [0, 1]
    assert owned(group.beats()[-1]) == [(world.ids["t"], 0)]


def test_a_held_batch_keeps_the_reconciliation_waiting_and_says_that_others_wait() -> None:
    world, group, consumer, heard = begin(2)
    world.append("t", 0, 2)
    found = consumer.poll(1.0)
    heard.calls.clear()
    with consumer.hold(found) as work:
        group.assign(("t", 0))
        world.run(6_000)
        consumer.poll(0.01)
        assert work.others_wait
        assert heard.calls == []
    until(world, consumer, consumer.is_settled)
    assert heard.calls == [("revoked", [("t", 1)]), ("assigned", [])]


# Errors


@pytest.mark.case("CC-186")
@pytest.mark.parametrize(
    "code", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND]
)
def test_a_fenced_member_loses_everything_and_joins_again_at_once(code: ErrorCode) -> None:
    world, group, consumer, heard = begin(2)
    heard.calls.clear()
    world.forget()
    group.refuse(code)
    until(world, consumer, lambda: len(group.beats()) >= 3)
    refused, joining, _ = group.beats()[:3]
    assert heard.calls == [("lost", [("t", 0), ("t", 1)]), ("assigned", [("t", 0), ("t", 1)])]
    assert (joining.member_epoch, joining.subscribed_topic_names, owned(joining)) == (0, ["t"], [])
    assert joining.member_id == refused.member_id
    times = [sent.at_ms for sent in world.sent("ConsumerGroupHeartbeat")]
    assert times[1] - times[0] <= 60


def test_a_member_fenced_inside_a_callback_loses_what_it_has_left_and_hears_of_nothing_twice() -> None:
    world = World({"t": 3})
    group = EpochGroup(world, interval_ms=500)
    group.assign(("t", 0), ("t", 1))
    consumer = world.consumer(**EPOCHS)
    told: list[tuple[str, list[int]]] = []

    def revoked(partitions: Any) -> None:
        told.append(("revoked", [p for _, p in partitions]))
        group.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
        world.run(2_000)

    consumer.subscribe(
        ["t"],
        on_assigned=lambda ps: told.append(("assigned", [p for _, p in ps])),
        on_revoked=revoked,
        on_lost=lambda ps: told.append(("lost", [p for _, p in ps])),
    )
    until(world, consumer, consumer.is_settled)
    group.assign(("t", 1))
    until(world, consumer, lambda: consumer.is_settled() and len(told) > 3)
    assert told == [("assigned", [0, 1]), ("revoked", [0]), ("lost", [1]), ("assigned", [1])]


@pytest.mark.case("CC-187")
@pytest.mark.parametrize(("static", "epoch"), [(None, -1), ("i", -2)])
def test_a_member_that_does_not_poll_leaves_and_comes_back_with_the_next_poll(static: str | None, epoch: int) -> None:
    world, group, consumer, heard = begin(1, max_poll_interval_ms=7_000, group_instance_id=static)
    heard.calls.clear()
    world.forget()
    world.run(20_000)
    *_, last = group.beats()
    assert (last.member_epoch, owned(last)) == (epoch, [])
    assert world.sent("ConsumerGroupHeartbeat")[-1].at_ms < 9_000, "silence after it has left"
    assert heard.calls == [], "callbacks belong to polls"
    world.forget()
    until(world, consumer, consumer.is_settled)
    assert heard.calls == [("lost", [("t", 0)]), ("assigned", [("t", 0)])]
    assert (group.beats()[0].member_epoch, group.beats()[0].subscribed_topic_names) == (0, ["t"])


@pytest.mark.case("CC-188")
def test_a_second_holder_of_an_instance_id_is_refused_for_good() -> None:
    world = World({"t": 1})
    group = EpochGroup(world)
    consumer, _ = epoch_member(world, poll=0, group_instance_id="i")
    group.refuse(ErrorCode.UNRELEASED_INSTANCE_ID)
    with pytest.raises(UnreleasedInstanceIdError, match="group 'g' is 'i'"):
        consumer.poll(1.0)
    world.forget()
    assert len(consumer.poll(20.0)) == 0
    assert group.beats() == [], "no heartbeat follows a fatal error"


@pytest.mark.case("CC-189")
def test_a_commit_at_an_old_epoch_fails_unless_the_consumer_made_it_before_a_revocation() -> None:
    world, group, consumer, _ = begin(2, auto_commit_interval_ms=100_000)
    world.append("t", 0, 3)
    until(world, consumer, lambda: consumer.position(("t", 0)) == 3)
    group.epoch += 1
    with pytest.raises(CommitFailedError, match="STALE_MEMBER_EPOCH"):
        consumer.commit()
    assert group.committed == {}
    group.assign(("t", 1))
    group.interval_ms = 300
    group.commit_epochs.clear()
    original = group.epoch

    def one_behind(message: Any) -> Any:
        group.epoch = original + 1  # the coordinator has gone on; the next heartbeat tells
        return group.commit(message)

    world.script("OffsetCommit", one_behind)
    until(world, consumer, lambda: consumer.assignment() == {("t", 1)})
    assert (group.commit_epochs[0], group.commit_epochs[-1]) == (original, original + 1)
    assert group.committed["t", 0] == 3


@pytest.mark.case("CC-190")
@pytest.mark.parametrize("how", ["answer", "no version"])
def test_a_broker_without_the_protocol_is_named_with_the_way_out(how: str) -> None:
    world = World({"t": 1})
    group = EpochGroup(world)
    if how == "answer":
        group.refuse(ErrorCode.UNSUPPORTED_VERSION)
    else:
        world.max_versions["ConsumerGroupHeartbeat"] = -1
    consumer, _ = epoch_member(world, poll=0)
    with pytest.raises(UnsupportedVersionError, match="group_protocol='classic'"):
        consumer.poll(1.0)
    assert len(consumer.poll(1.0)) == 0


@pytest.mark.case("CC-192")
def test_reading_goes_on_without_a_coordinator_and_commits_do_not() -> None:
    world, _, consumer, heard = begin(1, enable_auto_commit=False)
    heard.calls.clear()
    world.always["ConsumerGroupHeartbeat"] = DROP
    world.always["FindCoordinator"] = DROP
    world.always["OffsetCommit"] = DROP
    world.run(60_000)
    world.append("t", 0, 4)
    until(world, consumer, lambda: consumer.position(("t", 0)) == 4)
    with pytest.raises(KafkaError) as failed:
        consumer.commit(timeout=2.0)
    assert failed.value.retriable
    assert heard.calls == []


@pytest.mark.case("CC-193")
def test_a_pattern_that_the_broker_refuses_is_raised_by_one_poll() -> None:
    world = World({"t": 1})
    group = EpochGroup(world)
    group.refuse(ErrorCode.INVALID_REGULAR_EXPRESSION)
    consumer = world.consumer(**EPOCHS)
    consumer.subscribe(pattern=SubscriptionPattern("(((x"))
    with pytest.raises(InvalidRegularExpressionError, match=r"\(\(\(x"):
        consumer.poll(1.0)
    assert len(consumer.poll(10.0)) == 0
    assert len(group.beats()) == 1


def test_missing_rights_are_told_and_the_member_goes_on() -> None:
    world, group, consumer, heard = begin(1)
    heard.calls.clear()
    group.refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "no DESCRIBE on t")
    with pytest.raises(TopicAuthorizationFailedError):
        until(world, consumer, lambda: False)
    before = len(group.beats())
    until(world, consumer, lambda: len(group.beats()) > before)
    assert heard.calls == []


def test_after_a_fatal_error_a_new_subscription_begins_again() -> None:
    world = World({"t": 1})
    group = EpochGroup(world)
    group.assign(("t", 0))
    group.refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    consumer, heard = epoch_member(world, poll=0)
    with pytest.raises(KafkaError):
        consumer.poll(1.0)
    consumer.unsubscribe()
    consumer.subscribe(["t"], listener=heard)
    until(world, consumer, consumer.is_settled)
    assert heard.calls == [("assigned", [("t", 0)])]


def test_a_fatal_error_takes_away_what_was_held() -> None:
    world, group, consumer, heard = begin(1)
    heard.calls.clear()
    group.refuse(ErrorCode.GROUP_MAX_SIZE_REACHED)
    with pytest.raises(KafkaError):
        until(world, consumer, lambda: False)
    consumer.poll(0.1)
    assert heard.calls == [("lost", [("t", 0)])]
    assert consumer.assignment() == set()


def test_an_answer_of_an_earlier_membership_changes_nothing() -> None:
    world, group, consumer, _ = begin(1)
    world.script("ConsumerGroupHeartbeat", HOLD)
    before = len(group.beats())
    until(world, consumer, lambda: len(group.beats()) > before)
    consumer.unsubscribe()
    world.answer_held(group.beat(group.beats()[0]))
    world.run(1_000)
    assert consumer._calls._core.member.generation.is_none
    assert consumer.assignment() == set()


# Committed offsets


def test_committed_offsets_are_asked_for_as_a_member_and_again_at_a_newer_epoch() -> None:
    world = World({"t": 1})
    group = EpochGroup(world)
    group.assign(("t", 0))
    stale = offset_fetch.OffsetFetchResponse(
        groups=[offset_fetch.OffsetFetchResponseGroup(group_id="g", error_code=ErrorCode.STALE_MEMBER_EPOCH)]
    )
    consumer, _ = epoch_member(world, poll=0)
    group.interval_ms = 200
    world.script("OffsetFetch", Delay(1_000, stale))

    def bump(message: Any) -> Any:
        group.epoch += 1
        return group.beat(message)

    world.script("ConsumerGroupHeartbeat", None, group.beat, bump)
    world.scripts["ConsumerGroupHeartbeat"].popleft()
    until(world, consumer, lambda: len(world.sent("OffsetFetch")) == 2)
    first, second = (sent.message.groups[0] for sent in world.sent("OffsetFetch"))
    assert first.member_id == second.member_id == group.beats()[0].member_id
    assert (first.member_epoch, second.member_epoch) == (2, 3)


@pytest.mark.parametrize("code", [ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
def test_offsets_are_asked_for_again_while_the_coordinator_knows_more_of_the_member_than_it_does(
    code: ErrorCode,
) -> None:
    """The next heartbeat brings the epoch, or that the membership is over."""
    world, _, consumer, _ = begin(1)
    world.forget()
    refused = offset_fetch.OffsetFetchResponseGroup(group_id="g", error_code=code)
    world.script("OffsetFetch", offset_fetch.OffsetFetchResponse(groups=[refused]))
    assert consumer.committed([("t", 0)]) == {("t", 0): None}
    first, second = world.sent("OffsetFetch")
    assert second.at_ms > first.at_ms


# Leaving


@pytest.mark.parametrize(
    ("static", "membership", "epochs"),
    [
        (None, "default", [-1]),
        (None, "leave_group", [-1]),
        (None, "remain_in_group", []),
        ("i", "default", [-2]),
        ("i", "leave_group", [-1]),
        ("i", "remain_in_group", [-2]),
    ],
)
def test_close_leaves_for_good_or_for_a_while(static: str | None, membership: Any, epochs: list[int]) -> None:
    world, group, consumer, heard = begin(1, group_instance_id=static)
    world.append("t", 0, 2)
    until(world, consumer, lambda: consumer.position(("t", 0)) == 2)
    heard.calls.clear()
    world.forget()
    consumer.close(membership=membership)
    assert [(one.member_epoch, owned(one)) for one in group.beats()] == [(epoch, []) for epoch in epochs]
    assert heard.calls == [("revoked", [("t", 0)])]
    assert group.committed == {("t", 0): 2}


def test_unsubscribe_leaves_and_a_new_subscription_joins_with_everything() -> None:
    world, group, consumer, heard = begin(1)
    heard.calls.clear()
    world.forget()
    consumer.unsubscribe()
    consumer.subscribe(["t"], listener=heard)
    until(world, consumer, consumer.is_settled)
    left, joined, _ = group.beats()[:3]
    assert (left.member_epoch, joined.member_epoch) == (-1, 0)
    assert (joined.subscribed_topic_names, owned(joined)) == (["t"], [])
    assert heard.calls == [("revoked", [("t", 0)]), ("assigned", [("t", 0)])]


def test_a_member_whose_join_is_unanswered_leaves_all_the_same() -> None:
    world = World({"t": 1})
    group = EpochGroup(world)
    world.script("ConsumerGroupHeartbeat", HOLD)
    consumer, _ = epoch_member(world, poll=0.1)
    consumer.close(timeout=0.5)
    assert [one.member_epoch for one in group.beats()] == [0, -1]


# What is told beforehand


@pytest.mark.parametrize(
    "options",
    [
        {"partition_assignment_strategy": ["range"]},
        {"session_timeout_ms": 10_000},
        {"heartbeat_interval_ms": 1_000},
    ],
)
def test_options_of_the_other_protocol_are_refused_with_their_replacement(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ConfigError, match=f"{name} works with group_protocol classic only; .*broker"):
        World({"t": 1}).consumer(**EPOCHS, **options)


def test_a_remote_assignor_needs_the_consumer_protocol() -> None:
    with pytest.raises(ConfigError, match="group_remote_assignor works with group_protocol consumer only"):
        World({"t": 1}).consumer(group_id="g", group_remote_assignor="range")


def test_a_pattern_for_the_broker_needs_the_consumer_protocol() -> None:
    consumer = World({"t": 1}).consumer(group_id="g")
    with pytest.raises(IllegalStateError, match="group_protocol='consumer'"):
        consumer.subscribe(pattern=SubscriptionPattern("t.*"))


def test_a_pattern_for_the_broker_needs_a_broker_that_matches() -> None:
    world = World({"t": 1})
    EpochGroup(world)
    world.max_versions["ConsumerGroupHeartbeat"] = 0
    consumer = world.consumer(**EPOCHS)
    consumer.subscribe(pattern=SubscriptionPattern("t.*"))
    with pytest.raises(UnsupportedVersionError, match="matches no patterns such as 't"):
        consumer.poll(1.0)


def test_enforcing_a_rebalance_has_no_effect_and_says_so() -> None:
    _, group, consumer, _ = begin(1)
    notes: list[str] = []
    consumer.on_note(lambda note: notes.append(note.kind))
    before = len(group.beats())
    consumer.enforce_rebalance("now")
    consumer.poll(0.1)
    assert "no_effect" in notes
    assert len(group.beats()) == before
    assert consumer.is_settled()


# Patterns


def test_the_broker_is_told_the_pattern_and_all_that_it_assigns_is_read() -> None:
    world = World({"orders-eu": 1, "orders-us": 1, "other": 1})
    group = EpochGroup(world)
    group.assign(("orders-eu", 0), ("orders-us", 0))
    consumer = world.consumer(**EPOCHS)
    consumer.subscribe(pattern=SubscriptionPattern("orders-.*"))
    world.append("orders-us", 0, 2)
    until(world, consumer, lambda: ("orders-us", 0) in consumer.assignment())
    assert (group.beats()[0].subscribed_topic_regex, group.beats()[0].subscribed_topic_names) == ("orders-.*", [])
    until(world, consumer, lambda: consumer.position(("orders-us", 0)) == 2)
    assert consumer.subscription() == {"orders-eu", "orders-us"}
    world.forget()
    consumer.subscribe(pattern=SubscriptionPattern("other"))
    consumer.poll(0.05)
    assert [one.subscribed_topic_regex for one in group.beats()] == ["other"]


def test_a_pattern_of_ours_is_matched_here_and_told_as_names() -> None:
    world = World({"orders-eu": 1, "other": 1})
    group = EpochGroup(world)
    consumer = world.consumer(**EPOCHS)
    consumer.subscribe(pattern="orders-.*")
    until(world, consumer, lambda: bool(group.beats()))
    assert (group.beats()[0].subscribed_topic_names, group.beats()[0].subscribed_topic_regex) == (["orders-eu"], None)
    world.create("orders-us")
    until(world, consumer, lambda: group.beats()[-1].subscribed_topic_names == ["orders-eu", "orders-us"], 400)


# What others rely on


def test_a_member_with_nothing_at_first_is_not_done_before_a_regular_heartbeat_is_answered() -> None:
    world = World({"t": 1})
    group = EpochGroup(world, interval_ms=1_000)
    consumer, _ = epoch_member(world)
    assert len(group.beats()) == 2
    assert not consumer.is_settled()
    assert list(consumer.until_end()) == []
    assert len(group.beats()) == 3
    assert consumer.is_settled()


def test_the_group_metadata_names_the_newest_epoch() -> None:
    world, group, consumer, _ = begin(1)
    group.epoch += 5
    until(world, consumer, lambda: consumer.group_metadata().generation_id == group.epoch)
    assert consumer.group_metadata().member_id == group.beats()[0].member_id
