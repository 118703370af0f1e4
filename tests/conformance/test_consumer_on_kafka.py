"""Our consumer on Apache Kafka: the stories that tests/e2e/test_consumer_stories.py tells on our broker, and Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import confluent_kafka
import pytest

from support.apache_kafka import KafkaNode
from support.consumer_stories import STORIES, Stage, create, fill, numbered


@pytest.fixture
def stage(kafka: KafkaNode) -> Stage:
    def restart() -> None:
        kafka.stop()
        kafka.start()

    def transact(topic: str, values: list[bytes], commits: bool) -> None:
        producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": "stories"})
        producer.init_transactions(30)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, partition=0)
        producer.flush(30)
        producer.commit_transaction(30) if commits else producer.abort_transaction(30)

    return Stage(kafka.bootstrap, restart, lambda group, member_id: None, transact)


@pytest.mark.conformance
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_on_kafka(stage: Stage, story: Callable[[Stage], None]) -> None:
    story(stage)


@pytest.fixture
def spark() -> Iterator[object]:
    from partita.spark import session

    spark = session("partita-conformance", master="local[2]", config={"spark.sql.shuffle.partitions": "2"})
    yield spark
    spark.stop()


@pytest.mark.conformance
@pytest.mark.spark
def test_spark_reads_a_topic_of_kafka(stage: Stage, spark) -> None:
    create(stage, "spark-batch", 3)
    values = numbered("v", range(3), 200)
    for codec, partition in (("none", 0), ("zstd", 1), ("lz4", 2)):
        fill(stage, "spark-batch", {partition: values[partition]}, compression_type=codec)
    reader = spark.read.format("partita").option("kafka.bootstrap.servers", stage.bootstrap)
    rows = reader.option("subscribe", "spark-batch").load().orderBy("partition", "offset").collect()
    assert [(row.partition, row.offset, bytes(row.value)) for row in rows] == [
        (p, offset, value) for p, some in values.items() for offset, value in enumerate(some)
    ]
