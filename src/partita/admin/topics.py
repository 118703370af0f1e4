"""Topics, partitions, records and the cluster itself: create, list, describe, grow, delete."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from partita.admin.results import (
    ClusterDescription,
    CreatedTopic,
    NodeDescription,
    PartitionDescription,
    TopicDescription,
    TopicListing,
    raise_failures,
)
from partita.errors import KafkaError, error_for
from partita.net.cluster import Cluster
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from partita.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from partita.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from partita.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from partita.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from partita.protocol.metadata_view import TopicView
from partita.protocol.primitives import Message, Request

R = TypeVar("R", bound=Message)


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. -1: the broker's default. `replicas` places them by hand: {partition: [node ids]}."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str | int | bool | None] = field(default_factory=dict)
    replicas: Mapping[int, Sequence[int]] = field(default_factory=dict)


async def create_topics(
    cluster: Cluster, topics: Sequence[NewTopic | str], *, validate_only: bool, timeout_ms: int
) -> list[CreatedTopic]:
    """Create the topics. Raises SomeFailed when only some could be created."""
    for topic in topics:
        if not isinstance(topic, NewTopic | str):
            raise TypeError(f"create_topics takes names and NewTopics one after the other, not {topic!r}")
    wanted = [_creatable(topic if isinstance(topic, NewTopic) else NewTopic(topic)) for topic in topics]
    request = CreateTopicsRequest(topics=wanted, timeout_ms=timeout_ms, validate_only=validate_only)
    answer = await ask_controller(cluster, request, lambda a: [t.error_code for t in a.topics])
    raise_failures(
        {t.name: error_for(t.error_code, t.error_message) for t in answer.topics if t.error_code}, len(topics)
    )
    return [
        CreatedTopic(
            topic.name,
            id_text(topic.topic_id),
            topic.num_partitions,
            topic.replication_factor,
            {config.name: config.value for config in topic.configs or ()},
        )
        for topic in answer.topics
    ]


def _creatable(topic: NewTopic) -> CreatableTopic:
    placed = [
        CreatableReplicaAssignment(partition_index=partition, broker_ids=list(nodes))
        for partition, nodes in topic.replicas.items()
    ]
    return CreatableTopic(
        name=topic.name,
        num_partitions=-1 if placed else topic.partitions,
        replication_factor=-1 if placed else topic.replication_factor,
        assignments=placed,
        configs=[CreatableTopicConfig(name=name, value=as_text(value)) for name, value in topic.configs.items()],
    )


async def delete_topics(cluster: Cluster, names: Sequence[str], *, timeout_ms: int) -> None:
    """Delete the topics. Raises SomeFailed when only some could be deleted."""
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name) for name in names], topic_names=list(names), timeout_ms=timeout_ms
    )
    answer = await ask_controller(cluster, request, lambda a: [r.error_code for r in a.responses])
    failures = {r.name or "": error_for(r.error_code, r.error_message) for r in answer.responses if r.error_code}
    raise_failures(failures, len(names))


async def create_partitions(
    cluster: Cluster,
    topic: str,
    total: int,
    *,
    replicas: Sequence[Sequence[int]] | None,
    validate_only: bool,
    timeout_ms: int,
) -> None:
    """Raise the number of partitions to `total`. Raises InvalidPartitionsError unless there are fewer now."""
    placed = None if replicas is None else [CreatePartitionsAssignment(broker_ids=list(nodes)) for nodes in replicas]
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=topic, count=total, assignments=placed)],
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )
    answer = await ask_controller(cluster, request, lambda a: [r.error_code for r in a.results])
    raise_failures({r.name: error_for(r.error_code, r.error_message) for r in answer.results if r.error_code}, 1)


async def list_topics(cluster: Cluster, *, include_internal: bool) -> list[TopicListing]:
    """Every topic of the cluster, sorted by name."""
    views = await cluster.topics(None)
    return [
        TopicListing(view.name, id_text(view.topic_id), len(view.partitions), view.is_internal)
        for view in sorted(views.values(), key=lambda view: view.name)
        if include_internal or not view.is_internal
    ]


async def describe_topics(cluster: Cluster, names: Sequence[str]) -> list[TopicDescription]:
    """The topics in the order they were named. Raises UnknownTopicOrPartitionError."""
    views = await cluster.topics(names)
    failures: dict[str, KafkaError] = {}
    for name in names:
        code = views[name].error_code if name in views else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if code:
            failures[name] = error_for(code, f"topic {name!r}: {ErrorCode(code).meaning}")
    raise_failures(failures, len(names))
    return [_described(views[name]) for name in names]


async def wait_for_topics(cluster: Cluster, names: Sequence[str], timeout_ms: int) -> None:
    """Wait until every node knows the topics and a leader for each partition. Raises the last error at the end."""
    wanted = [MetadataRequestTopic(name=name) for name in names]
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)

    async def of_node(node: int) -> None:
        answer = await cluster.request(node, request)
        for topic in answer.topics:
            is_led = all(part.leader_id >= 0 for part in topic.partitions)
            code = topic.error_code or (ErrorCode.NONE if is_led else ErrorCode.LEADER_NOT_AVAILABLE)
            if code:
                raise error_for(code, f"topic {topic.name!r} at node {node}: {ErrorCode(code).meaning}")

    async def once() -> None:
        await cluster.refresh([])
        await asyncio.gather(*map(of_node, cluster.view.nodes))

    await cluster.retry(once, timeout_ms=timeout_ms)


def _described(view: TopicView) -> TopicDescription:
    partitions = [
        PartitionDescription(p.partition, p.leader, p.leader_epoch, list(p.replicas), list(p.isr), list(p.offline))
        for p in view.partitions
    ]
    return TopicDescription(view.name, id_text(view.topic_id), view.is_internal, partitions)


async def describe_cluster(cluster: Cluster) -> ClusterDescription:
    """The cluster as a broker of it describes it now; nodes are sorted by id."""

    async def once() -> DescribeClusterResponse:
        answer = await cluster.request(None, DescribeClusterRequest())
        if answer.error_code:
            raise error_for(answer.error_code, answer.error_message)
        return answer

    answer = await cluster.retry(once)
    nodes = [NodeDescription(b.broker_id, b.host, b.port, b.rack) for b in answer.brokers]
    return ClusterDescription(answer.cluster_id, answer.controller_id, sorted(nodes, key=lambda node: node.id))


async def ask_controller(cluster: Cluster, message: Request[R], codes: Callable[[R], Collection[int]]) -> R:
    """Send to the controller (any broker forwards it), again while an answer's codes say it was the wrong node."""

    async def once() -> R:
        controller = cluster.view.controller_id
        answer = await cluster.request(controller if controller in cluster.view.nodes else None, message)
        if ErrorCode.NOT_CONTROLLER in codes(answer):
            await cluster.refresh([])
            raise error_for(ErrorCode.NOT_CONTROLLER)
        return answer

    return await cluster.retry(once)


def id_text(topic_id: bytes) -> str:
    """A topic id as Kafka prints it: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(topic_id).rstrip(b"=").decode()


def as_text(value: str | int | bool | None) -> str | None:
    """Return a config value as Kafka expects it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


def names_of(given: str | Iterable[str]) -> list[str]:
    """Return one name or several as a list without repetitions."""
    return [given] if isinstance(given, str) else list(dict.fromkeys(given))
