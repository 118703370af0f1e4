"""What one member of a large group costs does not grow with the group: other groups wait for nobody."""

from __future__ import annotations

from typing import Any

import pytest

from partita.group.consumer_group.leaving import AT_ONCE
from partita.group.consumer_group.outcomes import RETRY_MS
from partita.group.notes import AssignorRaised
from partita.group.state.topics import TopicFacts
from partita.protocol.error_codes import ErrorCode
from support.group.consumers import World, error

TOPICS = 500


class Looks:
    """Counts how often the topics are looked at."""

    def __init__(self, world: World, patched: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._get = world.topics.get
        patched.setattr(world.topics, "get", self.get)

    def get(self, name: str) -> TopicFacts | None:
        self.count += 1
        return self._get(name)


def by_regex(members: int, **options: Any) -> World:
    """Members of one regular expression that matches `TOPICS` topics, each of which has been told of it."""
    world = World({f"big-{number}": 5 for number in range(TOPICS)}, **options)
    for number in range(members):
        world.join(f"m{number}", None, regex="big-.*")
    return world


def test_members_that_come_and_go_look_at_no_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 5,000 joins took 5 ms with a thousand topics."""
    world = by_regex(3, group_consumer_assignment_interval_ms=100_000)
    looks, epoch = Looks(world, monkeypatch), world.group.epoch
    world.join("late", None, regex="big-.*")
    world.go_on("m1")
    world.beat("late", -1)
    assert (world.group.epoch, looks.count) == (epoch + 2, 0)


def test_a_member_that_changes_what_the_group_subscribes_to_is_noticed_all_the_same() -> None:
    world = World({"a": 1, "b": 1})
    world.join("m", ["a"])
    world.join("n", ["a"])
    known = world.group.metadata_hash
    world.beat("n", -1)
    assert world.group.metadata_hash == known
    world.join("n", ["b"])
    both = world.group.metadata_hash
    world.beat("m", -1)
    assert len({known, both, world.group.metadata_hash, 0}) == 4


def test_nobody_prepares_a_target_while_one_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the assignor is asked was put together by every heartbeat meanwhile, and thrown away."""
    world = by_regex(3)
    world.holds_jobs = True
    world.wait(1)
    world.join("late", None, regex="big-.*")
    assert len(world.held) == 1
    looks = Looks(world, monkeypatch)
    for member in ("m0", "m1", "m2"):
        world.go_on(member)
    assert (len(world.held), looks.count) == (1, 0)
    world.release_jobs()
    assert world.group.assignment_epoch == world.group.epoch


def test_many_sessions_that_end_at_once_are_dealt_with_in_steps() -> None:
    world = World({"t": 4}, group_consumer_assignment_interval_ms=100_000)
    members = 2 * AT_ONCE + 50
    world.check = lambda: None  # type: ignore[method-assign]  # it replays the whole log at every step
    for number in range(members):
        world.join(f"a-member-with-a-long-id-{number}")
    steps = [step for step in world.wait(46_000) if step.records]
    assert len(steps) > 1
    assert max(len(step.records) for step in steps) < 4 * members
    assert not world.group.members
    world.reload()
    assert not world.group.members


def test_a_target_that_no_batch_can_hold_is_told_and_tried_again_later() -> None:
    world = World({"t": 3_000}, max_message_bytes=1_000)
    world.join("m")
    (note,) = [note for step in world.steps for note in step.notes if isinstance(note, AssignorRaised)]
    assert "as one batch" in note.error
    world.go_on("m")
    assert world.group.assignment_epoch < world.group.epoch
    world.wait(RETRY_MS)
    assert error(world.go_on("m")) == ErrorCode.NONE
    assert len([note for step in world.steps for note in step.notes if isinstance(note, AssignorRaised)]) == 2
