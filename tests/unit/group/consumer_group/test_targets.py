"""Which assignor shares, what it is told, and what happens when it fails."""

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from partita.assignors.interface import Assignment, Assignor, Subscription, TopicMetadata
from partita.assignors.server_side import create_server_assignors
from partita.group.consumer_group.target import ComputeTarget
from partita.group.notes import AssignorRaised, TargetComputed
from partita.group.requests import DeleteGroup
from partita.protocol.error_codes import ErrorCode
from support.group.consumers import World, error


class Greedy(Assignor):
    """Gives everything to the last member, or fails as told."""

    name: ClassVar[str] = "greedy"

    def __init__(self) -> None:
        self.fails: Exception | None = None
        self.answer: Assignment | None = None
        self.asked: list[tuple[TopicMetadata, Mapping[str, Subscription]]] = []

    def assign(self, metadata: TopicMetadata, subscriptions: Mapping[str, Subscription]) -> Assignment:
        self.asked.append((metadata, subscriptions))
        if self.fails is not None:
            raise self.fails
        if self.answer is not None:
            return self.answer
        everything = [(name, number) for name, count in metadata.partition_counts.items() for number in range(count)]
        return {max(subscriptions): everything}


def greedy_world() -> tuple[World, Greedy]:
    greedy = Greedy()
    return World({"t": 2}, assignors=create_server_assignors(["uniform", "range"], [greedy])), greedy


@pytest.mark.case("GC-T30")
def test_the_assignor_that_most_members_prefer_shares_and_the_first_one_when_nobody_does() -> None:
    world = World({"t": 4})
    world.join("a")
    assert world.describe().assignor_name == "uniform"
    world.join("b", assignor="range")
    world.join("c", assignor="range")
    world.join("d", assignor="uniform")
    assert world.describe().assignor_name == "range"
    assert [note.assignor for step in world.steps for note in step.notes if isinstance(note, TargetComputed)] == [
        "uniform", "range", "range", "range",
    ]  # fmt: skip


def test_another_preferred_assignor_is_a_new_epoch_though_the_subscription_stays() -> None:
    world = World({"t": 4})
    world.join("a")
    world.go_on("a", assignor="uniform")
    assert world.group.epoch == 2, "nobody preferred another before: uniform is the broker's first"
    assert world.go_on("a", assignor="range").member_epoch == 3
    assert world.describe().assignor_name == "range"
    world.join("b", topics=[], assignor="range")
    assert world.group.epoch == 3, "one vote more for the same assignor"


@pytest.mark.case("GC-T31", "GC-T51")
def test_range_gives_neighbours_static_members_first() -> None:
    world = World({"t": 7}, group_consumer_assignors=("range",))
    for name in ("b", "a"):
        world.join(name)
    world.join("z", instance="i")
    world.settle()
    assert [world.has(name) for name in "zab"] == [{"t": [0, 1, 2]}, {"t": [3, 4]}, {"t": [5, 6]}]


@pytest.mark.case("GC-T34")
def test_an_assignor_of_ours_that_fails_changes_nothing_and_the_heartbeat_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World({"t": 2})
    world.join("a")
    written = list(world.log)

    def fail(*_: object) -> Assignment:
        raise RuntimeError("no way")

    monkeypatch.setattr("partita.assignors.server_side.UniformAssignor.assign", fail)
    assert error(world.join("b")) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.log == written
    assert world.group.epoch == 2


def test_a_users_assignor_runs_beside_the_loop_and_its_target_comes_with_a_later_heartbeat() -> None:
    world, greedy = greedy_world()
    world.holds_jobs = True
    answer = world.join("a", assignor="greedy", rack="r1")
    assert (answer.member_epoch, world.has("a"), world.group.assignment_epoch) == (1, {}, 1)
    world.go_on("a")
    assert len(world.held) == 1
    world.release_jobs()
    world.go_on("a", {})
    assert (world.has("a"), world.group.assignment_epoch) == ({"t": [0, 1]}, 2)
    (metadata, subscriptions) = greedy.asked[0]
    assert (metadata.partition_counts, subscriptions["a"].rack_id) == ({"t": 2}, "r1")


@pytest.mark.parametrize(
    "answer",
    [
        {"a": [("t", 2)]},
        {"a": [("u", 0)]},
        {"a": [("t", 0)], "b": [("t", 0)]},
        {"a": [("t", 0), ("t", 1)], "stranger": []},
        {"a": [("t", 0)]},
        {},
    ],
    ids=["no such partition", "not subscribed", "given twice", "a stranger", "one forgotten", "all forgotten"],
)
def test_what_a_users_assignor_must_not_give_is_told_and_the_group_keeps_its_target(answer: Assignment) -> None:
    world, greedy = greedy_world()
    world.join("a", assignor="greedy")
    greedy.answer = answer
    world.join("b", assignor="greedy")
    (note,) = [note for step in world.steps for note in step.notes if isinstance(note, AssignorRaised)]
    assert note.assignor == "greedy"
    assert "greedy gave" in note.error
    assert error(world.go_on("a", {"t": [0, 1]})) == ErrorCode.NONE
    assert (world.has("a"), world.group.assignment_epoch) == ({"t": [0, 1]}, 2)


@pytest.mark.parametrize("answer", [7, ["a"], {"a": 7}, {"a": ["t"]}, {"a": [("t", "x")]}], ids=repr)
def test_an_answer_of_another_shape_is_refused_in_words(answer: Any) -> None:
    """F4 of an audit: an AttributeError of ours said nothing."""
    world, greedy = greedy_world()
    greedy.answer = answer
    world.join("a", assignor="greedy")
    (note,) = [note for step in world.steps for note in step.notes if isinstance(note, AssignorRaised)]
    assert note.error.startswith("greedy has to return a dict from member ids to lists of (topic, partition): ")


def test_the_words_of_a_users_assignor_stay_on_one_line_of_the_log() -> None:
    """F4 of an audit: a newline wrote a line of its own."""
    world, greedy = greedy_world()
    greedy.fails = ValueError("no\nERROR all is lost \x1b[2J" + "x" * 5_000)
    world.join("a", assignor="greedy")
    (note,) = [note for step in world.steps for note in step.notes if isinstance(note, AssignorRaised)]
    assert note.error.startswith("ValueError: no\\nERROR all is lost \\x1b[2Jxxx")
    assert len(note.error) < 1_100


def test_a_users_assignor_that_raises_stops_nobody_and_may_do_better_later() -> None:
    world, greedy = greedy_world()
    greedy.fails = ZeroDivisionError("division by zero")
    assert error(world.join("a", assignor="greedy")) == ErrorCode.NONE
    (note,) = [note for step in world.steps for note in step.notes if isinstance(note, AssignorRaised)]
    assert note.error == "ZeroDivisionError: division by zero"
    world.go_on("a")
    assert len(greedy.asked) == 1
    greedy.fails = None
    world.wait(5_000)
    world.go_on("a")
    world.go_on("a", {})
    assert world.has("a") == {"t": [0, 1]}


def test_a_target_that_comes_late_counts_for_those_who_are_still_there() -> None:
    world, _ = greedy_world()
    world.holds_jobs = True
    world.join("a", assignor="greedy")
    world.join("b", assignor="greedy")
    world.beat("a", -1)
    world.join("c", assignor="greedy")
    world.release_jobs()
    assert set(world.group.targets) == {"b", "c"}
    world.holds_jobs = False
    world.settle()
    assert world.has("c") == {"t": [0, 1]}


def test_a_static_member_that_comes_back_meanwhile_gets_what_was_computed_for_it() -> None:
    """Its return begins no epoch, so no other target would follow, and nobody would have its partitions."""
    world, _ = greedy_world()
    world.holds_jobs = True
    world.join("z", assignor="greedy", instance="i")
    world.beat("z", -2, instance="i")
    world.join("y", assignor="greedy", instance="i")
    world.release_jobs()
    assert (world.group.epoch, world.group.assignment_epoch) == (2, 2)
    assert {member: len(target) for member, target in world.group.targets.items()} == {"y": 2}
    world.settle()
    assert world.has("y") == {"t": [0, 1]}


def test_a_target_for_a_group_that_is_another_by_now_does_not_count() -> None:
    world, _ = greedy_world()
    world.holds_jobs = True
    for member in ("a", "b", "c"):
        world.join(member, assignor="greedy")
    (late,) = world.held
    assert isinstance(late, ComputeTarget)
    world.held.clear()
    for member in ("a", "b", "c"):
        world.beat(member, -1)
    world.ask(DeleteGroup("g"))
    world.join("d", assignor="greedy")
    (due,) = world.held
    world.held.clear()
    world.held.append(late._replace(epoch=2))
    world.release_jobs()
    assert (world.group.epoch, world.group.assignment_epoch, world.group.targets) == (2, 1, {})
    world.held.append(late)
    world.release_jobs()
    assert (world.group.epoch, world.group.assignment_epoch, world.group.targets) == (2, 1, {})
    world.go_on("d")
    assert not world.held, "its own is still being computed"
    world.held.append(due)
    world.release_jobs()
    world.settle()
    assert world.has("d") == {"t": [0, 1]}
