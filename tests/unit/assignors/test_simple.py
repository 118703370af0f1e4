"""The simple assignor beside Kafka's: valid, as even, and no partition is left out. Which member gets which is free."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from partita.assignors.interface import Assignment, Subscription, TopicMetadata
from partita.assignors.simple import SimpleAssignor

VECTORS = Path(__file__).parents[2] / "vectors" / "assignors-server-simple.jsonl.gz"
T = TopicMetadata({"t": 4})


def assigned(round_: dict[str, Any]) -> Assignment:
    subscriptions = {
        member["id"]: Subscription(
            member["topics"],
            owned_partitions=[(topic, number) for topic, numbers in member["previous"].items() for number in numbers],
        )
        for member in round_["members"]
    }
    return SimpleAssignor().assign(TopicMetadata(round_["topics"]), subscriptions)


def problem(round_: dict[str, Any]) -> str | None:
    ours = assigned(round_)
    topics = {member["id"]: set(member["topics"]) for member in round_["members"]}
    subscribed = set().union(*topics.values())
    for member, partitions in ours.items():
        if len(set(partitions)) < len(partitions):
            return f"{member} has a partition twice"
        if any(topic not in topics[member] or number >= round_["topics"][topic] for topic, number in partitions):
            return f"{member} has what it does not subscribe to"
    everything = {(topic, n) for topic, count in round_["topics"].items() if topic in subscribed for n in range(count)}
    if {partition for partitions in ours.values() for partition in partitions} != everything:
        return "a partition is left out"
    if round_["subscription_type"] == "homogeneous":
        spread = _spread(len(partitions) for partitions in ours.values())
        return None if spread <= max(1, _spread(round_["counts"].values())) else f"counts spread by {spread}"
    for topic in subscribed:
        members = [member for member, wanted in topics.items() if topic in wanted]
        if _spread(sum(name == topic for name, _ in ours[member]) for member in members) > 1:
            return f"{topic} is shared unevenly"
    return None


def _spread(counts: Any) -> int:
    found = list(counts)
    return max(found, default=0) - min(found, default=0)


def test_every_assignment_is_valid_and_as_even_as_kafkas() -> None:
    with gzip.open(VECTORS, "rt") as lines:
        rounds = [
            (case["id"], round_)
            for case in map(json.loads, lines)
            for round_ in case["rounds"]
            if "assignment" in round_ and round_["members"]
        ]
    assert len(rounds) > 500
    assert [(name, found) for name, round_ in rounds if (found := problem(round_)) is not None] == []


@pytest.mark.case("SG-B13")
def test_members_share_the_partitions_or_a_partition_its_members() -> None:
    two = SimpleAssignor().assign(T, {"a": Subscription(["t"]), "b": Subscription(["t"])})
    assert sorted(len(partitions) for partitions in two.values()) == [2, 2]
    one = TopicMetadata({"t": 1})
    three = SimpleAssignor().assign(one, {name: Subscription(["t"]) for name in "abc"})
    assert all(partitions == [("t", 0)] for partitions in three.values())


def test_a_member_that_comes_moves_only_what_it_gets() -> None:
    before = {"a": [("t", 0), ("t", 1)], "b": [("t", 2), ("t", 3)]}
    members = {name: Subscription(["t"], owned_partitions=owned) for name, owned in before.items()}
    after = SimpleAssignor().assign(T, members | {"c": Subscription(["t"])})
    assert Counter(len(partitions) for partitions in after.values()) == {1: 2, 2: 1}
    assert all(set(after[name]) <= set(before[name]) for name in before)
