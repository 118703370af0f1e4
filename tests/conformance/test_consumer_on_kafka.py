"""Our consumer on Apache Kafka: the stories that tests/e2e/test_consumer_stories.py tells on our broker."""

from __future__ import annotations

from collections.abc import Callable

import confluent_kafka
import pytest

from support.consumer.stories import STORIES, Stage
from support.kafka.node import KafkaNode


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
