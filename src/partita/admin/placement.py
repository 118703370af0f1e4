"""Where partitions live: election of leaders, and moves of replicas to other brokers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from partita.admin.offsets import TopicPartition
from partita.admin.results import ApiVersionRange, OngoingMove, raise_failures
from partita.admin.topics import ask_controller
from partita.errors import KafkaError, error_for
from partita.net.cluster import Cluster
from partita.protocol.api_table import APIS
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from partita.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, ElectLeadersTopic
from partita.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

_PREFERRED, _UNCLEAN = 0, 1


async def elect_leaders(
    cluster: Cluster, partitions: Iterable[TopicPartition] | None, *, unclean: bool, timeout_ms: int
) -> list[TopicPartition]:
    """The partitions whose leader changed. Raises KafkaError or SomeFailed for those that could not be elected."""
    topics = None if partitions is None else _by_topic(partitions)
    request = ElectLeadersRequest(
        election_type=_UNCLEAN if unclean else _PREFERRED, topic_partitions=topics, timeout_ms=timeout_ms
    )
    answer: ElectLeadersResponse = await ask_controller(cluster, request, lambda a: [a.error_code])
    if answer.error_code:
        raise error_for(answer.error_code)
    failures: dict[str, KafkaError] = {}
    elected = []
    for topic in answer.replica_election_results:
        for part in topic.partition_result:
            if part.error_code == ErrorCode.NONE:
                elected.append((topic.topic, part.partition_id))
            elif part.error_code != ErrorCode.ELECTION_NOT_NEEDED:
                name = f"{topic.topic}-{part.partition_id}"
                reason = part.error_message or ErrorCode(part.error_code).meaning
                failures[name] = error_for(part.error_code, f"{name}: {reason}")
    raise_failures(failures, len(failures) + len(elected))
    return elected


async def move_replicas(
    cluster: Cluster, replicas: Mapping[TopicPartition, Sequence[int] | None], *, timeout_ms: int
) -> None:
    """Start moving partitions to these brokers; None cancels a move. Raises KafkaError or SomeFailed."""
    topics: dict[str, ReassignableTopic] = {}
    for (name, partition), nodes in sorted(replicas.items()):
        part = ReassignablePartition(partition_index=partition, replicas=None if nodes is None else list(nodes))
        topics.setdefault(name, ReassignableTopic(name=name)).partitions.append(part)
    request = AlterPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=list(topics.values()))
    answer: AlterPartitionReassignmentsResponse = await ask_controller(cluster, request, lambda a: [a.error_code])
    if answer.error_code:
        raise error_for(answer.error_code, answer.error_message)
    failures: dict[str, KafkaError] = {}
    for topic in answer.responses:
        for moved in topic.partitions:
            if moved.error_code:
                name = f"{topic.name}-{moved.partition_index}"
                reason = moved.error_message or ErrorCode(moved.error_code).meaning
                failures[name] = error_for(moved.error_code, f"{name}: {reason}")
    raise_failures(failures, len(replicas))


async def list_moves(cluster: Cluster, *, timeout_ms: int) -> list[OngoingMove]:
    """The moves that are not finished yet."""
    request = ListPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=None)
    answer: ListPartitionReassignmentsResponse = await ask_controller(cluster, request, lambda a: [a.error_code])
    if answer.error_code:
        raise error_for(answer.error_code, answer.error_message)
    return [
        OngoingMove(topic.name, p.partition_index, list(p.replicas), list(p.adding_replicas), list(p.removing_replicas))
        for topic in answer.topics
        for p in topic.partitions
    ]


async def api_versions(cluster: Cluster, node_id: int | None) -> list[ApiVersionRange]:
    """The APIs and versions that a node serves (None: any node), by number."""

    async def once() -> dict[int, tuple[int, int]]:
        connection = await cluster.connection(await _any_node(cluster) if node_id is None else node_id)
        return connection.versions

    served = await cluster.retry(once)
    return [
        ApiVersionRange(key, APIS[key].name if key in APIS else f"api {key}", low, high)
        for key, (low, high) in sorted(served.items())
    ]


async def _any_node(cluster: Cluster) -> int:
    if not cluster.view.nodes:
        await cluster.refresh([])
    return min(cluster.view.nodes)


def _by_topic(partitions: Iterable[TopicPartition]) -> list[ElectLeadersTopic]:
    topics: dict[str, ElectLeadersTopic] = {}
    for topic, partition in sorted(set(partitions)):
        topics.setdefault(topic, ElectLeadersTopic(topic=topic)).partitions.append(partition)
    return list(topics.values())
