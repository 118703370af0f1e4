from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from partita.assignors.interface import Subscription, TopicMetadata
from partita.assignors.roundrobin import assign
from support.every_case import every_case
from support.vectors import assignors as vectors


def share(
    counts: Mapping[str, int], topics_of: Mapping[str, Sequence[str]], instances: Mapping[str, str] | None = None
) -> dict[str, str]:
    subscriptions = {
        member: Subscription(topics, group_instance_id=(instances or {}).get(member))
        for member, topics in topics_of.items()
    }
    assignment = assign(TopicMetadata(counts), subscriptions)
    return {member: " ".join(f"{t}-{p}" for t, p in partitions) for member, partitions in assignment.items()}


@pytest.mark.case("CC-090")
@pytest.mark.parametrize(
    ("counts", "topics_of", "expected"),
    [
        (
            {"t0": 3, "t1": 3},
            {"C0": ["t0", "t1"], "C1": ["t0", "t1"]},
            {"C0": "t0-0 t0-2 t1-1", "C1": "t0-1 t1-0 t1-2"},
        ),
        (
            {"t0": 1, "t1": 2, "t2": 3},
            {"C0": ["t0"], "C1": ["t0", "t1"], "C2": ["t0", "t1", "t2"]},
            {"C0": "t0-0", "C1": "t1-0", "C2": "t1-1 t2-0 t2-1 t2-2"},
        ),
    ],
)
def test_partitions_are_dealt_in_a_circle(
    counts: dict[str, int], topics_of: dict[str, list[str]], expected: dict[str, str]
) -> None:
    assert share(counts, topics_of) == expected


@pytest.mark.case("CC-091", "BM-109")
def test_unknown_topics_and_members_without_topics_get_an_empty_entry() -> None:
    assert share({"t": 2}, {"A": ["t", "gone"], "B": [], "C": ["gone"]}) == {"A": "t-0 t-1", "B": "", "C": ""}


@pytest.mark.case("CC-093")
def test_swapped_member_ids_leave_static_assignments_alone() -> None:
    topics = {"x": ["t"], "y": ["t"]}
    before = share({"t": 5}, topics, {"x": "i1", "y": "i2"})
    after = share({"t": 5}, topics, {"x": "i2", "y": "i1"})
    assert (before["x"], before["y"]) == (after["y"], after["x"])


@every_case("case", vectors.load("roundrobin"), lambda case: case["id"])
def test_same_answer_as_kafka(case: dict[str, Any]) -> None:
    got = vectors.by_topic(assign(vectors.metadata(case), vectors.subscriptions(case)))
    assert got == {member: case["assignment"].get(member, {}) for member in got}
