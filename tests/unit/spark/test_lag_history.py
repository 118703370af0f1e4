"""How far behind each commit was when it was made. Issue 13, item 2: view=lag_history."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema

from partita.group.records.log_records import CommittedOffset, offset_key, offset_value
from partita.spark.reading.lag_history import SAMPLES
from partita.spark.reading.tables import read_schema
from partita.spark.reading.views import decoder
from partita.spark.settings.table import VIEWS
from support.spark.cluster import MemoryCluster


def rows_of(cluster: MemoryCluster, commits: list[tuple[str, str, int, int | None, int]]) -> list[dict[str, Any]]:
    """The rows for commits of (group, topic, partition, offset, time in ms); without an offset it is a tombstone."""
    values = [None if c[3] is None else offset_value(CommittedOffset(offset=c[3], commit_ms=c[4])) for c in commits]
    records = pa.record_batch(
        {
            "key": pa.array(
                [offset_key(group, topic, partition) for group, topic, partition, _, _ in commits], pa.binary()
            ),
            "value": pa.array(values, pa.binary()),
            "partition": pa.array([0] * len(commits), pa.int32()),
            "offset": pa.array(range(len(commits)), pa.int64()),
            "timestamp": pa.array([0] * len(commits), pa.timestamp("us", "UTC")),
        }
    )
    schema = to_arrow_schema(read_schema(VIEWS["lag_history"]), timezone="UTC")
    found = decoder("lag_history", cluster)(records, schema)
    assert found.schema == schema
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


def test_the_end_at_the_time_of_the_commit_counts_and_not_the_one_of_today() -> None:
    """The records of `MemoryCluster` are ten milliseconds apart."""
    cluster = MemoryCluster()
    cluster.create("t", 100, 30)
    rows = rows_of(
        cluster,
        [
            ("g", "t", 0, 5, 200), ("g", "t", 1, 7, 200), ("h", "t", 0, 50, 99_000), ("g", "t", 0, None, 0),
            ("g", "gone", 0, 3, 200), ("g", "t", 0, 60, 400),
        ],
    )  # fmt: skip
    assert [(r["group"], r["topic"], r["partition"], r["offset"], r["endOffset"], r["lag"]) for r in rows] == [
        ("g", "t", 0, 5, 21, 16), ("g", "t", 1, 7, 21, 14), ("h", "t", 0, 50, 100, 50), ("g", "gone", 0, 3, None, None),
        ("g", "t", 0, 60, 41, 0),
    ]  # fmt: skip
    assert [r["isInterpolated"] for r in rows] == [False, False, False, None, False]
    assert [r["logOffset"] for r in rows] == [0, 1, 2, 4, 5]


def test_many_commits_cost_few_questions_and_what_lies_between_is_interpolated() -> None:
    cluster = MemoryCluster()
    cluster.create("t", 10_000)
    rows = rows_of(cluster, [("g", "t", 0, i, 97 * i) for i in range(1_000)])
    assert cluster.looks == 1
    assert sum(not row["isInterpolated"] for row in rows) == SAMPLES
    assert all(abs(row["endOffset"] - (97 * i // 10 + 1)) <= 1 for i, row in enumerate(rows))


def test_the_questions_go_where_the_log_grew_and_none_to_where_it_stood_still() -> None:
    """The log of a thousand records ends at 10 s; commits go on for long after that."""
    cluster = MemoryCluster()
    cluster.create("t", 1_000)
    times = [*range(0, 10_000, 1_000), *range(10_000, 1_000_000, 1_000)]
    rows = rows_of(cluster, [("g", "t", 0, 0, time) for time in times])
    known = [(row["endOffset"], time) for row, time in zip(rows, times, strict=True) if not row["isInterpolated"]]
    assert [end for end, _ in known] == [min(1_000, time // 10 + 1) for _, time in known]
    assert len(known) > 980, "one question in two halves what is not known"


def test_nothing_is_asked_when_there_are_no_commits() -> None:
    cluster = MemoryCluster()
    assert rows_of(cluster, []) == rows_of(cluster, [("g", "t", 0, None, 0)]) == []
    assert cluster.looks == 0


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 3)), max_size=80))
def test_what_is_not_interpolated_is_exact_and_what_is_lies_between(commits: list[tuple[int, int]]) -> None:
    cluster = MemoryCluster()
    cluster.create("t", 3, 12, 0, 150)
    rows = rows_of(cluster, [("g", "t", partition, 0, 10 * place) for place, partition in commits])
    for row, (place, partition) in zip(rows, commits, strict=True):
        end = min(cluster.part("t", partition).latest, place + 1)
        assert row["endOffset"] == end or (row["isInterpolated"] and 0 <= row["endOffset"] <= 150)
