"""confluent-kafka's ShareConsumer, a preview of librdkafka's, on our broker."""

from __future__ import annotations

import time
from typing import Any

import confluent_kafka
import pytest

from partita import Broker

WITHIN_SECONDS = 60.0


@pytest.mark.case("SG-P02", "SG-P16")
def test_it_consumes_every_record_and_another_one_finds_nothing_left() -> None:
    settings = {"share.auto.offset.reset": "earliest"}
    with Broker({"group.share.assignment.interval.ms": 0}) as broker:
        broker.run(lambda: broker.cluster.create_topic("t", 2, 1))
        broker.run(lambda: broker.running.services.groups().group_configured("g", settings))
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
        for number in range(50):
            producer.produce("t", str(number).encode())
        producer.flush(WITHIN_SECONDS)
        assert sorted(map(int, consumed(broker, 50))) == list(range(50))
        producer.produce("t", b"50")
        producer.flush(WITHIN_SECONDS)
        assert consumed(broker, 1) == [b"50"], "what the first one accepted is not given again"


def consumed(broker: Broker, count: int) -> list[Any]:
    """The values that one consumer gets until there are so many; it closes when it has accepted them."""
    consumer = confluent_kafka.ShareConsumer({"bootstrap.servers": broker.bootstrap, "group.id": "g"})
    found: list[Any] = []
    try:
        consumer.subscribe(["t"])
        deadline = time.monotonic() + WITHIN_SECONDS
        while len(found) < count and time.monotonic() < deadline:
            found += [message.value() for message in consumer.poll(1.0) or ()]
        consumer.commit_sync()
    finally:
        consumer.close()
    return found
