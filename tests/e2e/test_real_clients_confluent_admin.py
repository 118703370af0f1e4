"""confluent-kafka's AdminClient against the broker: topics, partitions, configs, groups, offsets, records."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from partita import Broker
from support.clients.broker import broker, fresh, until

__all__ = ["broker"]
pytestmark = pytest.mark.client
WITHIN_S = 60.0


@pytest.fixture
def admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})


@pytest.fixture
def topic(admin: AdminClient) -> str:
    name = fresh("admin")
    result(admin.create_topics([NewTopic(name, 3, 1)]), name)
    return name


def result(futures: dict[Any, Any], key: Any) -> Any:
    return futures[key].result(WITHIN_S)


def refusal(futures: dict[Any, Any], key: Any) -> int:
    with pytest.raises(KafkaException) as refused:
        result(futures, key)
    return int(refused.value.args[0].code())


def fill(broker: Broker, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for number in range(count):
        producer.produce(topic, b"x", partition=0, timestamp=1_700_000_000_000 + number)
    assert producer.flush(WITHIN_S) == 0


def commit(broker: Broker, group: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, "log_level": 0})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def test_topics_come_and_go(admin: AdminClient, topic: str) -> None:
    assert refusal(admin.create_topics([NewTopic(topic, 3, 1)]), topic) == KafkaError.TOPIC_ALREADY_EXISTS
    assert refusal(admin.create_topics([NewTopic("a b", 3, 1)]), "a b") == KafkaError.TOPIC_EXCEPTION
    assert refusal(admin.create_topics([NewTopic("many", 1, 3)]), "many") == KafkaError.INVALID_REPLICATION_FACTOR
    checked = fresh("checked")
    assert result(admin.create_topics([NewTopic(checked, 1, 1)], validate_only=True), checked) is None
    listed = admin.list_topics(timeout=WITHIN_S)
    assert sorted(listed.topics[topic].partitions) == [0, 1, 2]
    assert checked not in listed.topics
    result(admin.create_partitions([NewPartitions(topic, 5)]), topic)
    assert refusal(admin.create_partitions([NewPartitions(topic, 2)]), topic) == KafkaError.INVALID_PARTITIONS
    assert len(admin.list_topics(topic, timeout=WITHIN_S).topics[topic].partitions) == 5
    result(admin.delete_topics([topic]), topic)
    assert refusal(admin.delete_topics([topic]), topic) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_configs_are_described_and_changed(admin: AdminClient, topic: str, broker: Broker) -> None:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    before = result(admin.describe_configs([resource]), resource)
    assert (before["retention.ms"].value, before["retention.ms"].is_default) == ("604800000", True)
    resource.add_incremental_config(
        ConfigEntry("retention.ms", "1000", incremental_operation=AlterConfigOpType.SET),
    )
    result(admin.incremental_alter_configs([resource]), resource)
    after = result(admin.describe_configs([resource]), resource)
    assert (after["retention.ms"].value, after["retention.ms"].is_default) == ("1000", False)
    wrong = ConfigResource(ResourceType.TOPIC, topic)
    wrong.add_incremental_config(ConfigEntry("retention.ms", "soon", incremental_operation=AlterConfigOpType.SET))
    assert refusal(admin.incremental_alter_configs([wrong]), wrong) == KafkaError.INVALID_CONFIG
    of_broker = ConfigResource(ResourceType.BROKER, "1")
    assert result(admin.describe_configs([of_broker]), of_broker)["offsets.topic.num.partitions"].value == "4"


def test_the_cluster_and_topics_are_described(admin: AdminClient, topic: str, broker: Broker) -> None:
    cluster = admin.describe_cluster().result(WITHIN_S)
    assert [(node.id, node.port) for node in cluster.nodes] == [(1, broker.port)]
    assert cluster.controller.id == 1


def test_groups_are_listed_described_and_deleted(admin: AdminClient, topic: str, broker: Broker) -> None:
    group = fresh("group")
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": group, "client.id": "reader", "log_level": 0}
    )
    consumer.subscribe([topic])
    until(lambda: consumer.poll(0.05) is None and len(consumer.assignment()) == 3, "it owns all")
    consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)

    listed = admin.list_consumer_groups().result(WITHIN_S)
    (row,) = [g for g in listed.valid if g.group_id == group]
    assert (row.state.name, row.is_simple_consumer_group, listed.errors) == ("STABLE", False, [])
    described = result(admin.describe_consumer_groups([group]), group)
    (member,) = described.members
    assert (described.state.name, described.partition_assignor, described.coordinator.id) == ("STABLE", "range", 1)
    assert (member.client_id, member.host) == ("reader", "/127.0.0.1")
    assert [p.partition for p in member.assignment.topic_partitions] == [0, 1, 2]
    assert refusal(admin.delete_consumer_groups([group]), group) == KafkaError.NON_EMPTY_GROUP

    consumer.close()
    assert result(admin.describe_consumer_groups([group]), group).state.name == "EMPTY"
    result(admin.delete_consumer_groups([group]), group)
    assert group not in {g.group_id for g in admin.list_consumer_groups().result(WITHIN_S).valid}
    assert refusal(admin.delete_consumer_groups([group]), group) == KafkaError.GROUP_ID_NOT_FOUND


def test_offsets_of_groups_are_read_and_altered(admin: AdminClient, topic: str, broker: Broker) -> None:
    group = fresh("group")
    fill(broker, topic, 10)
    commit(broker, group, topic, 4)
    asked = [ConsumerGroupTopicPartitions(group)]
    (found,) = result(admin.list_consumer_group_offsets(asked), group).topic_partitions
    assert (found.topic, found.partition, found.offset) == (topic, 0, 4)
    wanted = [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 7), TopicPartition(topic, 2, 1)])]
    result(admin.alter_consumer_group_offsets(wanted), group)
    found = result(admin.list_consumer_group_offsets(asked), group).topic_partitions
    assert {p.partition: p.offset for p in found} == {0: 7, 2: 1}


def test_offsets_of_partitions_and_deleted_records(admin: AdminClient, topic: str, broker: Broker) -> None:
    fill(broker, topic, 10)
    spot = TopicPartition(topic, 0)

    def offset(spec: OffsetSpec) -> int:
        return int(result(admin.list_offsets({spot: spec}), spot).offset)

    assert (offset(OffsetSpec.earliest()), offset(OffsetSpec.latest())) == (0, 10)
    assert offset(OffsetSpec.for_timestamp(1_700_000_000_004)) == 4
    assert offset(OffsetSpec.max_timestamp()) == 9
    deleted = TopicPartition(topic, 0, 6)
    assert result(admin.delete_records([deleted]), deleted).low_watermark == 6
    assert (offset(OffsetSpec.earliest()), offset(OffsetSpec.latest())) == (6, 10)
    beyond = TopicPartition(topic, 0, 11)
    assert refusal(admin.delete_records([beyond]), beyond) == KafkaError.OFFSET_OUT_OF_RANGE
