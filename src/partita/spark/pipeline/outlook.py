"""The next steps of a pipeline: ranges, lag and batches, from the checkpoint's files and the cluster, without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from partita.spark.planning.batch_core import existing
from partita.spark.planning.group_progress import CommitBook, query_key
from partita.spark.planning.lookups import Lookups
from partita.spark.planning.member_progress import place_of
from partita.spark.planning.offsets import Range, StreamOffset, decode
from partita.spark.planning.planner import limited
from partita.spark.planning.starts import DEFAULT_STREAM_START, ClusterView, resolve_start, times_wanted
from partita.spark.settings.options import SourceOptions
from partita.spark.settings.positions import TopicPartition, at_now

BATCHES_MAX = 10_000
"""With more batches than this the answer is only "more"."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """`ranges` is left to read; `came_from` is the reason for each begin; `batches` None: too many to count."""

    ranges: Mapping[TopicPartition, Range]
    came_from: Mapping[TopicPartition, str]
    unfinished: bool
    batches: int | None

    @property
    def lag(self) -> int:
        """Offsets left to read, in all partitions."""
        return sum(r.size for r in self.ranges.values())


def last_offsets(checkpoint: Path) -> tuple[StreamOffset | None, bool]:
    """The end of the newest complete batch in a local checkpoint, and whether a batch after it is unfinished."""
    done, planned = _newest(checkpoint / "commits"), _newest(checkpoint / "offsets")
    if done is None:
        return None, planned is not None
    lines = (checkpoint / "offsets" / str(done)).read_text().splitlines()
    return decode(json.loads(lines[2])), planned is not None and planned > done


def look_ahead(options: SourceOptions, lookups: Lookups, checkpoint: Path, *, now_ms: int) -> Outlook:
    """Return the ranges of the next run if it had every partition. Raises SourceError for an unknown topic."""
    view = existing(options, lookups)
    before, unfinished = last_offsets(checkpoint)
    ranges: dict[TopicPartition, Range] = {}
    came_from: dict[TopicPartition, str] = {}
    begins = _begins(options, lookups, view, before, now_ms)
    for key, facts in sorted(view.partitions.items()):
        begin, came_from[key] = begins[key]
        begin = min(max(begin, facts.earliest), facts.latest)
        ranges[key] = Range(begin, facts.latest, facts.leader_epoch)
    sizes = {}
    if options.limits.max_bytes is not None:
        sizes = lookups.record_bytes({key: r.begin for key, r in ranges.items() if r.size})
    return Outlook(ranges, came_from, unfinished, batches_of(options, ranges, sizes))


def batches_of(
    options: SourceOptions, ranges: Mapping[TopicPartition, Range], record_bytes: Mapping[TopicPartition, float]
) -> int | None:
    """Return into how many batches the limits cut the ranges; None for very many."""
    left, count = dict(ranges), 0
    while any(r.size for r in left.values()):
        if count == BATCHES_MAX:
            return None
        count += 1
        cut = limited(left, options.limits, record_bytes)
        left = {key: Range(cut[key].end, r.end) for key, r in left.items()}
    return count


def _begins(
    options: SourceOptions, lookups: Lookups, view: ClusterView, before: StreamOffset | None, now_ms: int
) -> dict[TopicPartition, tuple[int, str]]:
    """Return where each partition goes on: from checkpoint and group as the query weighs them, else startingOffsets."""
    found = lookups.committed(options.group, sorted(view.partitions)) if options.group is not None else {}
    uses_group = options.commits or options.member is not None
    position = at_now(options.starting or DEFAULT_STREAM_START, now_ms)
    starts = resolve_start(
        position,
        view,
        found_by_time=lookups.at_times(times_wanted(position, view)),
        committed={key: c.offset for key, c in found.items()},
        time_or_latest=options.time_or_latest,
    )
    book, begins = CommitBook(query_key(options)), {}
    for key in view.partitions:
        have = before.ranges.get(key) if before is not None else None
        there = found.get(key) if uses_group and (have is None or options.member or options.group_decides) else None
        place = place_of(
            there, have, is_ours=there is not None and book.is_ours(there), group_decides=options.group_decides
        )
        if place is None:
            begins[key] = (starts[key], "startingOffsets") if before is None else (view.partitions[key].earliest, "new")
        else:
            begins[key] = (place.end, "checkpoint" if have is not None and place.end == have.end else "group")
    return begins


def _newest(folder: Path) -> int | None:
    numbers = [int(entry.name) for entry in folder.iterdir() if entry.name.isdecimal()] if folder.is_dir() else []
    return max(numbers, default=None)
