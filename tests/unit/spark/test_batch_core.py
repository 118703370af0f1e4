"""Batch planning against a cluster in memory: which offsets are read, what is refused."""

from __future__ import annotations

import pytest

from partita.options import ConfigError
from partita.spark.planning.batch_core import plan_batch
from partita.spark.planning.lookups import Committed
from partita.spark.planning.starts import SourceError
from partita.spark.settings.options import parse_source
from support.spark.cluster import MemoryCluster

NOW_MS = 195


@pytest.fixture
def cluster() -> MemoryCluster:
    cluster = MemoryCluster()
    cluster.create("a", 10, 20, 0)
    cluster.create("b", 5)
    return cluster


def plan(cluster: MemoryCluster, **options: str) -> list[tuple[str, int, int, int]]:
    given = {"kafka.bootstrap.servers": "h:1"} | (
        {} if {"assign", "subscribePattern"} & options.keys() else {"subscribe": "a"}
    )
    return [
        (t.topic, t.partition, t.begin, t.end)
        for t in plan_batch(parse_source(given | options), cluster, now_ms=NOW_MS)
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [("a", 0, 0, 10), ("a", 1, 0, 20)]),
        ({"subscribe": "b, a"}, [("a", 0, 0, 10), ("a", 1, 0, 20), ("b", 0, 0, 5)]),
        ({"subscribePattern": "b"}, [("b", 0, 0, 5)]),
        ({"subscribePattern": "zzz"}, []),
        ({"assign": '{"a":[1],"b":[0]}'}, [("a", 1, 0, 20), ("b", 0, 0, 5)]),
        ({"startingOffsets": '{"a":{"0":3,"1":-2,"2":0}}'}, [("a", 0, 3, 10), ("a", 1, 0, 20)]),
        ({"endingOffsets": '{"a":{"0":3,"1":-1,"2":0}}'}, [("a", 0, 0, 3), ("a", 1, 0, 20)]),
        ({"startingTimestamp": "95", "startingOffsetsByTimestampStrategy": "LATEST"}, [("a", 1, 10, 20)]),
        ({"startingTimestamp": "-100ms"}, [("a", 1, 10, 20)]),
        ({"endingTimestamp": "-155ms"}, [("a", 0, 0, 4), ("a", 1, 0, 4)]),
        ({"endingTimestamp": "40"}, [("a", 0, 0, 4), ("a", 1, 0, 4)]),
        ({"endingOffsetsByTimestamp": '{"a":{"0":20,"1":1000,"2":5}}'}, [("a", 0, 0, 2), ("a", 1, 0, 20)]),
        ({"minPartitions": "3"}, [("a", 0, 0, 10), ("a", 1, 0, 10), ("a", 1, 10, 20)]),
        ({"maxRecordsPerPartition": "10"}, [("a", 0, 0, 10), ("a", 1, 0, 10), ("a", 1, 10, 20)]),
        ({"failOnDataLoss": "false", "endingOffsets": '{"a":{"0":99,"1":1,"2":0}}'}, [("a", 0, 0, 10), ("a", 1, 0, 1)]),
    ],
)
def test_a_batch_reads_the_ranges_that_its_options_ask_for(
    cluster: MemoryCluster, options: dict[str, str], expected: list[tuple[str, int, int, int]]
) -> None:
    assert plan(cluster, **options) == expected


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"subscribe": "a,missing"}, "topic not found in the cluster: missing; create it, or do not ask for it"),
        ({"assign": '{"a":[7]}'}, "not found in the cluster: a-7"),
        ({"startingOffsets": '{"a":{"0":3}}'}, "missing: a-1, a-2"),
        ({"startingOffsets": '{"a":{"0":0,"1":0,"2":0,"3":0}}'}, "not among them: a-3"),
        ({"startingOffsets": '{"a":{"0":11,"1":0,"2":0}}'}, "startingOffsets 11 of a-0 lies after its end, offset 10"),
        (
            {"startingOffsets": '{"a":{"0":11,"1":0,"2":0}}', "failOnDataLoss": "false"},
            "startingOffsets 11 of a-0",
        ),
        ({"endingOffsets": '{"a":{"0":11,"1":0,"2":0}}'}, "the end lies after the real end of a-0"),
        ({"startingTimestamp": "50"}, "no record at or after the starting timestamp in a-2"),
        (
            {
                "startingTimestamp": "40",
                "startingOffsetsByTimestampStrategy": "latest",
                "endingOffsets": '{"a":{"0":2,"1":-1,"2":-1}}',
            },
            r"the start lies after the end that was asked for in a-0 \(offset 4 and offset 2\)",
        ),
    ],
)
def test_a_batch_that_cannot_be_read_is_refused(cluster: MemoryCluster, options: dict[str, str], said: str) -> None:
    """The last one read nothing of a-0 in silence; a random comparison with Spark's connector found it."""
    with pytest.raises(SourceError, match=said):
        plan(cluster, **options)


def test_a_start_before_the_log_start_is_a_loss(cluster: MemoryCluster) -> None:
    cluster.part("a", 1).earliest = 4
    start = {"startingOffsets": '{"a":{"0":0,"1":2,"2":0}}'}
    with pytest.raises(SourceError, match="before the first offset that is left in a-1"):
        plan(cluster, **start)
    assert plan(cluster, failOnDataLoss="false", **start) == [("a", 0, 0, 10), ("a", 1, 4, 20)]
    before = {"endingOffsets": '{"a":{"0":10,"1":2,"2":0}}', "failOnDataLoss": "false"}
    assert plan(cluster, **before) == [("a", 0, 0, 10)], "an end before what is left contradicts nothing"


def test_committed_starts_where_the_group_is_else_at_the_earliest(cluster: MemoryCluster) -> None:
    cluster.groups["g"] = {("a", 1): Committed(15)}
    assert plan(cluster, startingOffsets="committed", group="g") == [("a", 0, 0, 10), ("a", 1, 15, 20)]


def test_what_is_older_than_asked_for_is_not_read(cluster: MemoryCluster) -> None:
    given = {"kafka.bootstrap.servers": "h:1", "subscribe": "a"}
    found = plan_batch(parse_source(given), cluster, now_ms=NOW_MS, not_before_ms=95)
    assert [(t.partition, t.begin, t.end) for t in found] == [(1, 10, 20)]
    later = parse_source(given | {"startingOffsets": '{"a":{"0":0,"1":15,"2":0}}'})
    assert [(t.partition, t.begin) for t in plan_batch(later, cluster, now_ms=NOW_MS, not_before_ms=95)] == [(1, 15)]


def test_a_batch_commits_nothing(cluster: MemoryCluster) -> None:
    with pytest.raises(ConfigError, match="groupMode=commit needs a stream"):
        plan(cluster, group="g", groupMode="commit")


def test_a_topic_that_shows_up_late_is_waited_for(cluster: MemoryCluster) -> None:
    cluster.blank_looks = 2
    assert plan(cluster, subscribe="b") == [("b", 0, 0, 5)]
