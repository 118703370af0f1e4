"""Rights on groups, and rights taken away while a member is at work. (security.md 15, SE-K and SE-P14)"""

from __future__ import annotations

from typing import Any

import pytest

from partita import Broker
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from partita.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from partita.protocol.messages.delete_groups import DeleteGroupsRequest
from partita.protocol.messages.describe_groups import DescribeGroupsRequest
from partita.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from partita.protocol.messages.list_groups import ListGroupsRequest
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from partita.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from partita.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.protocol.messages.sync_group import SyncGroupRequest
from partita.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from partita.records.builder import build_batch
from partita.security.rights.acls import Operation, ResourceType
from support.broker.askers import acl, allow, forbid_all, raw_as
from support.broker.raw import Raw, join_request

READ, WRITE, DESCRIBE, DELETE = Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.DELETE
GROUP, TRANSACTIONAL_ID = ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
GROUP_REFUSED = ErrorCode.GROUP_AUTHORIZATION_FAILED
TOPIC_REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
ID_REFUSED = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def commit(raw: Raw, *names: str, version: int = 8) -> dict[str, int]:
    topics = [
        OffsetCommitRequestTopic(name=name, partitions=[OffsetCommitRequestPartition(committed_offset=1)])
        for name in names
    ]
    answer = raw.ask(OffsetCommitRequest(group_id="g", topics=topics), version)
    return {topic.name: topic.partitions[0].error_code for topic in answer.topics}


def committed(raw: Raw, *names: str) -> Any:
    """The answer about group g, by version 8; without names about all topics."""
    topics = [OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in names] or None
    return raw.ask(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)]), 8).groups[0]


@pytest.mark.case("SE-K01", "GC-A16")
def test_find_coordinator_needs_describe_of_each_key(broker: Broker, alice: Raw) -> None:
    allow(broker, acl("alice", DESCRIBE, "g", GROUP))
    many = alice.ask(FindCoordinatorRequest(coordinator_keys=["g", "h"]), 4).coordinators
    rows = {row.key: row for row in many}
    assert rows["g"].error_code == 0
    row = rows["h"]
    assert (row.error_code, row.node_id, row.host, row.port, row.error_message) == (GROUP_REFUSED, -1, "", -1, "")
    one = alice.ask(FindCoordinatorRequest(key="tx", key_type=1), 3)
    assert (one.error_code, one.node_id, one.host, one.port, one.error_message) == (ID_REFUSED, -1, "", -1, "")
    allow(broker, acl("alice", DESCRIBE, "tx", TRANSACTIONAL_ID))
    assert alice.ask(FindCoordinatorRequest(key="g"), 0).error_code == 0


@pytest.mark.case("SE-K02", "SE-K11", "SE-K14", "GC-B14")
def test_join_group_and_a_right_taken_away(broker: Broker, alice: Raw, admin: Raw) -> None:
    admin.find("g")
    refused = alice.ask(join_request("g", "somebody", session_timeout_ms=1), 5)
    assert (refused.error_code, refused.member_id, refused.generation_id) == (GROUP_REFUSED, "", -1)
    allow(broker, acl("alice", READ, "g", GROUP))
    joined = alice.join("g")
    assert joined.error_code == 0
    assert [group.group_id for group in alice.ask(ListGroupsRequest(), 4).groups] == ["g"]
    forbid_all(broker)
    assert alice.ask(join_request("g", joined.member_id), 5).error_code == GROUP_REFUSED
    assert commit(alice, "t") == {"t": GROUP_REFUSED}


@pytest.mark.case("SE-K03")
def test_sync_heartbeat_and_leave(alice: Raw) -> None:
    for version, protocol, code in ((5, None, 23), (5, "x", GROUP_REFUSED), (4, None, GROUP_REFUSED)):
        request = SyncGroupRequest(group_id="g", protocol_type=protocol, protocol_name=protocol)
        assert alice.ask(request, version).error_code == code
    assert alice.ask(HeartbeatRequest(group_id="g", member_id="m"), 4).error_code == GROUP_REFUSED
    left = alice.ask(LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="m")]), 4)
    assert (left.error_code, left.members) == (GROUP_REFUSED, [])


@pytest.mark.case("SE-K04", "SE-K09", "SE-K13")
def test_offset_commit_needs_the_group_then_each_topic(broker: Broker, alice: Raw, admin: Raw) -> None:
    admin.find("g")
    assert commit(alice, "t", "nowhere") == {"t": GROUP_REFUSED, "nowhere": GROUP_REFUSED}
    allow(broker, acl("alice", READ, "g", GROUP))
    assert commit(alice, "t", "nowhere") == {"t": TOPIC_REFUSED, "nowhere": TOPIC_REFUSED}
    allow(broker, acl("alice", READ, "t"))
    assert commit(alice, "t", "u", "nowhere") == {"t": 0, "u": TOPIC_REFUSED, "nowhere": TOPIC_REFUSED}


@pytest.mark.case("SE-K05", "SE-K10", "GC-N04", "GC-N05")
def test_offset_fetch_needs_the_group_then_each_topic(broker: Broker, alice: Raw, admin: Raw) -> None:
    admin.find("g")
    assert commit(admin, "t", "u") == {"t": 0, "u": 0}
    topics = [OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])]
    assert committed(alice, "t").error_code == GROUP_REFUSED
    assert alice.ask(OffsetFetchRequest(group_id="g", topics=topics), 5).error_code == GROUP_REFUSED
    oldest = alice.ask(OffsetFetchRequest(group_id="g", topics=topics), 1)
    assert [part.error_code for part in oldest.topics[0].partitions] == [GROUP_REFUSED] * 2
    allow(broker, acl("alice", DESCRIBE, "g", GROUP))
    named = committed(alice, "t").topics[0].partitions[0]
    assert (named.error_code, named.committed_offset) == (TOPIC_REFUSED, -1)
    older = alice.ask(OffsetFetchRequest(group_id="g", topics=topics), 5)
    assert [part.error_code for part in older.topics[0].partitions] == [TOPIC_REFUSED] * 2
    assert committed(alice).topics == []
    allow(broker, acl("alice", DESCRIBE, "t"))
    assert [(topic.name, topic.partitions[0].committed_offset) for topic in committed(alice).topics] == [("t", 1)]
    both = {topic.name: topic.partitions[0].error_code for topic in committed(alice, "t", "u").topics}
    assert both == {"t": 0, "u": TOPIC_REFUSED}
    groups = [OffsetFetchRequestGroup(group_id=name, topics=[]) for name in ("g", "h")]
    answer = alice.ask(OffsetFetchRequest(groups=groups), 8)
    assert {group.group_id: group.error_code for group in answer.groups} == {"g": 0, "h": GROUP_REFUSED}


@pytest.mark.case("SE-K10")
def test_offset_fetch_by_id_does_not_tell_what_is_hidden(broker: Broker, alice: Raw, admin: Raw) -> None:
    admin.find("g")
    topic_id = broker.run(lambda: broker.cluster.catalogue.by_name["t"].topic_id)
    allow(broker, acl("alice", DESCRIBE, "g", GROUP))
    topics = [OffsetFetchRequestTopics(topic_id=each, partition_indexes=[0]) for each in (topic_id, b"\7" * 16)]
    group = OffsetFetchRequestGroup(group_id="g", topics=topics)
    answer = alice.ask(OffsetFetchRequest(groups=[group]), 10).groups[0]
    codes = {topic.topic_id: topic.partitions[0].error_code for topic in answer.topics}
    assert codes == {topic_id: TOPIC_REFUSED, b"\7" * 16: ErrorCode.UNKNOWN_TOPIC_ID}


@pytest.mark.case("SE-K06", "SE-L04")
def test_describe_groups_refuses_each_group_and_tells_the_allowed_operations(
    broker: Broker, alice: Raw, admin: Raw
) -> None:
    admin.find("g")
    allow(broker, acl("alice", READ, "g", GROUP))
    request = DescribeGroupsRequest(groups=["g", "h"], include_authorized_operations=True)
    found = {group.group_id: group for group in alice.ask(request, 5).groups}
    assert (found["h"].error_code, found["h"].group_state) == (GROUP_REFUSED, "")
    assert found["h"].authorized_operations == -(1 << 31)
    joined = admin.join("g")
    assert joined.error_code == 0
    mine = alice.ask(DescribeGroupsRequest(groups=["g"], include_authorized_operations=True), 5).groups[0]
    assert (mine.error_code, mine.authorized_operations) == (0, (1 << READ) + (1 << DESCRIBE))


@pytest.mark.case("SE-K07")
def test_list_groups_shows_what_may_be_described(broker: Broker, alice: Raw, admin: Raw) -> None:
    admin.stable("g")
    answer = alice.ask(ListGroupsRequest(), 4)
    assert (answer.error_code, answer.groups) == (0, [])
    allow(broker, acl("alice", DESCRIBE, "kafka-cluster", ResourceType.CLUSTER))
    assert [group.group_id for group in alice.ask(ListGroupsRequest(), 4).groups] == ["g"]


@pytest.mark.case("SE-K08", "SE-K12")
def test_deleting_groups_and_offsets(broker: Broker, alice: Raw, admin: Raw) -> None:
    admin.find("g")
    commit(admin, "t", "u")

    def delete(*names: str) -> tuple[int, dict[str, int]]:
        topics = [OffsetDeleteRequestTopic(name=name, partitions=[OffsetDeleteRequestPartition()]) for name in names]
        answer = alice.ask(OffsetDeleteRequest(group_id="g", topics=topics), 0)
        return answer.error_code, {topic.name: topic.partitions[0].error_code for topic in answer.topics}

    def remove() -> int:
        return int(alice.ask(DeleteGroupsRequest(groups_names=["g"]), 2).results[0].error_code)

    allow(broker, acl("alice", READ, "g", GROUP))
    assert (delete("t"), remove()) == ((GROUP_REFUSED, {}), GROUP_REFUSED)
    allow(broker, acl("alice", DELETE, "g", GROUP))
    assert delete("t") == (0, {"t": TOPIC_REFUSED})
    allow(broker, acl("alice", READ, "t"))
    assert delete("t", "u") == (0, {"t": 0, "u": TOPIC_REFUSED})
    assert remove() == 0


@pytest.mark.case("SE-K32")
def test_the_order_of_rights_of_txn_offset_commit(broker: Broker, alice: Raw, admin: Raw) -> None:
    admin.find("g")

    def codes() -> list[int]:
        topics = [
            TxnOffsetCommitRequestTopic(name=name, partitions=[TxnOffsetCommitRequestPartition(committed_offset=1)])
            for name in ("t", "u")
        ]
        request = TxnOffsetCommitRequest(transactional_id="tx", group_id="g", topics=topics)
        answer = alice.ask(request, 3)
        return [topic.partitions[0].error_code for topic in answer.topics]

    assert codes() == [ID_REFUSED] * 2
    allow(broker, acl("alice", WRITE, "tx", TRANSACTIONAL_ID))
    assert codes() == [GROUP_REFUSED] * 2
    allow(broker, acl("alice", READ, "g", GROUP))
    assert codes() == [TOPIC_REFUSED] * 2


@pytest.mark.case("SE-P14")
def test_a_remembered_heartbeat_answers_nobody_else_and_ends_with_the_right(broker: Broker, alice: Raw) -> None:
    allow(broker, acl("alice", READ, "g", GROUP))
    joined = alice.stable("g")
    beat = HeartbeatRequest(group_id="g", member_id=joined.member_id, generation_id=joined.generation_id)
    assert [alice.ask(beat, 4).error_code for _ in range(3)] == [0, 0, 0]
    with raw_as(broker, "bob") as bob:
        bob.client_id = alice.client_id
        assert bob.frame(beat, 4)[12:] == alice.frame(beat, 4)[12:], "the very same bytes"
        assert bob.ask(beat, 4).error_code == GROUP_REFUSED
    assert alice.ask(beat, 4).error_code == 0
    forbid_all(broker)
    assert alice.ask(beat, 4).error_code == GROUP_REFUSED
    allow(broker, acl("alice", READ, "g", GROUP))
    assert [alice.ask(beat, 4).error_code for _ in range(2)] == [0, 0]


@pytest.mark.case("SE-K35")
def test_a_member_without_the_right_is_gone_after_its_session(broker: Broker, alice: Raw, admin: Raw) -> None:
    allow(broker, acl("alice", READ, "g", GROUP))
    joined = alice.stable("g")
    forbid_all(broker)
    beat = HeartbeatRequest(group_id="g", member_id=joined.member_id, generation_id=joined.generation_id)
    assert alice.ask(beat, 4).error_code == GROUP_REFUSED
    broker.control.advance_clock(46_000)
    group = admin.ask(DescribeGroupsRequest(groups=["g"]), 5).groups[0]
    assert (group.group_state, group.members) == ("Empty", [])


def fetch(*names: str, session_id: int = 0, epoch: int = -1, wait_ms: int = 0) -> FetchRequest:
    topics = [FetchTopic(topic=name, partitions=[FetchPartition(partition_max_bytes=1000)]) for name in names]
    return FetchRequest(
        max_wait_ms=wait_ms, min_bytes=1, max_bytes=1000, session_id=session_id, session_epoch=epoch, topics=topics
    )


def fetched(answer: FetchResponse) -> dict[str, tuple[int, bool]]:
    """By topic: the error code, and whether there are records."""
    return {t.topic: (t.partitions[0].error_code, bool(t.partitions[0].records)) for t in answer.responses}


@pytest.mark.case("SE-K16")
def test_fetch_serves_what_may_be_read(broker: Broker, alice: Raw) -> None:
    allow(broker, acl("alice", READ, "t"), acl("alice", DESCRIBE, "u"))
    assert fetched(alice.ask(fetch("t", "u", "nowhere"), 12)) == {
        "t": (0, False),
        "u": (TOPIC_REFUSED, False),
        "nowhere": (TOPIC_REFUSED, False),
    }
    ids = broker.run(lambda: [broker.cluster.catalogue.by_name[name].topic_id for name in ("t", "u")])
    asked = [FetchTopic(topic_id=each, partitions=[FetchPartition()]) for each in (*ids, b"\7" * 16)]
    request = fetch()
    request.topics = asked
    by_id = {topic.topic_id: topic.partitions[0].error_code for topic in alice.ask(request, 13).responses}
    assert by_id == {ids[0]: 0, ids[1]: TOPIC_REFUSED, b"\7" * 16: ErrorCode.UNKNOWN_TOPIC_ID}


@pytest.mark.case("SE-K14", "SE-J14")
def test_a_fetch_session_ends_with_the_right(broker: Broker, alice: Raw) -> None:
    """A session's later requests name no topic; the right is looked at all the same."""
    allow(broker, acl("alice", READ, "t"), acl("alice", READ, "u"))
    first = alice.ask(fetch("t", "u", epoch=0), 12)
    assert fetched(first) == {"t": (0, False), "u": (0, False)}
    forbid_all(broker)
    allow(broker, acl("alice", READ, "t"))
    later = alice.ask(fetch(session_id=first.session_id, epoch=1), 12)
    assert fetched(later) == {"u": (TOPIC_REFUSED, False)}


def test_a_waiting_fetch_is_answered_by_the_rights_it_came_with(broker: Broker, alice: Raw, admin: Raw) -> None:
    allow(broker, acl("alice", READ, "t"))
    alice.send(fetch("t", wait_ms=10_000), 12)
    with raw_as(broker, "alice") as other:
        assert fetched(other.ask(fetch("t"), 12)) == {"t": (0, False)}
    forbid_all(broker)
    data = [PartitionProduceData(records=build_batch([(0, None, b"v", [])]))]
    topics = [TopicProduceData(name="t", partition_data=data)]
    written = admin.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics), 9)
    assert written.responses[0].partition_responses[0].error_code == 0
    assert fetched(alice.recv(1, 12)[1]) == {"t": (0, True)}
    assert fetched(alice.ask(fetch("t"), 12)) == {"t": (TOPIC_REFUSED, False)}


@pytest.mark.case("SE-K33")
def test_members_of_the_new_protocol_need_the_group_and_all_their_topics(
    broker: Broker, admin: Raw, alice: Raw
) -> None:
    member = "AAAAAAAAAAAAAAAAAAAAAA"

    def beat(*topics: str) -> int:
        request = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id=member, member_epoch=0, rebalance_timeout_ms=60_000, topic_partitions=[],
            subscribed_topic_names=list(topics),
        )  # fmt: skip
        return int(alice.ask(request, 1).error_code)

    def described() -> tuple[int, int]:
        (group,) = alice.ask(ConsumerGroupDescribeRequest(group_ids=["g"]), 1).groups
        assert bool(group.error_code) == (not group.group_state) == (not group.assignor_name) == (not group.group_epoch)
        return group.error_code, len(group.members)

    admin.find("g")
    assert (beat("t"), described()) == (30, (30, 0))
    allow(broker, acl("alice", Operation.READ, "g", ResourceType.GROUP))
    assert (beat("t"), beat("nowhere")) == (29, 29), "whether it exists or not"
    allow(broker, acl("alice", Operation.DESCRIBE, "t"))
    assert (beat("t", "u"), beat("t")) == (29, 0)
    assert described() == (0, 1)
    forbid_all(broker)
    allow(broker, acl("alice", Operation.READ, "g", ResourceType.GROUP))
    assert described() == (29, 0), "nothing of the group, once one of its topics is hidden"
