"""The API contract: who may call what when, and what it does (consumer.md 2)."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from partita.assignors.interface import RebalanceProtocol
from partita.assignors.range import RangeAssignor
from partita.consumer.config import ConsumerConfig
from partita.consumer.errors import (
    ApiTimeoutError,
    ConcurrentModificationError,
    IllegalStateError,
    WakeupError,
)
from partita.consumer.listener import Interceptor
from partita.consumer.records import ConsumerRecords
from partita.consumer.subscription import Subscription
from partita.errors import InvalidGroupIdError
from partita.offsets.topic_partition import TopicPartition
from partita.options import ConfigError
from partita.protocol.messages import list_offsets
from support.consumer.world import DROP, HOLD, Delay, World

T0, T1 = ("t", 0), ("t", 1)


def values(records: ConsumerRecords) -> list[int]:
    return [r.offset for r in records]


def assigned(world: World, *partitions: tuple[str, int], **options: Any) -> Any:
    consumer = world.consumer(**options)
    consumer.assign(partitions or [T0])
    return consumer


@pytest.mark.case("CC-001")
def test_subscribe_needs_a_group() -> None:
    consumer = World({"t": 1}).consumer()
    with pytest.raises(InvalidGroupIdError):
        consumer.subscribe(["t"])
    consumer.assign([T0])


@pytest.mark.case("CC-002")
def test_an_assigned_consumer_that_seeks_never_looks_for_a_coordinator() -> None:
    world = World({"t": 1})
    world.append("t", 0, 5)
    consumer = assigned(world, group_id="g")
    consumer.seek(T0, 2)
    assert values(consumer.poll(1)) == [2, 3, 4]
    assert not world.sent("FindCoordinator")


@pytest.mark.case("CC-003")
def test_the_subscription_type_changes_only_after_unsubscribe() -> None:
    consumer = World({"t": 1}).consumer(group_id="g")
    consumer.subscribe(["t"])
    with pytest.raises(IllegalStateError):
        consumer.subscribe(pattern="t.*")
    consumer.unsubscribe()
    consumer.subscribe(pattern="t.*")


@pytest.mark.case("CC-004")
def test_assign_leaves_a_subscription_intact() -> None:
    consumer = World({"t": 1}).consumer(group_id="g")
    consumer.subscribe(["t"])
    with pytest.raises(IllegalStateError):
        consumer.assign([T0])
    assert consumer.subscription() == {"t"}


@pytest.mark.case("CC-005")
def test_a_new_subscription_replaces_the_old_one_and_its_data() -> None:
    world = World({"a": 1, "b": 1, "c": 1})
    world.append("a", 0, 5)
    world.append("b", 0, 5)
    consumer = world.consumer(group_id="g", max_poll_records=1)
    consumer.subscribe(["a", "b"])
    consumer.poll(1)
    consumer.subscribe(["b", "c"])
    assert consumer.subscription() == {"b", "c"}
    world.forget()
    seen = [r.topic for _ in range(8) for r in consumer.poll(0.1)]
    assert "a" not in seen
    assert world.sent("JoinGroup")


@pytest.mark.case("CC-006")
def test_subscribing_to_nothing_unsubscribes() -> None:
    world = World({"t": 1})
    heard: list[Any] = []
    consumer = world.consumer(group_id="g")
    consumer.subscribe(["t"], on_revoked=heard.append)
    consumer.poll(1)
    consumer.subscribe([])
    world.run(10)
    assert heard == [[T0]]
    assert world.names()[-1] == "LeaveGroup"
    assert consumer.assignment() == set()


@pytest.mark.case("CC-007")
@pytest.mark.parametrize("topics", [[""], [None], ["  "]])
def test_blank_topics_are_argument_errors(topics: Any) -> None:
    consumer = World().consumer(group_id="g")
    with pytest.raises(ValueError, match="topic names"):
        consumer.subscribe(topics)
    assert consumer.subscription() == set()
    with pytest.raises(ValueError, match="topic names"):
        consumer.assign([(topics[0], 0)])


@pytest.mark.case("CC-008")
def test_poll_needs_a_subscription() -> None:
    with pytest.raises(IllegalStateError):
        World().consumer(group_id="g").poll(0)


@pytest.mark.case("CC-009")
def test_a_second_thread_is_refused_at_once() -> None:
    world = World({"t": 1})
    consumer = assigned(world)
    caught: list[BaseException] = []

    def intrude() -> None:
        try:
            consumer.position(T0)
        except BaseException as error:
            caught.append(error)

    def while_polling() -> None:
        thread = threading.Thread(target=intrude)
        thread.start()
        thread.join()

    world.after(20, while_polling)
    assert len(consumer.poll(0.1)) == 0
    assert [type(e) for e in caught] == [ConcurrentModificationError]


@pytest.mark.case("CC-010")
def test_wakeup_ends_a_poll_once() -> None:
    world = World({"t": 1})
    consumer = assigned(world)
    world.after(50, consumer.wakeup)
    with pytest.raises(WakeupError):
        consumer.poll(10)
    assert world.now < 2_000
    assert len(consumer.poll(0.01)) == 0


@pytest.mark.case("CC-011")
def test_wakeup_before_poll_is_raised_by_it() -> None:
    world = World({"t": 1})
    consumer = assigned(world)
    consumer.wakeup()
    with pytest.raises(WakeupError):
        consumer.poll(0)
    consumer.poll(0)


@pytest.mark.case("CC-012")
def test_a_wakeup_after_records_were_taken_is_raised_by_the_next_poll() -> None:
    world = World({"t": 1})
    world.append("t", 0, 3)
    consumer = assigned(world)
    world.script("Fetch", None, lambda message: consumer.wakeup())
    assert values(consumer.poll(1)) == [0, 1, 2]
    assert len(world.sent("Fetch")) == 2
    with pytest.raises(WakeupError):
        consumer.poll(0)


@pytest.mark.case("CC-013")
def test_a_closed_consumer_answers_only_wakeup_and_metrics() -> None:
    consumer = assigned(World({"t": 1}))
    consumer.close()
    for call in (
        lambda: consumer.poll(0),
        lambda: consumer.seek(T0, 1),
        consumer.assignment,
        lambda: consumer.position(T0),
    ):
        with pytest.raises(IllegalStateError):
            call()
    consumer.wakeup()
    assert consumer.metrics()["assigned-partitions"] == 1
    consumer.close()


@pytest.mark.case("CC-014")
def test_seek_checks_its_arguments() -> None:
    consumer = assigned(World({"t": 2}))
    with pytest.raises(ValueError, match="offset"):
        consumer.seek(T0, -1)
    with pytest.raises(IllegalStateError):
        consumer.seek(T1, 5)


@pytest.mark.case("CC-015")
def test_seek_asks_nobody() -> None:
    world = World({"t": 1})
    consumer = assigned(world)
    consumer.seek(T0, 10)
    world.forget()
    consumer.seek(T0, 3)
    assert consumer.position(T0) == 3
    assert not world.sent("ListOffsets")


@pytest.mark.case("CC-016")
def test_seek_to_end_is_looked_up_when_the_position_is_wanted() -> None:
    world = World({"t": 1})
    world.append("t", 0, 7)
    consumer = assigned(world)
    consumer.seek_to_end([T0])
    assert consumer.position(T0) == 7
    asked = [s.message.topics[0].partitions[0].timestamp for s in world.sent("ListOffsets")]
    assert asked[-1] == -1


@pytest.mark.case("CC-017", "BM-152")
def test_a_seek_beats_a_reset_under_way() -> None:
    world = World({"t": 1})
    world.append("t", 0, 9)
    consumer = assigned(world)
    world.script("ListOffsets", Delay(50))
    consumer.seek_to_beginning([T0])
    consumer.poll(0.01)
    consumer.seek(T0, 7)
    assert values(consumer.poll(1)) == [7, 8]


@pytest.mark.case("CC-018")
def test_the_answer_to_an_older_reset_is_ignored() -> None:
    world = World({"t": 1})
    world.append("t", 0, 9)
    consumer = assigned(world)
    consumer.seek_to_end([T0])
    world.script("ListOffsets", Delay(50))
    consumer.poll(0.01)
    consumer.seek_to_beginning([T0])
    assert values(consumer.poll(1))[0] == 0
    assert [s.message.topics[0].partitions[0].timestamp for s in world.sent("ListOffsets")] == [-1, -2]


@pytest.mark.case("CC-019")
def test_current_lag_asks_once_and_answers_later() -> None:
    world = World({"t": 1})
    world.append("t", 0, 9)
    consumer = assigned(world)
    consumer.seek(T0, 4)
    world.always["Fetch"] = HOLD
    consumer.poll(0.01)
    assert consumer.current_lag(T0) is None
    assert consumer.current_lag(T0) is None
    assert len(world.sent("ListOffsets")) == 1
    consumer.poll(0.01)
    assert consumer.current_lag(T0) == 5


@pytest.mark.case("CC-020")
def test_lag_under_read_committed_counts_to_the_last_stable_offset() -> None:
    world = World({"t": 1})
    world.append("t", 0, 100)
    world.logs[T0].stable = 80
    consumer = assigned(world, isolation_level="read_committed")
    consumer.seek(T0, 70)
    consumer.pause([])
    world.script("Fetch", Delay(1))
    consumer._calls._core.learn_end(T0, 80)
    assert consumer.current_lag(T0) == 10


@pytest.mark.case("CC-021", "CC-022")
def test_offsets_for_times() -> None:
    world = World({"t": 2})
    world.append("t", 0, 5, at=1_000)
    world.append("t", 1, 5, at=9_000)
    consumer = world.consumer()
    found = consumer.offsets_for_times({T0: 5_000, T1: 9_003})
    assert {tuple(tp): None if at is None else at.offset for tp, at in found.items()} == {T0: None, T1: 3}
    with pytest.raises(ValueError, match=r"a timestamp in ms .* must be 0 or more"):
        consumer.offsets_for_times({T0: -1})


@pytest.mark.case("CC-023")
def test_end_offsets_of_an_unassigned_partition() -> None:
    world = World({"t": 2})
    world.append("t", 1, 5)
    consumer = assigned(world)
    consumer.seek(T0, 0)
    assert consumer.end_offsets([T1]) == {T1: 5}
    assert consumer.beginning_offsets([T1]) == {T1: 0}
    assert consumer.assignment() == {T0}
    assert consumer.position(T0) == 0


@pytest.mark.case("CC-024")
def test_end_offsets_without_a_leader_times_out() -> None:
    world = World({"t": 1})
    world.logs[T0].leader = -1
    start = world.now
    with pytest.raises(ApiTimeoutError):
        world.consumer().end_offsets([T0], timeout=0.1)
    assert world.now - start == 100


@pytest.mark.case("CC-025")
def test_group_metadata_before_and_after_joining() -> None:
    world = World({"t": 1})
    consumer = world.consumer(group_id="g")
    consumer.subscribe(["t"])
    assert (consumer.group_metadata().generation_id, consumer.group_metadata().member_id) == (-1, "")
    consumer.poll(0.1)
    assert (consumer.group_metadata().generation_id, consumer.group_metadata().member_id) == (1, "c1-1")


@pytest.mark.case("CC-026")
def test_enforce_rebalance_joins_with_the_reason() -> None:
    world = World({"t": 1})
    consumer = world.consumer(group_id="g")
    consumer.subscribe(["t"])
    consumer.poll(0.1)
    assert world.sent("JoinGroup")[0].message.reason == ""
    world.forget()
    consumer.enforce_rebalance("x" * 300)
    assert not world.sent("JoinGroup")
    consumer.poll(0.1)
    assert [s.message.reason for s in world.sent("JoinGroup")] == ["x" * 255]


class Raises(Interceptor):
    def on_consume(self, records: ConsumerRecords) -> ConsumerRecords:
        raise RuntimeError("on purpose")


class Doubles(Interceptor):
    def on_consume(self, records: ConsumerRecords) -> ConsumerRecords:
        return ConsumerRecords({tp: [*some, *some] for tp, some in records.items()})


class DropsAll(Interceptor):
    def on_consume(self, records: ConsumerRecords) -> ConsumerRecords:
        return ConsumerRecords()


@pytest.mark.case("CC-027")
def test_a_raising_interceptor_is_passed_over() -> None:
    world = World({"t": 1})
    world.append("t", 0, 2)
    consumer = assigned(world, interceptor_classes=[Raises, Doubles()])
    assert values(consumer.poll(1)) == [0, 1, 0, 1]


@pytest.mark.case("CC-028")
def test_records_dropped_by_an_interceptor_are_consumed() -> None:
    world = World({"t": 1})
    world.append("t", 0, 2)
    consumer = assigned(world, interceptor_classes=[DropsAll])
    assert len(consumer.poll(1)) == 0
    assert consumer.position(T0) == 2


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"poison_policy": "skip", "group_id": "g"}, "works with poison_policy dead_letter only, not 'skip'"),
        ({"poison_policy": "dead_letter", "dead_letter_topic": "d"}, "needs a group_id"),
        (
            {"poison_policy": "dead_letter", "dead_letter_topic": "d", "group_id": "g", "commit_done_only": True},
            "does not work with commit_done_only",
        ),
    ],
)
def test_dead_letters_exactly_once_need_what_a_transaction_needs(given: dict[str, Any], expected: str) -> None:
    """Issue 25: the offset behind a bad record is committed for the group, whatever is done before it."""
    with pytest.raises(ConfigError, match=f"dead_letter_exactly_once {expected}"):
        ConsumerConfig.of(bootstrap_servers="127.0.0.1:1", dead_letter_exactly_once=True, **given)


@pytest.mark.case("CC-029")
def test_auto_commit_needs_a_group() -> None:
    assert ConsumerConfig.of(bootstrap_servers="a").enable_auto_commit is False
    with pytest.raises(ConfigError, match="group_id"):
        ConsumerConfig.of(bootstrap_servers="a", enable_auto_commit=True)


@pytest.mark.case("CC-030")
def test_the_heartbeat_interval_is_shorter_than_the_session() -> None:
    with pytest.raises(ConfigError, match="heartbeat_interval_ms"):
        ConsumerConfig.of(bootstrap_servers="a", heartbeat_interval_ms=45_000)


@pytest.mark.case("CC-031")
def test_a_remote_assignor_needs_the_consumer_protocol() -> None:
    with pytest.raises(ConfigError, match="group_remote_assignor"):
        ConsumerConfig.of({"bootstrap.servers": "a", "group.remote.assignor": "uniform", "group.protocol": "CLASSIC"})


class OnlyCooperative(RangeAssignor):
    name = "only-cooperative"
    supported_protocols = (RebalanceProtocol.COOPERATIVE,)


@pytest.mark.case("CC-032")
def test_assignors_need_a_rebalance_protocol_in_common() -> None:
    with pytest.raises(ConfigError, match="in common"):
        ConsumerConfig.of(bootstrap_servers="a", partition_assignment_strategy=["range", OnlyCooperative])


@pytest.mark.case("CC-033", "BM-155")
def test_close_with_no_time_still_writes_what_it_has_to_say() -> None:
    world = World({"t": 1})
    consumer = world.consumer(group_id="g")
    consumer.subscribe(["t"])
    consumer.poll(0.6)
    world.forget()
    start = world.now
    consumer.close(0)
    assert world.now == start
    assert world.names()[:2] == ["OffsetCommit", "LeaveGroup"]
    assert world.sent("Fetch")[-1].message.session_epoch == -1


@pytest.mark.case("BM-144")
def test_resuming_what_was_not_paused_changes_nothing() -> None:
    world = World({"t": 1})
    world.append("t", 0, 10)
    consumer = assigned(world, max_poll_records=4)
    assert values(consumer.poll(1)) == [0, 1, 2, 3]
    consumer.resume([T0])
    assert values(consumer.poll(1)) == [4, 5, 6, 7]


def test_unknown_options_name_the_nearest_right_one() -> None:
    with pytest.raises(ConfigError, match=r"max\.poll\.records"):
        ConsumerConfig.of({"bootstrap.servers": "a", "max.poll.record": 5})


def test_partitions_for_and_list_topics() -> None:
    world = World({"t": 3, "u": 1})
    consumer = world.consumer()
    assert consumer.partitions_for("t") == [0, 1, 2]
    assert consumer.partitions_for("nope") == []
    assert set(consumer.list_topics()) == {"t", "u"}


def test_a_call_that_gets_no_answer_times_out() -> None:
    world = World({"t": 1})
    world.always["Metadata"] = DROP
    with pytest.raises(ApiTimeoutError):
        world.consumer().list_topics(timeout=2)
    assert len(world.sent("Metadata")) < 60


def test_list_offsets_of_an_old_message_format_leaves_the_partition_out() -> None:
    world = World({"t": 1})
    answer = list_offsets.ListOffsetsResponse(topics=[list_offsets.ListOffsetsTopicResponse(name="t", partitions=[
        list_offsets.ListOffsetsPartitionResponse(partition_index=0, error_code=43)])])  # fmt: skip
    world.script("ListOffsets", answer)
    assert world.consumer().offsets_for_times({T0: 5}) == {T0: None}


def test_metadata_is_wanted_of_the_topics_that_are_assigned_now() -> None:
    subscription = Subscription()
    for assigned in ([("a", 0), ("b", 0)], [("b", 0), ("b", 1)], [("c", 0)]):
        subscription.assign_by_user([TopicPartition(*tp) for tp in assigned])
        assert subscription.metadata_topics == {topic for topic, _ in assigned}
