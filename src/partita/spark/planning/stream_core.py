"""The offset logic of a streaming read: what Spark's engine asks, answered without Spark.

One `StreamCore` lives as long as one run of a query. At each `latest_offset(start)` Spark has everything before the
end of `start` in its commit log, so that is where progress is committed to the group, before anything else; then
comes the next batch. `start` itself is returned, untouched, when there is nothing to do, since Spark compares text.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from partita.now import Clock
from partita.spark.options import SourceOptions, check_stream
from partita.spark.planning.batch_core import LOOK_AGAIN, existing
from partita.spark.planning.commits import CommitBook, Committed, query_key, starts_from_group
from partita.spark.planning.lookups import CommitRefused, Lookups
from partita.spark.planning.offsets import PARTITIONS_WARNING, Range, StreamOffset, decode, encode
from partita.spark.planning.planner import RangeTask, is_held_back, limited, split
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
    was_made_again,
)
from partita.spark.positions import AtWord, TopicPartition

OffsetJson: TypeAlias = dict[str, Any]
log = logging.getLogger("partita.spark")
COMMIT_PAUSE_MS, COMMIT_PAUSE_MAX_MS = 1_000, 60_000
"""An idle query asks every few milliseconds; a commit that was refused is tried again after a growing pause."""


class StreamCore:
    """Offsets, limits, losses and group commits of one run of a streaming query."""

    def __init__(self, options: SourceOptions, lookups: Lookups, clock: Clock) -> None:
        check_stream(options)
        self._options = options
        self._lookups = lookups
        self._clock = clock
        self._book = CommitBook(query_key(options))
        self._initial: StreamOffset | None = None
        self._unproven: StreamOffset | None = None
        self._has_resumed = False
        self._replaced: tuple[StreamOffset, dict[TopicPartition, int]] | None = None
        self._targets: Mapping[TopicPartition, int] | None = None
        self._looked: tuple[int, ClusterView] | None = None
        self._last_cut_ms: int | None = None
        self._new_starts: dict[TopicPartition, int] = {}
        self._said: set[str] = set()
        self._refused: Mapping[TopicPartition, Committed] = {}
        self._refused_in_a_row = 0
        self._commit_again_ms = 0
        self.failed_commits = 0

    def initial_offset(self) -> OffsetJson:
        """Where a query without checkpoint starts; the same answer however often it is asked in one run."""
        if self._initial is None:
            self._initial = self._first_positions()
            self._has_resumed = True
        self._unproven = self._initial
        return encode(self._initial)

    def prepare_available_now(self) -> None:
        """Fix the end of this run: what is there now."""
        view = self._lookups.view(self._options.topics, 0)
        self._targets = {key: facts.latest for key, facts in view.partitions.items()}

    def latest_offset(self, start_json: OffsetJson, *, use_limits: bool) -> OffsetJson:
        """Commit what `start` proves, then say where the next batch ends; `start_json` itself if there is none."""
        start = decode(start_json)
        start = self._after_restart(start)
        self._commit(start)
        view = self._look(start)
        planned = self._next(start, view, use_limits=use_limits)
        return start_json if planned is None else encode(planned)

    def report_latest(self) -> OffsetJson | None:
        """The real ends, for Spark's progress; None before the first look."""
        if self._looked is None:
            return None
        view = self._looked[1]
        ranges = {key: Range(f.latest, f.latest, f.leader_epoch) for key, f in view.partitions.items()}
        return encode(StreamOffset(ranges, view.topic_ids))

    def partitions(self, end_json: OffsetJson) -> list[RangeTask]:
        """The tasks of the batch that ends here. Needs no cluster: a logged batch is planned again exactly."""
        end = decode(end_json)
        self._unproven = None
        tasks = [
            RangeTask(topic, partition, r.begin, r.end, r.leader_epoch, end.topic_ids.get(topic, bytes(16)))
            for (topic, partition), r in sorted(end.ranges.items())
        ]
        return split(tasks, self._options.min_partitions, self._options.max_records_per_partition)

    def commit(self, end_json: OffsetJson) -> None:
        """Second chance: Spark is done with the batch that ends here."""
        end = decode(end_json)
        if self._has_resumed and (self._replaced is None or self._replaced[0] != end):
            self._commit(end)

    def _first_positions(self) -> StreamOffset:
        options = self._options
        view = existing(options, self._lookups)
        position = options.starting or DEFAULT_STREAM_START
        found = {}
        if options.group is not None and (options.commits or position == AtWord("committed")):
            found = self._lookups.committed(options.group, sorted(view.partitions))
        starts = resolve_start(
            position,
            view,
            found_by_time=self._lookups.at_times(times_wanted(position, view)),
            committed={key: committed.offset for key, committed in found.items()},
            time_or_latest=options.time_or_latest,
        )
        if options.commits and found:
            self._book.learn(found)
            starts.update(starts_from_group(found, view.partitions))
            self._say("the group has committed offsets: this new checkpoint starts there, not at startingOffsets")
        first = StreamOffset({key: self._at(start, key, view) for key, start in starts.items()}, view.topic_ids)
        # A committed or given start may have been trimmed since: the usual rules for losses apply.
        resumption = carry_on(first, view, new_starts={}, diverged_at={})
        self._judge(resumption)
        if len(view.partitions) > PARTITIONS_WARNING:
            self._say(f"{len(view.partitions)} partitions make the offset of each batch very large")
        return StreamOffset({key: self._at(b, key, view) for key, b in resumption.begins.items()}, view.topic_ids)

    @staticmethod
    def _at(offset: int, key: TopicPartition, view: ClusterView) -> Range:
        return Range(offset, offset, view.partitions[key].leader_epoch)

    def _after_restart(self, start: StreamOffset) -> StreamOffset:
        """The first time in a run that continues a checkpoint: see what the group holds."""
        if self._options.commits and not self._has_resumed:
            found = self._lookups.committed(self._options.group or "", sorted(start.ranges))
            self._book.learn(found)
            replaced, remarks = self._book.resume(start, found, group_decides=self._options.group_decides)
            self._book.adopt(replaced)
            self._replaced = (start, replaced) if replaced else None
            for remark in remarks:
                self._say(remark)
        self._has_resumed = True
        if self._replaced is not None:
            if self._replaced[0] == start:
                return start.with_ends(self._replaced[1])
            self._replaced = None
        return start

    def _commit(self, proven: StreamOffset) -> None:
        """Tell the group, unless it knows. A refusal is counted and logged; it fails the query only if asked to."""
        if not self._options.commits or proven == self._unproven:
            return
        due = self._book.due(proven)
        now_ms = self._clock.now().mono_ms
        if not due or (due == self._refused and now_ms < self._commit_again_ms):
            return
        try:
            self._lookups.commit(self._options.group or "", due)
        except CommitRefused as refusal:
            self.failed_commits += 1
            if self._options.commit_failure_fails:
                raise
            self._refused = due
            self._commit_again_ms = now_ms + min(
                COMMIT_PAUSE_MS * 2 ** min(self._refused_in_a_row, 10), COMMIT_PAUSE_MAX_MS
            )
            self._refused_in_a_row += 1
            log.warning("group %s: commit failed (%d so far): %s", self._options.group, self.failed_commits, refusal)
        else:
            self._refused_in_a_row = 0
            self._book.sent(due)

    def _look(self, start: StreamOffset) -> ClusterView:
        """The cluster now, or as seen less than offsetPollMs ago; contradictions are looked at again."""
        now_ms = self._clock.now().mono_ms
        if self._looked is not None and now_ms - self._looked[0] < self._options.offset_poll_ms:
            return self._looked[1]
        view = self._lookups.view(self._options.topics, 0)
        for attempt in range(1, LOOK_AGAIN + 1):
            if not looks_wrong(start, view):
                break
            view = self._lookups.view(self._options.topics, attempt)
        self._looked = (self._clock.now().mono_ms, view)
        return view

    def _next(self, start: StreamOffset, view: ClusterView, *, use_limits: bool) -> StreamOffset | None:
        """The end of the next batch, or None when it would be empty."""
        if not view.partitions and not self._options.fail_on_data_loss:
            self._say("the cluster shows none of the topics: the offset stays as it is")
            return None
        self._check_named(start, view)
        new_starts = self._starts_of_new(start, view)
        resumption = carry_on(start, view, new_starts=new_starts, diverged_at=self._divergence(start, view))
        self._judge(resumption)
        ranges = self._up_to_the_end(resumption.begins, view)
        backlog = sum(r.size for r in ranges.values())
        if use_limits and self._options.limits.any and backlog:
            held = self._targets is None and is_held_back(backlog, self._options.limits, self._waited_ms())
            if held:
                return None
            ranges = limited(ranges, self._options.limits, self._record_bytes(ranges))
        moved = [key for key, r in start.ranges.items() if key in ranges and ranges[key].begin != r.end]
        anew = any(was_made_again(topic, start, view) for topic in {topic for topic, _ in ranges})
        if not backlog and not moved and not anew:
            return None
        self._last_cut_ms = self._clock.now().mono_ms
        return replace(start, ranges=ranges, topic_ids=view.topic_ids, ordinal=start.ordinal + 1)

    def _up_to_the_end(self, begins: Mapping[TopicPartition, int], view: ClusterView) -> dict[TopicPartition, Range]:
        ranges = {}
        for key, begin in begins.items():
            facts = view.partitions[key]
            end = facts.latest
            if self._targets is not None:
                if key not in self._targets:
                    continue
                end = min(end, self._targets[key])
            ranges[key] = Range(begin, max(begin, end), facts.leader_epoch)
        return ranges

    def _check_named(self, start: StreamOffset, view: ClusterView) -> None:
        """A topic added to the options must exist; one that vanished is a loss, which `carry_on` reports."""
        known = {topic for topic, _ in start.ranges}
        if [
            name
            for name in missing(self._options.topics, view)
            if name.rpartition("-")[0] not in known and name not in known
        ]:
            existing(self._options, self._lookups)

    def _starts_of_new(self, start: StreamOffset, view: ClusterView) -> dict[TopicPartition, int]:
        """Committed positions of partitions that `start` lacks; asked for once in a run."""
        new = sorted(view.partitions.keys() - start.ranges.keys() - self._new_starts.keys())
        if new and self._options.commits:
            found = self._lookups.committed(self._options.group or "", new)
            self._new_starts.update({key: -1 for key in new} | starts_from_group(found, new))
        return {key: offset for key, offset in self._new_starts.items() if offset >= 0}

    def _divergence(self, start: StreamOffset, view: ClusterView) -> dict[TopicPartition, int]:
        """Where our leader epoch ended, for partitions whose leader changed since."""
        wanted = {
            key: r.leader_epoch
            for key, r in start.ranges.items()
            if key in view.partitions
            and 0 <= r.leader_epoch < view.partitions[key].leader_epoch
            and not was_made_again(key[0], start, view)
        }
        return self._lookups.epoch_ends(wanted) if wanted else {}

    def _record_bytes(self, ranges: Mapping[TopicPartition, Range]) -> dict[TopicPartition, float]:
        if self._options.limits.max_bytes is None:
            return {}
        return self._lookups.record_bytes({key: r.begin for key, r in ranges.items() if r.size})

    def _waited_ms(self) -> int | None:
        return None if self._last_cut_ms is None else self._clock.now().mono_ms - self._last_cut_ms

    def _judge(self, resumption: Resumption) -> None:
        if resumption.losses and self._options.fail_on_data_loss:
            raise DataLossError(f"{'; '.join(resumption.losses)}. Set failOnDataLoss=false to go on without them")
        for loss in resumption.losses:
            self._say(loss)

    def _say(self, remark: str) -> None:
        """Log a remark once in a run."""
        if remark not in self._said:
            self._said.add(remark)
            log.warning("%s", remark)
