"""What the observer concludes from two looks."""

from __future__ import annotations

import asyncio

import pytest

from partita.observe.observed import VIEWED_FOR_MS, Observed, Standing, change_of
from partita.observe.seen import GroupSeen, MemberSeen
from support.dashboard.world import START_MS, FakeCluster, member

ORDERS = [("orders", partition) for partition in range(4)]


def group(*members: MemberSeen, state: str = "Stable", seen_ms: int = 5) -> GroupSeen:
    return GroupSeen("g", state, "classic", "consumer", "range", 1, members, seen_ms=seen_ms)


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        (None, group(member("a")), ""),
        (group(member("a")), group(member("a"), member("b")), "b joined"),
        (group(member("a"), member("b")), group(member("b")), "a is gone"),
        (group(member("a")), group(member("b")), "b joined and a is gone"),
        (group(*map(member, "abcde")), group(), "a, b and 3 more are gone"),
        (
            group(member("a", ORDERS[0]), member("b", ORDERS[1])),
            group(member("a", ORDERS[1]), member("b", ORDERS[0])),
            "the same members hold other partitions",
        ),
        (group(member("a", ORDERS[0])), group(member("a"), state="PreparingRebalance"), ""),
        (group(member("a")), group(member("a", ORDERS[0])), ""),
    ],
)
def test_a_change_is_told_in_words(before: GroupSeen | None, now: GroupSeen, said: str) -> None:
    assert change_of(before, now) == said


def test_a_group_stands_where_its_slowest_partition_stands() -> None:
    world = FakeCluster()
    world.log("orders", 0, 100)
    world.log("orders", 1, 100)
    world.look()
    world.pass_s(10)
    world.log("orders", 0, 200)
    world.log("orders", 1, 200)
    world.group("g", {("orders", 0): 200, ("orders", 1): 150})
    world.look()
    standing = world.observed.standings["g"]
    assert standing.lag == 50
    assert standing.behind is not None
    assert standing.behind.ms == 5_000


def test_a_group_whose_logs_are_unknown_has_no_lag() -> None:
    world = FakeCluster()
    world.group("g", {("gone", 0): 5})
    world.look()
    assert world.observed.standings["g"] == Standing()


def test_a_view_ends_when_nobody_looks_any_more() -> None:
    world = FakeCluster()
    world.group("g", {})
    world.look()
    world.observed.view("g", START_MS)
    world.observed.view("no such group", START_MS)
    assert world.observed.viewed(START_MS + VIEWED_FOR_MS - 1) == ["g"]
    assert world.observed.viewed(START_MS + VIEWED_FOR_MS) == []


def test_readers_wait_for_what_is_newer_than_what_they_have() -> None:
    async def story() -> list[int]:
        observed = Observed("b:1")
        observed.publish(1)
        await asyncio.wait_for(observed.wait_for_change(0, 600), 60)
        waiting = asyncio.ensure_future(observed.wait_for_change(1, 600))
        await asyncio.sleep(0)
        assert not waiting.done()
        observed.publish(2)
        await asyncio.wait_for(waiting, 60)
        await observed.wait_for_change(2, 0.001)
        return [observed.version]

    assert asyncio.run(story()) == [2]


def test_a_waiting_reader_can_be_cancelled_beside_a_change() -> None:
    """Or a command that is stopped just then would never end."""

    async def story() -> bool:
        observed = Observed("broker:9092")
        waiting = asyncio.ensure_future(observed.wait_for_change(0, 60))
        await asyncio.sleep(0)
        observed.publish(1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        return waiting.cancelled()

    assert asyncio.run(story())
