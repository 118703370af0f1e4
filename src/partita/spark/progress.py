"""Lag of a running query, from the progress that Spark reports.

Spark has no metrics for Python sources. The source writes it into the field latestOffset of its progress, in the form
that `partita.spark.planning.backlog` describes; these functions read it there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from math import nan
from typing import TYPE_CHECKING, Any

from partita.metrics.registry import Metrics, prometheus

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

GROUP = "query-metrics"
QUERY_METRICS = {
    "avgOffsetsBehindLatest": ("records-lag-avg", "average lag of the partitions in records"),
    "maxOffsetsBehindLatest": ("records-lag-max", "largest lag of a partition in records"),
    "minOffsetsBehindLatest": ("records-lag-min", "smallest lag of a partition in records"),
    "maxSecondsBehindLatest": ("seconds-lag-max", "age of the oldest record that no batch holds yet"),
    "failedCommits": ("failed-commits-total", "commits that the group refused in this run"),
    "fencedCommits": ("fenced-commits-total", "those refused because the partitions had moved to another member"),
}
"""The names of `metrics`, those of `metrics_text`, and their meaning."""


def lag(query: StreamingQuery) -> dict[str, dict[int, int]]:
    """Records that each partition holds beyond the query's last batch, by topic and partition.

    Offsets are counted, so compaction gaps and transaction markers count too. As old as the last progress of the
    query; empty before the first one. Sources of other formats are left out.
    """
    return lag_of(query.lastProgress)


def lag_seconds(query: StreamingQuery) -> dict[str, dict[int, float | None]]:
    """The age in seconds of the first record of each partition that the query's last batch does not hold.

    0 where the query has read everything, None where the age is not known. As old as the last progress of the query.
    """
    return lag_seconds_of(query.lastProgress)


def metrics(query: StreamingQuery) -> dict[str, float]:
    """Return numbers about a query by the names of Spark's Kafka connector, over all of its partitions, and some more.

    avgOffsetsBehindLatest, maxOffsetsBehindLatest, minOffsetsBehindLatest in records; maxSecondsBehindLatest;
    failedCommits and fencedCommits, the commits that the group refused in this run, and those of them that came after
    the partitions had moved. NaN before the first progress, and where nothing is known.
    """
    return metrics_of(query.lastProgress)


def metrics_text(spark: SparkSession) -> str:
    """The metrics of every running query of the session, and of its partitions, in Prometheus' text format."""
    return metrics_text_of({query.name or str(query.id): query.lastProgress for query in spark.streams.active})


def lag_of(progress: Any) -> dict[str, dict[int, int]]:
    """As `lag`, from one progress report: a StreamingQueryProgress of Spark, or a dict of that shape."""
    return {topic: {p: records for p, (records, _) in lags.items()} for topic, lags in _behind(progress).items()}


def lag_seconds_of(progress: Any) -> dict[str, dict[int, float | None]]:
    """As `lag_seconds`, from one progress report."""
    return {topic: {p: seconds for p, (_, seconds) in lags.items()} for topic, lags in _behind(progress).items()}


def metrics_of(progress: Any) -> dict[str, float]:
    """As `metrics`, from one progress report."""
    behind = [pair for partitions in _behind(progress).values() for pair in partitions.values()]
    records = [count for count, _ in behind]
    sources = _sources(progress)
    return {
        "avgOffsetsBehindLatest": sum(records) / len(records) if records else nan,
        "maxOffsetsBehindLatest": max(records, default=nan),
        "minOffsetsBehindLatest": min(records, default=nan),
        "maxSecondsBehindLatest": max((seconds for _, seconds in behind if seconds is not None), default=nan),
        "failedCommits": sum(source["failedCommits"] for source in sources) if sources else nan,
        "fencedCommits": sum(source["fencedCommits"] for source in sources) if sources else nan,
    }


def metrics_text_of(reports: Mapping[str, Any]) -> str:
    """As `metrics_text`, from the newest progress report of each query, by the query's name."""
    found = Metrics()
    for query, progress in reports.items():
        for key, value in metrics_of(progress).items():
            name, help_text = QUERY_METRICS[key]
            add = found.counter if key.endswith("Commits") else found.gauge
            add(GROUP, name, help_text, partial(float, value), query=query)
        for topic, partitions in _behind(progress).items():
            for partition, (records, seconds) in partitions.items():
                tags = {"query": query, "topic": topic, "partition": str(partition)}
                found.gauge(GROUP, "records-lag", "records beyond the last batch", partial(float, records), **tags)
                age = nan if seconds is None else seconds
                found.gauge(GROUP, "seconds-lag", "age of the first of these records", partial(float, age), **tags)
    return prometheus(found, "partita.spark", 0.0)


def _behind(progress: Any) -> dict[str, dict[int, tuple[int, float | None]]]:
    behind: dict[str, dict[int, tuple[int, float | None]]] = {}
    for source in _sources(progress):
        for topic, partitions in source["t"].items():
            for partition in sorted(map(int, partitions)):
                records, seconds = source["lag"].get(topic, {}).get(str(partition), (0, 0.0))
                behind.setdefault(topic, {})[partition] = (records, seconds)
    return behind


def _sources(progress: Any) -> list[dict[str, Any]]:
    """Return the progress entries of our sources; sources of other formats are left out."""
    found = []
    for source in progress["sources"] if progress is not None else ():
        latest = source["latestOffset"]
        try:
            lags = json.loads(latest) if isinstance(latest, str) else latest
        except ValueError:
            continue
        if isinstance(lags, dict) and lags.keys() >= {"v", "t", "lag"}:
            found.append(lags)
    return found
