"""Members made with our client, confluent-kafka and aiokafka in one group of our broker; every record is counted.

The Java client's place in such groups, and Apache Kafka's brokers, are in tests/conformance/test_mixed_groups.py.
"""

from __future__ import annotations

import pytest

from partita import Broker
from support.clients.mixed_group import play

pytestmark = pytest.mark.client


@pytest.mark.parametrize(
    ("assignor", "clients"),
    [
        ("range", ["partita", "confluent-kafka", "aiokafka"]),
        ("range", ["aiokafka", "partita", "confluent-kafka"]),
        ("cooperative-sticky", ["partita", "confluent-kafka", "partita"]),
        ("cooperative-sticky", ["confluent-kafka", "partita", "confluent-kafka"]),
    ],
)
def test_a_mixed_group_loses_no_record(partita_broker: Broker, assignor: str, clients: list[str]) -> None:
    """Issue 10, mixed groups; the first member leads, the second is killed."""

    def expire(client_id: str) -> None:
        partita_broker.control.expire_session("mixed", client_id)

    play(partita_broker.bootstrap, "mixed", clients, assignor, 6_000, expire)
