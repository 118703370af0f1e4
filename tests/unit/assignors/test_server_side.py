from collections.abc import Mapping
from typing import ClassVar

import pytest

from partita.assignors.interface import Assignment, Assignor, Subscription, TopicMetadata
from partita.assignors.server_side import RangeOnServer, UniformAssignor, create_server_assignors
from support.vectors import assignors as vectors
from support.vectors.assignors import Vector


def subscriptions(round_: Vector) -> dict[str, Subscription]:
    return {
        member["id"]: Subscription(
            topics=member["topics"],
            owned_partitions=[(t, p) for t, ps in member["previous"].items() for p in ps],
            rack_id=member.get("rack"),
            group_instance_id=member.get("instance_id"),
        )
        for member in round_["members"]
    }


ROUNDS = {
    name: [
        pytest.param(round_, id=f"{case['id']}-{number}")
        for case in vectors.load(f"server-{name}")
        for number, round_ in enumerate(case["rounds"])
        if "error" not in round_
    ]
    for name in ("range", "uniform")
}


def test_there_are_as_many_vectors_as_the_release_gave() -> None:
    assert [len(ROUNDS[name]) for name in ("range", "uniform")] == [1491, 1490]


@pytest.mark.case("GC-T31", "GC-T51")
def test_range_gives_what_kafkas_coordinator_gives() -> None:
    for param in ROUNDS["range"]:
        (round_,) = param.values
        assert isinstance(round_, dict)
        given = vectors.by_topic(RangeOnServer().assign(vectors.metadata(round_), subscriptions(round_)))
        ours = {member: {t: sorted(ps) for t, ps in topics.items() if ps} for member, topics in given.items()}
        assert ours == round_["assignment"], param.id


@pytest.mark.case("GC-T32", "GC-T33")
def test_uniform_is_as_balanced_as_kafkas_and_moves_no_more() -> None:
    """Equal in every measure where members subscribe alike; else valid, balanced, and in sum no worse."""
    moved, spread = [0, 0], [0, 0]
    for param in ROUNDS["uniform"]:
        (round_,) = param.values
        assert isinstance(round_, dict)
        members = subscriptions(round_)
        assignment = UniformAssignor().assign(vectors.metadata(round_), members)
        check_valid(assignment, members, round_["topics"])
        claims = {
            member: ([p for p in s.owned_partitions if p[1] < round_["topics"].get(p[0], 0)], 0)
            for member, s in members.items()
        }
        ours, kafkas = vectors.measures(round_, assignment, claims), round_["measures"]
        moved[0] += ours["moved"]
        moved[1] += kafkas["moved"]
        spread[0] += ours["spread"]
        spread[1] += kafkas["spread"]
        if len({frozenset(s.topics) for s in members.values()}) <= 1:
            assert ours == {**kafkas, "unassigned": 0}, param.id
        else:
            assert ours["improvable"] == ours["unassigned"] == 0, param.id
            assert ours["spread"] <= kafkas["spread"] or ours["moved"] < kafkas["moved"], param.id
    assert moved[0] <= moved[1]
    assert spread[0] <= spread[1]


def check_valid(assignment: Assignment, members: Mapping[str, Subscription], counts: Mapping[str, int]) -> None:
    assert assignment.keys() == members.keys()
    given = [partition for partitions in assignment.values() for partition in partitions]
    assert len(set(given)) == len(given)
    for member, partitions in assignment.items():
        assert {topic for topic, _ in partitions} <= set(members[member].topics)
        assert all(0 <= number < counts[topic] for topic, number in partitions)


@pytest.mark.case("GC-T32")
def test_a_third_member_takes_three_of_nine_and_the_others_keep_three_of_their_own() -> None:
    had = {"A": [("t", p) for p in range(5)], "B": [("t", p) for p in range(5, 9)], "C": []}
    members = {member: Subscription(["t"], owned_partitions=owned) for member, owned in had.items()}
    got = UniformAssignor().assign(TopicMetadata({"t": 9}), members)
    assert [len(got[member]) for member in "ABC"] == [3, 3, 3]
    assert set(got["A"]) < set(had["A"])
    assert set(got["B"]) < set(had["B"])


class Mine(Assignor):
    name: ClassVar[str] = "mine"

    def assign(self, metadata: TopicMetadata, subscriptions: Mapping[str, Subscription]) -> Assignment:
        return {member: [] for member in subscriptions}


def test_users_assignors_stand_behind_the_named_ones_unless_they_are_named_themselves() -> None:
    assert list(create_server_assignors(["uniform", "range"], [Mine()])) == ["uniform", "range", "mine"]
    assert list(create_server_assignors(["mine", "range"], [Mine()])) == ["mine", "range"]
    kafkas = "org.apache.kafka.coordinator.group.assignor."
    named = create_server_assignors([f"{kafkas}RangeAssignor", f"{kafkas}UniformAssignor"])
    assert list(named) == ["range", "uniform"]


def test_a_name_that_nobody_has_and_a_name_given_twice_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown server-side assignor 'nobody'; known are uniform, range, mine"):
        create_server_assignors(["nobody"], [Mine()])
    with pytest.raises(ValueError, match="two server-side assignors have the name 'mine'"):
        create_server_assignors(["uniform"], [Mine(), Mine()])
