"""`group.type=share`: a stream takes records from a share group, and accepts them when their batch is complete."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from partita import Admin, ShareConsumer
from support.spark.world import Collector

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from support.spark.world import SparkWorld

pytestmark = pytest.mark.spark

COUNT = 40


class Rows(Collector):
    """A sink that notes values and delivery counts of each batch, and its tasks; it can fail once."""

    def __init__(self, *, fails: bool = False) -> None:
        super().__init__()
        self.found: list[list[tuple[int, int]]] = []
        self.tasks: list[int] = []
        self.fails = fails

    def __call__(self, rows: DataFrame, batch: int) -> None:
        found = sorted((int(row.value), row.deliveryCount) for row in rows.collect())
        if found and self.fails:
            self.fails = False
            raise ZeroDivisionError("the first batch fails")
        if found:
            self.tasks.append(rows.rdd.getNumPartitions())
            self.found.append(found)

    @property
    def counted(self) -> Counter[int]:
        return Counter(value for batch in self.found for value, _ in batch)


def run(world: SparkWorld, sink: Rows, **options: str) -> None:
    """One run over all that is available."""
    plain = {"group.type": "share", "group": world.group, **options}
    sink.run(world.spark.readStream.format("partita").options(**world.options(**plain)).load())


@pytest.fixture
def shared(world: SparkWorld) -> SparkWorld:
    """A topic with one partition, and a share group that begins at its first record."""
    world.create()
    world.produce([str(number) for number in range(COUNT)])
    with Admin(bootstrap_servers=world.bootstrap) as admin:
        admin.alter_configs("group", world.group, {"share.auto.offset.reset": "earliest"})
    return world


def left(world: SparkWorld, count: int) -> dict[int, int]:
    """The next records of the group, which another member gets, with their delivery counts; it accepts them."""
    found: dict[int, int] = {}
    consumer: ShareConsumer[Any, Any] = ShareConsumer(bootstrap_servers=world.bootstrap, group_id=world.group)
    with consumer:
        consumer.subscribe(world.topic)
        while len(found) < count:
            found |= {int(record.value): record.delivery_count for record in consumer.poll(60.0)}
        consumer.commit_sync()
    return found


def test_complete_batches_are_accepted_and_have_more_tasks_than_partitions(shared: SparkWorld) -> None:
    sink = Rows()
    run(shared, sink, minPartitions="4")
    assert sink.counted == Counter(range(COUNT))
    assert max(sink.tasks) == 4
    shared.produce([str(COUNT)])
    assert left(shared, 1) == {COUNT: 1}, "all others were accepted, those of the last batch as well"


def test_the_records_of_a_batch_that_failed_come_again(shared: SparkWorld) -> None:
    sink = Rows(fails=True)
    with pytest.raises(Exception, match="the first batch fails"):
        run(shared, sink)
    assert sink.found == []
    run(shared, sink)
    assert sink.counted == Counter(range(COUNT))
    assert {count for batch in sink.found for _, count in batch} == {2}, "the redelivery is counted"
    shared.produce([str(COUNT)])
    assert left(shared, 1).keys() == {COUNT}  # the query that ended may have taken it and given it back


def test_another_member_shares_the_partition_with_a_query(shared: SparkWorld) -> None:
    taken = left(shared, 1)
    sink = Rows()
    shared.produce([str(number) for number in range(COUNT, 2 * COUNT)])
    run(shared, sink)
    assert sink.counted + Counter(taken.keys()) == Counter(range(2 * COUNT))


WRONG = [
    ({"group.type": "queue"}, "group.type must be consumer or share, not 'queue'"),
    ({"group": ""}, "needs the option group"),
    ({"startingOffsets": "earliest"}, "startingOffsets has no meaning with group.type=share"),
    ({"groupMode": "member"}, "groupMode has no meaning with group.type=share"),
]


def test_options_that_a_share_group_has_no_use_for_are_refused(world: SparkWorld) -> None:
    for wrong, told in WRONG:
        options = world.options(**{"group.type": "share", "group": "g"} | wrong)
        with pytest.raises(Exception, match=told):
            world.spark.readStream.format("partita").options(**options).load()
    with pytest.raises(Exception, match="is for streams"):
        world.spark.read.format("partita").options(
            **world.options(**{"group.type": "share", "group": "g"})
        ).load().collect()
