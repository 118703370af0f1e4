"""Several ranges in one task, and small batches that are read where they are planned. Issue 13, item 6."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.streaming import python_streaming_source_runner as runner
from pyspark.sql.streaming.datasource import ReadAllAvailable

from partita.errors import KafkaError
from partita.options import ConfigError
from partita.protocol.error_codes import ErrorCode
from partita.records.batch import build_batch
from partita.spark.planning.planner import RangeTask
from partita.spark.reading import prefetching
from partita.spark.reading.portions import JOINED_MAX, joined
from partita.spark.reading.prefetching import prefetched, simple_reader
from partita.spark.reading.task_reader import read_ranges
from partita.spark.settings.options import SourceOptions, parse_source
from partita.spark.source import GroupSource, StreamReader
from support.spark.scripted_broker import TOPIC_ID, ScriptedBroker, scripted_broker


@pytest.fixture
def broker() -> Iterator[ScriptedBroker]:
    with scripted_broker() as (broker, _):
        yield broker


def batch(base: int, count: int, **more: Any) -> bytes:
    records = [(base + i, None, b"%d" % (base + i), ()) for i in range(count)]
    return build_batch(records, base_offset=base, **more)


def options(broker: ScriptedBroker, **more: str) -> SourceOptions:
    client = {"kafka.bootstrap.servers": f"127.0.0.1:{broker.server.port}", "kafka.fetch.max.wait.ms": "0"}
    return parse_source(client | {"subscribe": "t"} | more)


def ranges(*bounds: tuple[int, int]) -> list[RangeTask]:
    return [RangeTask("t", p, begin, end, 0, TOPIC_ID) for p, (begin, end) in enumerate(bounds)]


def places(batches: Any) -> list[tuple[int, int]]:
    return [(row["partition"], row["offset"]) for found in batches for row in found.to_pylist()]


def test_a_task_reads_its_ranges_one_after_the_other(broker: ScriptedBroker) -> None:
    broker.fetches = {0: batch(0, 2), 2: batch(2, 3), 10: batch(10, 2)}
    found = list(read_ranges(options(broker), ranges((0, 5), (10, 12))))
    assert places(found) == [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 10), (1, 11)]
    assert len(found) == 1, "few rows are one Arrow batch"


def test_ranges_that_were_asked_for_ahead_are_given_up_with_the_task(broker: ScriptedBroker) -> None:
    broker.fetches = {0: int(ErrorCode.TOPIC_AUTHORIZATION_FAILED), 10: batch(10, 2)}
    with pytest.raises(KafkaError):
        list(read_ranges(options(broker), ranges((0, 5), (10, 12))))


def test_only_neighbours_of_few_rows_are_joined() -> None:
    def rows(*counts: int) -> list[pa.RecordBatch]:
        return [pa.record_batch({"n": pa.array(range(count))}) for count in counts]

    found = list(joined(rows(1, 2, JOINED_MAX + 1, JOINED_MAX - 1, 1, 1)))
    assert [one.num_rows for one in found] == [3, JOINED_MAX + 1, JOINED_MAX, 1]
    assert found[0].to_pydict() == {"n": [0, 0, 1]}


def test_what_is_joined_stays_small() -> None:
    """findings/spark.md 8: 4096 documents of 650 KB became one batch of 2.6 GB, of which Arrow kept the first half."""
    values = [bytes([n]) * 600 for n in range(10)]
    batches = [pa.record_batch({"value": pa.array([value])}) for value in values]
    found = list(joined(batches, bytes_max=2000))
    assert [one.num_rows for one in found] == [3, 3, 3, 1]
    assert max(one.nbytes for one in found) <= 2000
    assert [value for one in found for value in one.column("value").to_pylist()] == values
    assert [one.num_rows for one in joined(batches[:2], bytes_max=100)] == [1, 1], "one that is larger goes alone"


def test_documents_that_inflate_are_read_in_bounded_batches(broker: ScriptedBroker) -> None:
    """findings/spark.md 8, with all that a task does to its rows."""
    documents = [Random(n).randbytes(5000) * 600 for n in range(8)]
    for n, document in enumerate(documents):
        broker.fetches[n] = build_batch([(0, None, document, ())], base_offset=n, codec=4)
    found = list(read_ranges(options(broker), ranges((0, 8))))
    assert [value[:9] for one in found for value in one.column("value").to_pylist()] == [d[:9] for d in documents]
    assert [one.num_rows for one in found] == [5, 3], "16 MB in each"


def test_a_small_batch_is_read_where_it_is_planned(broker: ScriptedBroker) -> None:
    broker.fetches = {0: batch(0, 3), 10: batch(8, 4)}
    assert places(prefetched(options(broker), ranges((0, 3), (10, 12)))) == [(0, 0), (0, 1), (0, 2), (1, 10), (1, 11)]


@pytest.mark.parametrize(
    "answer",
    [
        int(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        batch(0, 1),
        build_batch([(0, None, bytes(3 << 20), ())], codec=4)[:-1] + b"?",
        build_batch([(0, None, bytes(3 << 20), ()), (0, None, b"", ())], codec=4),
    ],
    ids=["refused", "not the whole range", "damaged", "large once inflated"],
)
def test_whatever_is_in_the_way_is_left_to_the_task(broker: ScriptedBroker, answer: bytes | int) -> None:
    broker.fetches = {0: answer}
    assert prefetched(options(broker), ranges((0, 2))) is None


def test_a_leader_that_does_not_answer_is_left_to_the_task(
    broker: ScriptedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefetching, "WAIT_S", 0.05)
    broker.fetches = {0: b""}
    assert prefetched(options(broker), ranges((0, 2))) is None


def test_many_records_are_left_to_tasks(broker: ScriptedBroker) -> None:
    assert prefetched(options(broker), ranges((0, prefetching.RECORDS_MAX + 1))) is None
    assert prefetched(options(broker), []) is None
    assert broker.fetched == []


def stream(broker: ScriptedBroker, **more: str) -> tuple[GroupSource, StreamReader]:
    given = {"kafka.bootstrap.servers": f"127.0.0.1:{broker.server.port}", "subscribe": "t"}
    source = GroupSource(CaseInsensitiveDict(given | {"startingOffsets": "earliest"} | more))
    reader = source.streamReader(schema=source.schema())
    assert isinstance(reader, StreamReader)
    return source, reader


def planned(source: GroupSource, reader: StreamReader, start: object, end: object) -> io.BytesIO:
    """What Spark's own process of a source tells the JVM about a batch."""
    asked, told = io.BytesIO(), io.BytesIO()
    for offset in (start, end):
        text = json.dumps(offset).encode()
        asked.write(struct.pack("!i", len(text)) + text)
    asked.seek(0)
    runner.partitions_func(reader, source, source.schema(), 1000, asked, told)
    told.seek(0)
    return told


def number(told: io.BytesIO) -> int:
    (found,) = struct.unpack("!i", told.read(4))
    return int(found)


def test_spark_gets_the_rows_with_the_plan_and_asks_only_once(broker: ScriptedBroker) -> None:
    source, reader = stream(broker)
    start = {"v": 1, "t": {"t": {"0": [0, 0, 0], "1": [0, 0, 0]}}, "i": {}}
    end = {"v": 1, "t": {"t": {"0": [0, 3, 0], "1": [0, 0, 0]}}, "i": {}}
    broker.fetches = {0: batch(0, 3)}
    told = planned(source, reader, start, end)
    assert number(told) == 1
    told.seek(number(told), io.SEEK_CUR)
    assert number(told) == runner.NON_EMPTY_PYARROW_RECORD_BATCHES
    assert number(told) == runner.SpecialLengths.START_ARROW_STREAM
    assert pa.ipc.open_stream(told).read_all().column("offset").to_pylist() == [0, 1, 2]
    known = simple_reader()
    assert known is not None
    assert not isinstance(reader, known), "the other questions are answered by this class"


def test_a_query_that_wants_a_task_for_each_partition_gets_it(broker: ScriptedBroker) -> None:
    start = {"v": 1, "t": {"t": {"0": [0, 0, 0], "1": [0, 0, 0]}}, "i": {}}
    end = {"v": 1, "t": {"t": {"0": [0, 3, 0], "1": [0, 2, 0]}}, "i": {}}
    for more, count in (({}, 1), ({"maxRecordsPerSharedTask": "0"}, 2), ({"minPartitions": "2"}, 2)):
        _, reader = stream(broker, **more)
        broker.fetches = {0: int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)}
        assert len(reader.partitions(start, end)) == count


@pytest.mark.parametrize(
    ("given", "in_stream", "records"),
    [
        ({}, True, 4096),
        ({}, False, 0),
        ({"view": "offset_commits"}, False, 131_072),
        ({"view": "groups"}, True, 131_072),
        ({"minPartitions": "3"}, True, 0),
        ({"maxRecordsPerPartition": "3"}, True, 0),
        ({"maxRecordsPerSharedTask": "7"}, False, 7),
        ({"maxRecordsPerSharedTask": "7", "maxRecordsPerPartition": "3"}, True, 7),
    ],
)
def test_what_shares_a_task_by_default(given: dict[str, str], in_stream: bool, records: int) -> None:
    named = {} if "view" in given else {"subscribe": "t"}
    found = parse_source({"kafka.bootstrap.servers": "h:1"} | named | given)
    assert found.shared_task_records(in_stream=in_stream) == records


def test_more_tasks_and_fewer_is_a_contradiction() -> None:
    with pytest.raises(ConfigError, match="leave one of them out"):
        parse_source(
            {"kafka.bootstrap.servers": "h:1", "subscribe": "t"}
            | {"minPartitions": "3", "maxRecordsPerSharedTask": "7"}
        )


def test_no_limit_is_left_to_spark(broker: ScriptedBroker) -> None:
    """The rows of a batch come with its plan, whatever limits the query has."""
    _, reader = stream(broker, maxOffsetsPerTrigger="5")
    start = reader.initialOffset()
    assert reader.latestOffset(start, ReadAllAvailable()) is start
