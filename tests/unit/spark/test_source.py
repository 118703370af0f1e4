"""The data source classes as Spark's Python side uses them, without a JVM."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict, DataSourceReader, EqualTo, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxRows, ReadMinRows
from pyspark.sql.types import StructType
from pyspark.sql.worker.plan_data_source_read import records_to_arrow_batches

from partita.options import ConfigError
from partita.records.batch import build_batch
from partita.spark.planning.planner import RangeTask
from partita.spark.source import BatchReader, GroupSource, RangePartition, StreamReader
from support.spark.scripted_broker import TOPIC_ID, scripted_broker


def source(**options: str) -> GroupSource:
    return GroupSource(CaseInsensitiveDict({"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"} | options))


def test_factories_take_sparks_keyword_arguments() -> None:
    schema = source().schema()
    assert type(source().reader(schema=schema)) is BatchReader
    assert isinstance(source().streamReader(schema=schema), StreamReader)


@pytest.mark.parametrize("make", ["reader", "streamReader"])
def test_a_schema_of_ones_own_is_refused(make: str) -> None:
    with pytest.raises(ConfigError, match="the schema is fixed"):
        getattr(source(includeHeaders="true"), make)(schema=source().schema())


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({}, ReadAllAvailable()),
        ({"maxOffsetsPerTrigger": "5", "minOffsetsPerTrigger": "2"}, ReadMaxRows(5)),
        ({"maxBytesPerTrigger": "5"}, ReadMaxBytes(5)),
        ({"minOffsetsPerTrigger": "2"}, ReadMinRows(2)),
    ],
)
def test_the_read_limit_says_that_there_is_one(options: dict[str, str], limit: ReadLimit) -> None:
    assert source(**options).streamReader(schema=source().schema()).getDefaultReadLimit() == limit


def test_a_batch_says_that_limits_of_a_trigger_have_no_effect(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Spark's connector does; issue 13, nothing in silence. Once in a process, and never for a stream."""
    monkeypatch.setattr("partita.spark.source._warned", set())
    limited = source(maxOffsetsPerTrigger="5")
    limited.streamReader(schema=limited.schema())
    source().reader(schema=limited.schema())
    assert not caplog.messages
    for _ in range(2):
        limited.reader(schema=limited.schema())
    assert caplog.messages == ["limits of a trigger (maxOffsetsPerTrigger and the like) have no effect in a batch"]


def test_pushed_filters_are_taken_and_the_rest_handed_back() -> None:
    reader = pickle.loads(pickle.dumps(source().reader(schema=source().schema())))
    key = EqualTo(("key",), b"k")
    assert list(reader.pushFilters([EqualTo(("partition",), 1), key])) == [key]


def test_a_reader_passes_sparks_check_for_pushdown_switched_off() -> None:
    """Spark fails every query whose reader has its own pushFilters while its setting is off."""
    for pushdown in ("true", "false"):
        reader = source(pushdown=pushdown).reader(schema=source().schema())
        assert getattr(reader.pushFilters, "__func__", None) is DataSourceReader.pushFilters
    assert list(reader.pushFilters([EqualTo(("partition",), 1)])) == [EqualTo(("partition",), 1)]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"includeHeaders": "true"},
        {"columns": "valueSize, offset,keysize,LEADEREPOCH"},
        {"columns": "headers,value", "includeHeaders": "true"},
    ],
)
def test_rows_pass_sparks_own_check_of_arrow_batches(given: dict[str, str]) -> None:
    with scripted_broker() as (broker, _):
        broker.fetches = {0: build_batch([(1, b"k", None, [("h", b"1")]), (2, None, b"v", ())])}
        mine = source(**{"kafka.bootstrap.servers": f"127.0.0.1:{broker.server.port}"} | given)
        schema = mine.schema()
        assert isinstance(schema, StructType)
        reader = pickle.loads(pickle.dumps(mine.reader(schema=schema)))
        partition = pickle.loads(pickle.dumps(RangePartition([RangeTask("t", 0, 0, 2, 0, TOPIC_ID)])))
        (batch,) = records_to_arrow_batches(reader.read(partition), 1000, schema, mine)
    assert batch.num_rows == 2
    assert batch.schema.names == schema.names
    if "valueSize" in schema.names:
        assert batch.to_pydict() == {
            "valueSize": [None, 1], "offset": [0, 1], "keySize": [1, None], "leaderEpoch": [-1, -1],
        }  # fmt: skip


def test_spark_replaces_no_partitions_by_one_without_a_range() -> None:
    reader = source().reader(schema=source().schema())
    assert list(reader.read(InputPartition(None))) == []


def test_a_running_stream_reader_is_pickled_without_what_lives() -> None:
    with scripted_broker() as (broker, _):
        address = {"kafka.bootstrap.servers": f"127.0.0.1:{broker.server.port}"}
        reader = source(**address).streamReader(schema=source().schema())
        start = reader.initialOffset()
        assert reader.latestOffset(start, ReadAllAvailable()) is start
        assert pickle.loads(pickle.dumps(reader))._running is None


def test_the_package_that_spark_finds_imports_nothing_before_it_is_asked() -> None:
    program = (
        "import sys, pyspark_partita; assert not [m for m in sys.modules if m.startswith(('pyspark.', 'partita'))];"
        "assert pyspark_partita.DefaultSource.name() == 'partita'; assert not hasattr(pyspark_partita, 'other')"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parent)
