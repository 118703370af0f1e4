from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from partita.assignors.interface import Subscription, TopicMetadata
from partita.assignors.range import assign
from support.every_case import every_case
from support.vectors import assignors as vectors

RACKS = ("a", "b", "c")


def share(
    counts: Mapping[str, int],
    topics_of: Mapping[str, Sequence[str]],
    *,
    instances: Mapping[str, str] | None = None,
    racks: Mapping[str, Sequence[Sequence[str | None]]] | None = None,
    member_racks: Mapping[str, str] | None = None,
) -> dict[str, str]:
    subscriptions = {
        member: Subscription(
            topics, group_instance_id=(instances or {}).get(member), rack_id=(member_racks or {}).get(member)
        )
        for member, topics in topics_of.items()
    }
    assignment = assign(TopicMetadata(counts, racks or {}), subscriptions)
    return {member: " ".join(f"{t}-{p}" for t, p in partitions) for member, partitions in assignment.items()}


@pytest.mark.case("CC-089")
@pytest.mark.parametrize(
    ("counts", "topics_of", "expected"),
    [
        (
            {"t0": 3, "t1": 3},
            {"C0": ["t0", "t1"], "C1": ["t0", "t1"]},
            {"C0": "t0-0 t0-1 t1-0 t1-1", "C1": "t0-2 t1-2"},
        ),
        (
            {"a": 7, "b": 4},
            {"m1": ["a", "b"], "m2": ["a"], "m3": ["a", "b"]},
            {"m1": "a-0 a-1 a-2 b-0 b-1", "m2": "a-3 a-4", "m3": "a-5 a-6 b-2 b-3"},
        ),
    ],
)
def test_each_topic_is_cut_into_runs(
    counts: dict[str, int], topics_of: dict[str, list[str]], expected: dict[str, str]
) -> None:
    assert share(counts, topics_of) == expected


@pytest.mark.case("CC-091")
def test_a_topic_without_metadata_is_skipped_and_every_member_has_an_entry() -> None:
    assert share({}, {"A": ["gone"], "B": []}) == {"A": "", "B": ""}


@pytest.mark.case("CC-092")
def test_members_beyond_the_partition_count_get_nothing() -> None:
    got = share({"t1": 2, "t2": 2}, dict.fromkeys("ABC", ("t1", "t2")))
    assert got == {"A": "t1-0 t2-0", "B": "t1-1 t2-1", "C": ""}


@pytest.mark.case("CC-089")
def test_static_members_come_before_dynamic_ones() -> None:
    got = share(
        {"t1": 3, "t2": 3},
        {"consumer-b": ["t1", "t2"], "consumer-a": ["t1", "t2"]},
        instances={"consumer-b": "instance1"},
    )
    assert got == {"consumer-b": "t1-0 t1-1 t2-0 t2-1", "consumer-a": "t1-2 t2-2"}


@pytest.mark.case("CC-089")
def test_three_static_and_one_dynamic_member() -> None:
    got = share(
        {"t1": 5, "t2": 4},
        dict.fromkeys(("m4", "m3", "m2", "m1"), ("t1", "t2")),
        instances={"m1": "i1", "m2": "i2", "m3": "i3"},
    )
    assert got == {"m1": "t1-0 t1-1 t2-0", "m2": "t1-2 t2-1", "m3": "t1-3 t2-2", "m4": "t1-4 t2-3"}


@pytest.mark.case("CC-093")
def test_swapped_member_ids_leave_static_assignments_alone() -> None:
    topics = {"x": ["t"], "y": ["t"]}
    before = share({"t": 5}, topics, instances={"x": "i1", "y": "i2"})
    after = share({"t": 5}, topics, instances={"x": "i2", "y": "i1"})
    assert (before["x"], before["y"]) == (after["y"], after["x"])


def one_rack_each(counts: Mapping[str, int]) -> dict[str, list[list[str]]]:
    place = iter(range(sum(counts.values())))
    return {topic: [[RACKS[next(place) % 3]] for _ in range(count)] for topic, count in counts.items()}


@pytest.mark.case("CC-094")
def test_partitions_go_to_a_member_on_their_rack_within_the_same_quota() -> None:
    counts = {"t1": 6, "t2": 7, "t3": 2}
    members = dict.fromkeys(("m1", "m2", "m3"), tuple(counts))
    member_racks = dict(zip(members, RACKS, strict=True))
    near = share(counts, members, racks=one_rack_each(counts), member_racks=member_racks)
    assert near == {
        "m1": "t1-0 t1-3 t2-0 t2-3 t2-6",
        "m2": "t1-1 t1-4 t2-1 t2-4 t3-0",
        "m3": "t1-2 t1-5 t2-2 t2-5 t3-1",
    }


@pytest.mark.case("CC-094")
@pytest.mark.parametrize("everywhere", [True, False])
def test_without_racks_or_with_replicas_on_all_of_them_range_is_plain(everywhere: bool) -> None:
    counts = {"t1": 6, "t2": 7, "t3": 2}
    members = dict.fromkeys(("m1", "m2", "m3"), tuple(counts))
    racks = {topic: [list(RACKS)] * count for topic, count in counts.items()} if everywhere else {}
    plain = share(counts, members, racks=racks, member_racks=dict(zip(members, RACKS, strict=True)))
    assert plain == {
        "m1": "t1-0 t1-1 t2-0 t2-1 t2-2 t3-0",
        "m2": "t1-2 t1-3 t2-3 t2-4 t3-1",
        "m3": "t1-4 t1-5 t2-5 t2-6",
    }


@every_case("case", vectors.load("range"), lambda case: case["id"])
def test_same_answer_as_kafka(case: dict[str, Any]) -> None:
    got = vectors.by_topic(assign(vectors.metadata(case), vectors.subscriptions(case)))
    assert got == {member: case["assignment"].get(member, {}) for member in got}
