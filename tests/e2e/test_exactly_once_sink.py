"""The failure table of the exactly-once sink on our own broker, and the sink in a real streaming query."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from partita import Broker
from partita.designs.zookeeper.ports import free_ports
from support.producer.transaction_stories import await_markers
from support.spark import sink_stories as stories

if TYPE_CHECKING:
    from pathlib import Path

    from support.spark.world import SparkWorld


@pytest.mark.partita(num_partitions=2, transaction_abort_timed_out_transaction_cleanup_interval_ms=300)
@pytest.mark.parametrize("story", stories.STORIES, ids=lambda story: story.__name__)
def test_every_row_is_written_once(partita_broker: Broker, story: stories.Story) -> None:
    story(partita_broker.bootstrap)


@pytest.mark.partita(num_partitions=2, transaction_abort_timed_out_transaction_cleanup_interval_ms=200)
def test_a_task_that_is_too_slow(partita_broker: Broker) -> None:
    stories.a_task_that_is_too_slow(partita_broker.bootstrap)


def test_a_broker_that_restarts(tmp_path: Path) -> None:
    port = free_ports(1)[0]
    with Broker(data_dir=str(tmp_path), port=port, num_partitions=2) as first:
        again = Broker(data_dir=str(tmp_path), port=port, num_partitions=2)

        def restart() -> None:
            first.stop()
            again.start()

        try:
            stories.a_broker_that_restarts(first.bootstrap, restart)
        finally:
            again.stop()


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
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
