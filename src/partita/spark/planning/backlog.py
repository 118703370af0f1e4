"""Lag and refused commits of the query, reported with its progress besides the real ends.

`{"lag":{"<topic>":{"<partition>":[records, seconds]}},"failedCommits":n,"fencedCommits":n}`; a partition that is not
behind is left out. Records are counted as offsets; seconds are the age of the first record that no batch holds yet,
null where it is not known. Spark keeps this in the field latestOffset of its progress reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from partita.spark.planning.starts import ClusterView
from partita.spark.settings.positions import TopicPartition


def first_unread(reached: Mapping[TopicPartition, int], view: ClusterView) -> dict[TopicPartition, int]:
    """Return the first unread offset of each partition that has records behind the newest batch."""
    places = {key: max(reached.get(key, facts.earliest), facts.earliest) for key, facts in view.partitions.items()}
    return {key: place for key, place in sorted(places.items()) if place < view.partitions[key].latest}


def told(
    unread: Mapping[TopicPartition, int],
    view: ClusterView,
    times: Mapping[TopicPartition, int],
    *,
    now_ms: int,
    failed_commits: int,
    fenced_commits: int,
) -> dict[str, Any]:
    """Return the entries of the report. `times` are the known timestamps of the records at `unread`."""
    lag: dict[str, dict[str, list[float | None]]] = {}
    for (topic, partition), place in unread.items():
        key = topic, partition
        age = None if key not in times else max(0, now_ms - times[key]) / 1000
        lag.setdefault(topic, {})[str(partition)] = [view.partitions[key].latest - place, age]
    return {"lag": lag, "failedCommits": failed_commits, "fencedCommits": fenced_commits}
