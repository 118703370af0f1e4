"""Eager and cooperative rebalances among several members (consumer.md 6)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.assignors.payloads import decode_subscription
from partita.protocol.messages.heartbeat import HeartbeatResponse
from support.consumer.members import Heard, member
from support.consumer.world import HOLD, World

COOP: dict[str, Any] = {"partition_assignment_strategy": ["cooperative-sticky"]}


def turns(consumers: list[Any], count: int = 40) -> list[tuple[str, int, int]]:
    """Everybody polls in turn; returns what was read."""
    return [(r.topic, r.partition, r.offset) for _ in range(count) for c in consumers for r in c.poll(0.02)]


def numbers(partitions: Any) -> list[int]:
    return sorted(p for _, p in partitions)


@pytest.mark.case("CC-075")
def test_a_second_cooperative_member_gets_its_share_in_the_second_round() -> None:
    world = World({"t": 4})
    first, heard1 = member(world, **COOP)
    second, heard2 = member(world, poll=0, **COOP)
    heard1.calls.clear()
    turns([second, first], 200)
    told1 = [(name, numbers(p)) for name, p in heard1.calls]
    told2 = [(name, numbers(p)) for name, p in heard2.calls]
    assert told1 == [("revoked", [2, 3]), ("assigned", []), ("assigned", [])]
    assert told2 == [("assigned", []), ("assigned", [2, 3])]


@pytest.mark.case("CC-076", "BM-135")
def test_kept_partitions_deliver_throughout() -> None:
    world = World({"t": 4})
    for p in range(4):
        world.append("t", p, 10)
    first, _ = member(world, max_poll_records=1, auto_commit_interval_ms=100_000, **COOP)
    world.forget()
    second, _ = member(world, poll=0, max_poll_records=1, **COOP)
    seen = turns([first, second], 250)
    kept = first.assignment()
    for tp in kept:
        offsets = [o for t, p, o in seen if (t, p) == tp]
        assert offsets == sorted(set(offsets))
    asked = [tp for s in world.sent("OffsetFetch", who=1) for t in s.message.groups[0].topics
             for tp in ((t.name, p) for p in t.partition_indexes)]  # fmt: skip
    assert not set(asked) & kept


@pytest.mark.case("CC-077")
def test_a_cooperative_member_that_leaves_frees_its_share_in_one_round() -> None:
    world = World({"t": 4})
    members = [member(world, poll=0, **COOP) for _ in range(2)]
    consumers = [c for c, _ in members]
    turns(consumers, 300)
    generation = consumers[0].group_metadata().generation_id
    heard = members[0][1]
    heard.calls.clear()
    freed = consumers[1].assignment()
    consumers[1].close()
    turns(consumers[:1], 300)
    assert [(name, numbers(p)) for name, p in heard.calls] == [("assigned", numbers(freed))]
    assert consumers[0].group_metadata().generation_id == generation + 1


@pytest.mark.case("CC-078")
def test_a_topic_no_longer_subscribed_is_revoked_before_the_join() -> None:
    world = World({"a": 1, "b": 1})
    world.append("a", 0, 100)
    consumer, heard = member(world, "a", "b", max_poll_records=1, **COOP)
    heard.calls.clear()
    consumer.subscribe(["a"], listener=heard)
    seen = turns([consumer], 1)
    for _ in range(10):
        world.run(11)
        seen += turns([consumer], 1)
    assert heard.calls == [("revoked", [("b", 0)]), ("assigned", [])]
    assert [o for _, _, o in seen] == list(range(seen[0][2], seen[0][2] + len(seen)))


@pytest.mark.case("CC-079")
def test_the_default_assignors_behave_eagerly() -> None:
    world = World({"t": 2})
    consumer, heard = member(world)
    consumer.enforce_rebalance()
    consumer.poll(0.2)
    assert [name for name, _ in heard.calls] == ["assigned", "revoked", "assigned"]
    assert list(decode_subscription(world.sent("JoinGroup")[-1].message.protocols[0].metadata).owned_partitions) == []


@pytest.mark.case("CC-080", "BM-110")
def test_a_mixed_group_agrees_on_what_both_know_and_leaves_nothing_unread() -> None:
    world = World({"t": 4})
    old, _ = member(world, poll=0, partition_assignment_strategy=["range"])
    new, _ = member(world, poll=0, partition_assignment_strategy=["cooperative-sticky", "range"])
    turns([old, new], 200)
    assert {s.message.protocol_name for s in world.sent("SyncGroup")} <= {"range", "cooperative-sticky"}
    assert world.sent("SyncGroup")[-1].message.protocol_name == "range"
    assert len(old.assignment() | new.assignment()) == 4
    old.close()
    turns([new], 200)
    assert len(new.assignment()) == 4


@pytest.mark.case("CC-081")
def test_the_second_bounce_of_an_upgrade_never_overlaps() -> None:
    world = World({"t": 4})
    halfway, heard1 = member(world, poll=0, partition_assignment_strategy=["range", "cooperative-sticky"])
    done, heard2 = member(world, poll=0, **COOP)
    owners = Owners()
    for consumer, heard in ((halfway, heard1), (done, heard2)):
        owners.watch(consumer, heard)
    turns([halfway, done], 300)
    assert world.sent("SyncGroup")[-1].message.protocol_name == "cooperative-sticky"
    assert len(halfway.assignment() | done.assignment()) == 4


@pytest.mark.case("CC-083")
@pytest.mark.parametrize(("strategy", "stays"), [("cooperative-sticky", True), ("range", False)])
def test_pause_survives_only_a_cooperative_rebalance(strategy: str, stays: bool) -> None:
    world = World({"t": 1})
    consumer, _ = member(world, partition_assignment_strategy=[strategy])
    consumer.pause([("t", 0)])
    consumer.enforce_rebalance()
    consumer.poll(0.3)
    assert (("t", 0) in consumer.paused()) == stays


@pytest.mark.case("BM-097")
def test_a_member_that_missed_a_generation_claims_only_what_it_still_owns() -> None:
    world = World({"t": 6})
    owners, consumers = Owners(), []
    for _ in range(4):
        consumer, heard = member(world, poll=0, **COOP)
        owners.watch(consumer, heard)
        consumers.append(consumer)
    turns(consumers[:3], 200)
    slow, before = consumers[1], consumers[1].group_metadata().generation_id
    owned = set(slow.assignment())
    act = world._act

    def hold_syncs_of_slow(io: Any, request: Any, script: Any) -> None:
        is_slow = io.number == 2 and type(request.message).__name__ == "SyncGroupRequest"
        act(io, request, HOLD if is_slow else script)

    world._act = hold_syncs_of_slow  # type: ignore[method-assign]  # the test steps in between
    turns(consumers, 60)
    assert [request.message.generation_id for _, request in world.held] == [before + 1]
    consumers[2].enforce_rebalance()
    turns(consumers, 30)
    world._act = act  # type: ignore[method-assign]  # the test steps in between
    world.answer_held()
    world.forget()
    turns(consumers, 300)
    claim = decode_subscription(world.sent("JoinGroup", who=2)[0].message.protocols[0].metadata)
    assert (set(claim.owned_partitions), claim.generation_id) == (owned, before + 1)
    assert sorted(tp for c in consumers for tp in c.assignment()) == [("t", p) for p in range(6)]


class Owners:
    """Who owns what, by what the listeners hear: two owners at a time are an error."""

    def __init__(self) -> None:
        self.owner: dict[tuple[str, int], object] = {}

    def watch(self, consumer: Any, heard: Heard) -> None:
        def assigned(partitions: Any) -> None:
            for tp in partitions:
                assert self.owner.get(tp, consumer) is consumer, f"{tp} has two owners"
                self.owner[tp] = consumer

        def gone(partitions: Any) -> None:
            for tp in partitions:
                if self.owner.get(tp) is consumer:
                    del self.owner[tp]

        heard.on_partitions_assigned = assigned  # type: ignore[method-assign]  # the test steps in between
        heard.on_partitions_revoked = gone  # type: ignore[method-assign]  # the test steps in between
        heard.on_partitions_lost = gone  # type: ignore[method-assign]  # the test steps in between


ACTIONS = st.lists(st.sampled_from(["join", "leave", "other", "grow", "poll"]), min_size=1, max_size=12)


@pytest.mark.case("CC-088", "BM-097")
@settings(max_examples=12)
@given(ACTIONS, st.sampled_from(["cooperative-sticky", "range"]))
def test_no_partition_ever_has_two_owners(actions: list[str], strategy: str) -> None:
    world = World({"a": 3, "b": 2})
    owners = Owners()
    consumers: list[Any] = []
    listeners: dict[Any, Heard] = {}

    def join() -> None:
        consumer, heard = member(
            world, "a", "b", poll=0, partition_assignment_strategy=[strategy], metadata_max_age_ms=1_000
        )
        owners.watch(consumer, heard)
        listeners[consumer] = heard
        consumers.append(consumer)

    join()
    for action in actions:
        if action == "join" and len(consumers) < 6:
            join()
        elif action == "leave" and len(consumers) > 1:
            consumers.pop(0).close()
        elif action == "other":
            consumers[-1].subscribe(["b"], listener=listeners[consumers[-1]])
        elif action == "grow":
            world.create("b", 4)
        turns(consumers, 15)
    for _ in range(3):
        world.run(2_900)
        turns(consumers, 20)
    generation = max(c.group_metadata().generation_id for c in consumers)
    world.run(2_900)
    turns(consumers, 20)
    assert max(c.group_metadata().generation_id for c in consumers) == generation
    wanted = {("b", p) for p in range(2 if "grow" not in actions else 4)}
    held = [tp for c in consumers for tp in c.assignment()]
    assert len(held) == len(set(held))
    assert wanted <= set(held)


class Forgotten(Heard):
    """While it sits in its revoked-callback, the group forgets the member."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def on_partitions_revoked(self, partitions: Any) -> None:
        super().on_partitions_revoked(partitions)
        self._world.script("Heartbeat", HeartbeatResponse(error_code=25))
        self._world.run(4_000)


def test_a_membership_that_ends_in_the_revoked_callback_installs_nothing() -> None:
    world = World({"t": 2})
    options: dict[str, Any] = {
        **COOP,
        "enable_auto_commit": False,
        "session_timeout_ms": 6_000,
        "max_poll_interval_ms": 8_000,
    }
    heard = Forgotten(world)
    consumer = world.consumer(group_id="g", **options)
    consumer.subscribe(["t"], listener=heard)
    consumer.poll(0.2)
    other, _ = member(world, **options)
    for _ in range(100):
        consumer.poll(0.1)
        other.poll(0.1)
    names = [name for name, _ in heard.calls]
    assert names[:4] == ["assigned", "revoked", "lost", "assigned"]
    assert len(consumer.assignment()) == len(other.assignment()) == 1
