"""Members made with Java, our client, confluent-kafka and aiokafka in one group, on Apache Kafka and on Partita."""

from __future__ import annotations

import pytest

from partita import Broker
from support.clients.mixed_group import play, roll
from support.kafka.node import KafkaNode

pytestmark = pytest.mark.conformance

ORDERS = [
    ("range", ["java", "partita", "confluent-kafka", "aiokafka"]),
    ("range", ["partita", "aiokafka", "java", "confluent-kafka"]),
    ("cooperative-sticky", ["java", "partita", "confluent-kafka", "partita"]),
    ("cooperative-sticky", ["partita", "java", "confluent-kafka", "partita"]),
]


@pytest.mark.parametrize(("assignor", "clients"), ORDERS)
def test_a_mixed_group_loses_no_record_on_kafka(kafka: KafkaNode, assignor: str, clients: list[str]) -> None:
    """A killed member is missed after its session of 6 s, the shortest that Kafka allows."""
    name = f"mixed-{assignor}-{clients[0]}"
    play(kafka.bootstrap, name, clients, assignor, 6_000, expire=lambda _: None)


@pytest.mark.parametrize(("assignor", "clients"), ORDERS)
def test_a_mixed_group_with_java_loses_no_record_on_partita(
    partita_broker: Broker, assignor: str, clients: list[str]
) -> None:
    def expire(client_id: str) -> None:
        partita_broker.control.expire_session("mixed", client_id)

    play(partita_broker.bootstrap, "mixed", clients, assignor, 6_000, expire)


BY_EPOCHS = [
    ["java/consumer", "java/consumer", "confluent-kafka/consumer"],
    ["java", "confluent-kafka/consumer", "java/consumer", "partita/consumer"],
]


@pytest.mark.parametrize("clients", BY_EPOCHS)
def test_members_of_the_consumer_protocol_on_partita(partita_broker: Broker, clients: list[str]) -> None:
    """KIP-848 under kill -9: Java's, librdkafka's and our members in one group, and a classic one that leaves it."""

    def expire(client_id: str) -> None:
        partita_broker.control.expire_session("epochs", client_id)

    play(partita_broker.bootstrap, "epochs", clients, "range", 6_000, expire)


@pytest.mark.parametrize("client", ["java", "confluent-kafka"])
def test_a_fleet_changes_its_protocol_by_a_rolling_restart_and_back(partita_broker: Broker, client: str) -> None:
    roll(partita_broker.bootstrap, "fleet", client)
