"""Calls that other clients have: consume, seek_to_committed, highwater, incremental_assign (what a user would miss)."""

from __future__ import annotations

from typing import Any

import pytest

from partita.consumer.errors import IllegalStateError, NoOffsetForPartitionError, WakeupError
from partita.consumer.listener import Interceptor
from partita.offsets.topic_partition import OffsetAndMetadata
from support.consumer.world import World

T0, T1, T2 = ("t", 0), ("t", 1), ("t", 2)


@pytest.fixture
def world() -> World:
    world = World({"t": 3})
    world.append("t", 0, 10)
    return world


def offsets(records: Any) -> list[int]:
    return [record.offset for record in records]


def member(world: World, **options: Any) -> Any:
    consumer = world.consumer(group_id="g", **options)
    consumer.subscribe(["t"])
    while len(consumer.assignment()) < 3:
        consumer.poll(0.1, max_records=0)
    return consumer


def reading(world: World, **options: Any) -> Any:
    consumer = world.consumer(**options)
    consumer.assign([T0])
    return consumer


@pytest.mark.parametrize("max_poll_records", [3, 500])
def test_consume_waits_for_exactly_so_many_records_or_the_timeout(world: World, max_poll_records: int) -> None:
    consumer = reading(world, max_poll_records=max_poll_records)
    assert offsets(consumer.consume(7, 1.0)) == list(range(7))
    began = world.now
    assert offsets(consumer.consume(7, 1.0)) == [7, 8, 9]
    assert world.now - began >= 1_000, "it waited for the others"
    assert offsets(consumer.consume(7, 0)) == []
    assert offsets(consumer.consume(0, 0)) == []


def test_records_that_consume_still_collects_are_covered_by_no_commit_and_come_again(world: World) -> None:
    class Waking(Interceptor):
        def on_consume(self, records: Any) -> Any:
            consumer.wakeup()
            return records

    waking = Waking()
    consumer = member(world, max_poll_records=4, interceptor_classes=[waking], enable_auto_commit=False)
    with pytest.raises(WakeupError):
        consumer.consume(8, 1.0)
    consumer.commit()
    assert consumer.committed([T0])[T0].offset == 0
    waking.on_consume = lambda records: records  # type: ignore[method-assign]  # it has woken the call it was to wake
    assert offsets(consumer.consume(8, 1.0)) == list(range(8))
    consumer.commit()
    assert consumer.committed([T0])[T0].offset == 8


@pytest.mark.parametrize("wrong", [-1, 1.5, "7", None])
def test_consume_refuses_what_is_no_number_of_records(world: World, wrong: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="num_messages must be"):
        reading(world).consume(wrong, 1.0)


def test_seek_to_committed_goes_back_to_what_the_group_has(world: World) -> None:
    consumer = member(world, enable_auto_commit=False)
    assert offsets(consumer.poll(1.0)) == list(range(10))
    consumer.commit({T0: 4})
    assert consumer.seek_to_committed() == {T0: OffsetAndMetadata(4), T1: None, T2: None}
    assert offsets(consumer.poll(1.0)) == list(range(4, 10))
    assert consumer.seek_to_committed([T1]) == {T1: None}
    with pytest.raises(IllegalStateError, match="is not assigned"):
        consumer.seek_to_committed([("t", 9)])


@pytest.mark.parametrize(("policy", "position"), [("earliest", 0), ("latest", 10)])
def test_seek_to_committed_without_a_commit_goes_where_the_reset_policy_says(
    world: World, policy: str, position: int
) -> None:
    consumer = member(world, enable_auto_commit=False, auto_offset_reset=policy)
    consumer.seek(T0, 5)
    assert consumer.seek_to_committed([T0]) == {T0: None}
    assert consumer.position(T0) == position


def test_seek_to_committed_without_a_commit_and_without_a_policy_moves_nothing(world: World) -> None:
    consumer = world.consumer(group_id="g", auto_offset_reset="none", enable_auto_commit=False)
    consumer.assign([T0, T1])
    consumer.commit({T0: 2})
    consumer.seek(T0, 7)
    with pytest.raises(NoOffsetForPartitionError, match="t-1"):
        consumer.seek_to_committed()
    assert consumer.position(T0) == 7


def test_the_ends_of_a_partition_are_known_without_a_request(world: World) -> None:
    consumer = reading(world)
    assert consumer.highwater(T0) is None
    assert consumer.last_stable_offset(T0) is None
    consumer.poll(1.0)
    world.forget()
    assert consumer.highwater(T0) == consumer.last_stable_offset(T0) == 10
    assert world.names() == []
    with pytest.raises(IllegalStateError, match="is not assigned"):
        consumer.highwater(T1)


def test_partitions_are_added_and_taken_away_and_the_others_keep_their_positions(world: World) -> None:
    consumer = reading(world)
    assert len(consumer.poll(1.0)) == 10
    consumer.seek(T0, 8)
    consumer.incremental_assign([T1, T0])
    assert consumer.assignment() == {T0, T1}
    assert consumer.position(T0) == 8
    consumer.incremental_unassign([T1])
    assert consumer.assignment() == {T0}
    assert offsets(consumer.poll(1.0)) == [8, 9]
    with pytest.raises(IllegalStateError, match="is not assigned"):
        consumer.incremental_unassign([T1])
    consumer.incremental_unassign([T0])
    assert consumer.assignment() == set()


def test_a_share_of_a_group_is_not_changed_by_hand(world: World) -> None:
    consumer = member(world)
    with pytest.raises(IllegalStateError, match=r"changes what assign\(\) said"):
        consumer.incremental_assign([T0])
