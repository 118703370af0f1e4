"""Design 1's consumer on the model of ZooKeeper: what it asks, and what goes wrong when members disagree."""

from __future__ import annotations

from collections.abc import Callable, Generator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.designs.rules import nodes
from partita.designs.rules.consumer_one import (
    Action,
    AwaitConnection,
    ConsumerOne,
    Ending,
    Sent,
    Settings,
    Sleep,
    StartFetching,
    StopFetching,
    Tell,
)
from partita.designs.rules.requests import Answer, Create, Delete, Failure, Get, Node, Put
from support.designs.virtual import GROUP, TOPIC, World
from support.designs.zookeeper_model import ZooKeeperModel


def settled(members: int, partitions: int, **world: int) -> World:
    there = World(partitions, **world)  # type: ignore[arg-type]  # options by name
    for number in range(members):
        there.join(f"g_{number:03}")
    there.run()
    assert sorted(there.owners()) == list(range(partitions))
    return there


def test_the_tree_of_a_group_names_each_node_its_session_and_its_data() -> None:
    world = settled(2, 11)
    sessions = [f"{world.members[name].session:#x}" for name in ("g_000", "g_001")]

    def shown() -> list[str]:
        read = nodes.tree(lambda request: world.model.ask(world.keeper, request, world.now_ms)[0])
        return [" ".join(line.split()) for line in read]

    owners = [f"/consumers/g/owners/t/{part} ephemeral {sessions[part > 5]} g_00{part // 6}-0" for part in range(11)]
    assert [line for line in shown() if "owners/t/" in line] == owners, "in the order of their numbers"
    assert "/consumers/g/offsets persistent" in shown()
    world.crash("g_000")
    world.run()
    assert not [line for line in shown() if f" {sessions[0]} " in line]


@pytest.mark.case("GC-W01")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("partitions", [1, 24, 100])
@pytest.mark.parametrize("members", [1, 5, 20, 50])
def test_one_join_costs_reads_that_grow_with_the_square_of_the_group(members: int, partitions: int, seed: int) -> None:
    world = settled(members, partitions, seed=seed)
    before = world.counts.copy()
    attempts = {name: member.count("attempt") for name, member in world.members.items()}
    claims = {name: member.count("claimed") for name, member in world.members.items()}
    conflicts = sum(member.count("conflict") for member in world.members.values())
    world.join("g_new")
    world.run()
    spent = world.counts - before
    made = sum(member.count("attempt") - attempts.get(name, 0) for name, member in world.members.items())
    taken = sum(member.count("claimed") - claims.get(name, 0) for name, member in world.members.items())
    lost = sum(member.count("conflict") for member in world.members.values()) - conflicts
    assert spent["events"] == members
    assert spent["reads"] == made * (members + 10) + taken + 2 * lost + 2 * members + 3
    if not lost:
        assert spent["reads"] == (members + 1) * (members + 10) + partitions + 2 * members + 3
    assert all(len(owners) == 1 for owners in world.owners().values())


@pytest.mark.case("GC-W05", "GC-W17")
@pytest.mark.parametrize("seed", range(40))
def test_members_of_a_late_server_keep_what_they_should_release(seed: int) -> None:
    """The joiner is on the fast server; half the others learn of it 1.5 s late, in the worst case too late for it."""
    world = World(24, lags_ms=(1500, 0), seed=seed)
    for number in range(6):
        world.join(f"g_{number}", server=number % 2)
    world.run()
    failed = sum(member.count("failed") for member in world.members.values())
    world.join("g_6", server=1)
    world.run()
    assert sum(member.count("failed") for member in world.members.values()) > failed
    assert all(len(owners) <= 1 for owners in world.owners().values())


@pytest.mark.case("GC-W15", "GC-W19")
@pytest.mark.parametrize("seed", range(20))
def test_a_silent_member_makes_another_give_up_and_what_that_one_owned_stays_without_an_owner(seed: int) -> None:
    world = settled(5, 20, seed=seed)
    world.members["g_002"].is_alive = False  # stopped, while its session lives on
    stopped = world.members["g_002"]
    kept = list(stopped.reading)
    world.join("g_0015")
    world.run()
    idle = [name for name, member in world.members.items() if member.endings[-1] is Ending.GAVE_UP]
    assert idle
    assert all(not world.members[name].reading for name in idle)
    orphans = [number for number in range(20) if number not in world.owners()]
    assert orphans
    assert not {("t", number) for number in orphans} & set(kept)
    world.run(until_ms=world.now_ms + 600_000)
    assert [number for number in range(20) if number not in world.owners()] == orphans, "nobody tries again by itself"


@pytest.mark.case("GC-W21")
@pytest.mark.parametrize("joiners", [2, 3, 5])
def test_events_during_a_rebalance_make_one_more(joiners: int) -> None:
    world = settled(1, 200)
    member = world.members["g_000"]
    before = len(member.endings)
    member.is_busy = True
    running = world._rebalances(member)
    world._start(world._run(member, running))
    for number in range(joiners):
        world.join(f"h_{number}")
    world.run()
    assert len(member.endings) == before + 2


@pytest.mark.case("GC-W23")
def test_new_partitions_wake_every_member_and_get_owners() -> None:
    world = settled(4, 8)
    before = world.counts["events"]
    world.grow(13)
    world.run()
    assert world.counts["events"] - before == 4
    assert sorted(world.owners()) == list(range(13))


@pytest.mark.case("GC-W24")
@pytest.mark.parametrize("watches", [False, True])
def test_a_new_broker_wakes_nobody_unless_the_members_watch_brokers(watches: bool) -> None:
    world = World(8)
    for number in range(3):
        world.join(f"g_{number}", watch_brokers=watches)
    world.run()
    before = world.counts["events"]
    world.broker_comes(1)
    world.run()
    assert world.counts["events"] - before == (3 if watches else 0)


@pytest.mark.case("GC-W25")
def test_without_a_broker_a_rebalance_succeeds_and_owns_nothing_until_one_comes() -> None:
    world = World(4)
    world.model.end(world.keeper, 0)
    member = world.join("g_0")
    world.run()
    assert (member.endings, member.reading) == ([Ending.NO_BROKER], {})
    world.keeper = world.model.connect()
    world.broker_comes(2)
    world.run()
    assert sorted(world.owners()) == [0, 1, 2, 3]


@pytest.mark.case("GC-W11")
@pytest.mark.parametrize("seed", range(10))
def test_the_partitions_of_a_dead_member_are_taken_over(seed: int) -> None:
    world = settled(5, 20, seed=seed)
    world.crash("g_003")
    world.run()
    assert sorted(world.owners()) == list(range(20))
    assert all(len(owners) == 1 for owners in world.owners().values())


# One attempt, step by step


PARTITIONS = 2


def lone() -> tuple[ConsumerOne, ZooKeeperModel, int]:
    """A group of one on a fresh model, registered."""
    world = World(PARTITIONS)
    rules = ConsumerOne(Settings(GROUP, "me", TOPIC))
    session = world.model.connect()
    world.model.ask(session, Create(nodes.member(GROUP, "me"), nodes.registration_json(rules.registration, 0), True), 0)
    return rules, world.model, session


def walk(
    dialogue: Generator[Action, Sent, Ending], model: ZooKeeperModel, session: int, instead: dict[int, Answer]
) -> tuple[list[Action], Ending | None]:
    """Answer by the model, except at the steps in `instead`; a fake failure is not carried out."""
    seen: list[Action] = []
    answer: Sent = None
    while len(seen) < 400:
        try:
            action = dialogue.send(answer)
        except StopIteration as end:
            return seen, end.value
        seen.append(action)
        if isinstance(action, StopFetching):
            answer = {("t", 0): 7}
        elif isinstance(action, StartFetching | Sleep | Tell | AwaitConnection):
            answer = None
        elif len(seen) - 1 in instead:
            answer = instead[len(seen) - 1]
        else:
            answer, _ = model.ask(session, action, 0)
    return seen, None


def steps() -> int:
    rules, model, session = lone()
    return len(walk(rules.rebalance(), model, session, {})[0])


@pytest.mark.case("GC-W20")
@pytest.mark.parametrize("failure", list(Failure))
@pytest.mark.parametrize("step", range(steps()))
def test_whatever_fails_where_fetching_starts_only_after_the_last_claim(step: int, failure: Failure) -> None:
    rules, model, session = lone()
    seen, ending = walk(rules.rebalance(), model, session, {step: failure})
    assert ending is Ending.DONE
    starts = [at for at, action in enumerate(seen) if isinstance(action, StartFetching)]
    claims = [at for at, action in enumerate(seen) if isinstance(action, Create) and "/owners/" in action.path]
    stops = [at for at, action in enumerate(seen) if isinstance(action, StopFetching)]
    assert len(starts) == 1
    assert starts[0] > max(claims)
    assert stops[0] < min(claims)
    assert len(rules.owned) == PARTITIONS
    if failure in (Failure.CONNECTION_LOSS, Failure.SESSION_EXPIRED) and not isinstance(
        seen[step], Tell | StopFetching | StartFetching
    ):
        assert isinstance(seen[step + 1], AwaitConnection)
        assert seen[step + 2] == seen[step]


@pytest.mark.case("GC-W20")
def test_a_commit_comes_before_the_release_and_the_release_before_the_view() -> None:
    rules, model, session = lone()
    walk(rules.rebalance(), model, session, {})
    seen, _ = walk(rules.rebalance(), model, session, {})
    order: list[Callable[[Action], bool]] = [
        lambda action: isinstance(action, StopFetching),
        lambda action: isinstance(action, Put) and "/offsets/" in action.path,
        lambda action: isinstance(action, Delete),
        lambda action: isinstance(action, Tell) and action.what == "view",
        lambda action: isinstance(action, Get) and "/offsets/" in action.path,
        lambda action: isinstance(action, Create) and "/owners/" in action.path,
        lambda action: isinstance(action, StartFetching),
    ]
    places = [next(at for at, action in enumerate(seen) if is_it(action)) for is_it in order]
    assert all(one < other for one, other in pairwise(places))


@pytest.mark.case("GC-W20", "GC-W04")
def test_after_a_conflict_what_was_claimed_is_given_back_and_four_failures_give_up() -> None:
    rules, model, session = lone()
    other = model.connect()
    for path in (nodes.owner(GROUP, TOPIC, 1),):
        model.ask(other, Create(path, "other-0", True), 0)
    seen, ending = walk(rules.rebalance(), model, session, {})
    assert ending is Ending.GAVE_UP
    assert not any(isinstance(action, StartFetching) for action in seen)
    assert [action.ms for action in seen if isinstance(action, Sleep)] == [2000] * 4
    assert sum(isinstance(action, Delete) for action in seen) == 4
    assert model.ask(session, Get(nodes.owner(GROUP, TOPIC, 0)), 0)[0] is Failure.NO_NODE
    conflicts = [action.facts for action in seen if isinstance(action, Tell) and action.what == "conflict"]
    assert conflicts == [{"partition": 1, "holder": "other-0"}] * 4
    assert not rules.owned


@pytest.mark.case("GC-W20")
def test_a_node_that_exists_by_ourselves_is_ours() -> None:
    rules, model, session = lone()
    model.ask(session, Create(nodes.owner(GROUP, TOPIC, 0), "me-0", True), 0)
    assert walk(rules.rebalance(), model, session, {})[1] is Ending.DONE


def test_an_older_sessions_registration_is_waited_for() -> None:
    rules, model, session = lone()
    dialogue, waits, answer = rules.register(0), 0, None
    while True:
        try:
            action = dialogue.send(answer)
        except StopIteration:
            break
        if isinstance(action, Sleep):
            waits += 1
            model.end(session, 0)
            session = model.connect()
        else:
            assert isinstance(action, Create)
            answer, _ = model.ask(session, action, 0)
    assert waits == 1


@given(
    seed=st.integers(0, 2**32),
    hop_ms=st.integers(0, 60),
    troubles=st.lists(st.tuples(st.integers(0, 400), st.sampled_from(["join", "crash", "grow"])), max_size=5),
)
def test_however_requests_interleave_who_reads_a_partition_owns_its_node(
    seed: int, hop_ms: int, troubles: list[tuple[int, str]]
) -> None:
    """Section 11: after every single request no partition has two readers, and none is read once it is released."""
    world = World(4, seed=seed, hop_ms=hop_ms)

    def nobody_reads_what_another_owns() -> None:
        for name, member in world.members.items():
            for topic, number in member.reading:
                node = world.model.ask(world.keeper, Get(nodes.owner(GROUP, topic, number)), world.now_ms)[0]
                assert isinstance(node, Node), f"{name} reads {number}, which nobody owns"
                assert node.data.startswith(f"{name}-"), f"{name} reads {number}, which {node.data} owns"

    world.after_step = nobody_reads_what_another_owns
    for name in ("g_0", "g_1"):
        world.join(name)
    partitions = 4
    for number, (after_ms, trouble) in enumerate(troubles):
        world.run(until_ms=world.now_ms + after_ms)
        if trouble == "join":
            world.join(f"g_{number}x")
        elif trouble == "grow":
            partitions += 2
            world.grow(partitions)
        elif len(world.members) > 1:
            world.crash(sorted(world.members)[0])
    world.run()
    assert all(len(readers) == 1 for readers in world.owners().values())
