"""Spark streams from topics: limits, checkpoints, group commits, losses, and writing to a topic."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from partita.spark import lag, lag_seconds, metrics, metrics_text, register
from partita.spark.progress import lag_of, lag_seconds_of
from support.producer.transaction_stories import await_markers
from support.spark.world import Collector

if TYPE_CHECKING:
    from support.spark.world import SparkWorld

pytestmark = pytest.mark.spark


def eventually(holds: Callable[[], object], seconds: float = 120) -> bool:
    """Whether a fact of another process becomes true in time."""
    limit = time.monotonic() + seconds
    while not (found := holds()) and time.monotonic() < limit:
        time.sleep(0.05)
    return bool(found)


def test_available_now_reads_in_limited_batches_and_commits_the_last_one_too(world: SparkWorld) -> None:
    world.create(2)
    world.produce("abcd")
    world.produce("ef", partition=1)
    sink = Collector()
    options = {"group": world.group, "groupMode": "commit", "queryName": "q", "maxOffsetsPerTrigger": "3"}
    query = sink.run(world.stream(**options))
    assert sink.values == [["a", "b", "e"], ["c", "d", "f"]]
    assert world.committed(2) == {0: (4, "spark:q:1"), 1: (2, "spark:q:1")}
    progress = query.lastProgress
    assert progress is not None
    end = json.loads(progress["sources"][0]["endOffset"])
    assert end["t"] == {world.topic: {"0": [2, 4, 0], "1": [1, 2, 0]}}
    first = query.recentProgress[0]
    assert lag_of(first) == {world.topic: {0: 2, 1: 1}}, "the lag behind the first batch"
    ages = lag_seconds_of(first)[world.topic]
    assert ages == {0: pytest.approx(time.time() - 1.7e9, abs=300), 1: pytest.approx(ages[0], abs=1)}
    assert (lag(query), lag_seconds(query)) == ({world.topic: {0: 0, 1: 0}},) * 2
    world.produce("xyz")
    sink.run(world.stream(**options))
    assert sink.values[2:] == [["x", "y", "z"]]
    assert world.committed(2)[0] == (7, "spark:q:2")


def test_a_batch_that_failed_is_replayed_with_the_same_rows(world: SparkWorld) -> None:
    world.create()
    world.produce("abcdef")
    sink = Collector(fail_in=1)
    options = {"group": world.group, "groupMode": "commit", "maxOffsetsPerTrigger": "2"}
    with pytest.raises(Exception, match="batch 1 was told to fail"):
        sink.run(world.stream(**options))
    assert world.committed()[0][0] == 2
    world.produce("gh")
    sink.fail_in = None
    sink.run(world.stream(**options))
    assert sink.batches[1] == sink.batches[2] == (1, ["c", "d"])
    assert [values for _, values in sink.batches[3:]] == [["e", "f"], ["g", "h"]]
    assert world.committed()[0][0] == 8


def test_partitions_share_tasks_where_there_are_fewer_cores(world: SparkWorld) -> None:
    """Issue 13, item 6: the session's two cores get a task each, and the checkpoint notes it. (decision 0261)"""
    world.create(4)
    for partition in range(4):
        world.produce(map(str, range(2500)), partition)
    seen: list[tuple[int, int]] = []
    stream = world.stream().writeStream.foreachBatch(
        lambda rows, _: seen.append((rows.rdd.getNumPartitions(), rows.count()))
    )
    checkpoint = Path(Collector().checkpoint)
    stream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()
    assert seen == [(2, 10_000)]
    assert json.loads((checkpoint / "offsets" / "0").read_text().splitlines()[-1])["s"] == 5625


def test_an_idle_stream_has_no_lag(world: SparkWorld) -> None:
    world.create()
    world.produce("ab")
    sink = Collector()
    query = sink.start(world.stream(group=world.group, groupMode="commit"), processingTime="100 milliseconds")
    try:
        assert eventually(lambda: world.committed().get(0, (0, ""))[0] == 2)
        world.produce("c")
        assert eventually(lambda: world.committed()[0][0] == 3)
        assert metrics(query)["maxOffsetsBehindLatest"] == metrics(query)["failedCommits"] == 0
        assert f'records_lag{{query="{query.id}",topic="{world.topic}",partition="0"}} 0' in metrics_text(world.spark)
    finally:
        query.stop()
    assert sink.values == [["a", "b"], ["c"]]


def test_a_query_stopped_right_after_a_batch_leaves_no_lag(world: SparkWorld) -> None:
    world.create()
    world.produce("ab")
    sink = Collector()
    query = sink.start(world.stream(group=world.group, groupMode="commit", queryName="s"), processingTime="1 hour")
    assert eventually(lambda: query.lastProgress is not None)
    assert world.committed() == {}
    query.stop()
    assert eventually(lambda: world.committed() == {0: (2, "spark:s:0")})


def test_a_session_of_ones_own_that_ends_right_after_its_query_leaves_no_lag(world: SparkWorld) -> None:
    """With register() alone, too. Spark tells of the end in a thread of its own: a script was through before that, and
    the last batch was never committed (4 of 4 scripts). Issue 13, item 1."""
    world.create()
    world.produce(["a", "b"])
    own = register(world.spark.newSession())
    assert own._partita_watch is not world.spark._partita_watch  # type: ignore[attr-defined]  # kept with a session
    stream = replace(world, spark=own).stream(group=world.group, groupMode="commit", queryName="r")
    assert own.streams.active == []
    query = Collector().start(stream, once=True)
    assert query.awaitTermination(180)
    own._partita_watch.settle()  # type: ignore[attr-defined]  # what the end of the interpreter does
    assert world.committed() == {0: (2, "spark:r:0")}


def test_a_query_that_leaves_columns_unread_is_told_so(world: SparkWorld, caplog: pytest.LogCaptureFixture) -> None:
    world.create()
    world.produce("ab")

    def told(query_name: str, *expressions: str, **options: str) -> list[str]:
        caplog.clear()
        with caplog.at_level("INFO", "partita.spark"):
            rows = world.stream(**options).selectExpr(*expressions)
            writer = rows.writeStream.format("noop").queryName(query_name).trigger(availableNow=True)
            assert writer.option("checkpointLocation", Collector().checkpoint).start().awaitTermination(180)
        return [text.partition(" uses ")[2] for text in caplog.messages if f"query {query_name} uses" in text]

    assert told("one", "offset + 1") == [
        "1 of the 7 columns that it reads; columns=offset would read only what it needs"
    ]
    assert told("pruned", "offset + 1", columns="offset") == []
    assert told("all", "*") == []


def test_once_reads_everything_in_one_batch(world: SparkWorld) -> None:
    world.create()
    world.produce("abc")
    sink = Collector()
    sink.run(world.stream(maxOffsetsPerTrigger="1"), once=True)
    assert sink.values == [["a", "b", "c"]]


def test_without_a_start_only_what_comes_later_is_read(world: SparkWorld) -> None:
    world.create()
    world.produce("old")
    sink = Collector()
    sink.run(world.stream(startingOffsets="latest"))
    world.produce(["new"])
    sink.run(world.stream(startingOffsets="latest"))
    assert sink.values == [[], ["new"]]


def test_removed_records_fail_the_query_unless_told_otherwise(world: SparkWorld) -> None:
    world.create()
    world.produce("ab")
    sink = Collector()
    sink.run(world.stream())
    world.produce("cdef")
    world.delete_records(before=4)
    with pytest.raises(Exception, match=r"offsets 2 to 4 of .* were removed before they were read"):
        sink.run(world.stream())
    sink.run(world.stream(failOnDataLoss="false"))
    assert sink.values == [["a", "b"], ["e", "f"]]


def test_a_topic_made_again_is_noticed(world: SparkWorld) -> None:
    world.create()
    world.produce("abc")
    sink = Collector()
    sink.run(world.stream())
    world.delete()
    world.create()
    world.produce("xy")
    with pytest.raises(Exception, match="deleted and recreated"):
        sink.run(world.stream())
    sink.run(world.stream(failOnDataLoss="false"))
    assert sink.values == [["a", "b", "c"], ["x", "y"]]


def test_a_stream_is_written_to_a_topic(world: SparkWorld) -> None:
    world.create()
    world.produce("abc")
    copy = f"{world.topic}-copy"
    world.create(topic=copy)
    stream = world.stream().selectExpr("key", "concat(cast(value as string), '!') as value")
    writer = stream.writeStream.format("partita").options(**world.options(topic=copy))
    query = writer.option("checkpointLocation", Collector().checkpoint).trigger(availableNow=True).start()
    assert query.awaitTermination(180)
    assert world.values(subscribe=copy) == ["a!", "b!", "c!"]


def test_options_that_make_no_sense_in_a_stream(world: SparkWorld) -> None:
    world.create()
    with pytest.raises(Exception, match="endingTimestamp has no meaning in a stream"):
        Collector().run(world.stream(endingTimestamp="5"))


def test_process_all_available_sees_every_record_that_was_there(world: SparkWorld) -> None:
    """findings/spark.md 2: 18 of 20 records were not there yet when processAllAvailable returned."""
    world.create()
    sink = Collector()
    query = sink.start(world.stream(), processingTime="0 seconds")
    try:
        for number in range(8):
            world.produce([str(number)])
            query.processAllAvailable()
            assert [v for values in sink.values for v in values] == [str(n) for n in range(number + 1)]
    finally:
        query.stop()


def test_a_checkpoint_of_sparks_own_connector_is_continued(world: SparkWorld) -> None:
    """findings/spark.md 4: changing .format() of a running stream lost the place."""
    world.create()
    world.produce("abcde")
    sink = Collector()
    checkpoint = Path(sink.checkpoint)
    times = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 1_700_000_000_000, "conf": {}})
    for batch, end in enumerate((2, 4)):
        (checkpoint / "offsets").mkdir(exist_ok=True)
        (checkpoint / "offsets" / str(batch)).write_text(f'v1\n{times}\n{{"{world.topic}":{{"0":{end}}}}}')
    (checkpoint / "commits").mkdir()
    (checkpoint / "commits" / "0").write_text('v1\n{"nextBatchWatermarkMs":0}')
    (checkpoint / "metadata").write_text('{"id":"5a1c1d8e-0d1b-4a52-9d7e-0d2f5d3f8a11"}')
    sink.run(world.stream())
    assert [values for values in sink.values if values] == [["c", "d"], ["e"]]


def test_a_query_that_loses_its_commit_log_writes_no_row_twice(world: SparkWorld, tmp_path: Path) -> None:
    """What a driver leaves that dies between the sink's commit and Spark's own: the batch is replayed."""
    world.create(2)
    target = f"{world.topic}-copy"
    world.create(2, topic=target)
    for part in range(2):
        world.produce([f"{part}-{n}" for n in range(20)], partition=part)
    checkpoint = tmp_path / "checkpoint"

    def run() -> None:
        written = (
            world.stream().select("key", "value").writeStream.format("partita")
            .options(**world.options(topic=target, exactlyOnce="true", sinkName=target))
            .option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        )  # fmt: skip
        written.awaitTermination()

    for _ in range(2):
        run()
        for commit in (checkpoint / "commits").iterdir():
            commit.unlink()
    run()
    await_markers(world.bootstrap)
    found = world.read(subscribe=target, **{"kafka.isolation.level": "read_committed"}).selectExpr("string(value) v")
    assert Counter(row.v for row in found.collect()) == Counter(f"{p}-{n}" for p in range(2) for n in range(20))
