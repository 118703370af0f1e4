"""Elections, reassignments, pages of partitions, and what has settings; messages and codes are those of Kafka 4.3.1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from partita.broker.storage.memory_store import MemoryStore
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from partita.protocol.messages.describe_cluster import DescribeClusterRequest
from partita.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsCursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsTopic,
)
from partita.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersTopic
from partita.protocol.messages.list_config_resources import ListConfigResourcesRequest
from partita.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from partita.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from support.broker.data_plane import DataPlane, data_plane

PREFERRED, UNCLEAN = 0, 1


@pytest.fixture
def plane() -> Iterator[DataPlane]:
    """Two nodes, 1 and 2; partition 0 of topic t is node 1's and partition 1 node 2's."""
    with data_plane(nodes=2) as made:
        made.topic(partitions=2)
        yield made


def elect(plane: DataPlane, kind: int, *partitions: int, topic: str = "t") -> list[tuple[int, str | None]]:
    asked = [ElectLeadersTopic(topic=topic, partitions=list(partitions))]
    response = plane.ask("elect_leaders", 2, ElectLeadersRequest(election_type=kind, topic_partitions=asked))
    return [(p.error_code, p.error_message) for t in response.replica_election_results for p in t.partition_result]


def test_the_preferred_leader_is_elected_when_it_does_not_lead(plane: DataPlane) -> None:
    plane.cluster.reassign(plane.cluster.catalogue.by_name["t"].partitions[0], [1, 2])
    moved = plane.cluster.catalogue.by_name["t"].partitions[0]
    plane.cluster.elect(moved, 2)
    assert elect(plane, PREFERRED, 0) == [(ErrorCode.NONE, None)]
    assert (moved.leader, moved.leader_epoch, moved.replicas) == (1, 3, [1, 2])
    not_needed = (ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
    assert elect(plane, PREFERRED, 0, 1) == elect(plane, UNCLEAN, 0, 1) == [not_needed, not_needed]


def test_a_preferred_leader_that_is_away_is_not_elected(plane: DataPlane) -> None:
    partition = plane.cluster.catalogue.by_name["t"].partitions[0]
    plane.cluster.reassign(partition, [1, 2])
    plane.cluster.elect(partition, 2)
    plane.cluster.nodes[1].is_alive = False
    assert elect(plane, PREFERRED, 0)[0][0] == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    plane.cluster.elect(partition, -1)
    assert elect(plane, UNCLEAN, 0) == [(ErrorCode.NONE, None)]
    assert partition.leader == 2


def test_what_is_not_there_cannot_be_elected(plane: DataPlane) -> None:
    assert elect(plane, PREFERRED, 7) == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "No such partition as t-7")]
    assert elect(plane, PREFERRED, 0, topic="u") == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "No such topic as u")]
    assert elect(plane, 2, 0) == [(ErrorCode.INVALID_REQUEST, "Unknown election type 2")]


def test_an_election_everywhere_names_only_what_changed(plane: DataPlane) -> None:
    plane.topic("u", 1)
    moved = plane.cluster.catalogue.by_name["t"].partitions[1]
    plane.cluster.reassign(moved, [2, 1])
    plane.cluster.elect(moved, 1)
    response = plane.ask("elect_leaders", 2, ElectLeadersRequest(topic_partitions=None))
    named = {t.topic: [p.partition_id for p in t.partition_result] for t in response.replica_election_results}
    assert (response.error_code, named) == (ErrorCode.NONE, {"t": [1], "u": []})


def reassign(
    plane: DataPlane, partition: int, replicas: list[int] | None, *, topic: str = "t", may_resize: bool = True
) -> tuple[int, str | None]:
    asked = ReassignablePartition(partition_index=partition, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(
        allow_replication_factor_change=may_resize, topics=[ReassignableTopic(name=topic, partitions=[asked])]
    )
    response = plane.ask("alter_partition_reassignments", 1, request)
    assert response.allow_replication_factor_change is may_resize
    [answer] = response.responses[0].partitions
    return answer.error_code, answer.error_message


def test_a_reassigned_partition_is_led_by_its_new_replicas_at_once_and_after_a_restart(plane: DataPlane) -> None:
    partition = plane.cluster.catalogue.by_name["t"].partitions[0]
    assert reassign(plane, 0, [2]) == (ErrorCode.NONE, None)
    assert (partition.replicas, partition.leader, partition.leader_epoch) == ([2], 2, 1)
    assert reassign(plane, 0, [1, 2]) == (ErrorCode.NONE, None)
    assert (partition.replicas, partition.leader, partition.leader_epoch) == ([1, 2], 2, 2)
    store = plane.cluster.store
    assert isinstance(store, MemoryStore)
    with data_plane(store, nodes=2) as again:
        same = again.cluster.catalogue.by_name["t"].partitions[0]
        assert (same.replicas, same.leader, same.leader_epoch) == ([1, 2], 2, 2)


def test_a_reassignment_to_the_same_replicas_changes_nothing(plane: DataPlane) -> None:
    assert reassign(plane, 0, [1], may_resize=False) == (ErrorCode.NONE, None)
    assert plane.cluster.catalogue.by_name["t"].partitions[0].leader_epoch == 0


@pytest.mark.parametrize(
    ("replicas", "message"),
    [
        ([], "The manual partition assignment includes an empty replica list."),
        ([1, 1], "The manual partition assignment includes the broker 1 more than once."),
        ([1, 77], "The manual partition assignment includes broker 77, but no such broker is registered."),
    ],
)
def test_replicas_that_make_no_sense_are_refused(plane: DataPlane, replicas: list[int], message: str) -> None:
    assert reassign(plane, 0, replicas) == (ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


def test_other_refused_reassignments(plane: DataPlane) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert reassign(plane, 9, [1]) == (unknown, "Unable to find partition t:9.")
    assert reassign(plane, 0, [1], topic="u") == (unknown, "Unable to find a topic named u.")
    assert reassign(plane, 0, None) == (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None)
    resized = (ErrorCode.INVALID_REPLICATION_FACTOR, "The replication factor is changed from 1 to 2")
    assert reassign(plane, 0, [1, 2], may_resize=False) == resized


def test_no_reassignment_is_ever_under_way(plane: DataPlane) -> None:
    reassign(plane, 0, [2])
    response = plane.ask("list_partition_reassignments", 0, ListPartitionReassignmentsRequest())
    assert (response.error_code, response.topics) == (ErrorCode.NONE, [])


@pytest.fixture
def three_topics() -> Iterator[DataPlane]:
    with data_plane() as made:
        for name, partitions in (("cc", 1), ("aa", 2), ("bb", 3)):
            made.topic(name, partitions)
        yield made


def page(
    plane: DataPlane, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> tuple[list[tuple[str | None, int, list[int]]], tuple[str, int] | None]:
    """(topic, error, partitions) each, and where the next page begins."""
    begin = None if cursor is None else DescribeTopicPartitionsCursor(topic_name=cursor[0], partition_index=cursor[1])
    request = DescribeTopicPartitionsRequest(
        topics=[DescribeTopicPartitionsTopic(name=name) for name in names],
        response_partition_limit=limit,
        cursor=begin,
    )
    answer: DescribeTopicPartitionsResponse = plane.ask("describe_topic_partitions", 0, request)
    after = None if answer.next_cursor is None else (answer.next_cursor.topic_name, answer.next_cursor.partition_index)
    return [(t.name, t.error_code, [p.partition_index for p in t.partitions]) for t in answer.topics], after


@pytest.mark.parametrize(
    ("limit", "partitions", "after"),
    [
        (0, [1], ("aa", 1)),
        (1, [1], ("aa", 1)),
        (2, [2], ("bb", 0)),
        (3, [2, 1], ("bb", 1)),
        (5, [2, 3], ("cc", 0)),
        (6, [2, 3, 1], None),
    ],
)
def test_a_page_ends_at_its_limit(
    three_topics: DataPlane, limit: int, partitions: list[int], after: tuple[str, int] | None
) -> None:
    for names in ((), ("bb", "cc", "aa", "aa")):
        topics, cursor = page(three_topics, *names, limit=limit)
        assert ([len(p) for _, _, p in topics], cursor) == (partitions, after)
        assert [name for name, _, _ in topics] == ["aa", "bb", "cc"][: len(partitions)]


def test_a_page_begins_at_the_cursor(three_topics: DataPlane) -> None:
    names = ("aa", "bb", "cc")
    assert page(three_topics, *names, cursor=("bb", 1)) == ([("bb", 0, [1, 2]), ("cc", 0, [0])], None)
    assert page(three_topics, *names, cursor=("bb", 9)) == ([("bb", 0, []), ("cc", 0, [0])], None)
    assert page(three_topics, cursor=("ab", 5)) == ([("bb", 0, [0, 1, 2]), ("cc", 0, [0])], None)
    refused: list[tuple[str, int, list[Any]]] = [(name, ErrorCode.INVALID_REQUEST, []) for name in names]
    assert page(three_topics, *names, cursor=("ab", 0)) == (refused, None)
    assert page(three_topics, *names, cursor=("aa", -1)) == (refused, None)


def test_topics_that_are_not_there_are_named_with_the_reason(three_topics: DataPlane) -> None:
    topics, _ = page(three_topics, "zz", "cc", "a b")
    assert topics == [
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION, []),
        ("cc", 0, [0]),
        ("zz", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, []),
    ]


def resources(plane: DataPlane, version: int, *kinds: int) -> tuple[int, list[tuple[int, str]]]:
    response = plane.ask("list_config_resources", version, ListConfigResourcesRequest(resource_types=list(kinds)))
    return response.error_code, [(r.resource_type, r.resource_name) for r in response.config_resources]


def test_topics_and_nodes_have_settings(plane: DataPlane) -> None:
    nodes = [(8, "1"), (8, "2"), (4, "1"), (4, "2")]
    assert resources(plane, 1) == (ErrorCode.NONE, [*nodes, (2, "t")])
    assert resources(plane, 1, 4, 8, 4) == (ErrorCode.NONE, nodes)
    assert resources(plane, 0) == resources(plane, 1, 16, 32) == (ErrorCode.NONE, [])
    assert resources(plane, 1, 4, 99) == (ErrorCode.UNSUPPORTED_VERSION, [])


def test_everybody_may_do_everything_and_is_told_so_when_asking(plane: DataPlane) -> None:
    nothing = -(1 << 31)
    for asks in (True, False):
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name="t")],
            include_cluster_authorized_operations=asks,
            include_topic_authorized_operations=asks,
        )
        answer = plane.ask("metadata", 8, request)
        cluster = plane.ask("describe_cluster", 2, DescribeClusterRequest(include_cluster_authorized_operations=asks))
        assert answer.topics[0].topic_authorized_operations == (3576 if asks else nothing)
        assert (
            answer.cluster_authorized_operations == cluster.cluster_authorized_operations == (8096 if asks else nothing)
        )
