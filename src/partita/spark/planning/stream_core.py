"""The offset logic of a streaming read: answers the questions of Spark's engine without Spark.

Theory of operation. One `StreamCore` lives as long as one run of a query. Spark drives a source by five questions:

    initial_offset        once, for a query without a checkpoint
    latest_offset(start)  where may the next batch end? `start` is the end of the last one
    partitions(start, end)  which tasks read it
    commit(end)           the batch is done; it comes one batch late, and never for the last one
    report_latest         how far the query is behind, for its progress

Spark logs the end that it gets *before* the batch runs, and logs the batch as done afterwards. So at
`latest_offset(start)` everything before `start` is proven complete, and that is where progress is committed to the
group: before the look at the cluster, which may wait, and before the next batch is planned. A commit earlier would lose
records with a crash, one at `commit(end)` would stay behind for ever on the last batch.

*An offset holds ranges, not ends.* Each partition has begin and end, so a batch that was logged is planned again
exactly as it was, without a cluster, after whatever crash: exactly-once sinks need that. Offsets written by Spark's own
connector hold ends only; their begins are taken from the offset before.

*Text matters.* Spark compares offsets as text to see whether there is news, so `start_json` itself is returned,
untouched, where there is nothing to do; and an offset has one canonical spelling.

*A look may lie.* Metadata lag behind: a topic seems gone, or an end lies before where we stand. A view that contradicts
`start` is asked for again before anything is called a loss. Real losses (records removed, topics created again, a log
cut by a leader change) move a begin forward or back, and are reported or raised by `failOnDataLoss`.

What must not be done: commit anything that `start` does not prove; plan a batch from what is true now instead of from
its offset; read a clock or ask a cluster but through `clock` and `lookups`; return another text for the same offset.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from partita.now import Clock
from partita.protocol.primitives import ZERO_UUID
from partita.spark.planning.backlog import first_unread, told
from partita.spark.planning.batch_core import LOOK_AGAIN, LOOK_AGAIN_PAUSE_MS, existing
from partita.spark.planning.group_progress import GroupProgress
from partita.spark.planning.lookups import Lookups
from partita.spark.planning.member_progress import MemberProgress
from partita.spark.planning.membership import Membership
from partita.spark.planning.offsets import PARTITIONS_WARNING, Range, StreamOffset, decode, encode, is_foreign
from partita.spark.planning.planner import RangeTask, is_held_back, limited, shared_by_cores, split
from partita.spark.planning.starts import (
    DEFAULT_STREAM_START,
    ClusterView,
    DataLossError,
    Resumption,
    carry_on,
    looks_wrong,
    missing,
    resolve_start,
    times_wanted,
    until,
    was_recreated,
)
from partita.spark.settings.options import SourceOptions, check_stream
from partita.spark.settings.positions import AtWord, TopicPartition, at_now

FORGET_AFTER_MS = 3_600_000

OffsetJson: TypeAlias = dict[str, Any]
"""An offset as Spark passes it: whatever its JSON text holds."""


class StreamCore:
    """Offsets, limits, losses and group commits of one run of a streaming query.

    `remark` receives log lines for the user, each text once in a run. With groupMode=member the `membership` says which
    partitions may be read. Where `cores` are known, large batches have few tasks for each.
    """

    def __init__(
        self,
        options: SourceOptions,
        lookups: Lookups,
        clock: Clock,
        remark: Callable[[str], None] = lambda text: None,
        membership: Membership | None = None,
        *,
        cores: int | None = None,
    ) -> None:
        check_stream(options)
        self._options = options
        self._cores = cores
        self._lookups = lookups
        self._clock = clock
        self._log = remark
        self._remarked: set[str] = set()
        self._group: GroupProgress | MemberProgress = (
            GroupProgress(options, lookups, clock, self._remark)
            if membership is None
            else MemberProgress(options, lookups, membership, clock, self._remark)
        )
        self._initial: StreamOffset | None = None
        self._targets: Mapping[TopicPartition, int] | None = None
        self._looked: tuple[int, ClusterView] | None = None
        self._is_idle = False
        self._vanished: frozenset[TopicPartition] = frozenset()
        self._last_cut_ms: int | None = None
        self._seen_topics: set[str] = set()
        self._reached: Mapping[TopicPartition, Range] = {}

    @property
    def failed_commits(self) -> int:
        """Number of commits that the group refused in this run."""
        return self._group.failed_commits

    @property
    def fenced_commits(self) -> int:
        """Number of those refused because the partitions had moved to another member."""
        return self._group.fenced_commits if isinstance(self._group, MemberProgress) else 0

    def initial_offset(self) -> OffsetJson:
        """Start of a query without checkpoint; the same answer however often it is asked in one run."""
        if self._initial is None:
            self._initial = self._first_positions()
        return encode(self._group.begin(self._initial))

    def prepare_available_now(self) -> None:
        """Fix the end of this run at the present ends. Topics asked for by name are waited for a little."""
        view = existing(self._options, self._lookups)
        self._targets = {key: facts.latest for key, facts in view.partitions.items()}

    def latest_offset(self, start_json: OffsetJson, *, use_limits: bool) -> OffsetJson:
        """Commit the progress that `start` proves, then return the end of the next batch; `start_json` itself if there
        is none.

        An idle query waits here for a record, or for the rest of offsetPollMs, and looks only then, so no answer is
        stale.
        """
        start = self._group.resume(decode(start_json))
        self._group.commit(start)
        # Progress is committed before the look, which may pause an idle query.
        view = self._look(start)
        if not view.partitions and not self._options.fail_on_data_loss:
            self._remark("the cluster shows none of the topics: the offset stays as it is")
            self._is_idle = True
            return start_json
        self._check_added(start, view)
        planned = self._next(start, self._group.visible(view), use_limits=use_limits)
        self._is_idle = planned is None
        # For the lag in Spark's progress: measured from what is planned, not from what is committed.
        self._reached = (planned or start).ranges
        if planned is None and self._targets is not None:
            self._group.ended()
        # Continue a checkpoint of Spark's own connector in our form, even without new records.
        # A checkpoint of Spark's own connector: its offset has no begins and no epochs, so it is rewritten once.
        if planned is None and is_foreign(start_json):
            planned = replace(start, topic_ids=view.topic_ids)
        if planned is None:
            return start_json
        end_json = encode(planned)
        # By its text, as a restart would find it: what the text does not hold must not be relied on.
        self._group.planned(decode(end_json))
        return end_json

    def report_latest(self) -> OffsetJson | None:
        """Return the real ends, for Spark's progress, and how far behind the query is; None before the first look."""
        if self._looked is None:
            return None
        view = self._group.visible(self._looked[1])
        ranges = {key: Range(f.latest, f.latest, f.leader_epoch) for key, f in view.partitions.items()}
        unread = first_unread({key: r.end for key, r in self._reached.items()}, view)
        return encode(StreamOffset(ranges, view.topic_ids)) | told(
            unread,
            view,
            self._lookups.record_times(unread) if unread else {},
            now_ms=self._clock.now().wall_ms,
            failed_commits=self.failed_commits,
            fenced_commits=self.fenced_commits,
        )

    def partitions(self, start_json: OffsetJson | None, end_json: OffsetJson) -> list[RangeTask]:
        """The tasks of the batch that ends here. Needs no cluster: a logged batch is planned again exactly.

        `start_json` matters only for a batch that Spark's own connector planned, whose end does not hold its begin.
        """
        end = decode(end_json)
        if is_foreign(end_json) and start_json is not None:
            # The connector's ends hold no begins: take the ends of the offset before; a partition it lacks began at 0.
            begins = decode(start_json).ranges
            known = {key: replace(r, begin=begins[key].end) for key, r in end.ranges.items() if key in begins}
            end = replace(end, ranges={**{key: replace(r, begin=0) for key, r in end.ranges.items()}, **known})
        end = self._group.replayed(end)
        # Sorted, so that the same offset gives the same tasks in the same order on any machine.
        tasks = [
            RangeTask(
                topic=topic,
                partition=partition,
                begin=r.begin,
                end=r.end,
                leader_epoch=r.leader_epoch,
                topic_id=end.topic_ids.get(topic, ZERO_UUID),
            )
            for (topic, partition), r in sorted(end.ranges.items())
        ]
        return split(tasks, self._options.min_partitions, self._options.max_records_per_partition)

    def shared_records(self, end_json: OffsetJson) -> int:
        """Return how many offsets a task of the batch that ends here reads at most, as first planned.

        A sink that writes exactly once needs the same tasks when a batch is run again, on whatever machine.
        """
        planned = decode(end_json).shared_records
        return self._options.shared_task_records(in_stream=True) if planned is None else planned

    def commit(self, end_json: OffsetJson) -> None:
        """Second chance: Spark is done with the batch that ends here."""
        self._group.finished(decode(end_json))

    def _first_positions(self) -> StreamOffset:
        """Return where a new query starts by its options or its group, moved past records removed since."""
        options = self._options
        view = existing(options, self._lookups)
        position = at_now(options.starting or DEFAULT_STREAM_START, self._clock.now().wall_ms)
        committed = self._group.committed(view.partitions)
        asked = {}
        if options.group is not None and position == AtWord("committed") and not options.commits:
            asked = self._lookups.committed(options.group, sorted(view.partitions))
        starts = resolve_start(
            position,
            view,
            found_by_time=self._lookups.at_times(times_wanted(position, view)),
            committed=committed or {key: c.offset for key, c in asked.items()},
            time_or_latest=options.time_or_latest,
        )
        if committed:
            starts.update(committed)
            self._remark("the group has committed offsets: this new checkpoint starts there, not at startingOffsets")
        if len(view.partitions) > PARTITIONS_WARNING:
            self._remark(f"{len(view.partitions)} partitions make the offset of each batch very large")
        # Empty ranges at the start: `carry_on` moves them past what was removed meanwhile, as it does for every later
        # batch.
        first = {key: Range(start, start, view.partitions[key].leader_epoch) for key, start in starts.items()}
        resumption = carry_on(StreamOffset(first, view.topic_ids), view, options.topics, new_starts={}, diverged_at={})
        self._judge(resumption)
        return StreamOffset({key: replace(r, end=r.begin) for key, r in resumption.ranges.items()}, view.topic_ids)

    def _look(self, start: StreamOffset) -> ClusterView:
        """Return a view of the cluster; one that contradicts `start` is repeated."""
        pause_ms = 0
        if self._is_idle and self._looked is not None:
            since_ms = self._clock.now().mono_ms - self._looked[0]
            pause_ms = max(0, self._options.offset_poll_ms - since_ms)
        view = self._lookups.view(self._options.topics, pause_ms=pause_ms, news=self._news() if pause_ms else None)
        # Metadata settle soon; a loss that is real is still there at the last look.
        for _ in range(LOOK_AGAIN):
            if not looks_wrong(start, view, self._vanished):
                break
            view = self._lookups.view(self._options.topics, pause_ms=LOOK_AGAIN_PAUSE_MS)
        # What is gone now is expected to be gone at the next look, and does not make that look wrong again.
        self._vanished = frozenset(start.ranges.keys() - view.partitions.keys())
        self._looked = (self._clock.now().mono_ms, view)
        return view

    def _news(self) -> dict[TopicPartition, int]:
        """Return where a new record ends the pause of an idle query; nowhere while it waits for several."""
        if self._looked is None or self._options.limits.min_offsets is not None:
            return {}
        return {key: facts.latest for key, facts in self._group.visible(self._looked[1]).partitions.items()}

    def _next(self, start: StreamOffset, view: ClusterView, *, use_limits: bool) -> StreamOffset | None:
        """The end of the next batch, or None when it would be empty."""
        resumption = carry_on(
            start,
            view,
            self._options.topics,
            new_starts=self._group.committed(view.partitions.keys() - start.ranges.keys()),
            diverged_at=self._divergence(start, view),
        )
        self._judge(resumption)
        ranges = resumption.ranges if self._targets is None else until(self._targets, resumption.ranges, start)
        backlog = sum(r.size for r in ranges.values())
        if use_limits and backlog:
            if self._is_held_back(backlog):
                return None
            # Limits cut the ends only. The begins stay, so that the next batch goes on exactly where this one ends.
            ranges = limited(ranges, self._options.limits, self._record_bytes(ranges))
        moved = any(key in ranges and ranges[key].begin != r.end for key, r in start.ranges.items())
        # Without records there may still be news to log: a start moved past removed records, or a new topic id.
        if not (backlog or moved or any(was_recreated(topic, start, view) for topic, _ in ranges)):
            return None
        self._last_cut_ms = self._clock.now().mono_ms
        topic_ids = {**start.topic_ids, **view.topic_ids}
        shared = self._shared_by_cores(ranges)
        planned = replace(start, ranges=ranges, topic_ids=topic_ids, ordinal=start.ordinal + 1, shared_records=shared)
        return self._without_deleted(planned) if self._options.topics.pattern is not None else planned

    def _without_deleted(self, planned: StreamOffset) -> StreamOffset:
        """Forget topics that were deleted for good, so that topics that come and go do not make offsets grow.

        One that is only hidden must keep its place, or it would be read again: it has to be missing for an hour, by
        the clock of the checkpoint, and the cluster, asked by name, has to say that it does not exist.
        """
        shown = {topic for topic, _ in self._looked[1].partitions} if self._looked is not None else set()
        now_ms = self._clock.now().wall_ms
        gone = {t: planned.gone_since_ms.get(t, now_ms) for t, _ in planned.ranges if t not in shown}
        long_gone = sorted(topic for topic, since_ms in gone.items() if now_ms - since_ms >= FORGET_AFTER_MS)
        deleted = self._lookups.deleted(long_gone) if long_gone else set()
        kept = {key: r for key, r in planned.ranges.items() if key[0] not in deleted}
        return replace(planned, ranges=kept, gone_since_ms=gone | dict.fromkeys(long_gone, now_ms))

    def _shared_by_cores(self, ranges: Mapping[TopicPartition, Range]) -> int | None:
        """Return how many offsets the tasks of this batch share by cores; None where the options alone decide."""
        if self._cores is None:
            return None
        plain = self._options.shared_task_records(in_stream=True)
        suggested = shared_by_cores((r.size for r in ranges.values()), self._cores)
        found = self._options.shared_task_records(in_stream=True, by_cores=suggested)
        return None if found == plain else found

    def _check_added(self, start: StreamOffset, view: ClusterView) -> None:
        """A topic added to the options must exist. One that vanished is a loss, which `carry_on` reports."""
        known = {topic for topic, _ in start.ranges} | self._seen_topics
        self._seen_topics |= {topic for topic, _ in view.partitions}
        lacking = missing(self._options.topics, view)
        if any(name not in known and name.rpartition("-")[0] not in known for name in lacking):
            existing(self._options, self._lookups)

    def _divergence(self, start: StreamOffset, view: ClusterView) -> dict[TopicPartition, int]:
        """Return where our leader epoch ended, for partitions whose leader changed since."""
        wanted = {
            key: r.leader_epoch
            for key, r in start.ranges.items()
            if key in view.partitions
            # Only where the leader has changed since can the log have been cut; elsewhere the question is spared.
            and 0 <= r.leader_epoch < view.partitions[key].leader_epoch
            and not was_recreated(key[0], start, view)
        }
        return self._lookups.epoch_ends(wanted) if wanted else {}

    def _is_held_back(self, backlog: int) -> bool:
        """Whether to wait for minOffsetsPerTrigger; an AvailableNow run never waits, nor does the first batch."""
        if self._targets is not None or self._last_cut_ms is None:
            return False
        return is_held_back(backlog, self._options.limits, self._clock.now().mono_ms - self._last_cut_ms)

    def _record_bytes(self, ranges: Mapping[TopicPartition, Range]) -> dict[TopicPartition, float]:
        if self._options.limits.max_bytes is None:
            return {}
        return self._lookups.record_bytes({key: r.begin for key, r in ranges.items() if r.size})

    def _judge(self, resumption: Resumption) -> None:
        if resumption.losses and self._options.fail_on_data_loss:
            raise DataLossError(f"{'; '.join(resumption.losses)}. Set failOnDataLoss=false to go on without them")
        for loss in resumption.losses:
            self._remark(loss)

    def _remark(self, text: str) -> None:
        # Once in a run: an idle query asks again and again.
        if text not in self._remarked:
            self._remarked.add(text)
            self._log(text)
