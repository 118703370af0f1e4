"""The planner's questions, asked of a real broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pytest

from partita.error_kinds import MissingRightError
from partita.errors import AuthenticationError
from partita.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from partita.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from partita.protocol.primitives import Message, Request
from partita.records.batch import build_batch
from partita.spark.cluster.broker_link import BrokerLink, link_to
from partita.spark.cluster.cluster_lookups import SAMPLE_BYTES, ClusterLookups
from partita.spark.planning.lookups import CommitRefused, Committed
from partita.spark.settings.options import TopicSelection, parse_sink
from partita.spark.writing.sink import write_rows

if TYPE_CHECKING:
    from partita.broker.embedded import Broker

R = TypeVar("R", bound=Message)


@pytest.fixture
def link(partita_broker: Broker) -> BrokerLink:
    link = link_to({"bootstrap.servers": partita_broker.bootstrap})
    topics = [CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in ("orders", "old-orders")]
    link.call(link.cluster.request(None, CreateTopicsRequest(topics=topics, timeout_ms=5000)))
    rows = pa.record_batch({"value": pa.array([b"x" * 100] * 10), "partition": pa.array([1] * 10, pa.int32())})
    options = parse_sink({"kafka.bootstrap.servers": partita_broker.bootstrap, "topic": "orders"})
    assert write_rows(options, iter([rows])).rows == 10
    return link


def test_a_view_has_the_selected_partitions_and_topic_ids(link: BrokerLink) -> None:
    lookups = ClusterLookups(link)
    view = lookups.view(TopicSelection(names=("orders", "missing")))
    assert {key: (f.earliest, f.latest) for key, f in view.partitions.items()} == {
        ("orders", 0): (0, 0),
        ("orders", 1): (0, 10),
    }
    assert len(view.topic_ids["orders"]) == 16
    assert set(lookups.view(TopicSelection(assigned=(("orders", 1), ("orders", 9)))).partitions) == {("orders", 1)}


def test_only_a_topic_that_does_not_exist_is_called_deleted(link: BrokerLink) -> None:
    assert ClusterLookups(link).deleted(["orders", "missing"]) == {"missing"}


@pytest.mark.parametrize("api", ["Metadata", "ListOffsets", "OffsetFetch"])
def test_a_right_that_is_missing_is_named_with_its_cure(link: BrokerLink, partita_broker: Broker, api: str) -> None:
    lookups = ClusterLookups(link_to({**link.client, "client.id": api}))  # nothing of the cluster is known yet
    kind, name = ("group", "g") if api == "OffsetFetch" else ("topic", "orders")
    partita_broker.control.fail(api, f"{kind.upper()}_AUTHORIZATION_FAILED", None)
    with pytest.raises(MissingRightError, match=f"may not READ {kind} '{name}' .*--operation READ --{kind} {name}"):
        lookups.view(TopicSelection(names=("orders",))) if kind == "topic" else lookups.committed("g", [("orders", 0)])


def test_a_refused_login_names_the_options_as_spark_spells_them(partita_broker: Broker) -> None:
    """Issue 13: a user of Spark writes kafka.security.protocol, and was told of security_protocol."""
    client = {
        "bootstrap.servers": partita_broker.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "u",
        "sasl.password": "p",
    }
    with pytest.raises(AuthenticationError, match=r"does not ask for SASL: set kafka\.security\.protocol to PLAINTEXT"):
        ClusterLookups(link_to(client)).view(TopicSelection(names=("orders",)))


def test_a_pattern_finds_names_but_no_internal_topic(link: BrokerLink) -> None:
    lookups = ClusterLookups(link)
    lookups.commit("g", {("orders", 0): Committed(0)})
    found = lookups.view(TopicSelection(pattern="ord|offsets")).partitions
    assert {topic for topic, _ in found} == {"orders", "old-orders"}


def test_offsets_by_time_epoch_ends_and_sizes(link: BrokerLink) -> None:
    lookups = ClusterLookups(link)
    assert lookups.at_times({("orders", 1): 0, ("orders", 0): 0}) == {("orders", 1): 0, ("orders", 0): None}
    assert lookups.epoch_ends({("orders", 1): 0}) == {("orders", 1): 10}
    (size,) = lookups.record_bytes({("orders", 1): 0}).values()
    assert 100 < size < 150
    assert lookups.record_bytes({("orders", 0): 0}) == {("orders", 0): 1.0}


def test_the_time_of_a_record_is_found_in_any_batch(partita_broker: Broker, link: BrokerLink) -> None:
    """Issue 13, item 4: lag in seconds is the age of the first record that no batch holds."""
    partita_broker.create_topics(dict.fromkeys(("plain", "packed", "large", "empty"), 1))
    config = CreatableTopicConfig(name="message.timestamp.type", value="LogAppendTime")
    stamped = CreatableTopic(name="stamped", num_partitions=1, replication_factor=1, configs=[config])
    link.call(link.cluster.request(None, CreateTopicsRequest(topics=[stamped], timeout_ms=5000)))
    produced = {
        "plain": build_batch([(1_000 * i, None, b"x", ()) for i in range(1, 5)]),
        "packed": build_batch([(1_000 * i, None, b"x", ()) for i in range(1, 5)], codec=4),
        "large": build_batch([(5_000, None, b"x" * (SAMPLE_BYTES + 1), ()), (6_000, None, b"x", ())]),
        "stamped": build_batch([(1, None, b"x", ())]),
    }
    for topic, batch in produced.items():
        data = PartitionProduceData(index=0, records=batch)
        topics = [TopicProduceData(name=topic, partition_data=[data])]
        link.call(link.cluster.request(None, ProduceRequest(acks=-1, timeout_ms=5000, topic_data=topics), 9))
    lookups = ClusterLookups(link)
    wanted = {("plain", 0): 0, ("packed", 0): 2, ("large", 0): 1, ("stamped", 0): 0, ("empty", 0): 0}
    found = lookups.record_times(wanted)
    assert found.pop(("stamped", 0)) > 1_700_000_000_000
    assert found == {("plain", 0): 1_000, ("packed", 0): 3_000, ("large", 0): 6_000}
    assert lookups.record_times({("plain", 0): 3}) == {("plain", 0): 4_000}
    assert lookups.record_times({("nosuch", 0): 3}) == {}, "a look for the lag fails no query"


def test_commits_are_found_again_with_their_metadata(link: BrokerLink) -> None:
    lookups = ClusterLookups(link)
    lookups.commit("g", {("orders", 1): Committed(7, 0, "spark:q:3")})
    assert lookups.committed("g", [("orders", 0), ("orders", 1)]) == {("orders", 1): Committed(7, 0, "spark:q:3")}
    assert lookups.committed("other", [("orders", 1)]) == {}
    assert lookups.committed("g", []) == {}


def test_a_group_with_live_members_refuses_and_the_message_says_what_to_do(link: BrokerLink) -> None:
    join(link, "busy")
    with pytest.raises(CommitRefused, match=r"group busy has live members.*a group of its own"):
        ClusterLookups(link).commit("busy", {("orders", 1): Committed(7)})


def join(link: BrokerLink, group: str) -> None:
    """One member, through join and sync."""

    async def ask(message: Request[R]) -> R:
        return await (await link.cluster.coordinator_connection(group)).send(message)

    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"\0\1\0\0\0\0\0\0\0\0")]
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=protocols,
    )
    request.member_id = link.call(ask(request)).member_id
    joined = link.call(ask(request))
    assert joined.error_code == 0
    sync = SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"")],
    )
    assert link.call(ask(sync)).error_code == 0
