"""Rights on share groups, their topics and their stored state."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import Any

import pytest

from partita import Broker
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareOffsetsPartition,
    AlterShareOffsetsTopic,
)
from partita.protocol.messages.delete_groups import DeleteGroupsRequest
from partita.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareOffsetsTopic,
)
from partita.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareOffsetsGroup,
    DescribeShareOffsetsTopic,
)
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest
from partita.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from partita.security.rights.acls import Operation, ResourceType
from partita.share.coordinator.model import ShareKey
from support.broker.askers import acl, allow
from support.broker.raw import Raw
from support.share.beats import share_beat
from support.share.states import delete, initialize, read, summary, write
from support.share.wire import WireMember

GROUP_REFUSED = ErrorCode.GROUP_AUTHORIZATION_FAILED
TOPIC_REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
CLUSTER_REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
IN_GROUP = (Operation.READ, Operation.DESCRIBE, Operation.DELETE)


def topic_id_of(broker: Broker) -> bytes:
    return broker.run(lambda: broker.cluster.catalogue.by_name["t"].topic_id)


def describe_offsets(raw: Raw, *names: str) -> Any:
    topics = [DescribeShareOffsetsTopic(topic_name=name, partitions=[0]) for name in names] or None
    asked = DescribeShareOffsetsGroup(group_id="g", topics=topics)
    return raw.ask(DescribeShareGroupOffsetsRequest(groups=[asked]), 1).groups[0]


def alter_offsets(raw: Raw) -> Any:
    topic = AlterShareOffsetsTopic(topic_name="t", partitions=[AlterShareOffsetsPartition(start_offset=0)])
    return raw.ask(AlterShareGroupOffsetsRequest(group_id="g", topics=[topic]), 0)


def delete_offsets(raw: Raw) -> Any:
    named = [DeleteShareOffsetsTopic(topic_name="t")]
    return raw.ask(DeleteShareGroupOffsetsRequest(group_id="g", topics=named), 0)


@pytest.mark.case("SG-M01")
def test_a_group_without_rights_is_refused_by_each_request(broker: Broker, alice: Raw, admin: Raw) -> None:
    admin.find("g")
    topic_id = topic_id_of(broker)
    allow(broker, *(acl("alice", operation, "t") for operation in (Operation.READ, Operation.DESCRIBE)))
    session = WireMember(alice, topic_id)
    codes = {
        "heartbeat": share_beat(alice, "m", 0, ["t"]).error_code,
        "fetch": session.fetch().error_code,
        "acknowledge": session.acknowledgement((0, 0, 1)).error_code,
        "describe": alice.ask(ShareGroupDescribeRequest(group_ids=["g"]), 1).groups[0].error_code,
        "describe offsets": describe_offsets(alice).error_code,
        "alter offsets": alter_offsets(alice).error_code,
        "delete offsets": delete_offsets(alice).error_code,
        "delete": alice.ask(DeleteGroupsRequest(groups_names=["g"]), 2).results[0].error_code,
    }
    assert codes == dict.fromkeys(codes, GROUP_REFUSED)


@pytest.mark.case("SG-M02")
def test_a_topic_without_rights_is_refused_where_it_is_named(broker: Broker, alice: Raw, admin: Raw) -> None:
    admin.find("g")
    allow(broker, *(acl("alice", operation, "g", ResourceType.GROUP) for operation in IN_GROUP))
    assert share_beat(alice, "m", 0, ["t"]).error_code == TOPIC_REFUSED
    alter_offsets(admin)
    joined = share_beat(admin, "m", 0, ["t"])
    assert share_beat(alice, "m", joined.member_epoch).error_code == 0
    session = WireMember(alice, topic_id_of(broker))
    assert session.fetch().responses[0].partitions[0].error_code == TOPIC_REFUSED
    assert session.ack((0, 0, 1)) == TOPIC_REFUSED
    described = alice.ask(ShareGroupDescribeRequest(group_ids=["g"]), 1).groups[0]
    assert (described.error_code, described.members) == (TOPIC_REFUSED, [])
    assert describe_offsets(alice).topics == []
    assert describe_offsets(alice, "t").topics[0].partitions[0].error_code == TOPIC_REFUSED
    share_beat(admin, "m", -1)
    assert alter_offsets(alice).responses[0].partitions[0].error_code == TOPIC_REFUSED
    assert delete_offsets(alice).responses[0].error_code == TOPIC_REFUSED


@pytest.mark.case("SG-M03")
def test_stored_state_needs_rights_on_the_cluster(broker: Broker, alice: Raw, admin: Raw) -> None:
    key = ShareKey("g", topic_id_of(broker), 0)
    text = f"g:{urlsafe_b64encode(key.topic_id).decode().rstrip('=')}:0"
    (found,) = alice.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=[text]), 6).coordinators
    assert found.error_code == CLUSTER_REFUSED
    requests = ((initialize(key), 0), (read(key), 0), (write(key), 1), (delete(key), 0), (summary(key), 1))
    answers = [alice.ask(request, version).results[0].partitions[0].error_code for request, version in requests]
    assert answers == [CLUSTER_REFUSED] * 5
