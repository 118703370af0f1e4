"""Share groups behind the wire: members, descriptions, stored offsets, deletion, a restart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from partita import Broker
from partita.broker.handlers.describe_configs import DEFAULT_SOURCE, STATIC_SOURCE
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareOffsetsPartition,
    AlterShareOffsetsTopic,
)
from partita.protocol.messages.api_versions import ApiVersionsRequest
from partita.protocol.messages.delete_groups import DeleteGroupsRequest
from partita.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareOffsetsTopic,
)
from partita.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from partita.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareOffsetsGroup,
    DescribeShareOffsetsTopic,
)
from partita.protocol.messages.list_groups import ListGroupsRequest
from partita.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from partita.share.coordinator.model import ShareKey, StateBatch
from support.broker.raw import Raw
from support.share.beats import share_beat, share_join
from support.share.plane import ACCEPT, acquired
from support.share.states import write
from support.share.wire import WireMember


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(group_share_assignment_interval_ms=0) as running:
        running.create_topics({"t": 2})
        yield running


@pytest.fixture
def raw(broker: Broker) -> Iterator[Raw]:
    with Raw(broker.port) as found:
        yield found


def told(answer: Any) -> list[list[int]]:
    return [sorted(topic.partitions) for topic in answer.assignment.topic_partitions]


def described(raw: Raw, *topics: tuple[str, list[int]], group: str = "g", version: int = 1) -> Any:
    """The group's topics; without names all of them."""
    named = [DescribeShareOffsetsTopic(topic_name=name, partitions=numbers) for name, numbers in topics]
    asked = DescribeShareOffsetsGroup(group_id=group, topics=named or None)
    (answer,) = raw.ask(DescribeShareGroupOffsetsRequest(groups=[asked]), version).groups
    assert answer.error_code == 0
    return answer.topics


def rows(topics: Any) -> list[tuple[int, int, int]]:
    return [(p.partition_index, p.start_offset, p.lag) for topic in topics for p in topic.partitions]


def alter(raw: Raw, offset: int, partition: int = 0) -> Any:
    part = AlterShareOffsetsPartition(partition_index=partition, start_offset=offset)
    topic = AlterShareOffsetsTopic(topic_name="t", partitions=[part])
    return raw.ask(AlterShareGroupOffsetsRequest(group_id="g", topics=[topic]), 0)


@pytest.mark.case("SG-B01", "SG-C01", "SG-C03", "SG-C08")
def test_a_member_gets_its_partitions_and_is_described_and_listed(raw: Raw) -> None:
    answer = share_join(raw)
    assert (answer.member_epoch, answer.heartbeat_interval_ms, told(answer)) == (3, 5000, [[0, 1]])
    plain, authorized = (
        raw.ask(ShareGroupDescribeRequest(group_ids=["g"], include_authorized_operations=asked), 1).groups[0]
        for asked in (False, True)
    )
    assert (plain.group_state, plain.group_epoch, plain.assignor_name) == ("Stable", 3, "simple")
    assert plain.members[0].assignment.topic_partitions[0].topic_name == "t"
    assert plain.authorized_operations == -(1 << 31) != authorized.authorized_operations
    listed = raw.ask(ListGroupsRequest(types_filter=["share"]), 5).groups
    assert [(group.group_id, group.group_type, group.protocol_type) for group in listed] == [("g", "share", "share")]


@pytest.mark.case("SG-A01")
def test_the_versions_are_those_of_kafka(raw: Raw) -> None:
    answer = raw.ask(ApiVersionsRequest(client_software_name="test", client_software_version="1"), 4)
    served = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
    expected = {76: (1, 1), 77: (1, 1), 78: (1, 2), 79: (1, 2), 83: (0, 0), 84: (0, 0), 85: (0, 1), 86: (0, 0)}
    expected |= {87: (0, 1), 90: (0, 1), 91: (0, 0), 92: (0, 0)}
    assert {key: served.get(key) for key in expected} == expected


@pytest.mark.case("SG-D14")
def test_a_member_that_left_keeps_its_session_and_its_records(broker: Broker, raw: Raw) -> None:
    raw.find("g")
    assert alter(raw, 0).error_code == 0
    broker.produce("t", b"v", partition=0)
    broker.produce("t", b"v", partition=0)
    topic_id = broker.run(lambda: broker.cluster.catalogue.by_name["t"].topic_id)
    answer = share_join(raw)
    member = WireMember(raw, topic_id, "a")
    assert acquired(member.fetch(max_wait_ms=30_000)) == [(0, 1, 1)]
    assert share_beat(raw, "a", -1).member_epoch == -1 != answer.member_epoch
    assert member.ack((0, 1, ACCEPT)) == 0


@pytest.mark.case("SG-I01")
def test_the_settings_of_any_group_are_described() -> None:
    asked = [DescribeConfigsResource(resource_type=32, resource_name="any")]
    with Broker(group_share_delivery_count_limit=4) as broker, Raw(broker.port) as raw:
        request = DescribeConfigsRequest(resources=asked, include_synonyms=True)
        rows = {row.name: row for row in raw.ask(request, 4).results[0].configs}
    assert {name: row.value for name, row in rows.items() if name.startswith("share.")} == {
        "share.assignment.interval.ms": "1000",
        "share.auto.offset.reset": "latest",
        "share.delivery.count.limit": "4",
        "share.heartbeat.interval.ms": "5000",
        "share.isolation.level": "read_uncommitted",
        "share.partition.max.record.locks": "2000",
        "share.record.lock.duration.ms": "30000",
        "share.renew.acknowledge.enable": "true",
        "share.session.timeout.ms": "45000",
    }
    limit, reset = rows["share.delivery.count.limit"], rows["share.auto.offset.reset"]
    assert [(each.name, each.value, each.source) for each in limit.synonyms] == [
        ("group.share.delivery.count.limit", "4", STATIC_SOURCE),
        ("group.share.delivery.count.limit", "5", DEFAULT_SOURCE),
    ]
    assert [(each.name, each.value) for each in reset.synonyms] == [("share.auto.offset.reset", "latest")]


@pytest.mark.case("SG-A08")
def test_at_level_0_no_share_group_is_served() -> None:
    options = {"partita.share.version": 0, "group.coordinator.rebalance.protocols": "classic,consumer,share"}
    with Broker(options) as broker, Raw(broker.port) as raw:
        raw.find("g")
        assert share_beat(raw, "a", 0, ["t"]).error_code == ErrorCode.UNSUPPORTED_VERSION
        group = raw.ask(ShareGroupDescribeRequest(group_ids=["g"]), 1).groups[0]
        assert group.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert alter(raw, 1).error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.case("SG-H01", "SG-H04", "SG-H07")
def test_offsets_and_lag_are_described(broker: Broker, raw: Raw) -> None:
    raw.find("g")
    assert described(raw) == described(raw, group="") == []
    assert rows(described(raw, ("t", [1]), ("none", [0]), group="unknown")) == [(1, -1, -1), (0, -1, -1)]
    share_join(raw)
    assert rows(described(raw)) == [(0, -1, -1), (1, -1, -1)]
    assert rows(described(raw, ("t", [0, 99]), ("none", [0]))) == [(0, -1, -1), (99, -1, -1), (0, -1, -1)]
    for _ in range(10):
        broker.produce("t", b"v", partition=0)
    topic_id = broker.run(lambda: broker.cluster.catalogue.by_name["t"].topic_id)
    message = write(ShareKey("g", topic_id, 0), StateBatch(2, 4, 2, 1), start_offset=2, state_epoch=2, completed=3)
    assert raw.ask(message, 1).results[0].partitions[0].error_code == 0
    assert rows(described(raw, ("t", [0]))) == [(0, 2, 5)]
    assert rows(described(raw, ("t", [0]), version=0)) == [(0, 2, -1)]


@pytest.mark.case("SG-H02", "SG-H03", "SG-H05", "SG-C07")
def test_offsets_are_altered_and_deleted_and_the_group_as_well(raw: Raw) -> None:
    raw.find("g")
    assert alter(raw, 7).responses[0].partitions[0].error_code == 0
    assert rows(described(raw)) == [(0, 7, 0)]
    share_join(raw)
    assert alter(raw, 8).error_code == ErrorCode.NON_EMPTY_GROUP
    (refused,) = raw.ask(DeleteGroupsRequest(groups_names=["g"]), 2).results
    assert refused.error_code == ErrorCode.NON_EMPTY_GROUP
    share_beat(raw, "a", -1)
    named = [DeleteShareOffsetsTopic(topic_name=name) for name in ("t", "none")]
    answer = raw.ask(DeleteShareGroupOffsetsRequest(group_id="g", topics=named), 0)
    assert [row.error_code for row in answer.responses] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert described(raw) == []
    alter(raw, 9, partition=1)
    (gone,) = raw.ask(DeleteGroupsRequest(groups_names=["g"]), 2).results
    assert gone.error_code == 0
    (absent,) = raw.ask(DeleteGroupsRequest(groups_names=["g"]), 2).results
    assert absent.error_code == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.case("SG-N02")
def test_a_member_goes_on_with_its_epoch_after_a_restart(tmp_path: Path) -> None:
    with Broker(data_dir=str(tmp_path), group_share_assignment_interval_ms=0) as broker, Raw(broker.port) as raw:
        broker.create_topics({"t": 2})
        epoch = share_join(raw).member_epoch
    with Broker(data_dir=str(tmp_path)) as broker, Raw(broker.port) as raw:
        raw.find("g")
        answer = share_beat(raw, "a", epoch, ["t"])
        assert (answer.error_code, answer.member_epoch, told(answer)) == (0, epoch, [[0, 1]])
