"""From the classic protocol to KIP-848 and back: empty groups, rolling upgrades, mixed groups, downgrades."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from partita.assignors.interface import Subscription
from partita.assignors.payloads import decode_assignment, encode_assignment, encode_subscription
from partita.group.classic.unled import WATCH_MS
from partita.group.contract import GroupRequest
from partita.group.state.model import EMPTY, PREPARING, STABLE
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from partita.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from partita.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from partita.protocol.primitives import Structure
from support.group.consumers import World, error, told

NONE, REBALANCE = ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS


def join_request(
    member: str = "",
    topics: Sequence[str] = ("t",),
    owned: Mapping[str, Sequence[int]] | None = None,
    *,
    instance: str | None = None,
    kind: str = "consumer",
) -> JoinGroupRequest:
    partitions = [(name, number) for name, numbers in (owned or {}).items() for number in numbers]
    metadata = encode_subscription(Subscription(list(topics), owned_partitions=partitions))
    return JoinGroupRequest(
        group_id="g",
        member_id=member,
        group_instance_id=instance,
        protocol_type=kind,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=20_000,
        protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
    )


def classic_join(world: World, member: str = "", **given: Any) -> Any:
    """A JoinGroup that is answered at once."""
    return world.ask(join_request(member, **given), 9)


def sync(world: World, member: str, generation: int, **given: Any) -> Any:
    return world.ask(SyncGroupRequest(
        group_id="g", member_id=member, generation_id=generation, protocol_type="consumer", protocol_name="range",
        **given,
    ), 5)  # fmt: skip


def beat(world: World, member: str, generation: int) -> ErrorCode:
    return error(world.ask(HeartbeatRequest(group_id="g", member_id=member, generation_id=generation), 4))


class Parked:
    """Requests of the classic protocol that wait: sent under a token, answered by any later step."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.sent = 1_000 * len(world.steps)

    def send(self, message: Structure, version: int) -> int:
        self.sent += 1
        request = GroupRequest(message, version, "c", "/h")
        self.world.take(self.world.coordinator.handle(self.sent, request, self.world.clock.now()))
        return self.sent

    def answer(self, token: int) -> Any:
        return next(r.message for step in self.world.steps for r in step.replies if r.token == token)


def stable_classic(
    world: World, *given: Sequence[int], instances: Sequence[str | None] = (), claims: Sequence[Sequence[int]] = ()
) -> tuple[list[str], int]:
    """A stable classic group whose members have these partitions of t: their ids, and the generation.

    `claims` are what the first members say they own when they join.
    """
    parked = Parked(world)
    named = [*instances, *[None] * (len(given) - len(instances))]
    claimed = [*claims, *[()] * (len(given) - len(claims))]
    tokens = [
        parked.send(join_request(instance=instance, owned={"t": owned}), 3 if instance is None else 5)
        for instance, owned in zip(named, claimed, strict=True)
    ]
    world.wait(1)
    ids = [parked.answer(token).member_id for token in tokens]
    group = world.coordinator.groups["g"]
    assignments = [
        SyncGroupRequestAssignment(member_id=member, assignment=encode_assignment([("t", n) for n in numbers]))
        for member, numbers in zip(ids, given, strict=True)
    ]
    assert group.leader_id is not None
    sync(world, group.leader_id, group.generation, assignments=assignments)
    for member in ids:
        sync(world, member, group.generation)
    assert group.state is STABLE
    return ids, group.generation


def mixed() -> tuple[World, list[str]]:
    """A group of two classic members that C of the new protocol has joined, settled."""
    world = World({"t": 4}, group_initial_rebalance_delay_ms=0)
    ids, _ = stable_classic(world, [0, 1], [2, 3])
    world.join("C")
    return world, ids


def rejoin(world: World, member: str, owned: Sequence[int] = ()) -> list[int]:
    """A classic member rejoins and syncs; what it has then."""
    joined = classic_join(world, member, owned={"t": owned})
    assert error(joined) == NONE
    synced = sync(world, member, joined.generation_id)
    assert error(synced) == NONE
    return [number for _, number in decode_assignment(synced.assignment)[0]]


def settle(world: World, ids: Sequence[str]) -> None:
    """Everybody does what it is told until nothing is left to do."""
    for _ in range(6):
        for member in ids:
            owned = world.has(member).get("t", [])
            if beat(world, member, world.group.members[member].epoch) == REBALANCE:
                rejoin(world, member, owned)
        if "C" in world.group.members:
            world.go_on("C", world.has("C"))


@pytest.mark.case("GC-U01")
def test_an_empty_classic_group_becomes_a_consumer_group_with_its_offsets() -> None:
    world = World({"t": 2}, group_initial_rebalance_delay_ms=0)
    ids, _ = stable_classic(world, [0, 1])
    world.ask(LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=ids[0])]), 4)
    assert world.coordinator.groups["g"].state is EMPTY
    written = len(world.log)
    assert world.join("C").member_epoch == 2
    assert world.kinds(world.log[written:]) == "-2 5 3 7 6 8"
    assert "g" not in world.coordinator.groups


@pytest.mark.case("GC-U02")
def test_an_empty_consumer_group_becomes_classic_by_the_first_join() -> None:
    world = World({"t": 2}, group_initial_rebalance_delay_ms=0)
    world.join("C")
    world.beat("C", -1)
    written = len(world.log)
    joined = classic_join(world)
    assert (error(joined), joined.member_id[:1]) == (ErrorCode.MEMBER_ID_REQUIRED, "c")
    assert world.kinds(world.log[written:]) == "-6 -3 2"
    assert "g" not in world.coordinator.consumer_groups


@pytest.mark.case("GC-U03")
def test_a_stable_classic_group_goes_on_with_what_it_has_when_the_first_new_member_joins() -> None:
    world = World({"t": 4}, group_initial_rebalance_delay_ms=0)
    ids, generation = stable_classic(world, [0, 1], [2, 3])
    written = len(world.log)
    answer = world.join("C")
    assert world.group.epoch == generation + 1
    assert (answer.member_epoch, told(answer)) == (generation + 1, {})
    assert [world.has(member) for member in ids] == [{"t": [0, 1]}, {"t": [2, 3]}]
    assert world.kinds(world.log[written:]).startswith("-2 5 5 3 7 7 6 8 8 5 3")
    assert [m.member_type for m in world.describe().members] == [0, 0, 1]


@pytest.mark.parametrize(("given", "epoch"), [([0, 1, 2, 3], 1), ([0, 1, 2], 2)])
def test_a_static_member_that_brings_the_new_protocol_begins_an_epoch_only_if_partitions_have_no_owner(
    given: list[int], epoch: int
) -> None:
    """As in Kafka where they all have one; in Kafka the others stay without an owner."""
    world = World({"t": 4}, group_initial_rebalance_delay_ms=0)
    stable_classic(world, given, instances=["i"])
    answer = world.join("C", instance="i")
    assert (answer.member_epoch, world.group.epoch) == (epoch, epoch)
    assert world.has("C") == {"t": [0, 1, 2, 3]}


@pytest.mark.case("GC-U04", "GC-U06")
@pytest.mark.parametrize(
    ("policy", "kind"), [("disabled", "consumer"), ("downgrade", "consumer"), ("upgrade", "connect")]
)
def test_what_must_not_be_upgraded_stays_classic(policy: str, kind: str) -> None:
    world = World({"t": 4}, group_initial_rebalance_delay_ms=0, group_consumer_migration_policy=policy)
    Parked(world).send(join_request(kind=kind), 3)
    written = len(world.log)
    answer = world.join("C")
    assert (error(answer), answer.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group g is not a consumer group.")
    assert len(world.log) == written
    assert world.coordinator.groups["g"].state is PREPARING


@pytest.mark.case("GC-U05")
def test_parked_joins_are_told_to_rejoin_by_an_upgrade() -> None:
    world = World({"t": 4})
    parked = Parked(world)
    token = parked.send(join_request(), 3)
    world.join("C")
    assert error(parked.answer(token)) == REBALANCE


@pytest.mark.case("GC-U07")
def test_a_classic_member_rejoins_and_syncs_its_way_to_the_new_target() -> None:
    world, ids = mixed()
    assert [beat(world, member, 1) for member in ids] == [REBALANCE, REBALANCE]
    settle(world, ids)
    everyone = [*ids, "C"]
    assert sorted(number for name in everyone for number in world.has(name)["t"]) == [0, 1, 2, 3]
    assert [beat(world, member, world.group.members[member].epoch) for member in ids] == [NONE, NONE]
    assert world.describe().group_state == "Stable"


@pytest.mark.case("GC-U08")
def test_a_new_classic_member_comes_back_with_its_id_and_is_told_of_nobody() -> None:
    world, _ = mixed()
    first = classic_join(world)
    assert (error(first), first.member_id[:5]) == (ErrorCode.MEMBER_ID_REQUIRED, "made-")
    joined = classic_join(world, first.member_id)
    member = world.group.members[first.member_id]
    assert (error(joined), joined.leader, joined.members, joined.generation_id) == (NONE, "", [], member.epoch)
    assert error(sync(world, first.member_id, 99)) == ErrorCode.ILLEGAL_GENERATION
    assert error(sync(world, "C", 2)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert error(world.ask(join_request(first.member_id, kind="other"), 9)) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.case("GC-U09")
def test_a_classic_member_that_does_not_sync_in_time_is_fenced() -> None:
    world, ids = mixed()
    classic_join(world, ids[0], owned={"t": [0, 1]})
    for _ in range(4):
        world.wait(5_000 - 1)
        beat(world, ids[0], world.group.members[ids[0]].epoch)
        beat(world, ids[1], world.group.members[ids[1]].epoch)
    world.wait(5)
    assert ids[0] not in world.group.members


def test_a_classic_member_that_goes_on_with_the_new_protocol_under_its_id_need_not_sync() -> None:
    """Simulated seed 1508: a JoinGroup waited for its SyncGroup, and the deadline stayed."""
    world, ids = mixed()
    settle(world, ids)
    classic_join(world, ids[0])
    assert error(world.join(ids[0])) == NONE
    for _ in range(5):
        world.wait(5_000)
        for member in (ids[0], "C"):
            world.go_on(member)
        beat(world, ids[1], world.group.members[ids[1]].epoch)
        rejoin(world, ids[1], world.has(ids[1]).get("t", []))
    assert ids[0] in world.group.members


@pytest.mark.case("GC-U10")
def test_the_group_is_classic_again_when_its_last_new_member_leaves() -> None:
    world, ids = mixed()
    settle(world, ids)
    epoch = world.group.epoch
    world.beat("C", -1)
    group = world.coordinator.groups["g"]
    assert (group.state, group.generation, "g" in world.coordinator.consumer_groups) == (PREPARING, epoch, False)
    assert [beat(world, member, epoch) for member in ids] == [REBALANCE, REBALANCE]
    parked = Parked(world)
    tokens = [parked.send(join_request(member), 9) for member in ids]
    assert [parked.answer(token).generation_id for token in tokens] == [epoch + 1, epoch + 1]


@pytest.mark.case("GC-U11", "BM-105")
def test_a_group_too_large_for_the_classic_protocol_stays() -> None:
    world, ids = mixed()
    world.coordinator.config = replace(world.config, group_max_size=1)
    world.beat("C", -1)
    assert list(world.group.members) == ids


@pytest.mark.case("GC-U12", "BM-105")
@pytest.mark.parametrize(("topics", "state"), [(["t"], STABLE), (["t", "u"], PREPARING)])
def test_a_static_member_that_goes_back_makes_the_group_classic_and_rebalances_it_only_for_other_topics(
    topics: list[str], state: object
) -> None:
    world = World({"t": 4, "u": 1}, group_initial_rebalance_delay_ms=0)
    ids, _ = stable_classic(world, [0, 1], [2, 3], instances=["i"])
    world.join("C", instance="i")
    settle(world, ids[1:])
    had = world.has("C")["t"]
    joined = classic_join(world, topics=topics, instance="i")
    group = world.coordinator.groups["g"]
    assert (error(joined), group.state, group.static["i"]) == (NONE, state, joined.member_id)
    assert [n for _, n in decode_assignment(group.members[joined.member_id].assignment)[0]] == had


def test_a_static_member_that_goes_back_rebalances_the_group_if_others_are_on_their_way() -> None:
    """Otherwise nobody would read what another member was never told that it has."""
    world = World({"t": 4}, group_initial_rebalance_delay_ms=0)
    ids, _ = stable_classic(world, [0, 1], [2, 3], instances=["i"])
    world.join("C", instance="i")
    settle(world, ids[1:])
    world.put("t", 6)
    world.go_on("C")
    assert world.group.epoch > world.group.members[ids[1]].epoch
    classic_join(world, instance="i")
    assert world.coordinator.groups["g"].state is PREPARING


def downgraded_without_a_rebalance() -> World:
    """A stable classic group that was a KIP-848 group a moment ago: nobody was told that it leads."""
    world = World({"t": 4}, group_initial_rebalance_delay_ms=0)
    ids, _ = stable_classic(world, [0, 1], [2, 3], instances=["i"])
    world.join("C", instance="i")
    settle(world, ids[1:])
    classic_join(world, instance="i")
    assert world.coordinator.groups["g"].state is STABLE
    return world


@pytest.mark.parametrize("reloads", [False, True])
@pytest.mark.parametrize("partitions", [5, None])
def test_the_coordinator_watches_the_topics_of_a_group_that_nobody_knows_to_lead(
    partitions: int | None, reloads: bool
) -> None:
    """Otherwise a partition that is added then has no owner until something else happens."""
    world = downgraded_without_a_rebalance()
    world.wait(WATCH_MS)
    group = world.coordinator.groups["g"]
    assert [beat(world, member, group.generation) for member in group.members] == [NONE, NONE]
    if reloads:
        world.reload()
        world.wait(1)
        assert world.coordinator.groups["g"].state is STABLE
    world.put("t", partitions)
    world.wait(WATCH_MS)
    assert world.coordinator.groups["g"].state is PREPARING


def test_the_coordinator_leaves_the_topics_to_the_group_leader_after_a_rebalance() -> None:
    world = downgraded_without_a_rebalance()
    parked = Parked(world)
    group = world.coordinator.groups["g"]
    world.put("t", 5)
    world.wait(WATCH_MS)
    tokens = [parked.send(join_request(m.member_id, instance=m.instance_id), 9) for m in list(group.members.values())]
    generation = parked.answer(tokens[0]).generation_id
    assert group.leader_id is not None
    sync(world, group.leader_id, generation, assignments=[])
    world.put("t", 6)
    world.wait(WATCH_MS)
    assert (group.state, group.generation) == (STABLE, generation)


@pytest.mark.parametrize(("partitions", "shares"), [(4, [[0, 1], [2, 3]]), (2, [[0], [1]])])
def test_the_rebalance_of_a_group_that_became_classic_is_not_lost_with_its_coordinator(
    partitions: int, shares: list[list[int]]
) -> None:
    """Seed 2238: otherwise what the last member of the new protocol had stays without an owner."""
    world = World({"t": partitions}, group_initial_rebalance_delay_ms=0)
    ids, _ = stable_classic(world, *shares)
    world.join("C")
    settle(world, ids)
    leaves_some = bool(world.has("C"))
    assert leaves_some == (partitions > len(ids))
    world.beat("C", -1)
    world.reload()
    world.wait(1)
    group = world.coordinator.groups["g"]
    assert group.state is (PREPARING if leaves_some else STABLE)
    expected = REBALANCE if leaves_some else NONE
    assert [beat(world, member, group.generation) for member in ids] == [expected, expected]
    world.put("t", 5)
    world.wait(WATCH_MS)
    assert group.state is PREPARING, "nobody knows that it leads, so the coordinator watches"


def test_what_a_cooperative_member_has_not_given_up_yet_is_nobody_elses_after_an_upgrade() -> None:
    world = World({"t": 4}, group_initial_rebalance_delay_ms=0)
    ids, _ = stable_classic(world, [0], [1], claims=[[0, 2, 3], [1, 0]])
    world.join("C")
    world.go_on("C")
    assert world.has("C") == {}
    assert beat(world, ids[0], world.group.members[ids[0]].epoch) == REBALANCE
    rejoin(world, ids[0], [0, 2, 3])
    world.go_on("C")
    assert world.has("C") == {}
    rejoin(world, ids[0], [0])
    settle(world, ids)
    assert [len(world.has(member)["t"]) for member in (*ids, "C")] in ([1, 1, 2], [1, 2, 1], [2, 1, 1])


def test_whoever_keeps_what_it_had_to_give_up_is_fenced_after_an_upgrade_too() -> None:
    world = World({"t": 4}, group_initial_rebalance_delay_ms=0)
    ids, _ = stable_classic(world, [0], [1], claims=[[0, 2, 3]])
    world.join("C")
    for _ in range(5):
        world.wait(5_000)
        for member in ids:
            if member in world.group.members:
                beat(world, member, world.group.members[member].epoch)
        world.go_on("C")
    assert ids[0] not in world.group.members


@pytest.mark.parametrize("has_heard", [False, True])
def test_what_a_member_reads_is_nobody_elses_if_the_group_is_classic_for_a_while(has_heard: bool) -> None:
    """Seed 1765: a member that has not heard of its target, or not done what it heard, still has what it had."""
    world, ids = mixed()
    world.put("t", 6)
    settle(world, ids)
    had = {member: set(world.has(member)["t"]) for member in ids}
    newcomers = ["C", "D", "E", "F"]
    for newcomer in newcomers[1:]:
        world.join(newcomer)
    targets = {member: {number for _, number in world.group.targets[member]} for member in ids}
    slow = next(member for member in ids if targets[member] < had[member])
    if has_heard:
        assert error(classic_join(world, slow, owned={"t": sorted(had[slow])})) == NONE
    for newcomer in newcomers:
        world.beat(newcomer, -1)
    assert world.coordinator.groups["g"].state is PREPARING
    world.join("G")
    world.go_on("G")
    assert not set(world.has("G").get("t", [])) & (had[ids[0]] | had[ids[1]])
    kept = world.group.members[slow]
    assert {number for _, number in (*kept.assigned, *kept.revoking)} == had[slow]


@pytest.mark.case("GC-U13")
def test_members_of_both_protocols_are_removed_by_one_leave_with_one_new_epoch() -> None:
    world, ids = mixed()
    world.join("D", instance="d")
    epoch = world.group.epoch
    named = [MemberIdentity(member_id=ids[0]), MemberIdentity(member_id="", group_instance_id="d")]
    answer = world.ask(LeaveGroupRequest(group_id="g", members=[*named, MemberIdentity(member_id="none")]), 4)
    assert [error(m) for m in answer.members] == [NONE, NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert (world.group.epoch, list(world.group.members)) == (epoch + 1, [ids[1], "C"])
    assert error(world.beat("D", 2)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_upgraded_group_survives_a_reload() -> None:
    world, ids = mixed()
    world.reload()
    settle(world, ids)
    assert world.describe().group_state == "Stable"
