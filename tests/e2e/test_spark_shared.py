"""A Spark query shares its group with a plain consumer that is killed; queries that may not run are stopped.

Issue 13, item 1.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import support.spark.plain_consumer
from partita.admin import Admin
from partita.options import ConfigError
from partita.spark import commit_stopped, commit_when_stopped
from partita.spark.query_watch import ConnectWatch, QueryWatch
from partita.spark.settings.options import parse_source
from support.spark.world import Collector

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import QueryProgressEvent

    from support.spark.world import SparkWorld

pytestmark = pytest.mark.spark
PLAIN = Path(str(support.spark.plain_consumer.__file__))


def eventually(holds: Callable[[], object], seconds: float = 120) -> bool:
    """Whether a fact of another process becomes true in time."""
    limit = time.monotonic() + seconds
    while not (found := holds()) and time.monotonic() < limit:
        time.sleep(0.05)
    return bool(found)


class PlainProcess:
    """The consumer of `support.spark.plain_consumer`; its lines arrive as it prints them."""

    def __init__(self, world: SparkWorld) -> None:
        command = [sys.executable, str(PLAIN), world.bootstrap, world.topic, world.group]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.read: list[str] = []
        self.held = ""
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            kind, _, rest = line.strip().partition(" ")
            if kind == "held":
                self.held = rest
            else:
                self.read.append(rest.split()[2])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def test_a_query_and_a_consumer_share_a_group_and_the_consumer_is_killed(world: SparkWorld) -> None:
    world.create(4)
    sink = Collector()
    options = {
        "group": world.group, "groupMode": "member", "queryName": "shared",
        "kafka.session.timeout.ms": "10000", "kafka.heartbeat.interval.ms": "200",
    }  # fmt: skip
    query = sink.start(world.stream(**options), processingTime="100 milliseconds")
    plain = PlainProcess(world)
    try:
        assert eventually(lambda: plain.held.count(",") == 1), "the consumer never held two partitions"
        for partition in range(4):
            world.produce([f"a{partition}{i}" for i in range(50)], partition)
        assert eventually(lambda: len(plain.read) == 100), query.exception()
        plain.kill()
        for partition in range(4):
            world.produce([f"b{partition}{i}" for i in range(50)], partition)
        assert eventually(lambda: sum(map(len, sink.values)) == 300), query.exception()
        assert eventually(lambda: [end for end, _ in world.committed(4).values()] == [100] * 4)
    finally:
        plain.kill()
        query.stop()
    rows = [value for values in sink.values for value in values]
    assert sorted(rows + plain.read) == sorted(f"{w}{p}{i}" for w in "ab" for p in range(4) for i in range(50))
    again = Collector(checkpoint=sink.checkpoint)
    world.produce(["c"], 3)
    again.run(world.stream(**options))
    assert again.values == [["c"]], "the checkpoint did not go on where it was"
    assert world.committed(4)[3][0] == 101


def test_a_stateful_query_in_member_mode_is_stopped_and_the_log_says_why(
    world: SparkWorld, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    world.create()
    counted = world.stream(group=world.group, groupMode="member").groupBy("partition").count()
    with caplog.at_level(logging.ERROR, "partita.spark"):
        query = (
            counted.writeStream.format("noop").outputMode("complete")
            .option("checkpointLocation", str(tmp_path)).start()
        )  # fmt: skip
        assert eventually(lambda: not query.isActive)
    assert "groupMode=member does not go with state (Aggregate)" in caplog.text


def test_a_query_with_asynchronous_progress_is_stopped(
    world: SparkWorld, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """Spec 1.5.10: Spark asks for the next batch before it has logged the last one as done."""
    world.create()
    stream = world.stream(group=world.group, groupMode="commit", offsetAuthority="group")
    with caplog.at_level(logging.ERROR, "partita.spark"):
        query = (
            stream.writeStream.format("noop").option("asyncProgressTrackingEnabled", "true")
            .option("checkpointLocation", str(tmp_path)).start()
        )  # fmt: skip
        assert eventually(lambda: not query.isActive)
    assert "asynchronous progress tracking does not go with groupMode=member or offsetAuthority=group" in caplog.text
    assert world.committed() == {}


def test_the_last_batch_of_a_query_with_asynchronous_progress_is_not_committed(
    world: SparkWorld, tmp_path: Path
) -> None:
    """It is in no commit log when the query stops, and was committed: the group was ahead of the checkpoint."""
    world.create()
    world.produce("ab")
    query = (
        world.stream(group=world.group, groupMode="commit").writeStream.format("noop")
        .option("asyncProgressTrackingEnabled", "true").option("asyncProgressTrackingCheckpointIntervalMs", "60000")
        .option("checkpointLocation", str(tmp_path)).trigger(processingTime="1 hour").start()
    )  # fmt: skip
    watch = world.spark._partita_watch  # type: ignore[attr-defined]  # kept with the session it belongs to
    try:
        assert eventually(lambda: query.lastProgress is not None), query.exception()
    finally:
        query.stop()
    assert eventually(lambda: str(query.runId) not in watch._running)
    watch.settle()
    assert world.committed() == {}


def test_two_sources_of_one_query_in_one_group_are_stopped(
    world: SparkWorld, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    world.create()
    options = {"group": world.group, "groupMode": "member"}
    both = world.stream(**options, queryName="one").union(world.stream(**options, queryName="two"))
    with caplog.at_level(logging.ERROR, "partita.spark"):
        query = both.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
        assert eventually(lambda: not query.isActive)
    assert f"two sources of one query are in group {world.group}" in caplog.text


def test_a_query_is_as_many_members_as_the_session_has_cores(world: SparkWorld) -> None:
    world.create(4)
    options = {"group": world.group, "groupMode": "member", "groupMembers": "auto", "leaveOnStop": "true"}
    query = Collector().start(world.stream(**options), processingTime="100 milliseconds")
    with Admin(bootstrap_servers=world.bootstrap) as admin:
        try:
            assert eventually(lambda: query.lastProgress is not None), query.exception()
            found = admin.describe_group(world.group)
        finally:
            query.stop()
        cores = world.spark.sparkContext.defaultParallelism
        assert sorted(str(member.group_instance_id)[-2:] for member in found.members) == [f"-{i}" for i in range(cores)]


def test_the_second_query_in_a_group_is_stopped(world: SparkWorld, caplog: pytest.LogCaptureFixture) -> None:
    """findings/spark.md 12: two queries with one group ran side by side, and both committed."""
    world.create()
    options = {"group": world.group, "groupMode": "commit"}
    first = Collector().start(world.stream(**options), processingTime="1 second")
    try:
        second = Collector().start(world.stream(**options), processingTime="1 second")
        assert eventually(lambda: not second.isActive)
        assert f"another query of this session runs in group {world.group}" in caplog.text
        assert first.isActive
    finally:
        first.stop()


def test_the_progress_of_a_batch_is_not_read_by_the_watch(world: SparkWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Py4J asks the JVM for each field: 40 ms of CPU time for every micro-batch of every query of the session."""
    read: list[QueryProgressEvent] = []
    monkeypatch.setattr(QueryWatch, "onQueryProgress", lambda self, event: read.append(event))
    world.create()
    world.produce("abc")
    sink = Collector()
    sink.run(world.stream(group=world.group, groupMode="commit", maxOffsetsPerTrigger="1"))
    assert sink.values == [["a"], ["b"], ["c"]]
    assert eventually(lambda: [end for end, _ in world.committed().values()] == [3]), "the last batch is committed"
    assert read == []


def test_a_stopped_query_can_be_committed_for_from_its_progress(world: SparkWorld) -> None:
    """Over Spark Connect no listener does it."""

    class Stopped:
        lastProgress = {
            "sources": [
                {"endOffset": f'{{"v":1,"t":{{"{world.topic}":{{"0":[0,2,0]}}}},"n":0}}'},
                {"endOffset": '{"v":1,"t":{"another":{"0":[0,7,0]}},"n":0}'},
                {"endOffset": None},
            ]
        }

    world.create()
    world.produce("ab")
    options = world.options(group=world.group, groupMode="commit", queryName="c")
    commit_stopped(Stopped(), options)  # type: ignore[arg-type]  # all it asks of a query is its last progress
    assert world.committed() == {0: (2, "spark:c:0")}
    with pytest.raises(ConfigError, match="must be those of a read with groupMode=commit"):
        commit_stopped(Stopped(), world.options())  # type: ignore[arg-type]  # see above


def test_a_query_of_spark_connect_is_committed_for_when_it_ends(world: SparkWorld) -> None:
    def end(offset: int) -> str:
        return f'{{"v":1,"t":{{"{world.topic}":{{"0":[0,{offset},0]}}}},"n":0}}'

    def progress(run: str, offset: int) -> Any:
        return SimpleNamespace(progress=SimpleNamespace(runId=run, sources=[SimpleNamespace(endOffset=end(offset))]))

    world.create()
    world.produce("abcd")
    options = parse_source(world.options(group=world.group, groupMode="commit", queryName="c"))
    query = SimpleNamespace(runId="mine", lastProgress={"sources": [{"endOffset": end(1)}]})
    watch = ConnectWatch(query, options)
    watch.onQueryProgress(progress("mine", 3))
    watch.onQueryProgress(progress("another", 4))
    watch.onQueryTerminated(SimpleNamespace(runId="another"))  # type: ignore[arg-type]  # all that is asked of it
    assert world.committed() == {}
    watch.onQueryTerminated(SimpleNamespace(runId="mine"))  # type: ignore[arg-type]  # see above
    assert world.committed() == {0: (3, "spark:c:0")}
    ConnectWatch(query, options).onQueryTerminated(SimpleNamespace(runId="mine"))  # type: ignore[arg-type]  # see above
    assert world.committed() == {0: (3, "spark:c:0")}, "a commit is never lowered"
    listening = SimpleNamespace(streams=SimpleNamespace(addListener=lambda listener: None))
    progress_4 = {"sources": [{"endOffset": end(4)}]}
    ended = SimpleNamespace(runId="mine", lastProgress=progress_4, isActive=False, _session=listening)
    commit_when_stopped(
        ended,  # type: ignore[arg-type]  # all that is asked of it
        world.options(group=world.group, groupMode="commit", queryName="c"),
    )
    assert world.committed() == {0: (4, "spark:c:0")}, "it ended before it was watched"
