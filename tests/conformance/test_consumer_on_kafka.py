"""Our consumer on Apache Kafka: the stories that tests/e2e/test_consumer_stories.py tells on our broker.

With the consumer protocol they are told on a node of its own, whose sessions are shorter than Kafka allows by default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import confluent_kafka
import pytest

from support.consumer.loop_stories import IN_CHURN, LOOP_STORIES, UPGRADES
from support.consumer.stories import EPOCH_STORIES, MIXED_STORIES, STORIES, Stage
from support.kafka.node import KafkaNode, KafkaUnavailable

SHORT_SESSIONS = {
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
}


def stage_of(kafka: KafkaNode, protocol: str) -> Stage:
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

    return Stage(kafka.bootstrap, restart, lambda group, member_id: None, transact, protocol)


@pytest.fixture(scope="module")
def kafka_of_epochs() -> Iterator[KafkaNode]:
    try:
        with KafkaNode(None, **SHORT_SESSIONS) as node:
            yield node
    except KafkaUnavailable as reason:
        pytest.skip(f"no Apache Kafka to compare with: {reason}")


@pytest.mark.conformance
@pytest.mark.parametrize("story", [*STORIES, *LOOP_STORIES], ids=lambda story: story.__name__)
def test_on_kafka(kafka: KafkaNode, story: Callable[[Stage], None]) -> None:
    story(stage_of(kafka, "classic"))


@pytest.mark.conformance
@pytest.mark.case("CC-182", "CC-184", "CC-187", "CC-188", "CC-192")
@pytest.mark.parametrize(
    "story", [*EPOCH_STORIES, *MIXED_STORIES, *LOOP_STORIES, *UPGRADES], ids=lambda story: story.__name__
)
def test_on_kafka_with_the_consumer_protocol(kafka_of_epochs: KafkaNode, story: Callable[[Stage], None]) -> None:
    story(stage_of(kafka_of_epochs, "consumer"))


@pytest.mark.conformance
@pytest.mark.parametrize("story", IN_CHURN, ids=lambda story: story.__name__)
@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_no_commit_raises_while_members_come_and_go_on_kafka(
    kafka: KafkaNode, assignor: str, story: Callable[[Stage, str], None]
) -> None:
    story(stage_of(kafka, "classic"), assignor)


@pytest.mark.conformance
@pytest.mark.parametrize("story", IN_CHURN, ids=lambda story: story.__name__)
def test_no_commit_raises_while_members_of_the_consumer_protocol_come_and_go_on_kafka(
    kafka_of_epochs: KafkaNode, story: Callable[[Stage, str], None]
) -> None:
    story(stage_of(kafka_of_epochs, "consumer"), "uniform")
