"""The end of a partition, as news and as a question, in every face of the consumer (finding clients 6)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from support.consumer.world import World

T0, T1 = ("t", 0), ("t", 1)


@pytest.fixture
def world() -> World:
    world = World({"t": 2})
    world.append("t", 0, 10)
    return world


def reading(world: World, **options: Any) -> Any:
    consumer = world.consumer(**options)
    consumer.assign([T0, T1])
    return consumer


def polled(consumer: Any, polls: int) -> list[tuple[int, dict[Any, int]]]:
    return [(len(records), records.ends) for records in (consumer.poll(0.6) for _ in range(polls))]


def test_poll_tells_each_end_once(world: World) -> None:
    consumer = reading(world, enable_partition_eof=True, max_poll_records=6)
    assert polled(consumer, 2) == [(6, {T1: 0}), (4, {T0: 10})]
    began = world.now
    assert polled(consumer, 1) == [(0, {})], "what was told is no news"
    assert world.now - began == 600, "and nothing ends the poll early"


def test_an_end_that_moved_is_told_again(world: World) -> None:
    consumer = reading(world, enable_partition_eof=True)
    polled(consumer, 2)
    world.append("t", 1, 1)
    assert polled(consumer, 1) == [(1, {T1: 1})]
    consumer.seek(T0, 9)
    assert polled(consumer, 1) == [(1, {T0: 10})]


def test_without_the_option_nothing_is_told(world: World) -> None:
    consumer = reading(world)
    assert polled(consumer, 3) == [(10, {}), (0, {}), (0, {})]


def test_under_read_committed_the_end_is_the_last_stable_offset(world: World) -> None:
    world.logs[T0].stable = 4
    world.logs[T0].batches.clear()
    log = world.logs[T0]
    log.end = 0
    world.append("t", 0, 4)
    world.append("t", 0, 6)
    consumer = reading(world, enable_partition_eof=True, isolation_level="read_committed")
    consumer.pause([T1])
    told: dict[tuple[str, int], int] = {}
    for _ in range(4):
        told |= consumer.poll(0.6).ends
    assert told == {T0: 4}


def test_at_end_is_what_the_application_was_given(world: World) -> None:
    consumer = reading(world)
    assert not consumer.at_end(), "nobody has said yet where the ends are"
    while not consumer.poll(0.6):
        assert not consumer.at_end()
    consumer.poll(0.6)
    assert consumer.at_end()
    world.append("t", 0, 1)
    loop = iter(consumer)
    assert next(loop).offset == 10
    assert consumer.at_end(), "nothing comes behind the record in the body"


def test_at_end_is_false_while_nothing_is_assigned(world: World) -> None:
    consumer = world.consumer(group_id="g")
    consumer.subscribe(["t"])
    assert not consumer.at_end()


def test_a_loop_until_the_end_stops_there_with_everything_passed(world: World) -> None:
    consumer = reading(world, group_id="g", enable_auto_commit=False)
    assert [record.offset for record in consumer.until_end()] == list(range(10))
    consumer.commit()
    assert consumer.committed([T0])[T0].offset == 10
    assert list(consumer.until_end()) == []


def test_a_loop_until_the_end_does_not_run_after_a_log_that_grows(world: World) -> None:
    consumer = reading(world)
    found = []
    for record in consumer.until_end():
        found.append(record.offset)
        if record.partition == 0:
            world.append("t", 0, 1)
        assert len(found) < 100, "the end moves with every record; the goal must not"
    assert found[:10] == list(range(10))


def test_a_loop_until_the_end_goes_on_where_one_before_broke(world: World) -> None:
    consumer = reading(world)
    for record in consumer.until_end():
        if record.offset == 3:
            break
    assert [record.offset for record in consumer.until_end()] == list(range(4, 10))


def test_a_member_of_a_group_waits_for_its_assignment_and_reads_to_the_end(world: World) -> None:
    consumer = world.consumer(group_id="g")
    consumer.subscribe(["t"])
    assert len(list(consumer.until_end())) == 10


def test_a_member_that_gets_no_partition_is_done(world: World) -> None:
    members = [world.consumer(group_id="g") for _ in range(3)]
    for member in members:
        member.subscribe(["t"])
    for _ in range(60):
        for member in members:
            member.poll(0.05)
    (idle,) = [member for member in members if not member.assignment()]
    assert list(idle.until_end()) == []


def test_asyncio_has_the_same_loop(world: World) -> None:
    consumer = reading(world)._calls

    async def read() -> list[int]:
        return [record.offset async for record in consumer.until_end()]

    assert asyncio.run(read()) == list(range(10))
    assert consumer.at_end()


def test_poll_arrow_returns_for_an_end_too(world: World) -> None:
    pytest.importorskip("pyarrow")
    consumer = reading(world, enable_partition_eof=True)
    assert consumer.poll_arrow(0.6).num_rows == 10
    began = world.now
    while not consumer.at_end():
        assert consumer.poll_arrow(60) is None
    assert world.now - began < 1_000


def test_records_know_the_sizes_of_what_came(world: World) -> None:
    """Clients 5: no serialized sizes; a deserializer changes what they are not."""
    consumer = reading(world, value_deserializer="str", key_deserializer=lambda data: int(data[1:]))
    first = next(iter(consumer))
    assert (first.key, first.value, first.timestamp_type) == (0, "v0", 0)
    assert (first.serialized_key_size, first.serialized_value_size) == (2, 2)


def test_an_empty_partition_ends_the_poll_without_records(world: World) -> None:
    consumer = world.consumer(enable_partition_eof=True)
    consumer.assign([T1])
    began = world.now
    records = consumer.poll(60)
    assert (len(records), records.ends) == (0, {T1: 0})
    assert world.now - began < 1_000
