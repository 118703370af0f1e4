"""Placement of partitions: leaders, replicas and log directories; APIs, features and quorum of the nodes.

Mirrors ElectLeaders, the reassignments, DescribeLogDirs, UpdateFeatures and DescribeQuorum of Kafka's admin client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from partita.admin.asking import Connected, ask_decided, named_node
from partita.admin.missing_rights import needs
from partita.admin.offsets import TopicPartition
from partita.admin.results import (
    ApiVersionRange,
    FeatureDescription,
    LogDirDescription,
    OngoingMove,
    QuorumDescription,
    QuorumReplica,
    ReplicaSize,
    raise_failures,
)
from partita.admin.topics import id_text
from partita.errors import KafkaError, error_for
from partita.net.cluster import Cluster
from partita.net.connection import SOFTWARE_NAME, SOFTWARE_VERSION
from partita.options import not_one_of
from partita.protocol.api_table import APIS
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from partita.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from partita.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from partita.protocol.messages.describe_quorum import (
    DescribeQuorumPartition,
    DescribeQuorumPartitionResult,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumTopic,
    QuorumObserverState,
    QuorumVoterState,
)
from partita.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersTopic
from partita.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
)
from partita.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

Upgrade = Literal["upgrade", "safe_downgrade", "unsafe_downgrade"]
_UPGRADE_TYPES: dict[Upgrade, int] = {"upgrade": 1, "safe_downgrade": 2, "unsafe_downgrade": 3}
_METADATA_TOPIC = "__cluster_metadata"
_PREFERRED, _UNCLEAN = 0, 1


@needs(cluster="ALTER")
async def elect_leaders(
    self: Connected,
    partitions: Iterable[TopicPartition] | None = None,
    *,
    unclean: bool = False,
    timeout_ms: int = 30_000,
) -> list[TopicPartition]:
    """Make the preferred replica the leader of each partition (None: of all). Returns those that changed.

    With `unclean`, any replica that is alive may lead where no replica in sync is; records may be lost. Partitions
    that need no election are left out. Raises KafkaError or SomeFailed for partitions that could not be elected.
    """
    topics = None if partitions is None else _by_topic(partitions)
    request = ElectLeadersRequest(
        election_type=_UNCLEAN if unclean else _PREFERRED, topic_partitions=topics, timeout_ms=timeout_ms
    )
    answer = await ask_decided(self.cluster, request)
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
    # Not the number asked for: without partitions, the broker elects for all of them.
    raise_failures(failures, len(failures) + len(elected))
    return elected


@needs(cluster="ALTER")
async def alter_partition_reassignments(
    self: Connected, replicas: Mapping[TopicPartition, Sequence[int] | None], *, timeout_ms: int = 30_000
) -> None:
    """Start moving partitions to these brokers, the preferred leader first; None cancels a move under way.

    Raises KafkaError or SomeFailed. A cluster that copies data continues after this returns; see
    `list_partition_reassignments`.
    """
    topics: dict[str, ReassignableTopic] = {}
    for (name, partition), nodes in sorted(replicas.items()):
        part = ReassignablePartition(partition_index=partition, replicas=None if nodes is None else list(nodes))
        # On the wire, null cancels a move; an empty list would be refused.
        topics.setdefault(name, ReassignableTopic(name=name)).partitions.append(part)
    request = AlterPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=list(topics.values()))
    answer = await ask_decided(self.cluster, request)
    failures: dict[str, KafkaError] = {}
    for topic in answer.responses:
        for moved in topic.partitions:
            if moved.error_code:
                name = f"{topic.name}-{moved.partition_index}"
                reason = moved.error_message or ErrorCode(moved.error_code).meaning
                failures[name] = error_for(moved.error_code, f"{name}: {reason}")
    raise_failures(failures, len(replicas))


@needs(cluster="DESCRIBE")
async def list_partition_reassignments(self: Connected, *, timeout_ms: int = 30_000) -> list[OngoingMove]:
    """The moves that are not finished yet."""
    request = ListPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=None)
    answer = await ask_decided(self.cluster, request)
    return [
        OngoingMove(topic.name, p.partition_index, list(p.replicas), list(p.adding_replicas), list(p.removing_replicas))
        for topic in answer.topics
        for p in topic.partitions
    ]


async def api_versions(self: Connected, node_id: int | None = None) -> list[ApiVersionRange]:
    """The APIs that a node serves, with their versions; without `node_id`, those of the node with the lowest id."""
    cluster = self.cluster

    async def once() -> dict[int, tuple[int, int]]:
        node = await (_any_node(cluster) if node_id is None else named_node(cluster, node_id))
        return (await cluster.connection(node)).versions

    served = await cluster.retry(once)
    return [
        ApiVersionRange(key, APIS[key].name if key in APIS else f"api {key}", low, high)
        for key, (low, high) in sorted(served.items())
    ]


@needs(cluster="DESCRIBE")
async def describe_log_dirs(self: Connected, node_ids: Iterable[int] | None = None) -> list[LogDirDescription]:
    """The log directories of nodes (None: of all), with the size of each replica in them."""
    cluster = self.cluster
    if node_ids is None:
        await cluster.refresh([])
        nodes = sorted(cluster.view.nodes)
    else:
        nodes = [await named_node(cluster, node) for node in sorted(set(node_ids))]

    async def of_node(node: int) -> list[LogDirDescription]:
        async def once() -> DescribeLogDirsResponse:
            answer = await cluster.request(node, DescribeLogDirsRequest(topics=None))
            _check(answer.error_code, f"node {node} does not describe its log directories")
            return answer

        answer = await cluster.retry(once)
        return [_log_dir(node, result) for result in answer.results]

    found = await asyncio.gather(*map(of_node, nodes))
    return [each for some in found for each in some]


def _log_dir(node: int, result: DescribeLogDirsResult) -> LogDirDescription:
    replicas = [
        ReplicaSize(topic.name, p.partition_index, p.partition_size, p.offset_lag, p.is_future_key)
        for topic in result.topics
        for p in topic.partitions
    ]
    return LogDirDescription(
        node,
        result.log_dir,
        error_for(result.error_code) if result.error_code else None,
        result.total_bytes if result.total_bytes >= 0 else None,
        result.usable_bytes if result.usable_bytes >= 0 else None,
        sorted(replicas, key=lambda replica: (replica.topic, replica.partition)),
    )


async def describe_features(self: Connected, node_id: int | None = None) -> FeatureDescription:
    """The levels of features in force, such as metadata.version, and those that a node (None: any) supports."""
    request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION)

    async def once() -> ApiVersionsResponse:
        node = None if node_id is None else await named_node(self.cluster, node_id)
        answer = await self.cluster.request(node, request)
        _check(answer.error_code, "describing features")
        return answer

    answer = await self.cluster.retry(once)
    return FeatureDescription(
        {f.name: f.max_version_level for f in answer.finalized_features},
        answer.finalized_features_epoch if answer.finalized_features_epoch >= 0 else None,
        {f.name: (f.min_version, f.max_version) for f in answer.supported_features},
    )


@needs(cluster="ALTER")
async def update_features(
    self: Connected,
    levels: Mapping[str, int],
    *,
    how: Upgrade = "upgrade",
    validate_only: bool = False,
    timeout_ms: int = 60_000,
) -> None:
    """Set feature levels, 0 to turn one off. A lower level needs `how` "safe_downgrade" or "unsafe_downgrade".

    Raises InvalidUpdateVersionError, and UnsupportedVersionError on a broker of Partita, whose levels are options.
    """
    if how not in _UPGRADE_TYPES:
        raise ValueError(not_one_of(_UPGRADE_TYPES, how, "how"))
    updates = [
        FeatureUpdateKey(
            feature=name, max_version_level=level, allow_downgrade=how != "upgrade", upgrade_type=_UPGRADE_TYPES[how]
        )
        for name, level in levels.items()
    ]
    request = UpdateFeaturesRequest(timeout_ms=timeout_ms, feature_updates=updates, validate_only=validate_only)
    answer = await ask_decided(self.cluster, request)
    failures: dict[str, KafkaError] = {
        result.feature: error_for(result.error_code, result.error_message)
        for result in answer.results
        if result.error_code
    }
    raise_failures(failures, len(updates))


@needs(cluster="DESCRIBE")
async def describe_metadata_quorum(self: Connected) -> QuorumDescription:
    """The controllers that keep the cluster's metadata, and how far each has come in its log."""
    partitions = [DescribeQuorumPartition(partition_index=0)]
    request = DescribeQuorumRequest(topics=[DescribeQuorumTopic(topic_name=_METADATA_TOPIC, partitions=partitions)])

    async def once() -> tuple[DescribeQuorumResponse, DescribeQuorumPartitionResult]:
        answer = await self.cluster.request(None, request)
        _check(answer.error_code, answer.error_message)
        part = answer.topics[0].partitions[0]
        _check(part.error_code, part.error_message)
        return answer, part

    answer, part = await self.cluster.retry(once)
    return QuorumDescription(
        part.leader_id,
        part.leader_epoch,
        part.high_watermark,
        sorted(map(_quorum_replica, part.current_voters), key=lambda replica: replica.id),
        sorted(map(_quorum_replica, part.observers), key=lambda replica: replica.id),
        {node.node_id: [f"{each.name}://{each.host}:{each.port}" for each in node.listeners] for node in answer.nodes},
    )


def _quorum_replica(state: QuorumVoterState | QuorumObserverState) -> QuorumReplica:
    return QuorumReplica(
        state.replica_id,
        id_text(state.replica_directory_id),
        state.log_end_offset,
        state.last_fetch_timestamp if state.last_fetch_timestamp >= 0 else None,
        state.last_caught_up_timestamp if state.last_caught_up_timestamp >= 0 else None,
    )


def _check(code: int, message: str | None) -> None:
    if code != ErrorCode.NONE:
        raise error_for(code, message)


async def _any_node(cluster: Cluster) -> int:
    if not cluster.view.nodes:
        await cluster.refresh([])
    return min(cluster.view.nodes)


def _by_topic(partitions: Iterable[TopicPartition]) -> list[ElectLeadersTopic]:
    topics: dict[str, ElectLeadersTopic] = {}
    for topic, partition in sorted(set(partitions)):
        topics.setdefault(topic, ElectLeadersTopic(topic=topic)).partitions.append(partition)
    return list(topics.values())
