"""What end-to-end tests share: one Spark session, with one broker beside it, for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from support.broker.process import broker_process
from support.kafka.node import KafkaNode, KafkaUnavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from support.spark.world import SparkWorld


@pytest.fixture(scope="session")
def spark_session() -> Iterator[SparkSession]:
    """Two cores, no UI, two shuffle partitions. Starting it takes most of the time of the Spark tests."""
    from partita.spark import session
    from support.spark.world import QUICK_START

    spark = session("partita-tests", master="local[2]", config={"spark.sql.shuffle.partitions": "2", **QUICK_START})
    yield spark
    spark.stop()


@pytest.fixture(scope="session")
def spark_broker(request: pytest.FixtureRequest) -> Iterator[str]:
    """In a process of its own: a broker in this one would compete with foreachBatch for the interpreter."""
    if request.config.getoption("--on-kafka"):
        try:
            with KafkaNode() as kafka:
                yield kafka.bootstrap
        except KafkaUnavailable as reason:
            pytest.skip(f"no Apache Kafka: {reason}")
    else:
        with broker_process() as bootstrap:
            yield bootstrap


@pytest.fixture
def world(spark_session: SparkSession, spark_broker: str) -> SparkWorld:
    """Session and broker, with a topic name and a group name of the test's own."""
    from support.spark.world import SparkWorld

    return SparkWorld(spark_session, spark_broker)
