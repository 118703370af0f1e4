"""Who reads what in a design that runs: from what members tell to the words that are shown."""

from __future__ import annotations

import pytest

from partita.designs.journal import Fact
from partita.designs.ownership import Ownership, listed


def group(*members: str, partitions: int = 4) -> Ownership:
    found = Ownership(partitions)
    for number, member in enumerate(members):
        found.add(member, 100 + number)
    return found


def reading(member: str, *partitions: int, at_s: float = 0.0) -> Fact:
    return Fact(at_s, member, "reading", {"partitions": list(partitions)})


def test_every_change_is_told_once_and_the_whole_only_when_it_differs() -> None:
    found = group("a", "b")
    assert found.take([reading("a", 0, 1, 2, 3)]) == ["a reads 0-3", "  each of the 4 partitions has one reader"]
    assert found.take([reading("a", 0, 1, 2, 3)]) == []
    assert found.take([reading("a", 0, 1), reading("b", 2, 3)]) == [
        "a reads 0-1", "  nobody reads 2-3", "b reads 2-3", "  each of the 4 partitions has one reader",
    ]  # fmt: skip


def test_two_readers_are_named() -> None:
    found = group("a", "b")
    found.take([reading("a", 0, 1, 2, 3)])
    assert found.take([reading("b", 2)])[-1] == "  a and b both read 2"
    assert found.two_readers() == {2: ["a", "b"]}


def test_a_dead_member_reads_nothing_and_what_it_still_said_does_not_count() -> None:
    found = group("a", "b")
    found.take([reading("a", 0, 1), reading("b", 2, 3)])
    assert found.died("a") == ["a is dead", "  nobody reads 0-1"]
    assert found.died("a") == []
    assert found.take([reading("a", 0, 1)]) == []
    assert found.unread() == [0, 1]


def test_records_failures_and_the_last_word_are_counted_by_member() -> None:
    found = group("a")
    told = [
        Fact(1.0, "a", "read", {"ranges": [[0, 5, 9], [1, 0, 1]]}),
        Fact(2.0, "a", "failed", {"reason": "partition 1 and 0 more are owned by others"}),
        Fact(3.0, "a", "gave_up"),
        Fact(4.0, "stranger", "read", {"ranges": [[0, 0, 9]]}),
    ]
    assert [line.partition(":")[0] for line in found.take(told)] == ["a fails", "a gave up"]
    seen = found.members["a"]
    assert (seen.records, seen.failed, seen.heard_s) == (5, 1, 3.0)


@pytest.mark.parametrize(
    ("numbers", "text"), [([], "nothing"), ([3], "3"), ([2, 0, 1], "0-2"), ([0, 1, 3, 7, 8], "0-1, 3, 7-8")]
)
def test_numbers_are_listed_in_runs(numbers: list[int], text: str) -> None:
    assert listed(numbers) == text
