"""Topics: made, grown, described, configured, deleted, and still there after a restart."""

from __future__ import annotations

from typing import Any

import pytest

from partita import Broker
from partita.broker.config import BrokerConfig
from partita.broker.storage.memory_store import MemoryStore
from partita.broker.topics.catalogue import TopicCatalogue, name_problem
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.api_versions import ApiVersionsRequest
from partita.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from partita.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from partita.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from partita.protocol.messages.describe_cluster import DescribeClusterRequest
from partita.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from partita.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from partita.protocol.primitives import ZERO_UUID
from support.broker.raw import Raw

TOPIC, BROKER = 2, 4

NOT_ASKED = -(1 << 31)
"""What stands in a field of authorized operations that nobody asked for."""


def create(
    raw: Raw, name: str, version: int = 7, *, validate_only: bool = False, **fields: Any
) -> CreatableTopicResult:
    fields = {"num_partitions": -1, "replication_factor": -1, **fields}
    request = CreateTopicsRequest(topics=[CreatableTopic(name=name, **fields)], validate_only=validate_only)
    result = raw.ask(request, 7).topics[0]
    assert isinstance(result, CreatableTopicResult)
    return result


def metadata(raw: Raw, *names: str, version: int = 13, create_missing: bool = False) -> Any:
    topics = [MetadataRequestTopic(name=name) for name in names] or None
    return raw.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=create_missing), version)


@pytest.mark.parametrize("name", ["a", "A-b_c.9", "x" * 249, "...", "CON"])
def test_a_topic_name_of_kafkas_letters_is_good(name: str) -> None:
    assert name_problem(name) is None


@pytest.mark.parametrize("name", ["", ".", "..", "../../etc", "a/b", "a\\b", "x" * 250, "a b", "ä", "a\0", "a\n"])
def test_other_names_are_refused_before_anything_is_made(raw: Raw, name: str) -> None:
    assert create(raw, name).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert metadata(raw, name, create_missing=True).topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_default_of_more_replicas_than_nodes_refuses_topics_that_name_none() -> None:
    with Broker(default_replication_factor=2) as broker, Raw(broker.port) as raw:
        assert create(raw, "new").error_code == ErrorCode.INVALID_REPLICATION_FACTOR
        assert metadata(raw, "auto", create_missing=True).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert create(raw, "new", replication_factor=1).error_code == ErrorCode.NONE


def test_a_new_topic_is_described_and_can_be_used_at_once(raw: Raw) -> None:
    configs = [CreatableTopicConfig(name="retention.ms", value="1000")]
    result = create(raw, "new", num_partitions=3, configs=configs)
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 3, 1)
    described = {config.name: (config.value, config.config_source) for config in result.configs or ()}
    assert described["retention.ms"] == ("1000", 1)
    assert described["segment.bytes"] == ("1073741824", 5)
    topic = metadata(raw, "new").topics[0]
    assert topic.topic_id == result.topic_id != ZERO_UUID
    assert [(p.partition_index, p.leader_id, p.isr_nodes) for p in topic.partitions] == [(i, 1, [1]) for i in range(3)]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"num_partitions": 0}, ErrorCode.INVALID_PARTITIONS),
        ({"num_partitions": -2}, ErrorCode.INVALID_PARTITIONS),
        ({"num_partitions": 0, "replication_factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"num_partitions": 2**31 - 1}, ErrorCode.POLICY_VIOLATION),
        ({"replication_factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"replication_factor": 3}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"configs": [CreatableTopicConfig(name="retention.ms", value="soon")]}, ErrorCode.INVALID_CONFIG),
        ({"configs": [CreatableTopicConfig(name="retention.ms", value=None)]}, ErrorCode.INVALID_CONFIG),
        ({"configs": [CreatableTopicConfig(name="retention", value="1")]}, ErrorCode.INVALID_CONFIG),
        ({"configs": [CreatableTopicConfig(name="segment.bytes", value="1")]}, ErrorCode.INVALID_CONFIG),
        (
            {"num_partitions": 1, "assignments": [CreatableReplicaAssignment(partition_index=0, broker_ids=[1])]},
            ErrorCode.INVALID_REQUEST,
        ),
        (
            {"assignments": [CreatableReplicaAssignment(partition_index=1, broker_ids=[1])]},
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            {"assignments": [CreatableReplicaAssignment(partition_index=0, broker_ids=[9])]},
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            {"assignments": [CreatableReplicaAssignment(partition_index=0, broker_ids=[1, 1])]},
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            {"assignments": [CreatableReplicaAssignment(partition_index=0, broker_ids=[])]},
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
    ],
)
def test_a_topic_that_cannot_be_is_refused_and_not_made(raw: Raw, fields: dict[str, Any], code: ErrorCode) -> None:
    result = create(raw, "new", **fields)
    assert result.error_code == code
    assert result.error_message
    assert metadata(raw, "new").topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_names_taken_doubled_or_alike_are_refused(raw: Raw) -> None:
    refused = create(raw, "t")
    assert (refused.error_code, refused.configs) == (ErrorCode.TOPIC_ALREADY_EXISTS, [])
    assert create(raw, "a.b").error_code == 0
    assert create(raw, "a_b").error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    twice = [CreatableTopic(name="x", num_partitions=1, replication_factor=1)] * 2
    results = raw.ask(CreateTopicsRequest(topics=twice), 7).topics
    assert [(r.name, r.error_code) for r in results] == [("x", ErrorCode.INVALID_REQUEST)]


def test_validate_only_makes_nothing(raw: Raw) -> None:
    assert create(raw, "new", validate_only=True).error_code == 0
    assert metadata(raw, "new").topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_manual_assignment_is_kept() -> None:
    with Broker(nodes=3) as broker, Raw(broker.port) as raw:
        wanted = {0: [3, 1], 1: [2, 3]}
        assignments = [CreatableReplicaAssignment(partition_index=i, broker_ids=nodes) for i, nodes in wanted.items()]
        assert create(raw, "new", assignments=assignments).error_code == 0
        partitions = metadata(raw, "new").topics[0].partitions
        assert {p.partition_index: p.replica_nodes for p in partitions} == wanted
        assert [p.leader_id for p in partitions] == [3, 2]


def test_metadata_creates_topics_only_where_both_sides_allow_it(broker: Broker, raw: Raw) -> None:
    assert metadata(raw, "auto").topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    made = metadata(raw, "auto", create_missing=True).topics[0]
    assert (made.error_code, len(made.partitions)) == (0, 1)
    with Broker(auto_create_topics_enable=False) as strict, Raw(strict.port) as other:
        answer = metadata(other, "auto", create_missing=True)
        assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_with_kafkas_defaults_a_created_topic_is_described_from_the_next_request_on() -> None:
    with Broker(kafka_defaults=True) as like_kafka, Raw(like_kafka.port) as other:
        first = metadata(other, "auto", create_missing=True).topics[0]
        assert (first.error_code, first.partitions) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])
        assert metadata(other, "__bad name", create_missing=True).topics[0].error_code == 17
        then = metadata(other, "auto", create_missing=True).topics[0]
        assert (then.error_code, len(then.partitions)) == (0, 1)


def test_metadata_by_id(broker: Broker, raw: Raw) -> None:
    topic_id = broker.cluster.catalogue.by_name["t"].topic_id
    asked = [MetadataRequestTopic(topic_id=topic_id, name=None), MetadataRequestTopic(topic_id=b"\7" * 16, name=None)]
    known, unknown = raw.ask(MetadataRequest(topics=asked), 12).topics
    assert (known.name, known.error_code, len(known.partitions)) == ("t", 0, 2)
    assert (unknown.name, unknown.error_code) == (None, ErrorCode.UNKNOWN_TOPIC_ID)


@pytest.mark.parametrize("version", [8, 10, 12, 13])
def test_the_operations_one_may_do_are_told_on_request(raw: Raw, version: int) -> None:
    names = [MetadataRequestTopic(name=name) for name in ("t", "missing", "bad name!")]
    asked = MetadataRequest(
        topics=names,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=version <= 10,
        include_topic_authorized_operations=True,
    )
    answer = raw.ask(asked, version)
    assert [topic.topic_authorized_operations for topic in answer.topics] == [3576] * 3, "as Kafka 4.3.1 answers"
    assert answer.cluster_authorized_operations == (8096 if version <= 10 else NOT_ASKED)
    assert metadata(raw, "t", version=version).topics[0].topic_authorized_operations == NOT_ASKED


def test_no_operations_of_a_topic_that_only_has_an_unknown_id(raw: Raw) -> None:
    asked = MetadataRequest(
        topics=[MetadataRequestTopic(topic_id=b"\7" * 16, name=None)], include_topic_authorized_operations=True
    )
    assert raw.ask(asked, 12).topics[0].topic_authorized_operations == NOT_ASKED


def test_cluster_operations_are_told_on_request(raw: Raw) -> None:
    asked = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert raw.ask(asked, 2).cluster_authorized_operations == 8096
    assert raw.ask(DescribeClusterRequest(), 2).cluster_authorized_operations == NOT_ASKED


def test_metadata_of_all_topics_none_and_in_version_0(raw: Raw) -> None:
    assert [t.name for t in raw.ask(MetadataRequest(topics=None), 1).topics] == ["t"]
    assert raw.ask(MetadataRequest(topics=[]), 1).topics == []
    assert [t.name for t in raw.ask(MetadataRequest(topics=[]), 0).topics] == ["t"]
    assert len(raw.ask(MetadataRequest(topics=None), 13).brokers) == 1


def test_a_hundred_thousand_names_do_not_make_a_hundred_thousand_topics(broker: Broker, raw: Raw) -> None:
    answer = metadata(raw, *(f"t{i}" for i in range(3000)), create_missing=True)
    assert sum(topic.error_code == 0 for topic in answer.topics) == 1000


@pytest.mark.parametrize("version", [1, 4, 5, 6])
def test_a_topic_is_deleted_by_name(raw: Raw, version: int) -> None:
    states = [DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in ("t", "gone")]
    request = DeleteTopicsRequest(topics=states if version >= 6 else [], topic_names=["t", "gone"])
    codes = {r.name: r.error_code for r in raw.ask(request, version).responses}
    assert codes == {"t": 0, "gone": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert metadata(raw, "t").topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_is_deleted_by_id(broker: Broker, raw: Raw) -> None:
    topic_id = broker.cluster.catalogue.by_name["t"].topic_id
    states = [
        DeleteTopicState(topic_id=topic_id),
        DeleteTopicState(topic_id=b"\7" * 16),
        DeleteTopicState(topic_id=topic_id, name="t"),
        DeleteTopicState(topic_id=ZERO_UUID),
    ]
    codes = sorted(r.error_code for r in raw.ask(DeleteTopicsRequest(topics=states), 6).responses)
    assert codes == [0, ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_TOPIC_ID]


def test_deletion_can_be_switched_off() -> None:
    with Broker(delete_topic_enable=False) as broker, Raw(broker.port) as raw:
        create(raw, "t")
        for version, code in ((1, ErrorCode.INVALID_REQUEST), (5, ErrorCode.TOPIC_DELETION_DISABLED)):
            assert raw.ask(DeleteTopicsRequest(topic_names=["t"]), version).responses[0].error_code == code


@pytest.mark.parametrize(
    ("count", "assignments", "code"),
    [
        (4, None, 0),
        (3, [[1]], 0),
        (2, None, ErrorCode.INVALID_PARTITIONS),
        (1, None, ErrorCode.INVALID_PARTITIONS),
        (2**31 - 1, None, ErrorCode.POLICY_VIOLATION),
        (4, [[1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [[7]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_a_topic_only_grows(raw: Raw, count: int, assignments: list[list[int]] | None, code: int) -> None:
    given = None if assignments is None else [CreatePartitionsAssignment(broker_ids=ids) for ids in assignments]
    topic = CreatePartitionsTopic(name="t", count=count, assignments=given)
    assert raw.ask(CreatePartitionsRequest(topics=[topic]), 3).results[0].error_code == code
    assert len(metadata(raw, "t").topics[0].partitions) == (2 if code else count)


def test_settings_are_described_with_where_they_come_from(raw: Raw) -> None:
    resources = [
        DescribeConfigsResource(resource_type=TOPIC, resource_name="t", configuration_keys=["retention.ms"]),
        DescribeConfigsResource(resource_type=TOPIC, resource_name="none", configuration_keys=None),
        DescribeConfigsResource(resource_type=BROKER, resource_name="1", configuration_keys=None),
        DescribeConfigsResource(resource_type=BROKER, resource_name="2", configuration_keys=None),
        DescribeConfigsResource(resource_type=64, resource_name="1", configuration_keys=None),
        DescribeConfigsResource(resource_type=32, resource_name="g", configuration_keys=None),
    ]
    results = raw.ask(DescribeConfigsRequest(resources=resources, include_synonyms=True), 4).results
    assert [r.error_code for r in results] == [
        0,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        0,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        0,
    ]
    assert [(c.name, c.value) for c in results[5].configs] == [
        ("consumer.heartbeat.interval.ms", "5000"),
        ("consumer.session.timeout.ms", "45000"),
        ("errors.deadletterqueue.copy.record.enable", "false"),
        ("errors.deadletterqueue.topic.name", ""),
        ("share.assignment.interval.ms", "1000"),
        ("share.auto.offset.reset", "latest"),
        ("share.delivery.count.limit", "5"),
        ("share.heartbeat.interval.ms", "5000"),
        ("share.isolation.level", "read_uncommitted"),
        ("share.partition.max.record.locks", "2000"),
        ("share.record.lock.duration.ms", "30000"),
        ("share.renew.acknowledge.enable", "true"),
        ("share.session.timeout.ms", "45000"),
        ("streams.acceptable.recovery.lag", "10000"),
        ("streams.assignment.interval.ms", "1000"),
        ("streams.heartbeat.interval.ms", "5000"),
        ("streams.initial.rebalance.delay.ms", "3000"),
        ("streams.num.standby.replicas", "0"),
        ("streams.rack.aware.assignment.tags", ""),
        ("streams.session.timeout.ms", "45000"),
        ("streams.task.offset.interval.ms", "60000"),
    ]
    (retention,) = results[0].configs
    assert (retention.value, retention.config_source, retention.config_type) == ("604800000", 5, 5)
    by_name = {row.name: row for row in results[2].configs}
    assert by_name["group.max.size"].read_only
    assert not by_name["message.max.bytes"].read_only
    assert by_name["group.initial.rebalance.delay.ms"].value == "0"


def test_settings_are_explained_to_those_who_ask(raw: Raw) -> None:
    resources = [
        DescribeConfigsResource(resource_type=TOPIC, resource_name="t", configuration_keys=None),
        DescribeConfigsResource(resource_type=BROKER, resource_name="1", configuration_keys=None),
    ]
    asked = raw.ask(DescribeConfigsRequest(resources=resources, include_documentation=True), 4).results
    assert all(row.documentation for result in asked for row in result.configs)
    silent = raw.ask(DescribeConfigsRequest(resources=resources), 4).results
    assert {row.documentation for result in silent for row in result.configs} == {None}


def test_broker_settings_that_can_change_do_so_and_survive_a_restart() -> None:
    store, config = MemoryStore(), BrokerConfig()
    catalogue = TopicCatalogue(store, config, lambda: b"\1" * 16)
    catalogue.configure_broker({"message.max.bytes": 77})
    catalogue.configure_broker({"log.retention.ms": 5}, of_nodes=True)
    assert (config.int("message.max.bytes"), config.int("log.retention.ms")) == (77, 5)
    for _ in range(2):
        again = BrokerConfig()
        catalogue = TopicCatalogue(store, again, lambda: b"\1" * 16)
        assert (again.cluster_wide, again.of_nodes) == ({"message.max.bytes": 77}, {"log.retention.ms": 5})
        catalogue.close()


def test_the_catalogue_reads_back_what_it_wrote_also_when_shortened() -> None:
    store, config = MemoryStore(), BrokerConfig()
    ids = (bytes([number]) * 16 for number in range(1, 99))
    catalogue = TopicCatalogue(store, config, lambda: next(ids))
    catalogue.name_cluster("c")
    kept = catalogue.create("kept", [[1], [2]], {"cleanup.policy": ("compact",)})
    catalogue.create("gone", [[1]])
    catalogue.add_partitions(kept, [[3]])
    catalogue.elect(kept.partitions[0], 2, kept.partitions[0].replicas)
    catalogue.configure(kept, {"retention.ms": 5})
    catalogue.delete([catalogue.by_name["gone"]])
    catalogue.keep("acl", {"a": {"operation": 3}, "b": {"operation": 4}, "c": {"operation": 5}})
    catalogue.keep("acl", {"a": None, "b": {"operation": 6}})
    first_id = catalogue.allocate_producer_id()
    for _ in range(2):
        lines = store.read_catalogue()
        catalogue.close()
        store.rewrite_catalogue(lines if _ == 0 else store.read_catalogue())
        catalogue = TopicCatalogue(store, BrokerConfig(), lambda: next(ids))
        (topic,) = catalogue
        assert (topic.name, topic.topic_id, catalogue.cluster_id) == ("kept", kept.topic_id, "c")
        assert [(p.leader, p.leader_epoch) for p in topic.partitions] == [(2, 1), (2, 0), (3, 0)]
        assert topic.config.own == {"retention.ms": 5}
        assert catalogue.kept == {"acl": {"b": {"operation": 6}, "c": {"operation": 5}}}
        assert catalogue.allocate_producer_id() > first_id


def test_after_an_unclean_stop_every_leader_epoch_goes_up() -> None:
    store = MemoryStore()
    TopicCatalogue(store, BrokerConfig(), lambda: b"\1" * 16).create("t", [[1]])
    store.unclean = True
    again = TopicCatalogue(store, BrokerConfig(), lambda: b"\2" * 16)
    assert again.by_name["t"].partitions[0].leader_epoch == 1


def test_describe_cluster_names_brokers_and_no_controllers(raw: Raw) -> None:
    answer = raw.ask(DescribeClusterRequest(), 2)
    assert (answer.error_code, answer.controller_id, len(answer.brokers)) == (0, 1, 1)
    assert answer.cluster_id
    for wanted, code in ((2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)):
        refused = raw.ask(DescribeClusterRequest(endpoint_type=wanted), 1)
        assert (refused.error_code, refused.endpoint_type) == (code, 1)


def test_api_versions_lists_what_is_served_and_checks_the_clients_name(raw: Raw) -> None:
    answer = raw.ask(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3)
    versions = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
    assert versions[0] == (0, 13)
    assert versions[12] == (0, 4)
    assert raw.ask(ApiVersionsRequest(client_software_name="-x"), 3).error_code == ErrorCode.INVALID_REQUEST


def test_the_topics_of_one_request_cost_one_write(broker: Broker, raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    """A9: not one line, and one fsync, for each of them."""
    writes: list[int] = []
    append = MemoryStore.append_catalogue

    def counted(self: MemoryStore, *lines: bytes, **more: bool) -> None:
        writes.append(len(lines))
        append(self, *lines, **more)

    monkeypatch.setattr(MemoryStore, "append_catalogue", counted)
    metadata(raw, *(f"auto{i}" for i in range(15)), create_missing=True)
    names = [*(f"given{i}" for i in range(15)), "alike.1", "alike_1"]
    answer = raw.ask(
        CreateTopicsRequest(
            topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
        ),
        5,
    )
    assert [topic.error_code for topic in answer.topics] == [0] * 16 + [ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert writes == [15, 16]
    assert broker.cluster.catalogue.partition_count == 2 + 15 + 16
