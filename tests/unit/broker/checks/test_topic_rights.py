"""Rights on topics: what is refused item by item, what is hidden, what is created. (security.md 15, SE-K and SE-L)"""

from __future__ import annotations

from typing import Any

import pytest

from partita import Broker
from partita.broker.topics.catalogue import Topic
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from partita.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from partita.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from partita.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from partita.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from partita.protocol.messages.describe_cluster import DescribeClusterRequest
from partita.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from partita.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsCursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsTopic,
)
from partita.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersTopic
from partita.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from partita.protocol.messages.init_producer_id import InitProducerIdRequest
from partita.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from partita.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from partita.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from partita.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.records.builder import NewRecord, build_batch
from partita.security.rights.acls import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from support.broker.askers import acl, allow, forbid_all
from support.broker.raw import Raw

REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
ID_REFUSED = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
READ, WRITE, CREATE, DELETE = Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE
ALTER, DESCRIBE = Operation.ALTER, Operation.DESCRIBE
CLUSTER, TRANSACTIONAL_ID = ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID
NOT_ASKED = -(1 << 31)


def topic(broker: Broker, name: str = "t") -> Topic:
    return broker.run(lambda: broker.cluster.catalogue.by_name[name])


def batch(*, is_transactional: bool = False) -> bytes:
    records: list[NewRecord] = [(0, None, b"v", [])]
    if not is_transactional:
        return build_batch(records)
    return build_batch(records, producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)


def produce(raw: Raw, *names: str, **fields: Any) -> dict[str, int]:
    data = [PartitionProduceData(records=fields.pop("records", batch()))]
    topics = [TopicProduceData(name=name, partition_data=data) for name in names]
    answer = raw.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics, **fields), 9)
    return {part.name: part.partition_responses[0].error_code for part in answer.responses}


def metadata(raw: Raw, *names: str, version: int = 12, **fields: Any) -> dict[str | None, Any]:
    asked = [MetadataRequestTopic(name=name) for name in names] or (None if version else [])
    fields.setdefault("allow_auto_topic_creation", False)
    return {found.name: found for found in raw.ask(MetadataRequest(topics=asked, **fields), version).topics}


@pytest.mark.case("SE-K15")
def test_produce_writes_what_is_allowed_and_hides_the_rest(broker: Broker, alice: Raw) -> None:
    allow(broker, acl("alice", WRITE, "t"))
    assert produce(alice, "t", "u", "nowhere") == {"t": 0, "u": REFUSED, "nowhere": REFUSED}
    assert [topic(broker, name).partitions[0].log.log_end_offset for name in ("t", "u")] == [1, 0]


@pytest.mark.case("SE-K15")
def test_a_batch_of_a_transaction_needs_the_right_on_its_id(broker: Broker, alice: Raw) -> None:
    allow(broker, acl("alice", WRITE, "t"))
    in_transaction = {"records": batch(is_transactional=True), "transactional_id": "tx"}
    assert produce(alice, "t", **in_transaction) == {"t": ID_REFUSED}
    assert produce(alice, "t", transactional_id="tx") == {"t": 0}
    allow(broker, acl("alice", WRITE, "tx", TRANSACTIONAL_ID))
    assert produce(alice, "t", **in_transaction)["t"] != ID_REFUSED


@pytest.mark.parametrize(
    ("names", "given"), [("u", {}), ("tu", {}), ("t", {"transactional_id": "tx", "is_transactional": True})]
)
def test_a_refused_produce_without_acks_closes_the_connection(
    broker: Broker, alice: Raw, names: str, given: dict[str, Any]
) -> None:
    allow(broker, acl("alice", WRITE, "t"))
    records = batch(is_transactional=given.pop("is_transactional", False))
    topics = [TopicProduceData(name=name, partition_data=[PartitionProduceData(records=records)]) for name in names]
    alice.send(ProduceRequest(acks=0, topic_data=topics, **given), 9)
    assert alice.is_closed()
    assert topic(broker).partitions[0].log.log_end_offset == len(names) - 1


@pytest.mark.case("SE-K17")
def test_list_offsets_answers_for_the_topics_one_may_describe(broker: Broker, alice: Raw) -> None:
    allow(broker, acl("alice", DESCRIBE, "t"))
    topics = [ListOffsetsTopic(name=name, partitions=[ListOffsetsPartition(timestamp=-1)]) for name in ("t", "u")]
    answer = alice.ask(ListOffsetsRequest(topics=topics), 7)
    found = {part.name: (part.partitions[0].error_code, part.partitions[0].offset) for part in answer.topics}
    assert found == {"t": (0, 0), "u": (REFUSED, -1)}


@pytest.mark.case("SE-K18", "SE-J12")
def test_metadata_hides_topics(broker: Broker, alice: Raw) -> None:
    allow(broker, acl("alice", DESCRIBE, "t"))
    for version in (0, 9, 12):
        named = metadata(alice, "t", "u", "nowhere", version=version)
        assert {name: found.error_code for name, found in named.items()} == {"t": 0, "u": REFUSED, "nowhere": REFUSED}
        assert (named["u"].partitions, named["u"].topic_id) == ([], bytes(16))
        assert list(metadata(alice, version=version)) == ["t"]
        assert list(metadata(alice, "u", version=version)) == ["u"], "an empty rest does not mean all"


@pytest.mark.case("SE-K19")
def test_metadata_by_id_does_not_tell_the_name(broker: Broker, alice: Raw) -> None:
    topics = [MetadataRequestTopic(name=None, topic_id=topic(broker).topic_id)]
    topics.append(MetadataRequestTopic(name=None, topic_id=b"\7" * 16))
    answer = alice.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False), 12).topics
    found = {entry.topic_id: (entry.name, entry.error_code) for entry in answer}
    assert found == {
        topic(broker).topic_id: (None, REFUSED),
        b"\7" * 16: (None, ErrorCode.UNKNOWN_TOPIC_ID),
    }


@pytest.mark.case("SE-K20")
def test_metadata_creates_only_for_who_may_create(broker: Broker, alice: Raw) -> None:
    allow(broker, acl("alice", DESCRIBE, "*"))
    assert metadata(alice, "new", allow_auto_topic_creation=True)["new"].error_code == REFUSED
    assert "new" not in broker.run(lambda: list(broker.cluster.catalogue.by_name))
    allow(broker, acl("alice", CREATE, "new"))
    assert metadata(alice, "new", allow_auto_topic_creation=True)["new"].error_code == 0
    allow(broker, acl("alice", CREATE, CLUSTER_NAME, CLUSTER))
    assert metadata(alice, "newer", allow_auto_topic_creation=True)["newer"].error_code == 0


@pytest.mark.case("SE-K21")
def test_create_topics_creates_what_one_may_create(broker: Broker, alice: Raw) -> None:
    def create(*names: str) -> dict[str, Any]:
        topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
        return {found.name: found for found in alice.ask(CreateTopicsRequest(topics=topics), 7).topics}

    refused = create("bad name")["bad name"]
    assert (refused.error_code, refused.error_message) == (REFUSED, "Authorization failed.")
    allow(broker, acl("alice", CREATE, "mine"))
    both = create("mine", "theirs")
    assert (both["mine"].error_code, both["theirs"].error_code) == (0, REFUSED)
    assert both["theirs"].error_message == "Authorization failed."
    assert (both["mine"].topic_config_error_code, both["mine"].configs, both["mine"].num_partitions) == (
        REFUSED, [], -1
    )  # fmt: skip
    allow(broker, acl("alice", CREATE, CLUSTER_NAME, CLUSTER), acl("alice", Operation.DESCRIBE_CONFIGS, "*"))
    whole = create("any")["any"]
    assert (whole.error_code, whole.topic_config_error_code, whole.num_partitions) == (0, 0, 1)
    assert whole.configs


@pytest.mark.case("SE-K22")
def test_delete_topics_hides_what_one_may_not_describe(broker: Broker, alice: Raw) -> None:
    def delete(*states: DeleteTopicState) -> list[tuple[str | None, int]]:
        answer = alice.ask(DeleteTopicsRequest(topics=list(states), timeout_ms=1000), 6)
        return [(found.name, found.error_code) for found in answer.responses]

    by_id = DeleteTopicState(name=None, topic_id=topic(broker).topic_id)
    unknown = DeleteTopicState(name=None, topic_id=b"\7" * 16)
    assert delete(DeleteTopicState(name="t"), DeleteTopicState(name="nowhere")) == [
        ("t", REFUSED),
        ("nowhere", REFUSED),
    ]
    assert delete(by_id, unknown) == [(None, ErrorCode.UNKNOWN_TOPIC_ID), (None, REFUSED)]
    allow(broker, acl("alice", DESCRIBE, "t"))
    assert delete(by_id) == [("t", REFUSED)]
    allow(broker, acl("alice", DELETE, "t"))
    assert delete(DeleteTopicState(name="t"), DeleteTopicState(name="u")) == [("t", 0), ("u", REFUSED)]
    assert alice.ask(DeleteTopicsRequest(topic_names=["u"]), 5).responses[0].error_code == REFUSED


def test_a_topic_to_delete_by_name_and_by_id_stays(broker: Broker, admin: Raw) -> None:
    """As on Apache Kafka 4.3.1, which answers once; deleting it by one of the two would be a guess."""
    twice = [DeleteTopicState(name="t"), DeleteTopicState(name=None, topic_id=topic(broker).topic_id)]
    for states in (twice, twice[::-1]):
        request = DeleteTopicsRequest(topics=[*states, DeleteTopicState(name="nowhere")], timeout_ms=1000)
        found = {each.name: each.error_code for each in admin.ask(request, 6).responses}
        assert found == {"t": ErrorCode.INVALID_REQUEST, "nowhere": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert "t" in metadata(admin, "t")
        assert metadata(admin, "t")["t"].error_code == 0


@pytest.mark.case("SE-K23", "SE-K24", "SE-K29")
def test_requests_that_name_topics_answer_each_for_itself(broker: Broker, alice: Raw) -> None:
    def codes() -> list[dict[str, int]]:
        records = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=name, partitions=[DeleteRecordsPartition(offset=0)]) for name in ("t", "u")]
        )
        partitions = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=name, count=9, assignments=None) for name in ("t", "u")],
            validate_only=True,
        )
        epochs = OffsetForLeaderEpochRequest(
            topics=[
                OffsetForLeaderTopic(topic=name, partitions=[OffsetForLeaderPartition(leader_epoch=0)])
                for name in ("t", "u")
            ]
        )
        return [
            {found.name: found.partitions[0].error_code for found in alice.ask(records, 2).topics},
            {found.name: found.error_code for found in alice.ask(partitions, 3).results},
            {found.topic: found.partitions[0].error_code for found in alice.ask(epochs, 4).topics},
        ]

    assert codes() == [{"t": REFUSED, "u": REFUSED}] * 3
    allow(broker, *(acl("alice", operation, "t") for operation in (DELETE, ALTER, DESCRIBE)))
    assert codes() == [{"t": 0, "u": REFUSED}] * 3
    allow(broker, acl("alice", Operation.CLUSTER_ACTION, CLUSTER_NAME, CLUSTER))
    assert codes()[2] == {"t": 0, "u": 0}


@pytest.mark.case("SE-K25", "SE-K31")
def test_a_producer_id_needs_a_right_to_write_anywhere(broker: Broker, alice: Raw) -> None:
    def code(transactional_id: str | None = None) -> int:
        return int(alice.ask(InitProducerIdRequest(transactional_id=transactional_id), 4).error_code)

    assert (code("tx"), code()) == (ID_REFUSED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    allow(broker, acl("alice", WRITE, "orders-1"))
    assert code() == 0
    allow(broker, acl("alice", WRITE, "orders", permission=Permission.DENY, pattern=PatternType.PREFIXED))
    assert code() == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    allow(broker, acl("alice", Operation.IDEMPOTENT_WRITE, CLUSTER_NAME, CLUSTER))
    assert code() == 0


@pytest.mark.case("SE-K26", "SE-K27")
def test_settings_are_shown_and_altered_by_rights_of_their_own(broker: Broker, alice: Raw) -> None:
    def codes() -> list[dict[int, int]]:
        named = {2: "t", 4: "1", 32: "g"}
        shown = [
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
            for kind, name in named.items()
        ]
        setting = AlterableConfig(name="max.connections", value="9")
        altered = [
            AlterConfigsResource(resource_type=kind, resource_name=named[kind], configs=[setting]) for kind in (2, 4)
        ]
        told = alice.ask(DescribeConfigsRequest(resources=shown), 4).results
        assert all(bool(found.configs) <= (found.error_code == 0) for found in told)
        return [
            {found.resource_type: found.error_code for found in told},
            {
                found.resource_type: found.error_code
                for found in alice.ask(IncrementalAlterConfigsRequest(resources=altered), 1).responses
            },
        ]

    assert codes() == [{2: 29, 4: 31, 32: 30}, {2: 29, 4: 31}]
    allow(broker, acl("alice", Operation.ALTER_CONFIGS, CLUSTER_NAME, CLUSTER))
    assert codes() == [{2: 29, 4: 0, 32: 30}, {2: 29, 4: 0}]
    allow(broker, acl("alice", Operation.DESCRIBE_CONFIGS, "t"))
    assert codes()[0] == {2: 0, 4: 0, 32: 30}


def test_pages_of_all_topics_leave_out_what_is_hidden(broker: Broker, alice: Raw) -> None:
    def page(cursor: DescribeTopicPartitionsCursor | None = None) -> tuple[list[str], bool]:
        answer = alice.ask(DescribeTopicPartitionsRequest(response_partition_limit=2, cursor=cursor), 0)
        return [found.name for found in answer.topics], answer.next_cursor is None

    assert page() == ([], True)
    allow(broker, acl("alice", DESCRIBE, "u"))
    assert page() == (["u"], True)
    assert page(DescribeTopicPartitionsCursor(topic_name="t")) == (["u"], True)
    assert page(DescribeTopicPartitionsCursor(topic_name="u", partition_index=1)) == (["u"], True)
    forbid_all(broker)
    assert page(DescribeTopicPartitionsCursor(topic_name="u")) == ([], True)


def test_a_cursor_may_name_a_topic_that_is_refused(broker: Broker, alice: Raw) -> None:
    """As on Apache Kafka 4.3.1: the topics before it are left out, refused or not."""
    topics = [DescribeTopicPartitionsTopic(name=name) for name in ("nowhere", "t", "u")]
    cursor = DescribeTopicPartitionsCursor(topic_name="t")
    request = DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=9, cursor=cursor)
    for rights, codes in (((), {"t": REFUSED, "u": REFUSED}), (("u",), {"t": REFUSED, "u": 0})):
        allow(broker, *(acl("alice", DESCRIBE, name) for name in rights))
        answer = alice.ask(request, 0)
        assert {found.name: found.error_code for found in answer.topics} == codes
        assert {found.name for found in answer.topics if found.partitions} == set(rights)


@pytest.mark.case("SE-L01", "SE-L02", "SE-L03", "SE-L05", "SE-K28")
def test_authorized_operations_are_those_of_who_asks(broker: Broker, alice: Raw, admin: Raw) -> None:
    allow(broker, acl("alice", READ, "t"))
    asked = {"include_topic_authorized_operations": True, "include_cluster_authorized_operations": True}
    assert metadata(alice, "t", version=9, **asked)["t"].topic_authorized_operations == (1 << READ) + (1 << DESCRIBE)
    assert metadata(alice, "t", version=9)["t"].topic_authorized_operations == NOT_ASKED
    everything = sum(1 << code for code in (3, 4, 5, 6, 7, 8, 10, 11))
    assert metadata(admin, "t", version=9, **asked)["t"].topic_authorized_operations == everything

    def of_cluster(raw: Raw, *, is_asked: bool = True) -> int:
        request = DescribeClusterRequest(include_cluster_authorized_operations=is_asked)
        return int(raw.ask(request, 0).cluster_authorized_operations)

    assert (of_cluster(alice), of_cluster(alice, is_asked=False)) == (0, NOT_ASKED)
    assert of_cluster(admin) == sum(1 << code for code in (5, 7, 8, 9, 10, 11, 12))
    allow(broker, acl("alice", ALTER, CLUSTER_NAME, CLUSTER))
    assert of_cluster(alice) == (1 << ALTER) + (1 << DESCRIBE)


@pytest.mark.case("SE-K30")
def test_elections_and_reassignments_are_rights_on_the_cluster(broker: Broker, alice: Raw) -> None:
    moved = ReassignableTopic(name="t", partitions=[ReassignablePartition(partition_index=0, replicas=[1])])
    elected = ElectLeadersTopic(topic="t", partitions=[0])

    def codes() -> list[int]:
        return [
            alice.ask(ElectLeadersRequest(topic_partitions=[elected], timeout_ms=1000), 2).error_code,
            alice.ask(AlterPartitionReassignmentsRequest(topics=[moved], timeout_ms=1000), 0).error_code,
            alice.ask(ListPartitionReassignmentsRequest(topics=None, timeout_ms=1000), 0).error_code,
        ]

    allow(broker, acl("alice", Operation.ALL, "t"))
    assert codes() == [31, 31, 31]
    allow(broker, acl("alice", DESCRIBE, CLUSTER_NAME, CLUSTER))
    assert codes() == [31, 31, 0]
    allow(broker, acl("alice", ALTER, CLUSTER_NAME, CLUSTER))
    assert codes() == [0, 0, 0]
