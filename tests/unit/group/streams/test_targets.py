"""Targets of large streams groups, computed beside the event loop; what a hand-over and a replay keep."""

from __future__ import annotations

from partita.group.contract import Job
from partita.group.coordinator import GroupCoordinator
from partita.group.notes import AssignorRaised, GroupEpochBumped, TargetComputed
from partita.group.requests import DeleteGroup
from partita.group.state.topology import Status
from partita.group.streams.target import ComputeTasks
from partita.group.streams.timers import OFFSETS_MOST
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.streams_group_heartbeat import StreamsTaskIds, StreamsTaskOffset
from support.group.streams import StreamsWorld, tasks

MANY = 600
"""Partitions of "t": more tasks than are assigned on the event loop."""


class LargeWorld(StreamsWorld):
    """Topic "t" is large; jobs wait for `release_jobs`, and `fails` is the outcome of those that fail."""

    def __init__(self, partitions: int = MANY, **options: object) -> None:
        super().__init__({"t": partitions}, **options)
        self.holds_jobs = True
        self.fails: Exception | None = None

    def run(self, job: Job) -> object:
        return self.fails or super().run(job)

    def targets(self) -> dict[str, int]:
        return {member: len(target.active) for member, target in self.streams.targets.items()}


def test_members_of_a_large_group_get_their_tasks_with_a_later_heartbeat() -> None:
    world = LargeWorld()
    joined = world.join_streams("a")
    [status] = joined.status or []
    assert (tasks(joined), status.status_code, len(world.held)) == ([], Status.ASSIGNMENT_DELAYED, 1)
    assert world.beat_streams("a", joined.member_epoch).status, "it is still being computed, and once only"
    assert len(world.held) == 1
    world.release_jobs()
    told = world.beat_streams("a", joined.member_epoch)
    assert (len(tasks(told) or ()), told.member_epoch, told.status) == (MANY, 2, [])
    assert (world.streams.state, world.held) == ("Stable", [])


def test_a_new_target_is_told_with_the_partitions_that_its_tasks_read() -> None:
    for partitions in (4, MANY):
        world = LargeWorld(partitions)
        world.join_streams("a")
        world.release_jobs()
        world.join_streams("b", "q")
        if world.held:
            world.release_jobs()
            world.beat_streams("b", world.streams.members["b"].epoch)
            world.release_jobs()
        notes = [note for step in world.steps for note in step.notes]
        told = notes.pop()
        assert isinstance(told, TargetComputed)
        assert isinstance(notes.pop(), GroupEpochBumped), "it comes first"
        assert (told.epoch, told.assignor, told.members, told.moved) == (3, "sticky", 2, partitions // 2)
        found = {held.member_id: held.partitions["t"] for held in told.held}
        assert sorted([*found["a"], *found["b"]]) == list(range(partitions))


def test_a_small_group_is_assigned_at_once() -> None:
    world = LargeWorld(partitions=400)
    assert len(tasks(world.join_streams("a")) or ()) == 400
    assert not world.held


def test_the_first_target_of_a_large_group_is_computed_beside_the_loop_after_the_delay() -> None:
    world = LargeWorld(group_streams_initial_rebalance_delay_ms=3_000)
    world.join_streams("a")
    assert not world.held
    world.wait(3_000)
    assert len(world.held) == 1
    world.release_jobs()
    assert world.targets() == {"a": MANY}


def test_a_target_that_comes_late_counts_for_those_who_are_still_there() -> None:
    world = LargeWorld()
    world.join_streams("a")
    world.join_streams("b", "q")
    world.release_jobs()
    assert (world.targets(), world.streams.assignment_epoch, world.streams.epoch) == ({"a": MANY, "b": 0}, 2, 3)
    world.beat_streams("b", world.streams.members["b"].epoch)
    world.beat_streams("a", -1)
    world.release_jobs()
    assert (world.targets(), world.streams.assignment_epoch) == ({"b": MANY // 2}, 3)
    world.beat_streams("b", world.streams.members["b"].epoch)
    world.release_jobs()
    assert world.targets() == {"b": MANY}


def test_a_target_for_topics_of_before_does_not_count() -> None:
    world = LargeWorld()
    world.join_streams("a")
    world.put("t", 2 * MANY)
    world.beat_streams("a", world.streams.members["a"].epoch)
    world.release_jobs()
    assert (world.targets(), world.streams.assignment_epoch) == ({}, 1)
    world.beat_streams("a", world.streams.members["a"].epoch)
    world.release_jobs()
    assert world.targets() == {"a": 2 * MANY}


def test_a_target_for_a_group_that_is_another_by_now_does_not_count() -> None:
    world = LargeWorld()
    world.join_streams("a")
    (late,) = world.held
    assert isinstance(late, ComputeTasks)
    world.held.clear()
    world.beat_streams("a", -1)
    world.ask(DeleteGroup("g"))
    world.take(world.coordinator.job_done(late, late.run(), world.clock.now()))
    assert world.coordinator.hard_state.streams_groups == {}
    world.join_streams("b")
    (due,) = world.held
    world.held = [late]
    world.release_jobs()
    assert (world.targets(), world.streams.assignment_epoch) == ({}, 1)
    world.beat_streams("b", world.streams.members["b"].epoch)
    assert not world.held, "its own is still being computed"
    world.held = [due]
    world.release_jobs()
    assert world.targets() == {"b": MANY}


def test_a_static_member_that_comes_back_meanwhile_gets_what_was_computed_for_it() -> None:
    world = LargeWorld()
    world.join_streams("a", instance_id="i")
    world.beat_streams("a", -2, instance_id="i")
    world.join_streams("b", instance_id="i")
    world.release_jobs()
    assert world.targets() == {"b": MANY}


def test_a_computation_that_fails_is_tried_again_later() -> None:
    world = LargeWorld()
    world.join_streams("a")
    world.fails = TimeoutError("too slow")
    world.release_jobs()
    [note] = [note for note in world.steps[-1].notes if isinstance(note, AssignorRaised)]
    assert (note.assignor, note.error) == ("sticky", "too slow")
    world.fails = None
    world.beat_streams("a", world.streams.members["a"].epoch)
    assert not world.held
    world.wait(5_000)
    world.beat_streams("a", world.streams.members["a"].epoch)
    world.release_jobs()
    assert world.targets() == {"a": MANY}


def test_targets_that_are_too_large_for_the_log_are_tried_again_later() -> None:
    world = LargeWorld(max_message_bytes=1_000)
    world.join_streams("a")
    world.release_jobs()
    assert [type(note) for note in world.steps[-1].notes] == [AssignorRaised]
    assert world.targets() == {}


def test_a_clean_hand_over_does_not_extend_sessions() -> None:
    world = StreamsWorld()
    world.join_streams("a")
    world.wait(40_000)
    given = world.coordinator.handover(world.clock.now())
    heir = GroupCoordinator(world.config, str, topics=world.topics)
    for record in world.log:
        heir.replay(record)
    heir.resume(world.clock.now(), given)
    assert given.silences == {("g", "a"): 40_000}
    assert heir.next_deadline_ms() == world.clock.now().mono_ms + 5_000


def test_members_that_name_no_process_share_one_without_a_name() -> None:
    world = StreamsWorld()
    world.join_streams("a", process=None)
    joined = world.join_streams("b", process=None)
    assert (tasks(joined), world.described_streams().members[0].process_id) == ([], "")
    kept = tasks(world.beat_streams("a", 2)) or []
    assert tasks(world.beat_streams("b", 3)) is None, "a has not said that it gave the task up"
    reported = [StreamsTaskIds(subtopology_id="0", partitions=kept)]
    world.beat_streams("a", 2, active_tasks=reported, standby_tasks=[], warmup_tasks=[])
    assert len(tasks(world.beat_streams("b", 3)) or ()) == 3 - len(kept)


def test_offsets_of_ever_more_tasks_are_not_kept() -> None:
    world = StreamsWorld()
    world.join_streams("a")
    offsets = [StreamsTaskOffset(subtopology_id="0", partition=n, offset=n) for n in range(OFFSETS_MOST + 5)]
    assert world.beat_streams("a", 2, task_offsets=offsets).error_code == ErrorCode.NONE
    (member,) = world.described_streams().members
    assert len(member.task_offsets) == OFFSETS_MOST
