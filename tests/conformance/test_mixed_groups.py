"""Members made with Java, our client, confluent-kafka and aiokafka in one group, on Apache Kafka and on Partita."""

from __future__ import annotations

import pytest

from partita import Broker
from support.clients.mixed_group import play
from support.kafka.node import KafkaNode

pytestmark = pytest.mark.conformance

ORDERS = [
    ("range", ["java", "partita", "confluent-kafka", "aiokafka"]),
    ("range", ["partita", "aiokafka", "java", "confluent-kafka"]),
    ("cooperative-sticky", ["java", "partita", "confluent-kafka", "partita"]),
    ("cooperative-sticky", ["partita", "java", "confluent-kafka", "partita"]),
]


@pytest.mark.parametrize(("assignor", "clients"), ORDERS)
def test_on_kafka(kafka: KafkaNode, assignor: str, clients: list[str]) -> None:
    """A killed member is missed after its session of 6 s, the shortest that Kafka allows."""
    name = f"mixed-{assignor}-{clients[0]}"
    play(kafka.bootstrap, name, clients, assignor, 6_000, expire=lambda _: None)


@pytest.mark.parametrize(("assignor", "clients"), ORDERS)
def test_on_partita(partita_broker: Broker, assignor: str, clients: list[str]) -> None:
    def expire(client_id: str) -> None:
        partita_broker.control.expire_session("mixed", client_id)

    play(partita_broker.bootstrap, "mixed", clients, assignor, 6_000, expire)
