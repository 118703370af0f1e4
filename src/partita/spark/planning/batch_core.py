"""Plan a batch read: from options and a look at the cluster to tasks with exact offset ranges.

Follows Spark's Kafka connector, but an end beyond the real end or a start before the log start is reported while
planning, and partitions of an `assign` that do not exist are named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from partita.protocol.primitives import ZERO_UUID
from partita.spark.planning.lookups import Lookups
from partita.spark.planning.offsets import names
from partita.spark.planning.planner import RangeTask, split
from partita.spark.planning.starts import (
    DEFAULT_BATCH_START,
    DEFAULT_END,
    ClusterView,
    DataLossError,
    LossReason,
    PartitionFacts,
    SourceError,
    missing,
    resolve_end,
    resolve_start,
    times_wanted,
)
from partita.spark.settings.options import SourceOptions, check_batch
from partita.spark.settings.positions import AtWord, TopicPartition, at_now

LOOK_AGAIN = 3
LOOK_AGAIN_PAUSE_MS = 500
"""Number and pause of questions about topics that the cluster does not show."""


def existing(options: SourceOptions, lookups: Lookups) -> ClusterView:
    """Return a view in which everything asked for by name exists. Raises SourceError after the last attempt."""
    view = lookups.view(options.topics)
    for _ in range(LOOK_AGAIN):
        if not missing(options.topics, view):
            return view
        view = lookups.view(options.topics, pause_ms=LOOK_AGAIN_PAUSE_MS)
    lacking = missing(options.topics, view)
    if lacking:
        what = "partition" if options.topics.assigned else "topic"
        raise SourceError(not_found(what, lacking))
    return view


def not_found(what: str, lacking: Iterable[str]) -> str:
    """The message about topics or partitions that do not exist."""
    return f"{what} not found in the cluster: {', '.join(sorted(lacking))}; create it, or do not ask for it"


def plan_batch(
    options: SourceOptions,
    lookups: Lookups,
    narrow: Callable[[RangeTask], RangeTask] = lambda task: task,
    *,
    now_ms: int,
    not_before_ms: int | None = None,
) -> list[RangeTask]:
    """Return the tasks of one batch read. `narrow` may return a smaller or empty range (pushed filters).

    With `not_before_ms`, offsets before the first record of that timestamp or a later one are left out.
    """
    check_batch(options)
    view = existing(options, lookups)
    starting = at_now(options.starting or DEFAULT_BATCH_START, now_ms)
    ending = at_now(options.ending or DEFAULT_END, now_ms)
    committed: dict[TopicPartition, int] = {}
    if starting == AtWord("committed") and options.group is not None:
        committed = {k: c.offset for k, c in lookups.committed(options.group, sorted(view.partitions)).items()}
    begins = resolve_start(
        starting,
        view,
        found_by_time=lookups.at_times(times_wanted(starting, view)),
        committed=committed,
        time_or_latest=options.time_or_latest,
    )
    ends = resolve_end(ending, view, lookups.at_times(times_wanted(ending, view)))
    if starting != AtWord("committed"):
        _refuse_crossed(begins, ends, view)
    if options.fail_on_data_loss:
        _refuse_loss(begins, ends, view)
    if not_before_ms is not None:
        found = lookups.at_times(dict.fromkeys(view.partitions, not_before_ms))
        begins = {key: max(begin, _or_end(found.get(key), view.partitions[key])) for key, begin in begins.items()}
    tasks = [narrow(_task(key, begins, ends, view)) for key in sorted(view.partitions)]
    return split(tasks, options.min_partitions, options.max_records_per_partition)


def _or_end(offset: int | None, facts: PartitionFacts) -> int:
    return facts.latest if offset is None else offset


def _refuse_crossed(
    begins: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], view: ClusterView
) -> None:
    """Raise SourceError for options that contradict each other, as Spark's connector does: they would read nothing.

    A start at the beginning of the log contradicts nothing; an end before it is a loss.
    """
    crossed = sorted(key for key, facts in view.partitions.items() if begins[key] > max(ends[key], facts.earliest))
    if crossed:
        told = ", ".join(f"offset {begins[key]} and offset {ends[key]}" for key in crossed[:3])
        raise SourceError(f"the start lies after the end that was asked for in {names(crossed)} ({told})")


def _refuse_loss(begins: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], view: ClusterView) -> None:
    early = [key for key, facts in view.partitions.items() if begins[key] < facts.earliest]
    late = [key for key, facts in view.partitions.items() if ends[key] > facts.latest]
    hint = "failOnDataLoss=false reads what is there"
    if early:
        asked = ", ".join(f"offset {begins[key]} instead of {view.partitions[key].earliest}" for key in early[:3])
        raise DataLossError(
            LossReason.REMOVED.because(
                f"the start lies before the first offset that is left in {names(early)} ({asked}); {hint}"
            )
        )
    if late:
        asked = ", ".join(f"offset {ends[key]} instead of {view.partitions[key].latest}" for key in late[:3])
        raise DataLossError(
            LossReason.TRUNCATED.because(f"the end lies after the real end of {names(late)} ({asked}); {hint}")
        )


def _task(
    key: TopicPartition, begins: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], view: ClusterView
) -> RangeTask:
    facts = view.partitions[key]
    begin, end = max(begins[key], facts.earliest), min(ends[key], facts.latest)
    topic, partition = key
    return RangeTask(
        topic=topic,
        partition=partition,
        begin=begin,
        end=max(begin, end),
        leader_epoch=facts.leader_epoch,
        topic_id=view.topic_ids.get(topic, ZERO_UUID),
    )
