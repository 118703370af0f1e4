"""`view=lag_history`: how far behind its partition each commit was when it was made, long after the fact.

The end of a partition at a past moment is the first offset whose record is younger (ListOffsets by time). Each batch of
commits asks for at most `SAMPLES` moments of a partition, where its log grew most, and interpolates between them, as
lag exporters do; while a log did not grow, nothing needs to be asked. Timestamps are the producers' where the
topic has CreateTime, so a clock that is wrong shows here.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from partita.spark.planning.lookups import Lookups
from partita.spark.planning.starts import PartitionFacts
from partita.spark.settings.options import TopicSelection
from partita.spark.settings.positions import TopicPartition

Moments: TypeAlias = Mapping[TopicPartition, int]
EndsAt: TypeAlias = Callable[[Moments], Mapping[TopicPartition, int]]
"""The end of each partition at a moment in milliseconds; partitions that no longer exist are left out."""
SAMPLES = 16


def lag_history(commits: pa.RecordBatch, ends_at: EndsAt) -> pa.RecordBatch:
    """The commits among these rows of `view=offset_commits`, each with the end of its partition at that time.

    `lag` is the end minus the committed offset, at least 0. Both are null for partitions that are gone.
    """
    kept = commits.filter(commits.column("offset").is_valid())
    times = kept.column("commitTime").cast(pa.int64()).to_numpy(zero_copy_only=False) // 1000
    ends, is_exact = ends_of(_by_partition(kept), times, ends_at)
    committed = kept.column("offset").to_numpy(zero_copy_only=False)
    is_gone = ends < 0
    columns = {name: kept.column(name) for name in kept.schema.names} | {
        "endOffset": pa.array(ends, mask=is_gone),
        "lag": pa.array(np.maximum(0, ends - committed), mask=is_gone),
        "isInterpolated": pa.array(~is_exact, mask=is_gone),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def ends_of(
    rows: Mapping[TopicPartition, NDArray[np.int64]], times: NDArray[np.int64], ends_at: EndsAt
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The end for each row, -1 where the partition is gone, and whether it is known and not interpolated."""
    ends, is_exact = np.full(len(times), -1, np.int64), np.zeros(len(times), bool)
    growths = {key: Growth(np.unique(times[places])) for key, places in rows.items()}
    for _ in range(SAMPLES):
        wanted = {key: moment for key, growth in growths.items() if (moment := growth.next_moment()) is not None}
        found = ends_at(wanted) if wanted else {}
        for key, moment in wanted.items():
            growths[key].learn(moment, found.get(key))
    for key, places in rows.items():
        if not growths[key].is_gone:
            ends[places], is_exact[places] = growths[key].at(times[places])
    return ends, is_exact


class Growth:
    """The known ends of one partition over time, and the moment to ask about next."""

    def __init__(self, moments: NDArray[np.int64]) -> None:
        self._moments = moments
        self._known: list[tuple[int, int]] = []
        """Places in `moments` and the ends there, in order."""
        self.is_gone = False

    def next_moment(self) -> int | None:
        """Return the first, the last, then the middle of the largest growth; None when nothing is left to learn."""
        if self.is_gone:
            return None
        if len(self._known) < min(2, len(self._moments)):
            return int(self._moments[-1 if self._known else 0])
        growths = [
            (end - begin, (left + right) // 2)
            for (left, begin), (right, end) in pairwise(self._known)
            if end > begin and right - left > 1
        ]
        return int(self._moments[max(growths)[1]]) if growths else None

    def learn(self, moment: int, end: int | None) -> None:
        """Record the end at a moment that was asked about; None: the partition no longer exists."""
        self.is_gone = self.is_gone or end is None
        if end is not None:
            insort(self._known, (int(np.searchsorted(self._moments, moment)), end))

    def at(self, times: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The ends at these moments, and whether each is known: asked for, or within a time without growth."""
        places = np.array([place for place, _ in self._known])
        ends = np.maximum.accumulate([end for _, end in self._known])
        wanted = np.searchsorted(self._moments, times)
        after = np.searchsorted(places, wanted)
        before = np.where(places[after] == wanted, after, after - 1)
        found = np.interp(times, self._moments[places], ends).astype(np.int64)
        return found, ends[before] == ends[after]


def _by_partition(commits: pa.RecordBatch) -> dict[TopicPartition, NDArray[np.int64]]:
    """The places of the rows of each partition, in order."""
    if not len(commits):
        return {}
    topics = commits.column("topic").dictionary_encode()
    partitions = commits.column("partition").to_numpy(zero_copy_only=False).astype(np.int64)
    ids = topics.indices.to_numpy(zero_copy_only=False).astype(np.int64) << 32 | partitions
    order = np.argsort(ids, kind="stable")
    names = topics.dictionary.to_pylist()
    keys, firsts = np.unique(ids[order], return_index=True)
    return {
        (names[key >> 32], int(key & 0xFFFFFFFF)): places
        for key, places in zip(keys, np.split(order, firsts[1:]), strict=True)
    }


def asked_of(lookups: Lookups) -> Callable[[], EndsAt]:
    """Return a factory of an `EndsAt` for one batch: the current ends of its partitions are asked for once.

    A partition without a younger record ended where it ends now.
    """

    def for_batch() -> EndsAt:
        now: dict[TopicPartition, PartitionFacts] = {}

        def ends_at(moments: Moments) -> Mapping[TopicPartition, int]:
            if not now:
                now.update(lookups.view(TopicSelection(names=tuple(sorted({t for t, _ in moments})))).partitions)
            found = lookups.at_times({key: moment + 1 for key, moment in moments.items() if key in now})
            return {key: now[key].latest if offset is None else offset for key, offset in found.items()}

        return ends_at

    return for_batch
