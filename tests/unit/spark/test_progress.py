"""Lag and metrics from the progress of a query. findings/spark.md 11: Spark has no metrics for Python sources."""

from __future__ import annotations

import json
from math import isnan

from partita.spark.planning.backlog import first_unread, told
from partita.spark.planning.starts import ClusterView, PartitionFacts
from partita.spark.progress import QUERY_METRICS, lag_of, lag_seconds_of, metrics_of, metrics_text_of

VIEW = ClusterView({("a", 0): PartitionFacts(2, 25), ("a", 1): PartitionFacts(0, 4), ("a", 2): PartitionFacts(5, 9)})
REACHED = {("a", 0): 10, ("a", 1): 4}


def progress() -> dict[str, object]:
    unread = first_unread(REACHED, VIEW)
    report = told(unread, VIEW, {("a", 0): 7_000}, now_ms=9_500, failed_commits=3, fenced_commits=1)
    ends = {"v": 1, "t": {"a": {str(p): [facts.latest] * 2 for (_, p), facts in VIEW.partitions.items()}}}
    ours = {"endOffset": "{}", "latestOffset": json.dumps(ends | report)}
    others = [{"endOffset": "17", "latestOffset": latest} for latest in (None, "17", "no json", '{"a":{"0":3}}')]
    return {"sources": [ours, *others]}


def test_what_is_unread_lies_behind_the_batch_or_what_is_left_of_the_log() -> None:
    assert first_unread(REACHED, VIEW) == {("a", 0): 10, ("a", 2): 5}
    assert first_unread({("a", 0): 1}, VIEW)["a", 0] == 2


def test_lag_is_told_in_records_and_in_seconds() -> None:
    assert lag_of(progress()) == {"a": {0: 15, 1: 0, 2: 4}}
    assert lag_seconds_of(progress()) == {"a": {0: 2.5, 1: 0.0, 2: None}}
    assert lag_of(None) == lag_seconds_of(None) == {}


def test_a_record_from_the_future_is_not_behind() -> None:
    assert told({("a", 0): 10}, VIEW, {("a", 0): 99_000}, now_ms=9_500, failed_commits=0, fenced_commits=0)["lag"] == {
        "a": {"0": [15, 0]}
    }


def test_metrics_have_the_names_of_sparks_connector_and_some_more() -> None:
    assert metrics_of(progress()) == {
        "avgOffsetsBehindLatest": 19 / 3,
        "maxOffsetsBehindLatest": 15,
        "minOffsetsBehindLatest": 0,
        "maxSecondsBehindLatest": 2.5,
        "failedCommits": 3,
        "fencedCommits": 1,
    }
    assert metrics_of(progress()).keys() == QUERY_METRICS.keys()
    assert all(map(isnan, metrics_of(None).values()))


def test_metrics_as_prometheus_reads_them() -> None:
    text = metrics_text_of({"delays": progress()})
    assert 'partita_spark_query_metrics_records_lag{query="delays",topic="a",partition="0"} 15\n' in text
    assert 'partita_spark_query_metrics_seconds_lag{query="delays",topic="a",partition="2"} NaN\n' in text
    assert "# TYPE partita_spark_query_metrics_fenced_commits_total counter\n" in text
    assert 'partita_spark_query_metrics_fenced_commits_total{query="delays"} 1\n' in text
