"""A deleted topic stops nobody: Partita's consumer beside confluent-kafka's (sources, R2; faults BM-151).

Both read topics T and V with automatic commits. V is deleted; the records of T must go on coming, though Java's classic
consumer repeats its commit for V until max.poll.interval.ms is over, and gives none out until then.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import confluent_kafka
import pytest

from partita import Admin, Broker, Consumer

pytestmark = [pytest.mark.conformance, pytest.mark.client]
LOOKED_S = 6.0
"""Longer than an interval of automatic commits, and than it takes to hear of the deletion."""
MAX_POLL_INTERVAL_MS = 60_000


def gap(broker: Broker, poll: Callable[[], bool], delete: Callable[[], None]) -> float:
    """The longest time without a record of T, from the deletion of V until records came for a while."""
    deadline = time.monotonic() + 60
    while not poll():
        broker.produce("T", "warm up")
        assert time.monotonic() < deadline
    delete()
    last = began = time.monotonic()
    longest = 0.0
    while last - began < LOOKED_S:
        broker.produce("T", "on")
        if poll():
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
        elif time.monotonic() - last > MAX_POLL_INTERVAL_MS / 1000:
            return time.monotonic() - last
    return longest


def delete_v(broker: Broker) -> Callable[[], None]:
    def delete() -> None:
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.delete_topics("V")

    return delete


def ours(broker: Broker) -> float:
    options = {"auto_offset_reset": "earliest", "max_poll_interval_ms": MAX_POLL_INTERVAL_MS}
    with Consumer(
        options, bootstrap_servers=broker.bootstrap, group_id="ours", metadata_max_age_ms=200, heartbeat_interval_ms=100
    ) as consumer:
        consumer.subscribe(["T", "V"])
        return gap(broker, lambda: any(r.topic == "T" for r in consumer.poll(0.1)), delete_v(broker))


def theirs(broker: Broker) -> float:
    settings = {
        "bootstrap.servers": broker.bootstrap, "group.id": "theirs", "auto.offset.reset": "earliest",
        "topic.metadata.refresh.interval.ms": 200, "max.poll.interval.ms": MAX_POLL_INTERVAL_MS,
        "session.timeout.ms": 10_000,
    }  # fmt: skip
    consumer = confluent_kafka.Consumer(settings)
    consumer.subscribe(["T", "V"])

    def poll() -> bool:
        message = consumer.poll(0.1)
        return message is not None and message.error() is None and message.topic() == "T"

    try:
        return gap(broker, poll, delete_v(broker))
    finally:
        consumer.close()


@pytest.mark.case("BM-151")
@pytest.mark.parametrize("client", [ours, theirs], ids=["partita", "confluent-kafka"])
def test_the_other_topic_goes_on(client: Callable[[Broker], float]) -> None:
    with Broker(auto_create_topics_enable=False) as broker:
        broker.create_topics({"T": 2, "V": 2})
        broker.produce("V", "old")
        assert client(broker) < MAX_POLL_INTERVAL_MS / 1000 / 2
