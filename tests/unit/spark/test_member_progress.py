"""Where a member of a group goes on when the group gives its partitions back one by one (spark.md 4.5)."""

from __future__ import annotations

from collections.abc import Mapping

from partita.spark.planning.lookups import Committed
from partita.spark.planning.member_progress import MemberProgress
from partita.spark.planning.membership import Holding, Refusal
from partita.spark.planning.offsets import Range, StreamOffset
from partita.spark.settings.options import parse_source
from partita.spark.settings.positions import TopicPartition
from support.clock import ManualClock
from support.spark.cluster import MemoryCluster

A0, A1 = ("a", 0), ("a", 1)
OPTIONS = {"kafka.bootstrap.servers": "h:1", "subscribe": "a", "group": "g", "groupMode": "member", "queryName": "q"}


class Gives:
    """A group that gives what the test says, one answer after the other."""

    def __init__(self, *answers: set[TopicPartition]) -> None:
        self.answers = list(answers)
        self.committed: dict[TopicPartition, int] = {}

    def take_part(self) -> Holding:
        held = self.answers.pop(0)
        return Holding(dict.fromkeys(held, len(self.answers)), generation=5)

    def commit(self, offsets: Mapping[TopicPartition, Committed]) -> tuple[Refusal, ...]:
        self.committed |= {key: at.offset for key, at in offsets.items()}
        return ()

    def leave(self) -> None:
        raise AssertionError("nobody asked to leave")


def progress(group: Gives) -> MemberProgress:
    cluster = MemoryCluster()
    cluster.create("a", 40, 40)
    return MemberProgress(parse_source(OPTIONS), cluster, group, ManualClock(), lambda text: None)


def test_a_partition_that_comes_late_after_a_restart_goes_on_where_the_checkpoint_knows_it() -> None:
    """Without a barrier a restarted query can hold one partition before the other: its batch is not read again."""
    group = Gives({A0}, {A0, A1})
    run = progress(group)
    checkpoint = StreamOffset({A0: Range(10, 20), A1: Range(10, 20)}, ordinal=3)
    first = run.resume(checkpoint)
    assert first.ranges == {A0: Range(20, 20)}
    second = run.resume(first)
    assert {key: r.end for key, r in second.ranges.items()} == {A0: 20, A1: 20}
    assert group.committed == {A0: 20, A1: 20}


def test_what_the_checkpoint_knew_counts_once_only() -> None:
    """A partition that went to others and comes back goes on where the group stands."""
    group = Gives({A0, A1}, {A0}, {A0, A1})
    run = progress(group)
    offset = run.resume(StreamOffset({A0: Range(10, 20), A1: Range(10, 20)}, ordinal=3))
    offset = run.resume(offset)
    assert A1 not in offset.ranges
    offset = run.resume(offset)
    assert A1 not in offset.ranges, "the group has no offset, so the start policy decides, not the checkpoint"
