"""What the broker does around the coordinator: existence of topics, names and ids, many groups in one request."""

from __future__ import annotations

import struct

import pytest

from partita import Broker
from partita.broker.topics.catalogue import OFFSETS_TOPIC
from partita.group import partition_for
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.delete_groups import DeleteGroupsRequest
from partita.protocol.messages.describe_groups import DescribeGroupsRequest
from partita.protocol.messages.describe_transactions import DescribeTransactionsRequest
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
from partita.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from partita.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from support.broker.raw import Raw, commit_request, join_request, sync_request

UNKNOWN_PARTITION = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture(autouse=True)
def _offsets_topic(raw: Raw) -> None:
    raw.find("g")


@pytest.mark.case("GC-B01")
def test_a_coordinator_that_was_shut_down_is_not_available(broker: Broker, raw: Raw) -> None:
    broker.run(lambda: setattr(broker.cluster, "is_running", False))
    expected = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert raw.ask(join_request("g"), 9).error_code == expected
    assert raw.ask(HeartbeatRequest(group_id="g"), 4).error_code == expected
    assert raw.ask(LeaveGroupRequest(group_id=""), 5).error_code == expected
    assert raw.ask(DescribeGroupsRequest(groups=["g"]), 5).groups[0].error_code == expected
    assert raw.commit("g", 1) == expected
    assert raw.committed("g") == -expected


@pytest.mark.case("GC-B04")
@pytest.mark.parametrize(("api_key", "version"), [(8, 9), (9, 7)])
def test_a_null_group_id_closes_the_connection(raw: Raw, api_key: int, version: int) -> None:
    header = struct.pack(">hhih", api_key, version, 1, 0) + b"\0"
    body = header + b"\0" + b"\xff" * 4 + b"\1\0\1\0"
    raw.socket.sendall(struct.pack(">i", len(body)) + body)
    assert raw.is_closed()


@pytest.mark.case("GC-M13")
def test_known_and_unknown_partitions_are_answered_each_for_itself(raw: Raw) -> None:
    request = commit_request("g", 5)
    request.topics[0].partitions.append(OffsetCommitRequestPartition(partition_index=99, committed_metadata=""))
    request.topics.append(OffsetCommitRequestTopic(name="nowhere", partitions=[OffsetCommitRequestPartition()]))
    request.topics[1].partitions[0].committed_metadata = ""
    answer = raw.ask(request, 8)
    codes = {(t.name, p.partition_index): p.error_code for t in answer.topics for p in t.partitions}
    assert codes == {("t", 0): 0, ("t", 99): UNKNOWN_PARTITION, ("nowhere", 0): UNKNOWN_PARTITION}
    assert raw.committed("g") == 5


@pytest.mark.case("GC-M14")
def test_without_a_known_partition_the_coordinator_is_not_asked(raw: Raw) -> None:
    assert raw.commit("no such group", 1, "nowhere", generation_id_or_member_epoch=7) == UNKNOWN_PARTITION


@pytest.mark.case("GC-M25")
def test_commit_and_fetch_by_topic_id(broker: Broker, raw: Raw) -> None:
    topic_id = broker.cluster.catalogue.by_name["t"].topic_id
    unknown = b"\1" * 16

    def partition(index: int) -> OffsetCommitRequestPartition:
        return OffsetCommitRequestPartition(partition_index=index, committed_offset=7, committed_metadata="")

    request = OffsetCommitRequest(
        group_id="g",
        topics=[
            OffsetCommitRequestTopic(topic_id=topic_id, partitions=[partition(0), partition(99)]),
            OffsetCommitRequestTopic(topic_id=unknown, partitions=[partition(0)]),
        ],
    )
    answer = raw.ask(request, 10)
    codes = {(t.topic_id, p.partition_index): p.error_code for t in answer.topics for p in t.partitions}
    assert codes == {(topic_id, 0): 0, (topic_id, 99): UNKNOWN_PARTITION, (unknown, 0): ErrorCode.UNKNOWN_TOPIC_ID}
    asked = [OffsetFetchRequestTopics(topic_id=i, partition_indexes=[0]) for i in (topic_id, unknown)]
    group = raw.ask(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=asked)]), 10).groups[0]
    found = {t.topic_id: (t.partitions[0].committed_offset, t.partitions[0].error_code) for t in group.topics}
    assert found == {topic_id: (7, 0), unknown: (-1, ErrorCode.UNKNOWN_TOPIC_ID)}
    everything = raw.ask(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)]), 10).groups[0]
    assert [t.topic_id for t in everything.topics] == [topic_id]


@pytest.mark.case("GC-N04", "GC-N08")
def test_version_1_of_offset_fetch_puts_a_group_error_on_each_partition(raw: Raw) -> None:
    with Broker(nodes=2) as broker, Raw(broker.port) as other:
        broker.run(lambda: broker.cluster.create_topic("t", 2, 1))
        other.find("g")
        broker.control.move_coordinator("g", 2)
        topics = [OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])]
        answer = other.ask(OffsetFetchRequest(group_id="g", topics=topics), 1)
        partitions = [(p.committed_offset, p.error_code) for p in answer.topics[0].partitions]
        assert partitions == [(-1, 16), (-1, 16)]
        assert other.ask(OffsetFetchRequest(group_id="g", topics=topics), 5).error_code == 16
        groups = [OffsetFetchRequestGroup(group_id="g", topics=[])]
        assert other.ask(OffsetFetchRequest(groups=groups), 8).groups[0].error_code == 16


def test_offset_fetch_answers_every_group_of_a_request(raw: Raw) -> None:
    raw.commit("a", 1)
    raw.commit("b", 2)
    topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    groups = [OffsetFetchRequestGroup(group_id=name, topics=topics) for name in ("a", "b", "none")]
    answer = raw.ask(OffsetFetchRequest(groups=groups), 9)
    assert [(g.group_id, g.topics[0].partitions[0].committed_offset) for g in answer.groups] == [
        ("a", 1),
        ("b", 2),
        ("none", -1),
    ]


def test_offset_delete_refuses_unknown_partitions_and_deletes_the_others(raw: Raw) -> None:
    raw.commit("g", 3)
    request = OffsetDeleteRequest(
        group_id="g",
        topics=[
            OffsetDeleteRequestTopic(name=name, partitions=[OffsetDeleteRequestPartition(partition_index=0)])
            for name in ("nowhere", "t")
        ],
    )
    answer = raw.ask(request, 0)
    assert [(t.name, t.partitions[0].error_code) for t in answer.topics] == [("nowhere", UNKNOWN_PARTITION), ("t", 0)]
    assert raw.committed("g") == -1
    request.group_id = "no such group"
    assert raw.ask(request, 0).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_transactional_offsets_of_unknown_topics_are_refused(raw: Raw) -> None:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=4, committed_metadata="")
    topics = [TxnOffsetCommitRequestTopic(name=name, partitions=[partition]) for name in ("nowhere", "t")]
    producer_id, epoch = raw.transactional("x")
    request = TxnOffsetCommitRequest(
        transactional_id="x", group_id="g", producer_id=producer_id, producer_epoch=epoch, topics=topics
    )
    answer = raw.ask(request, 5)
    assert [(t.name, t.partitions[0].error_code) for t in answer.topics] == [("nowhere", UNKNOWN_PARTITION), ("t", 0)]


@pytest.mark.parametrize("version", [5, 6])
def test_transactional_offsets_of_no_topic_begin_no_transaction(raw: Raw, version: int) -> None:
    raw.find("g")
    producer_id, epoch = raw.transactional("x")
    request = TxnOffsetCommitRequest(
        transactional_id="x", group_id="g", producer_id=producer_id, producer_epoch=epoch, topics=[]
    )
    assert raw.ask(request, version).topics == []
    (described,) = raw.ask(DescribeTransactionsRequest(transactional_ids=["x"]), 0).transaction_states
    assert described.transaction_state == "Empty"


@pytest.mark.case("GC-P14")
def test_a_group_deleted_twice_in_one_request_is_answered_once(raw: Raw) -> None:
    raw.commit("g", 1)
    answer = raw.ask(DeleteGroupsRequest(groups_names=["g", "g", "other"]), 2)
    assert [(r.group_id, r.error_code) for r in answer.results] == [("g", 0), ("other", ErrorCode.GROUP_ID_NOT_FOUND)]


def test_groups_of_all_shards_are_listed_and_described(raw: Raw) -> None:
    raw.stable("stable")
    raw.commit("simple", 1)
    listed = {g.group_id: (g.group_state, g.group_type) for g in raw.ask(ListGroupsRequest(), 5).groups}
    assert listed == {"stable": ("Stable", "classic"), "simple": ("Empty", "classic")}
    assert [g.group_id for g in raw.ask(ListGroupsRequest(states_filter=["stable"]), 4).groups] == ["stable"]
    described = raw.ask(DescribeGroupsRequest(groups=["stable", "none"], include_authorized_operations=True), 6).groups
    assert [(g.group_id, g.group_state, g.error_code) for g in described] == [
        ("stable", "Stable", 0),
        ("none", "Dead", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    assert described[0].members[0].client_id == "raw"
    assert described[0].members[0].client_host == "/127.0.0.1"
    assert described[0].authorized_operations == 3400


def test_offsets_of_a_deleted_topic_are_gone_in_every_group(broker: Broker, raw: Raw) -> None:
    for group in ("a", "b", "c"):
        raw.commit(group, 9)
    broker.run(lambda: broker.cluster.catalogue.delete([broker.cluster.catalogue.by_name["t"]]))
    broker.run(lambda: broker.cluster.create_topic("t", 2, 1))
    assert [raw.committed(group) for group in ("a", "b", "c")] == [-1, -1, -1]


@pytest.mark.case("GC-S19")
def test_deleting_the_offsets_topic_resigns_every_shard(broker: Broker, raw: Raw) -> None:
    joined = raw.stable("g")
    catalogue = broker.cluster.catalogue
    broker.run(lambda: catalogue.delete([catalogue.by_name[OFFSETS_TOPIC]]))
    heartbeat = HeartbeatRequest(group_id="g", generation_id=joined.generation_id, member_id=joined.member_id)
    assert raw.ask(heartbeat, 4).error_code == ErrorCode.NOT_COORDINATOR
    assert not broker.running.services.groups().runners


@pytest.mark.case("GC-V08")
def test_a_parked_join_of_a_closed_connection_is_forgotten(broker: Broker, raw: Raw) -> None:
    first = raw.stable("g")
    with Raw(broker.port) as gone:
        asked = gone.ask(join_request("g"), 9)
        gone.send(join_request("g", asked.member_id), 9)
        described = raw.ask(DescribeGroupsRequest(groups=["g"]), 5).groups[0]
        while described.group_state == "Stable":
            described = raw.ask(DescribeGroupsRequest(groups=["g"]), 5).groups[0]
    leave = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=asked.member_id)])
    assert raw.ask(leave, 5).members[0].error_code == 0
    again = raw.ask(join_request("g", first.member_id), 9)
    assert (again.error_code, len(again.members)) == (0, 1)
    assert raw.ask(sync_request("g", again), 5).error_code == 0
    assert len(broker.run(lambda: list(broker.running.servers[1][0].connections))) == 1


def test_offsets_of_a_transaction_appear_with_its_marker(broker: Broker, raw: Raw) -> None:
    def send(offset: int, *, commit: bool) -> None:
        producer_id, epoch = raw.transactional(f"x{offset}")
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        topics = [TxnOffsetCommitRequestTopic(name="t", partitions=[partition])]
        request = TxnOffsetCommitRequest(
            transactional_id=f"x{offset}",
            group_id="g",
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=topics,
        )
        assert raw.ask(request, 5).topics[0].partitions[0].error_code == 0
        index = partition_for("g", 50)
        marked = [
            WritableTxnMarkerTopic(name=OFFSETS_TOPIC, partition_indexes=[index]),
            WritableTxnMarkerTopic(name="t", partition_indexes=[0, 99]),
        ]
        marker = WritableTxnMarker(
            producer_id=producer_id, producer_epoch=epoch, transaction_result=commit, topics=marked
        )
        answer = raw.ask(WriteTxnMarkersRequest(markers=[marker]), 1).markers[0]
        assert [[p.error_code for p in topic.partitions] for topic in answer.topics] == [[0], [0, UNKNOWN_PARTITION]]

    send(4, commit=True)
    assert raw.committed("g") == 4
    send(5, commit=False)
    assert raw.committed("g") == 4
