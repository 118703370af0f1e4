"""A query that shares a group with other consumers: readable partitions, their positions, and commits.

Everything happens between two batches, in this order: commit the proven progress of the last batch, while its
partitions are still held; poll the group, which may take partitions and give others; find where the new ones go on. So
a partition never changes hands with a batch of it under way, unless the batch outlasts max.poll.interval.ms; then its
commit is refused, counted, and the next owner reads from the last commit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from partita.now import Clock
from partita.spark.planning.group_progress import MARK, CommitPause, KnownTopics, is_news, query_key, still_there
from partita.spark.planning.lookups import CommitRefused, Committed, Lookups
from partita.spark.planning.membership import Holding, Membership
from partita.spark.planning.offsets import Range, StreamOffset, names
from partita.spark.planning.starts import ClusterView
from partita.spark.settings.options import MemberOptions, SourceOptions
from partita.spark.settings.positions import TopicPartition


@dataclass(frozen=True, slots=True)
class Place:
    """Position of a held partition: everything before `end` is done, by this query or by an earlier owner."""

    end: int
    leader_epoch: int = -1


def place_of(found: Committed | None, have: Range | None, *, is_ours: bool, group_decides: bool) -> Place | None:
    """Return where a partition that was just gained goes on; None when neither the group nor the checkpoint knows it.

    `found` is the group's offset, `have` the range of the newest batch in the checkpoint. The one that is further
    wins. With the group as authority its offset wins, unless it is one of ours below the checkpoint: the query crashed
    between Spark's commit and the group's.
    """
    if is_ours and found is not None and have is not None and found.leader_epoch < have.leader_epoch:
        found = None  # from before the log was truncated
    if found is not None and (have is None or found.offset >= have.end or (group_decides and not is_ours)):
        return Place(found.offset, found.leader_epoch)
    return None if have is None else Place(have.end, have.leader_epoch)


class MemberProgress:
    """The group's side of one run of a query with groupMode=member."""

    def __init__(
        self,
        options: SourceOptions,
        lookups: Lookups,
        membership: Membership,
        clock: Clock,
        remark: Callable[[str], None],
    ) -> None:
        self._options = options
        self._member = options.member or MemberOptions()
        self._group = options.group or ""
        self._lookups = lookups
        self._membership = membership
        self._clock = clock
        self._remark = remark
        self._prefix = f"{MARK}{query_key(options)}:"
        self._held = Holding(is_settled=False)
        self._placed: dict[TopicPartition, int] = {}
        self._places: dict[TopicPartition, Place] = {}
        self._group_has: dict[TopicPartition, Committed] = {}
        self._starts: Mapping[TopicPartition, Range] = {}
        self._inherited: dict[TopicPartition, Range] | None = None
        """The checkpoint's ranges when this run began, each until its partition is held for the first time."""
        self._planned: tuple[StreamOffset, int] | None = None
        self._pause = CommitPause(clock)
        self._topics = KnownTopics()
        self._has_left = False
        self.failed_commits = 0
        self.fenced_commits = 0

    def begin(self, initial: StreamOffset) -> StreamOffset:
        """Begin a query without checkpoint at `initial`; it holds nothing yet."""
        self._starts = initial.ranges
        return StreamOffset({})

    def committed(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return nothing: the position of a partition is looked up when it is gained."""
        return {}

    def resume(self, start: StreamOffset) -> StreamOffset:
        """Commit the progress that `start` proves, poll the group, and return the position of each held partition."""
        if self._inherited is None:
            self._inherited = dict(start.ranges)
        self._prove(start)
        recreated = self._topics.recreated(start)
        self._group_has = {key: c for key, c in self._group_has.items() if key[0] not in recreated}
        self._commit(start)
        self._take_part()
        self._place_new(start)
        self._commit(start)
        ranges = {key: Range(at.end, at.end, at.leader_epoch) for key, at in self._places.items()}
        return replace(start, ranges=ranges, member_epoch=self._held.generation)

    def commit(self, proven: StreamOffset) -> None:
        """Do nothing: `resume` has committed."""

    def finished(self, end: StreamOffset) -> None:
        """Do nothing: Spark's call comes one batch late, and partitions may have moved since."""

    def visible(self, view: ClusterView) -> ClusterView:
        """The part of the cluster that this query may read now."""
        held = self._held.tenures if self._held.is_settled else {}
        return replace(view, partitions={key: facts for key, facts in view.partitions.items() if key in held})

    def planned(self, end: StreamOffset) -> None:
        """A batch that ends here was handed to Spark: when it asks for the next one, that batch is complete."""
        self._planned = (end, self._clock.now().mono_ms)

    def replayed(self, end: StreamOffset) -> StreamOffset:
        """Return the ranges of a logged batch to read, when it may have been planned by an earlier run.

        All of it, unless onReplayLost=skip leaves out offsets that other members have committed meanwhile.
        """
        if self._planned is not None and self._planned[0] == end:
            return end
        self._take_part()
        if not self._member.skips_lost_replay:
            return end
        found = self._lookups.committed(self._group, sorted(end.ranges))
        kept = {
            key: replace(r, begin=min(r.end, max(r.begin, found[key].offset))) if key in found else r
            for key, r in end.ranges.items()
        }
        skipped = sum(end.ranges[key].size - r.size for key, r in kept.items())
        if skipped:
            self._remark(f"onReplayLost=skip: the replayed batch leaves out {skipped} offsets that the group has done")
        return replace(end, ranges=kept)

    def ended(self) -> None:
        """An AvailableNow run has reached its end."""
        if self._member.leaves_on_stop is not False and not self._has_left:
            self._has_left = True
            self._membership.leave()

    def _take_part(self) -> None:
        if not self._has_left:
            self._held = self._membership.take_part()
        gone = [key for key, tenure in self._placed.items() if self._held.tenures.get(key) != tenure]
        for key in gone:
            del self._placed[key]
            self._places.pop(key, None)

    def _prove(self, start: StreamOffset) -> None:
        """The batch planned last is complete once Spark asks for one that starts at its end."""
        planned, self._planned = self._planned, None
        if planned is None or planned[0] != start:
            return
        took_ms = self._clock.now().mono_ms - planned[1]
        if took_ms > self._options.max_poll_interval_ms // 2:
            self._remark(
                f"a batch took {took_ms} ms, more than half of kafka.max.poll.interval.ms="
                f"{self._options.max_poll_interval_ms}: a member that is silent for longer loses its partitions"
            )
        for key, r in start.ranges.items():
            if key in self._placed:
                self._places[key] = Place(r.end, r.leader_epoch)

    def _place_new(self, start: StreamOffset) -> None:
        """Find where partitions of a new tenure go on."""
        new = sorted(key for key in self._held.tenures if key not in self._placed)
        if not new or not self._held.is_settled:
            return
        found = self._lookups.committed(self._group, new)
        behind = []
        for key in new:
            inherited = None if self._inherited is None else self._inherited.pop(key, None)
            there, have = found.get(key), start.ranges.get(key, inherited)
            is_ours = there is not None and there.metadata.startswith(self._prefix)
            place = place_of(there, have, is_ours=is_ours, group_decides=self._options.group_decides)
            if place is None and key in self._starts:
                place = Place(self._starts[key].begin, self._starts[key].leader_epoch)
            if place is not None:
                self._places[key] = place
            self._placed[key] = self._held.tenures[key]
            self._group_has.pop(key, None)
            if there is not None:
                self._group_has[key] = there
            if there is not None and have is not None and there.offset < have.end and not is_ours:
                behind.append(f"{names([key])}: group {there.offset}, checkpoint {have.end}")
        if behind:
            follows = "group" if self._options.group_decides else "checkpoint"
            self._remark(f"the group is behind this query's checkpoint, the {follows} is followed: {'; '.join(behind)}")

    def _commit(self, start: StreamOffset) -> None:
        """Commit the ends of held partitions, unless the group has them. Fenced partitions are no longer held."""
        metadata = f"{self._prefix}{max(0, start.ordinal)}"
        ends = {key: Committed(place.end, place.leader_epoch, metadata) for key, place in self._places.items()}
        due = {key: end for key, end in ends.items() if is_news(end, self._group_has.get(key))}
        due = still_there(due, start, self._lookups)
        if not due or self._has_left or self._pause.holds_back(due):
            return
        refused: set[TopicPartition] = set()
        for refusal in self._membership.commit(due):
            refused |= refusal.partitions
            self.failed_commits += 1
            self.fenced_commits += refusal.is_fenced
            if self._options.commit_failure_fails:
                raise CommitRefused(refusal.reason)
            if refusal.is_fenced:
                self._lose(refusal.partitions)
            self._remark(
                f"group {self._group}: commit of {names(refusal.partitions)} refused ({self.failed_commits} so far, "
                f"{self.fenced_commits} because the partitions had moved): {refusal.reason}"
            )
        self._group_has.update({key: c for key, c in due.items() if key not in refused})
        if refused:
            self._pause.refused(due)
        else:
            self._pause.accepted()

    def _lose(self, partitions: Collection[TopicPartition]) -> None:
        """Drop these partitions: nothing of them is planned before the group assigns them again."""
        kept = {key: tenure for key, tenure in self._held.tenures.items() if key not in partitions}
        self._held = replace(self._held, tenures=kept)
        for key in partitions:
            self._placed.pop(key, None)
            self._places.pop(key, None)
