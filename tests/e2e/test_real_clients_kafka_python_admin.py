"""kafka-python's KafkaAdminClient against the broker: topics, configs, groups, offsets, members, records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import (
    ConfigResource,
    ConfigResourceType,
    KafkaAdminClient,
    MemberToRemove,
    NewTopic,
    OffsetSpec,
    OffsetTimestamp,
)
from kafka.errors import (
    GroupSubscribedToTopicError,
    NoError,
    OffsetOutOfRangeError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from kafka.structs import OffsetAndMetadata

from partita import Broker
from support.clients.broker import broker, fresh, until

__all__ = ["broker"]
pytestmark = pytest.mark.client
WITHIN_S = 60.0


@pytest.fixture
def admin(broker: Broker) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    yield client
    client.close()


@pytest.fixture
def topic(admin: KafkaAdminClient) -> str:
    name = fresh("admin")
    admin.create_topics([NewTopic(name, 3, 1)])
    return name


def fill(broker: Broker, topic: str, count: int) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    for number in range(count):
        producer.send(topic, b"x", partition=0, timestamp_ms=1_700_000_000_000 + number)
    producer.flush(WITHIN_S)
    producer.close()


@contextmanager
def member(broker: Broker, group: str, topic: str, **config: object) -> Iterator[KafkaConsumer]:
    consumer = KafkaConsumer(
        topic, bootstrap_servers=broker.bootstrap, group_id=group, heartbeat_interval_ms=100, client_id="one", **config
    )
    until(lambda: consumer.poll(timeout_ms=370) is not None and len(consumer.assignment()) == 3, "it owns all")
    try:
        yield consumer
    finally:
        consumer.close()


def test_topics_come_and_go(admin: KafkaAdminClient, topic: str) -> None:
    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topics([NewTopic(topic, 3, 1)])
    assert topic in admin.list_topics()
    admin.create_partitions({topic: 5})
    (described,) = admin.describe_topics([topic])
    assert (described["name"], len(described["partitions"])) == (topic, 5)
    admin.delete_topics([topic])
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topics([topic])


def test_configs_are_described_changed_and_reset(admin: KafkaAdminClient, topic: str) -> None:
    def retention() -> str:
        asked = ConfigResource(ConfigResourceType.TOPIC, topic)
        found = admin.describe_configs([asked], config_filter="all")
        return str(next(iter(found.values()))[topic]["retention.ms"]["value"])

    assert retention() == "604800000"
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "1000"})])
    assert retention() == "1000"
    admin.reset_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": None})])
    assert retention() == "604800000"


def test_the_cluster_is_described(admin: KafkaAdminClient, broker: Broker) -> None:
    cluster = admin.describe_cluster()
    assert [node["port"] for node in cluster["brokers"]] == [broker.port]


def test_groups_are_listed_described_and_deleted(admin: KafkaAdminClient, topic: str, broker: Broker) -> None:
    group = fresh("group")
    with member(broker, group, topic):
        (listed,) = [g for g in admin.list_groups() if g["group_id"] == group]
        assert listed["group_state"] == "Stable"
        described = admin.describe_groups([group])[group]
        (one,) = described["members"]
        assert (described["group_state"], described["protocol_data"], one["client_id"]) == ("Stable", "range", "one")
        assert admin.delete_groups([group])[group] == "NonEmptyGroupError"
    assert admin.describe_groups([group])[group]["group_state"] == "Empty"
    assert admin.delete_groups([group])[group] == "OK"
    assert admin.delete_groups([group])[group] == "GroupIdNotFoundError"


def test_offsets_of_groups_are_altered_reset_and_deleted(admin: KafkaAdminClient, topic: str, broker: Broker) -> None:
    group = fresh("group")
    spot, other = TopicPartition(topic, 0), TopicPartition(topic, 2)
    fill(broker, topic, 10)
    altered = admin.alter_group_offsets(
        group, {spot: OffsetAndMetadata(4, "by hand", -1), other: OffsetAndMetadata(0, "", -1)}
    )
    assert altered == {spot: NoError, other: NoError}
    found = admin.list_group_offsets([group])[group]
    assert {p: (o.offset, o.metadata) for p, o in found.items()} == {spot: (4, "by hand"), other: (0, "")}
    admin.reset_group_offsets(group, {spot: OffsetSpec.LATEST})
    assert admin.list_group_offsets([group])[group][spot].offset == 10
    admin.reset_group_offsets(group, {spot: OffsetTimestamp(1_700_000_000_006)})
    assert admin.list_group_offsets([group])[group][spot].offset == 6
    assert admin.delete_group_offsets(group, [other]) == {other: NoError}
    assert list(admin.list_group_offsets([group])[group]) == [spot]
    with member(broker, group, topic, enable_auto_commit=False):
        assert admin.delete_group_offsets(group, [spot]) == {spot: GroupSubscribedToTopicError}


def test_members_are_removed(admin: KafkaAdminClient, topic: str, broker: Broker) -> None:
    group = fresh("group")
    with member(broker, group, topic, group_instance_id="fixed"):
        (removed,) = admin.remove_group_members(group, [MemberToRemove(group_instance_id="fixed")]).values()
        assert removed is NoError


def test_offsets_of_partitions_and_deleted_records(admin: KafkaAdminClient, topic: str, broker: Broker) -> None:
    fill(broker, topic, 10)
    spot = TopicPartition(topic, 0)

    def offset(spec: object) -> int:
        return int(admin.list_partition_offsets({spot: spec})[spot].offset)

    assert [offset(OffsetSpec.EARLIEST), offset(OffsetSpec.LATEST)] == [0, 10]
    assert [offset(OffsetSpec.MAX_TIMESTAMP), offset(1_700_000_000_004)] == [9, 4]
    admin.delete_records({spot: 6})
    assert offset(OffsetSpec.EARLIEST) == 6
    with pytest.raises(OffsetOutOfRangeError):
        admin.delete_records({spot: 11})
