"""A stream on Spark 4.0 and 4.1, which pass neither the start of a batch nor a limit. Issue 31, item 1."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict, InputPartition

from partita.spark.last_commit import offset_of
from partita.spark.planning.stream_core import StreamCore
from partita.spark.settings.options import parse_source
from partita.spark.source import GroupSource, RangePartition, StreamReader
from support.clock import ManualClock
from support.spark.cluster import MemoryCluster

OPTIONS = {
    "kafka.bootstrap.servers": "h:1", "subscribe": "t", "startingOffsets": "earliest", "offsetPollMs": "0",
    "maxOffsetsPerTrigger": "10",
}  # fmt: skip


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> MemoryCluster:
    monkeypatch.setattr("partita.spark.source.HAS_LIMITS", False)
    made = MemoryCluster()
    made.create("t", 25)
    return made


def started(cluster: MemoryCluster) -> StreamReader:
    """A run of the query, as Spark's process of the source has it."""
    source = GroupSource(CaseInsensitiveDict(OPTIONS))
    reader = source.streamReader(source.schema())
    assert isinstance(reader, StreamReader)
    reader._running = StreamCore(parse_source(OPTIONS), cluster, ManualClock())
    return reader


def ranges(tasks: list[InputPartition]) -> list[tuple[int, int]]:
    return [(one.begin, one.end) for task in tasks if isinstance(task, RangePartition) for one in task.ranges]


def batch(reader: StreamReader, start: dict[str, Any]) -> tuple[list[tuple[int, int]], dict[str, Any]]:
    """One trigger: Spark asks for the end, and plans what lies between."""
    end = reader.latestOffset()
    return ([], start) if end == start else (ranges(reader.partitions(start, end)), end)


def test_batches_are_limited_and_follow_each_other(cluster: MemoryCluster) -> None:
    reader = started(cluster)
    end = reader.initialOffset()
    seen = []
    for _ in range(4):
        found, end = batch(reader, end)
        seen += found
    assert seen == [(0, 10), (10, 20), (20, 25)]


def test_a_restart_learns_where_it_was_before_it_is_asked_where_to_go(cluster: MemoryCluster) -> None:
    first = started(cluster)
    _, end = batch(first, first.initialOffset())
    again = started(cluster)
    assert again.partitions(end, end) == [], "Spark passes the last offset of the checkpoint so, and plans nothing"
    assert batch(again, end)[0] == [(10, 20)]


def test_a_restart_with_an_unfinished_batch_runs_it_and_goes_on_behind_it(cluster: MemoryCluster) -> None:
    first = started(cluster)
    start = first.initialOffset()
    end = first.latestOffset()
    again = started(cluster)
    again.partitions(end, end)
    assert ranges(again.partitions(start, end)) == [(0, 10)]
    assert batch(again, end)[0] == [(10, 20)]


def test_offsets_in_reports_are_read_in_either_form() -> None:
    assert offset_of('{"a": null}') == offset_of("{'a': None}") == offset_of({"a": None}) == {"a": None}
