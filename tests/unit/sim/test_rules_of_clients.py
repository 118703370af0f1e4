"""Each rule of what applications see is broken by a history that is wrong in just that way."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from partita.sim.rules.clients import ClientRules, Progress
from partita.sim.rules.rule import RuleBroken

TP = ("t", 0)


def breaks(rule: str, act: Callable[[], object]) -> None:
    with pytest.raises(RuleBroken) as broken:
        act()
    assert broken.value.rule == rule


def commit(offset: int, generation: int = 1) -> OffsetCommitRequest:
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequestTopic(name="t", partitions=[part])
    return OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=generation, member_id="m-a", topics=[topic])


def owner(*, members: tuple[str, ...] = ("m-a", "m-b"), read: int = 3) -> ClientRules:
    """Client "a" has the partition and has read its committed offset."""
    rules = ClientRules(lambda member_id: member_id in members)
    rules.assigned("a", [TP], "m-a", 1)
    rules.fetched_offset("a", TP, read)
    return rules


def test_a_right_history_breaks_nothing() -> None:
    rules = owner()
    rules.delivered("a", TP, range(3, 6))
    for offsets in ((0, 1, 2), (3, 4, 5)):
        rules.processed(TP, offsets)
    rules.commit_sent("a", commit(6))
    rules.given_up("a", [TP])
    rules.commit_sent("a", commit(6))  # what it had in that generation
    rules.assigned("b", [TP], "m-b", 2)
    rules.fetched_offset("b", TP, 6)
    rules.delivered("b", TP, [6])
    assert rules.owned_by("b") == [TP]
    assert not rules.zombie_overlaps


def test_s3_two_live_owners() -> None:
    breaks("S3", partial(owner().assigned, "b", [TP], "m-b", 2))


def test_s3_whoever_was_removed_and_let_in_again_is_a_zombie_until_it_hears_so() -> None:
    entries = {"m-a": 1, "m-b": 1}
    rules = ClientRules(lambda member_id: True, entries.__getitem__)
    rules.assigned("a", [TP], "m-a", 1)
    entries["m-a"] = 2
    rules.assigned("b", [TP], "m-b", 2)
    assert rules.zombie_overlaps == 1


def test_s3_a_zombie_may_overlap_with_its_successor() -> None:
    rules = owner(members=("m-b",))
    rules.assigned("b", [TP], "m-b", 2)
    assert rules.zombie_overlaps == 1


def test_a_killed_process_owns_nothing() -> None:
    rules = owner()
    rules.killed("a")
    rules.assigned("b", [TP], "m-b", 2)


def test_s32_a_commit_before_the_work_is_done() -> None:
    rules = owner()
    rules.delivered("a", TP, [3, 4])
    rules.processed(TP, [0, 1, 2, 3])
    rules.commit_sent("a", commit(4))
    breaks("S32", partial(rules.commit_sent, "a", commit(5)))


@pytest.mark.parametrize("offsets", [[3, 5], [3, 3], [3, 4, 3]], ids=["gap", "twice", "back"])
def test_s33_records_out_of_order(offsets: list[int]) -> None:
    breaks("S33", partial(owner().delivered, "a", TP, offsets))


@pytest.mark.parametrize(("read", "first"), [(3, 4), (3, 0), (-1, 1)])
def test_s34_a_start_elsewhere_than_at_the_committed_offset(read: int, first: int) -> None:
    breaks("S34", partial(owner(read=read).delivered, "a", TP, [first]))


def test_s34_a_start_without_asking() -> None:
    rules = ClientRules(lambda member_id: True)
    rules.assigned("a", [TP], "m-a", 1)
    breaks("S34", partial(rules.delivered, "a", TP, [0]))


def test_s34_an_offset_read_in_an_earlier_ownership_does_not_count() -> None:
    rules = owner()
    rules.given_up("a", [TP])
    rules.assigned("a", [TP], "m-a", 2)
    breaks("S34", partial(rules.delivered, "a", TP, [3]))


def test_s35_records_of_a_partition_that_was_given_up() -> None:
    rules = owner()
    rules.given_up("a", [TP])
    breaks("S35", partial(rules.delivered, "a", TP, [3]))


def test_s35_a_commit_of_a_partition_of_another_generation() -> None:
    rules = owner(read=0)
    rules.processed(TP, [0])
    rules.given_up("a", [TP])
    breaks("S35", partial(rules.commit_sent, "a", commit(1, generation=2)))


def test_a_commit_of_what_a_cooperative_member_revokes_as_a_generation_begins_is_right() -> None:
    """It is nobody else's before the next generation. A partition that was lost is another matter."""
    rules = owner(read=0)
    rules.processed(TP, [0])
    rules.given_up("a", [TP], ("m-a", 2))
    rules.commit_sent("a", commit(1, generation=2))
    breaks("S35", partial(rules.commit_sent, "a", commit(1, generation=3)))


def test_s36_a_partition_is_assigned_twice() -> None:
    breaks("S36", partial(owner().assigned, "a", [TP], "m-a", 2))


def test_s36_a_partition_is_given_up_twice() -> None:
    rules = owner()
    rules.given_up("a", [TP])
    breaks("S36", partial(rules.given_up, "a", [TP]))


def test_progress_is_what_is_done_without_a_gap() -> None:
    progress = Progress()
    for offset in (0, 2, 3, 0):
        progress.add(offset)
    assert (progress.upto, list(progress.beyond)) == (1, [2, 3])
    progress.add(1)
    assert (progress.upto, list(progress.beyond)) == (4, [])
