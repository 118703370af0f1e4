"""The data source classes as Spark's Python side uses them, without a JVM."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.datasource import CaseInsensitiveDict, DataSourceReader, EqualTo, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxRows, ReadMinRows
from pyspark.sql.types import StringType, StructField, StructType, TimestampNTZType
from pyspark.sql.worker.plan_data_source_read import records_to_arrow_batches

from partita import Broker, Producer
from partita.options import ConfigError
from partita.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from partita.records.batch import build_batch
from partita.spark.cluster.broker_link import link_to
from partita.spark.planning.planner import RangeTask
from partita.spark.planning.starts import SourceError
from partita.spark.reading.tables import check_write
from partita.spark.reading.task_reader import decoded
from partita.spark.settings.options import parse_source
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


def test_a_topic_that_does_not_exist_is_named_when_the_read_is_loaded(partita_broker: Broker) -> None:
    link = link_to({"bootstrap.servers": partita_broker.bootstrap})
    there = CreatableTopic(name="there", num_partitions=1, replication_factor=1)
    link.call(link.cluster.request(None, CreateTopicsRequest(topics=[there], timeout_ms=5000)))
    address = {"kafka.bootstrap.servers": partita_broker.bootstrap}
    assert GroupSource(CaseInsensitiveDict(address | {"subscribe": "there"})).schema()
    for asked in ({"subscribe": "there,gone"}, {"assign": '{"gone":[0]}'}):
        with pytest.raises(SourceError, match="topic not found in the cluster: gone; create it"):
            GroupSource(CaseInsensitiveDict(address | asked)).schema()


def test_the_first_rows_of_a_task_come_in_a_small_batch() -> None:
    """`show()` and `limit` end after it."""
    values = pa.array([b"%d" % i for i in range(5000)], pa.binary())
    options = parse_source({"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t", "columns": "value"})
    found = list(decoded(options, [pa.record_batch({"value": values})] * 2))
    assert [batch.num_rows for batch in found] == [1000, 4000, 5000]
    assert pa.concat_arrays([batch.column("value") for batch in found[:2]]) == values


STREAM = """
import sys
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.streaming.datasource import ReadAllAvailable
others = set(sys.modules)
from partita.spark.source import GroupSource
stream = GroupSource(CaseInsensitiveDict({"kafka.bootstrap.servers": sys.argv[1], "subscribe": "t"}))
reader = stream.streamReader(schema=stream.schema())
reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
print(*{"pyarrow", "numpy", "pandas"} & sys.modules.keys(), len(sys.modules.keys() - others))
"""


def test_planners_and_the_processes_of_streams_import_little_before_the_first_rows(partita_broker: Broker) -> None:
    """Spark starts one for each query: 160 modules take 0.11 s of CPU time beyond pyspark's, numpy alone 0.1 s."""
    with Producer(bootstrap_servers=partita_broker.bootstrap) as producer:
        producer.send("t", b"x")
    command = [sys.executable, "-c", STREAM, partita_broker.bootstrap]
    (count,) = subprocess.check_output(command, text=True).split()
    assert 100 < int(count) <= 180


def test_a_column_timestamp_of_another_type_is_refused_and_not_replaced_by_now() -> None:
    columns = StructType([StructField("value", StringType()), StructField("timestamp", TimestampNTZType())])
    with pytest.raises(ConfigError, match="column timestamp must be timestamp, not timestamp_ntz"):
        check_write(columns, has_topic=True)
