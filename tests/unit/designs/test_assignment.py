"""What each consumer of design 1 computes for itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.designs.rules.assignment import CannotAssign, View, assign_range, assign_roundrobin
from partita.designs.rules.nodes import (
    Registration,
    broker_json,
    java_hash,
    partitions_in,
    registration_in,
    registration_json,
    slot_of,
    topic_json,
)


def view(partitions: dict[str, int], **streams: dict[str, int]) -> View:
    return View({name: Registration(its) for name, its in streams.items()}, partitions)


@pytest.mark.case("GC-W06")
def test_range_gives_the_first_streams_one_more() -> None:
    seen = assign_range(view({"t": 5}, a={"t": 2}, b={"t": 2}))
    shares = {thread: [p for (_, p), its in sorted(seen.items()) if its == thread] for thread in seen.values()}
    assert shares == {"a-0": [0, 1], "a-1": [2], "b-0": [3], "b-1": [4]}


def test_streams_are_ordered_as_text() -> None:
    seen = assign_range(view({"t": 11}, a={"t": 11}))
    assert [seen["t", number] for number in range(4)] == ["a-0", "a-1", "a-10", "a-2"]


@pytest.mark.case("GC-W07")
@pytest.mark.parametrize("b", [{"t": 1}, {"t": 1, "u": 2}, {"u": 1}])
def test_round_robin_refuses_streams_that_differ_between_topics(b: dict[str, int]) -> None:
    with pytest.raises(CannotAssign):
        assign_roundrobin(view({"t": 3, "u": 3}, a={"t": 1, "u": 1}, b=b))


def test_round_robin_deals_in_the_order_of_javas_hash() -> None:
    partitions = [("t", number) for number in range(6)]
    ordered = sorted(partitions, key=lambda p: java_hash(f"[{p[0]},{p[1]}]"))
    seen = assign_roundrobin(view({"t": 6}, a={"t": 1}, b={"t": 1}))
    assert [seen[partition] for partition in ordered] == ["a-0", "b-0"] * 3


@given(st.integers(0, 60), st.dictionaries(st.text("abcdef", min_size=1, max_size=3), st.integers(1, 3), max_size=8))
def test_every_partition_has_one_stream_and_shares_differ_by_one(count: int, streams: dict[str, int]) -> None:
    members = {name: Registration({"t": its}) for name, its in streams.items()}
    for assign in (assign_range, assign_roundrobin):
        seen = assign(View(members, {"t": count}))
        assert len(seen) == (count if streams else 0)
        shares = [list(seen.values()).count(thread) for thread in View(members, {}).threads("t")]
        assert not shares or max(shares) - min(shares) <= 1


@pytest.mark.parametrize(
    ("text", "value"), [("", 0), ("a", 97), ("hello", 99162322), ("polygenelubricants", -2147483648)]
)
def test_a_text_has_the_hash_that_java_gives_it(text: str, value: int) -> None:
    assert java_hash(text) == value


def test_groups_are_spread_over_the_slots() -> None:
    assert len({slot_of(f"group-{number}") for number in range(500)}) == 50


def test_the_content_of_nodes_can_be_read_back() -> None:
    assert registration_in(registration_json(Registration({"t": 2}), 5)) == Registration({"t": 2})
    assert partitions_in(topic_json([0, 1, 0])) == 3
    assert broker_json("h", 1, 2) == '{"jmx_port":-1,"timestamp":"2","host":"h","version":1,"port":1}'
