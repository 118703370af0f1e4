"""What goes by the cores of a session: members of groupMembers=auto, tasks of a stream. Issue 13, items 1 and 6."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark import cloudpickle
from pyspark.sql.types import StructType

from partita.options import ConfigError
from partita.spark.cores import cores_asked_for
from partita.spark.planning.planner import SHARED_RECORDS_MAX, shared_by_cores, together
from partita.spark.planning.stream_core import StreamCore
from partita.spark.settings.options import parse_source
from partita.spark.source import GroupSource, StreamReader, source_for
from support.clock import ManualClock
from support.spark.cluster import MemoryCluster

OPTIONS = {
    "kafka.bootstrap.servers": "h:1", "subscribe": "t", "group": "g", "groupMode": "member", "groupMembers": "auto",
}  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "cores"),
    [
        ({}, 0),
        ({"spark.executor.instances": "3", "spark.executor.cores": "4"}, 12),
        ({"spark.executor.instances": "3"}, 3),
        ({"spark.executor.cores": "4"}, 0),
        ({"spark.executor.cores": "4", "spark.cores.max": "6"}, 6),
        ({"spark.executor.instances": "3", "spark.executor.cores": "4", "spark.cores.max": "6"}, 6),
        (
            {"spark.executor.instances": "2", "spark.dynamicAllocation.maxExecutors": "5", "spark.executor.cores": "2"},
            10,
        ),
        ({"spark.dynamicAllocation.maxExecutors": "infinity", "spark.executor.cores": "2"}, 0),
    ],
)
def test_what_the_settings_ask_for(settings: dict[str, str], cores: int) -> None:
    assert cores_asked_for(settings) == cores


def reader_of(source: type[GroupSource]) -> StreamReader:
    made = source(OPTIONS)
    reader = made.streamReader(made.schema())
    assert isinstance(reader, StreamReader)
    return reader


def travelled(thing: Any) -> Any:
    """The same on an executor, as Spark sends it."""
    return pickle.loads(cloudpickle.dumps(thing))  # type: ignore[no-untyped-call]  # pyspark does not say its types


def test_the_cores_travel_with_the_source_that_a_session_registers() -> None:
    source = travelled(source_for(5, is_local=True))
    assert (source.name(), source.cores, GroupSource.cores) == ("partita", 5, None)
    reader = travelled(reader_of(source))
    assert (reader._cores, reader._is_local) == (5, True)
    assert not travelled(reader_of(source_for(5)))._is_local


def test_where_the_cores_are_not_known_the_word_auto_is_refused_when_it_is_planned() -> None:
    assert isinstance(GroupSource(OPTIONS).schema(), StructType)
    with pytest.raises(ConfigError, match=r"groupMembers=auto needs session\(\) or register\(spark\)"):
        reader_of(GroupSource)


def core(cores: int | None, cluster: MemoryCluster | None = None, **more: str) -> StreamCore:
    """A query over six partitions of 10,000 records."""
    if cluster is None:
        cluster = MemoryCluster()
        cluster.create("t", *[10_000] * 6)
    given = {"kafka.bootstrap.servers": "h:1", "subscribe": "t", "startingOffsets": "earliest", "offsetPollMs": "0"}
    return StreamCore(parse_source(given | more), cluster, ManualClock(), cores=cores)


def batch_of(planner: StreamCore) -> dict[str, Any]:
    return planner.latest_offset(planner.initial_offset(), use_limits=True)


@pytest.mark.parametrize(
    ("cores", "more", "tasks"),
    [
        (2, {}, [3, 3]),
        (4, {}, [1, 1, 1, 1, 1, 1]),
        (1, {}, [6]),
        (None, {}, [1, 1, 1, 1, 1, 1]),
        (2, {"maxRecordsPerSharedTask": "0"}, [1, 1, 1, 1, 1, 1]),
        (2, {"maxRecordsPerSharedTask": "20000"}, [2, 2, 2]),
        (2, {"minPartitions": "6"}, [1, 1, 1, 1, 1, 1]),
    ],
)
def test_a_core_gets_few_tasks_of_a_batch(cores: int | None, more: dict[str, str], tasks: list[int]) -> None:
    planner = core(cores, None, **more)
    end = batch_of(planner)
    assert [len(ranges) for ranges in together(planner.partitions(None, end), planner.shared_records(end))] == tasks


def test_a_batch_that_is_run_again_on_another_machine_has_the_same_tasks() -> None:
    """A sink that writes exactly once finds the markers of its tasks only if they hold the same rows."""
    end = batch_of(core(2))
    again = core(64)
    assert again.shared_records(end) == core(2).shared_records(end) == 33_750
    assert again.shared_records(batch_of(again)) == 4096
    assert core(2).shared_records(batch_of(core(None))) == 4096, "planned where the cores were not known"


def test_the_tasks_of_the_next_batch_go_by_its_own_size() -> None:
    cluster = MemoryCluster()
    cluster.create("t", *[10_000] * 6)
    planner = core(2, cluster)
    large = batch_of(planner)
    assert large["s"] == 33_750
    cluster.produce("t", 0, 20)
    small = planner.latest_offset(large, use_limits=True)
    assert "s" not in small
    assert planner.shared_records(small) == 4096


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=30), st.integers(1, 64))
def test_no_core_is_without_work_that_others_have_twice(sizes: list[int], cores: int) -> None:
    """However the sizes are, no task of several partitions is more than an eighth above the share of a core."""
    bound = shared_by_cores(sizes, cores)
    assert bound <= min(SHARED_RECORDS_MAX, sum(sizes) / cores * 9 / 8)
