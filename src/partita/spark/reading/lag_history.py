"""`view=lag_history`: how far behind its partition each commit was when it was made, long after the fact.

The end of a partition at a past moment is the first offset whose record is younger (ListOffsets by time). Each batch of
commits asks for at most `SAMPLES` moments of each partition, and what lies between two of them is interpolated, as lag
exporters do. Timestamps are the producers' where the topic has CreateTime, so a clock that is wrong shows here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from partita.spark.options import TopicSelection
from partita.spark.planning.lookups import Lookups
from partita.spark.positions import TopicPartition

Moments: TypeAlias = Mapping[TopicPartition, int]
EndsAt: TypeAlias = Callable[[Moments], Mapping[TopicPartition, int]]
"""The end of each partition at a moment in milliseconds; partitions that are not there any more are left out."""
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
    """The end for each row, -1 where the partition is gone, and whether it was asked for and not interpolated."""
    ends, is_exact = np.full(len(times), -1, np.int64), np.zeros(len(times), bool)
    moments = {key: sampled(times[places]) for key, places in rows.items()}
    found: dict[TopicPartition, list[int]] = {key: [] for key in rows}
    for i in range(max(map(len, moments.values()), default=0)):
        told = ends_at({key: int(some[i]) for key, some in moments.items() if i < len(some)})
        for key, end in told.items():
            found[key].append(end)
    for key, places in rows.items():
        if len(found[key]) == len(moments[key]):
            ends[places] = np.interp(times[places], moments[key], np.maximum.accumulate(found[key])).astype(np.int64)
            is_exact[places] = np.isin(times[places], moments[key])
    return ends, is_exact


def sampled(times: NDArray[np.int64]) -> NDArray[np.int64]:
    """At most `SAMPLES` of these moments, each once, in order; the first and the last among them."""
    moments = np.unique(times)
    if len(moments) <= SAMPLES:
        return moments
    return moments[np.linspace(0, len(moments) - 1, SAMPLES).astype(np.int64)]


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


def asked_of(lookups: Lookups) -> EndsAt:
    """`EndsAt` as the cluster answers it. A partition without a younger record ended where it ends now."""

    def ends_at(moments: Moments) -> Mapping[TopicPartition, int]:
        now = lookups.view(TopicSelection(names=tuple(sorted({topic for topic, _ in moments})))).partitions
        found = lookups.at_times({key: moment + 1 for key, moment in moments.items() if key in now})
        return {key: now[key].latest if offset is None else offset for key, offset in found.items()}

    return ends_at
