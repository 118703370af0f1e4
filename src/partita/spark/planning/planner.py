"""Size of one batch of a stream, and its division into tasks.

Limits are cut where Spark's own Kafka connector cuts them: offsets (not records) in proportion to the backlog of each
partition, rounded up below one and down above, the remainder not redistributed. Bytes are turned into offsets by the
average record size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from heapq import heapify, heapreplace
from itertools import pairwise

from partita.protocol.primitives import ZERO_UUID
from partita.spark.planning.offsets import Range
from partita.spark.settings.options import Limits
from partita.spark.settings.positions import TopicPartition

SHARED_RECORDS_MAX = 262_144
"""Most records that several partitions together give to one task because there are fewer cores than partitions."""


@dataclass(frozen=True, slots=True)
class RangeTask:
    """A task's offsets `begin` to `end` (exclusive) of one partition."""

    topic: str
    partition: int
    begin: int
    end: int
    leader_epoch: int = -1
    topic_id: bytes = ZERO_UUID

    @property
    def size(self) -> int:
        """Number of offsets the task spans."""
        return self.end - self.begin


def limited(
    ranges: Mapping[TopicPartition, Range], limits: Limits, record_bytes: Mapping[TopicPartition, float]
) -> dict[TopicPartition, Range]:
    """The ranges, each cut to its share of `max_offsets` and of `max_bytes`.

    `record_bytes` is the average size of a record, needed for partitions with backlog when `max_bytes` is set.
    """
    backlog = {key: float(r.size) for key, r in ranges.items() if r.size > 0}
    allowed = {key: math.inf for key in backlog}
    if limits.max_offsets is not None:
        allowed = {key: float(share) for key, share in _shares(limits.max_offsets, backlog).items()}
    if limits.max_bytes is not None:
        weights = {key: size * max(1.0, record_bytes.get(key, 1.0)) for key, size in backlog.items()}
        for key, share in _shares(limits.max_bytes, weights).items():
            allowed[key] = min(allowed[key], max(1, share // max(1.0, record_bytes.get(key, 1.0))))
    return {
        key: Range(r.begin, min(r.end, r.begin + int(allowed[key])), r.leader_epoch)
        if allowed.get(key, math.inf) < r.size
        else r
        for key, r in ranges.items()
    }


def _shares(limit: int, backlog: Mapping[TopicPartition, float]) -> dict[TopicPartition, int]:
    """The limit in proportion to the backlogs; at least one each. The order of operations is Spark's."""
    total = sum(backlog.values())
    shares = {key: limit * (size / total) for key, size in backlog.items()}
    return {key: math.ceil(share) if share < 1 else math.floor(share) for key, share in shares.items()}


def is_held_back(backlog: int, limits: Limits, waited_ms: int) -> bool:
    """Whether to wait for `min_offsets`, when the last batch was cut `waited_ms` ago."""
    return limits.min_offsets is not None and waited_ms < limits.max_delay_ms and backlog < limits.min_offsets


def split(tasks: list[RangeTask], min_partitions: int | None, max_records: int | None) -> list[RangeTask]:
    """Cut tasks so that none exceeds `max_records` and there are at least `min_partitions`, the largest cut first.

    Empty tasks vanish. There are never more tasks than offsets.
    """
    tasks = [task for task in tasks if task.size > 0]
    counts = [1 if max_records is None else -(-task.size // max_records) for task in tasks]
    if tasks and min_partitions is not None:
        _raise_counts(tasks, counts, min_partitions)
    return [piece for task, count in zip(tasks, counts, strict=True) for piece in _pieces(task, count)]


def _raise_counts(tasks: list[RangeTask], counts: list[int], wanted: int) -> None:
    """Give one more piece to the task with the largest pieces until there are enough."""
    heap = [(-task.size / count, i) for i, (task, count) in enumerate(zip(tasks, counts, strict=True))]
    heapify(heap)
    for _ in range(sum(counts), wanted):
        largest, i = heap[0]
        if largest >= -1:
            return
        counts[i] += 1
        heapreplace(heap, (-tasks[i].size / counts[i], i))


def _pieces(task: RangeTask, count: int) -> list[RangeTask]:
    cuts = [task.begin + task.size * i // count for i in range(count + 1)]
    return [replace(task, begin=begin, end=end) for begin, end in pairwise(cuts)]


def shared_by_cores(sizes: Iterable[int], cores: int) -> int:
    """Records per task so that no core waits and each has as few tasks as possible.

    Half a million records of a stream in tasks for each of six partitions cost a third more time on two cores than in
    one for each core. Much larger tasks gain nothing more. The eighth lets neighbours share that are not quite equal.
    """
    return min(SHARED_RECORDS_MAX, sum(sizes) * 9 // (8 * cores))


def together(tasks: list[RangeTask], records_max: int) -> list[tuple[RangeTask, ...]]:
    """Return the ranges of each Spark task, read in turn: neighbours that have at most `records_max` offsets in all.

    The ranges keep their order. It depends on the ranges alone, not on the cluster: a batch that is planned again after
    a crash has the same tasks.
    """
    shared: list[tuple[RangeTask, ...]] = []
    held: list[RangeTask] = []
    size = 0
    for task in tasks:
        if held and size + task.size > records_max:
            shared.append(tuple(held))
            held, size = [], 0
        held.append(task)
        size += task.size
    return [*shared, tuple(held)] if held else shared
