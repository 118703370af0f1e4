"""The offsets a stream commits to its group, and how a restart uses the offsets found there.

A position may be committed once Spark has the batch that ends there in its commit log, never earlier. The group is a
mirror that may lag behind the checkpoint but never leads it. Each commit carries the metadata
`spark:<query key>:<ordinal>`, by which a later run recognises its own commits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from partita.errors import GroupAuthorizationFailedError
from partita.now import Clock
from partita.spark.planning.lookups import CommitRefused, Committed, Lookups
from partita.spark.planning.offsets import StreamOffset, names
from partita.spark.planning.starts import ClusterView
from partita.spark.settings.options import SourceOptions, query_key_of
from partita.spark.settings.positions import TopicPartition

LEADER_EPOCH_MAX = 2**31 - 1
MARK = "spark:"
"""The metadata of every commit of a Spark query starts with this."""
COMMIT_PAUSE_MS, COMMIT_PAUSE_MAX_MS = 1_000, 60_000
"""An idle query asks every few milliseconds; a refused commit is repeated only after a growing pause."""


def query_key(options: SourceOptions) -> str:
    """The name of the query in the metadata of its commits; the same in every run."""
    return query_key_of(options.query_name, options.group, options.topics)


def is_news(end: Committed, known: Committed | None) -> bool:
    """Whether to commit this end: it is further, or in a newer leader epoch, whose log is shorter."""
    if known is None or end.offset > known.offset:
        return True
    return end.leader_epoch > known.leader_epoch and end.offset < known.offset


def still_there(
    due: dict[TopicPartition, Committed], proven: StreamOffset, lookups: Lookups
) -> dict[TopicPartition, Committed]:
    """Return the offsets without those of recreated topics: they would count for the new topic."""
    if not due:
        return due
    now = lookups.topic_ids(sorted({topic for topic, _ in due}))
    gone = {t for t, topic_id in now.items() if proven.topic_ids.get(t, topic_id) != topic_id}
    return {key: committed for key, committed in due.items() if key[0] not in gone}


class CommitBook:
    """Remembers the commits of this query and decides which are due.

    It lowers a value of its own only after the log was truncated or its topic recreated.
    """

    def __init__(self, key: str) -> None:
        self._prefix = f"{MARK}{key}:"
        self._ours: dict[TopicPartition, Committed] = {}
        self._topics = KnownTopics()

    def is_ours(self, found: Committed) -> bool:
        """Whether this query committed the offset, in this run or an earlier one."""
        return found.metadata.startswith(self._prefix)

    def learn(self, found: Mapping[TopicPartition, Committed]) -> None:
        """Record the group's offsets at the start of a run."""
        self._ours.update({key: c for key, c in found.items() if self.is_ours(c)})

    def due(self, proven: StreamOffset) -> dict[TopicPartition, Committed]:
        """Return the offsets to commit now that all before the ends of `proven` is complete; empty when none is."""
        recreated = self._topics.recreated(proven)
        self._ours = {key: ours for key, ours in self._ours.items() if key[0] not in recreated}
        metadata = f"{self._prefix}{max(0, proven.ordinal)}"
        ends = {key: Committed(r.end, r.leader_epoch, metadata) for key, r in proven.ranges.items()}
        return {key: end for key, end in ends.items() if is_news(end, self._ours.get(key))}

    def accepted(self, offsets: Mapping[TopicPartition, Committed]) -> None:
        """Record offsets that the broker accepted."""
        for key, committed in offsets.items():
            self._ours[key] = committed

    def follow(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Record positions set by another client that this run follows; they count as committed."""
        self._ours.update({key: Committed(offset, LEADER_EPOCH_MAX) for key, offset in offsets.items()})

    def resume(
        self, start: StreamOffset, found: Mapping[TopicPartition, Committed], *, group_decides: bool
    ) -> tuple[dict[TopicPartition, int], tuple[str, ...]]:
        """Return, after a restart, the positions that replace ends of `start`, and remarks for the log.

        With the checkpoint as authority nothing is replaced, and a foreign offset only leads to a remark. With the
        group as authority its offset counts, except for one of ours below `start`: the query crashed between Spark's
        commit and the group's.
        """
        replaced: dict[TopicPartition, int] = {}
        foreign: list[str] = []
        for key, have in sorted(start.ranges.items()):
            there = found.get(key)
            if there is None or there.offset == have.end:
                continue
            if self.is_ours(there) and (there.offset < have.end or there.leader_epoch < have.leader_epoch):
                continue
            if not self.is_ours(there):
                foreign.append(f"{names([key])}: group {there.offset}, checkpoint {have.end}")
            if group_decides:
                replaced[key] = there.offset
        follows = "the group is followed" if group_decides else "the checkpoint is followed"
        remarks = (
            (f"the group's offsets were set by somebody else, {follows}: {'; '.join(foreign)}",) if foreign else ()
        )
        return replaced, remarks


class KnownTopics:
    """The topics of a run by their ids: offsets of one that was deleted and recreated begin again."""

    def __init__(self) -> None:
        self._ids: dict[str, bytes] = {}

    def recreated(self, proven: StreamOffset) -> frozenset[str]:
        """The topics whose ids changed since the last call."""
        found = frozenset(t for t, topic_id in proven.topic_ids.items() if self._ids.get(t, topic_id) != topic_id)
        self._ids.update(proven.topic_ids)
        return found


class CommitPause:
    """Holds back a commit that was just refused, for a growing time; other offsets are tried at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._refused: Mapping[TopicPartition, Committed] = {}
        self._in_a_row = 0
        self._until_ms = 0

    def holds_back(self, due: Mapping[TopicPartition, Committed]) -> bool:
        """Whether these offsets have to wait."""
        return due == self._refused and self._clock.now().mono_ms < self._until_ms

    def refused(self, due: Mapping[TopicPartition, Committed]) -> None:
        """Record that these offsets were refused."""
        pause_ms = min(COMMIT_PAUSE_MS * 2 ** min(self._in_a_row, 10), COMMIT_PAUSE_MAX_MS)
        self._refused, self._until_ms = due, self._clock.now().mono_ms + pause_ms
        self._in_a_row += 1

    def accepted(self) -> None:
        """Record that the group accepts commits again."""
        self._in_a_row = 0


class GroupProgress:
    """The group's side of one run of a streaming query. Without groupMode=commit every method does nothing."""

    def __init__(self, options: SourceOptions, lookups: Lookups, clock: Clock, remark: Callable[[str], None]) -> None:
        self._options = options
        self._group = options.group or ""
        self._lookups = lookups
        self._remark = remark
        self._key = query_key(options)
        self._book = CommitBook(self._key)
        self._has_resumed = False
        self._unproven: StreamOffset | None = None
        self._replaced: tuple[StreamOffset, dict[TopicPartition, int]] | None = None
        self._starts: dict[TopicPartition, int | None] = {}
        self._pause = CommitPause(clock)
        self._commits = options.commits
        """Switched off for the rest of the run when the right is missing."""
        self.failed_commits = 0

    def committed(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Positions of the group for partitions that no checkpoint knows; each is asked for once while it is new."""
        # Of the others nothing is remembered: a topic of an old name that comes back is another topic.
        self._starts = {key: self._starts[key] for key in partitions if key in self._starts}
        new = sorted(set(partitions) - self._starts.keys())
        if self._commits and new:
            found = self._found(new)
            self._book.learn(found)
            self._warn_of_others(found)
            # None is kept too, so a partition without a commit is not asked for again.
            self._starts.update({key: found[key].offset if key in found else None for key in new})
        starts = {key: self._starts.get(key) for key in partitions}
        return {key: start for key, start in starts.items() if start is not None}

    def _found(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Committed]:
        """Return the group's committed offsets. Without the right to see them: none, and no progress is committed.

        Raises GroupAuthorizationFailedError where the query depends on the group.
        """
        try:
            return self._lookups.committed(self._group, partitions)
        except GroupAuthorizationFailedError as error:
            if self._options.commit_failure_fails or self._options.group_decides:
                raise
            self._go_on_without(str(error))
            return {}

    def _go_on_without(self, reason: str) -> None:
        self._commits = False
        self._remark(
            f"group {self._group}: {reason}. The query goes on by its checkpoint; nothing is committed to the group "
            "in this run"
        )

    def _warn_of_others(self, found: Mapping[TopicPartition, Committed]) -> None:
        others = {c.metadata.split(":")[1] for c in found.values() if c.metadata.startswith(MARK)} - {self._key}
        if others:
            self._remark(
                f"group {self._group} has commits of another Spark query ({', '.join(sorted(others))}): two queries "
                f"in one group each read everything and overwrite each other's progress; give each a group of its own"
            )

    def begin(self, initial: StreamOffset) -> StreamOffset:
        """Begin a query without checkpoint; it has read nothing before `initial`."""
        self._has_resumed = True
        self._unproven = initial
        return initial

    def resume(self, start: StreamOffset) -> StreamOffset:
        """Next position from `start`; asks the group the first time in a run that continues a checkpoint."""
        if self._commits and not self._has_resumed:
            found = self._found(sorted(start.ranges))
            self._book.learn(found)
            self._warn_of_others(found)
            replaced, remarks = self._book.resume(start, found, group_decides=self._options.group_decides)
            self._book.follow(replaced)
            self._replaced = (start, replaced) if replaced else None
            for remark in remarks:
                self._remark(remark)
        self._has_resumed = True
        if self._replaced is not None and self._replaced[0] == start:
            return start.with_ends(self._replaced[1])
        self._replaced = None
        return start

    def visible(self, view: ClusterView) -> ClusterView:
        """The part of the cluster that this query may read: all that was asked for."""
        return view

    def planned(self, end: StreamOffset) -> None:
        """A batch that ends here was handed to Spark: when it asks for the next one, that batch is complete."""

    def replayed(self, end: StreamOffset) -> StreamOffset:
        """Return the ranges of a logged batch to read: all of it."""
        self._unproven = None
        return end

    def ended(self) -> None:
        """An AvailableNow run has reached its end. There is nothing to leave."""

    def finished(self, end: StreamOffset) -> None:
        """Commit `end`, whose batch Spark reports as done, one batch late: a second chance."""
        if self._has_resumed and (self._replaced is None or self._replaced[0] != end):
            self.commit(end)

    def commit(self, proven: StreamOffset) -> None:
        """Commit complete progress, unless the group has it already.

        A refusal is counted, reported once and repeated after a pause unless the right to commit is missing. Raises
        CommitRefused with commitFailure=fail.
        """
        # Spark asks with the first offsets before any batch ran: they prove nothing.
        if not self._commits or proven == self._unproven:
            return
        due = still_there(self._book.due(proven), proven, self._lookups)
        if not due or self._pause.holds_back(due):
            return
        try:
            self._lookups.commit(self._group, due)
        except CommitRefused as refusal:
            self.failed_commits += 1
            if self._options.commit_failure_fails:
                raise
            if refusal.lacks_right:
                self._go_on_without(str(refusal))
                return
            self._pause.refused(due)
            self._remark(f"group {self._group}: commit failed ({self.failed_commits} so far): {refusal}")
        else:
            self._pause.accepted()
            self._book.accepted(due)
