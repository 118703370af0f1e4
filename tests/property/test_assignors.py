"""What holds for every answer of every assignor (consumer.md 7.7)."""

from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.assignors.cooperative_sticky import CooperativeStickyAssignor
from partita.assignors.interface import Assignment, Assignor, Subscription, TopicMetadata, TopicPartition
from partita.assignors.range import RangeAssignor
from partita.assignors.roundrobin import RoundRobinAssignor
from partita.assignors.sticky import StickyAssignor
from partita.assignors.user_data import encode_user_data

World = tuple[TopicMetadata, dict[str, Subscription]]
ASSIGNORS: list[type[Assignor]] = [RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor]
STICKY: list[type[Assignor]] = [StickyAssignor, CooperativeStickyAssignor]
TOPICS = ["a", "b", "c", "missing"]
RACKS = ["r1", "r2", None]

counts = st.fixed_dictionaries({topic: st.integers(1, 9) for topic in TOPICS[:-1]})
some_topics = st.lists(st.sampled_from(TOPICS), unique=True, max_size=4)
claimed = st.lists(st.tuples(st.sampled_from([*TOPICS, "gone"]), st.integers(-2, 11)), max_size=8)


@st.composite
def worlds(draw: st.DrawFn, *, equal: bool = False, claims: bool = True) -> World:
    """Topics, and members with whatever they subscribe to, claim, and say of themselves."""
    topics = draw(counts)
    alike = draw(some_topics)
    subscriptions = {}
    for number in range(draw(st.integers(1, 7))):
        owned = draw(claimed) if claims else []
        generation = draw(st.integers(-1, 3))
        subscriptions[f"m{number}"] = Subscription(
            alike if equal else draw(some_topics),
            encode_user_data(owned, generation) if draw(st.booleans()) else draw(st.binary(max_size=12)),
            owned,
            generation,
            draw(st.sampled_from(RACKS)),
            draw(st.sampled_from([None, f"i{number}"])),
        )
    replicas = st.lists(st.sampled_from(RACKS), min_size=1, max_size=2)
    racks = {topic: [draw(replicas) for _ in range(count)] for topic, count in topics.items()}
    return TopicMetadata(topics, draw(st.sampled_from([{}, racks]))), subscriptions


def everything(metadata: TopicMetadata, subscriptions: Mapping[str, Subscription]) -> set[TopicPartition]:
    wanted = {topic for subscription in subscriptions.values() for topic in subscription.topics}
    return {(t, p) for t in wanted for p in range(metadata.partition_counts.get(t, 0))}


def after(
    assignor: type[Assignor], subscriptions: Mapping[str, Subscription], assignment: Assignment, generation: int
) -> dict[str, Subscription]:
    """The members' next subscriptions, once each has taken `assignment` on."""
    result = {}
    for member, subscription in subscriptions.items():
        instance = assignor()
        instance.on_assignment(assignment[member], generation)
        data = instance.subscription_user_data(subscription.topics)
        result[member] = Subscription(
            subscription.topics, data, assignment[member], generation, subscription.rack_id, None
        )
    return result


@pytest.mark.case("CC-105")
@pytest.mark.parametrize("assignor", ASSIGNORS)
@given(world=worlds())
def test_only_subscribers_get_partitions_none_twice_and_all_that_somebody_wants(
    assignor: type[Assignor], world: World
) -> None:
    check_valid(assignor, *world)


@pytest.mark.case("CC-105")
@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_thousands_of_random_groups_are_shared_validly(assignor: type[Assignor]) -> None:
    """2,500 inputs for each of the four; half of them with equal subscriptions."""
    dice = Random(7)
    for number in range(2500):
        topics = {topic: dice.randint(1, 12) for topic in TOPICS[:-1]}
        alike = dice.sample(TOPICS, dice.randint(1, 4))
        subscriptions = {}
        for member in range(dice.randint(1, 8)):
            owned = [(dice.choice(TOPICS), dice.randint(0, 12)) for _ in range(dice.randint(0, 6))]
            generation = dice.randint(-1, 3)
            wanted = alike if number % 2 else dice.sample(TOPICS, dice.randint(0, 4))
            data = encode_user_data(owned, generation)
            subscriptions[f"m{member}"] = Subscription(wanted, data, owned, generation, dice.choice(RACKS))
        racks = {t: [[dice.choice(RACKS)] for _ in range(count)] for t, count in topics.items()}
        check_valid(assignor, TopicMetadata(topics, dice.choice([{}, racks])), subscriptions)


def check_valid(assignor: type[Assignor], metadata: TopicMetadata, subscriptions: Mapping[str, Subscription]) -> None:
    assignment = assignor().assign(metadata, subscriptions)
    assert assignment.keys() == subscriptions.keys()
    given_out = [partition for partitions in assignment.values() for partition in partitions]
    assert len(set(given_out)) == len(given_out)
    assert set(given_out) <= everything(metadata, subscriptions)
    for member, partitions in assignment.items():
        assert {topic for topic, _ in partitions} <= set(subscriptions[member].topics)
    if assignor is not CooperativeStickyAssignor:
        assert set(given_out) == everything(metadata, subscriptions)


@pytest.mark.case("CC-105", "BM-108")
@pytest.mark.parametrize("assignor", STICKY)
@given(world=worlds())
def test_cooperative_rounds_never_share_a_partition_and_end_with_everything_assigned(
    assignor: type[Assignor], world: World
) -> None:
    metadata, subscriptions = world
    for generation in range(10, 16):
        assignment = assignor().assign(metadata, subscriptions)
        owned = {member: set(subscription.owned_partitions) for member, subscription in subscriptions.items()}
        if assignor is CooperativeStickyAssignor:
            for member, partitions in assignment.items():
                added = set(partitions) - owned[member]
                assert all(added.isdisjoint(owned[other]) for other in owned if other != member)
        if all(set(assignment[member]) == owned[member] for member in owned):
            break
        subscriptions = after(assignor, subscriptions, assignment, generation)
    assert {p for partitions in assignment.values() for p in partitions} == everything(metadata, subscriptions)
    loads = {member: len(partitions) for member, partitions in assignment.items()}
    for giver, partitions in assignment.items():
        held = {topic for topic, _ in partitions}
        for taker, subscription in subscriptions.items():
            assert loads[giver] < loads[taker] + 2 or held.isdisjoint(subscription.topics)


@pytest.mark.case("CC-105")
@pytest.mark.parametrize("assignor", [RoundRobinAssignor, StickyAssignor])
@given(world=worlds(equal=True))
def test_equal_subscriptions_differ_by_one_partition_at_most(assignor: type[Assignor], world: World) -> None:
    loads = [len(partitions) for partitions in assignor().assign(*world).values()]
    assert max(loads) - min(loads) <= 1


@pytest.mark.case("CC-105")
@pytest.mark.parametrize("assignor", ASSIGNORS)
@given(world=worlds(claims=False))
def test_asked_again_with_nothing_changed_the_answer_is_the_same(assignor: type[Assignor], world: World) -> None:
    metadata, subscriptions = world
    first = assignor().assign(metadata, after(assignor, subscriptions, assignor().assign(metadata, subscriptions), 1))
    second = assignor().assign(metadata, after(assignor, subscriptions, first, 2))
    assert {m: set(p) for m, p in second.items()} == {m: set(p) for m, p in first.items()}


@pytest.mark.case("CC-105")
@pytest.mark.parametrize("assignor", STICKY)
@given(world=worlds(equal=True, claims=False))
def test_who_stays_keeps_everything_and_who_joins_is_the_only_receiver(assignor: type[Assignor], world: World) -> None:
    topics, subscriptions = world
    metadata = TopicMetadata(topics.partition_counts)
    whole = assignor().assign(metadata, {m: Subscription(s.topics) for m, s in subscriptions.items()})
    owned = after(assignor, subscriptions, whole, 1)
    left = {member: owned[member] for member in list(owned)[1:]}
    if left:
        assignment = assignor().assign(metadata, left)
        assert all(set(assignment[member]) >= set(whole[member]) for member in left)
    newcomer = Subscription(subscriptions["m0"].topics)
    joined = assignor().assign(metadata, owned | {"new": newcomer})
    assert all(set(joined[member]) <= set(whole[member]) for member in owned)


@pytest.mark.case("CC-106")
def test_a_thousand_members_share_a_hundred_thousand_partitions_twice() -> None:
    metadata = TopicMetadata({f"t{number:03}": 500 for number in range(200)})
    topics = list(metadata.partition_counts)
    subscriptions = {f"m{number:04}": Subscription(topics) for number in range(1000)}
    first = StickyAssignor().assign(metadata, subscriptions)
    second = StickyAssignor().assign(metadata, after(StickyAssignor, subscriptions, first, 1))
    assert {len(partitions) for partitions in first.values()} == {100}
    assert {m: set(p) for m, p in second.items()} == {m: set(p) for m, p in first.items()}
