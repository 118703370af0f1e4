"""A static member's process that comes after another goes on where that one stopped (decision 0120, BM-008)."""

from __future__ import annotations

import pytest

from partita.assignors.payloads import decode_assignment, encode_assignment
from partita.consumer.group.assigning import Successor
from partita.protocol.messages.sync_group import SyncGroupResponse
from support.consumer.members import member
from support.consumer.world import World

TWO = Successor({"t": 2, "ü": 7}, must_rejoin=True)


@pytest.mark.parametrize("told", [TWO, Successor({}), Successor({"t": 1}), Successor(None, must_rejoin=True)])
def test_a_share_carries_the_word_for_the_successor(told: Successor) -> None:
    payload = encode_assignment([("t", 0)], told.encode())
    assert Successor.of(payload) == told
    assert decode_assignment(payload)[0] == [("t", 0)]


@pytest.mark.parametrize("payload", [
    b"", b"\0", encode_assignment([("t", 0)]), encode_assignment([], b"partita"),
    encode_assignment([], b"partita:successor:"), encode_assignment([], b"partita:successor:\0\1\0\5t"),
])  # fmt: skip
def test_other_user_data_says_nothing(payload: bytes) -> None:
    assert Successor.of(payload) == Successor()


def test_there_is_no_user_data_if_there_is_nothing_to_say() -> None:
    """Shares of dynamic members, and of static followers in an eager group, are Java's byte for byte."""
    assert Successor().encode() is None
    world = World({"t": 2})
    member(world)
    ((share,),) = [s.message.assignments for s in world.sent("SyncGroup")]
    assert share.assignment == encode_assignment([("t", 0), ("t", 1)])


def test_a_leader_that_returns_after_partitions_were_added_rebalances() -> None:
    """Finding C1: partitions that nobody ever assigned had no owner for ever."""
    world = World({"t": 1})
    first, _ = member(world, group_instance_id="i")
    first.close()
    world.create("t", 3)
    world.forget()
    second, _ = member(world, group_instance_id="i", poll=3)
    assert {tp.partition for tp in second.assignment()} == {0, 1, 2}
    assert len(world.sent("JoinGroup")) == 2


def test_a_leader_that_returns_to_the_same_topics_stays_quiet() -> None:
    world = World({"t": 3})
    first, _ = member(world, group_instance_id="i", metadata_max_age_ms=500)
    first.close()
    world.forget()
    second, _ = member(world, group_instance_id="i", metadata_max_age_ms=500, poll=3)
    assert len(second.assignment()) == 3
    assert len(world.sent("JoinGroup")) == 1


def test_a_member_that_returns_owing_a_second_round_rejoins() -> None:
    """It gave partitions up, as a cooperative rebalance asks, and died before it joined again: nobody else would."""
    world = World({"t": 2})
    share = encode_assignment([("t", 0)], Successor(None, must_rejoin=True).encode())
    world.script("SyncGroup", SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=share))
    consumer, _ = member(world, group_instance_id="i", poll=2)
    joins = world.sent("JoinGroup")
    assert [join.message.reason for join in joins][1:] == ["need to revoke partitions and re-join"]
    assert len(consumer.assignment()) == 2
