"""Topics, partitions, records and the cluster itself: create, list, describe, grow, delete."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from partita.admin.asking import Connected, ask_for_each
from partita.admin.missing_rights import needs
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
from partita.net.faces import check_seconds
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
from partita.protocol.primitives import Message

R = TypeVar("R", bound=Message)


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. -1: the broker's default. `replicas` places them by hand: {partition: [node ids]}."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str | int | bool | None] = field(default_factory=dict)
    replicas: Mapping[int, Sequence[int]] = field(default_factory=dict)


@needs(topic="CREATE", cluster="CREATE")
async def create_topics(
    self: Connected, *new: NewTopic | str, validate_only: bool = False, timeout_ms: int = 30_000
) -> list[CreatedTopic]:
    """Create topics, each given as NewTopic or by name alone; with `validate_only` only say if it would work."""
    for topic in new:
        if not isinstance(topic, NewTopic | str):
            raise TypeError(f"create_topics takes names and NewTopics one after the other, not {topic!r}")
    wanted = [_creatable(topic if isinstance(topic, NewTopic) else NewTopic(topic)) for topic in new]
    request = CreateTopicsRequest(topics=wanted, timeout_ms=timeout_ms, validate_only=validate_only)
    answer = await ask_for_each(self.cluster, request, lambda a: ((t.name, t) for t in a.topics))
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


@needs(topic="CREATE", cluster="CREATE")
async def create_topic(
    self: Connected,
    name: str,
    partitions: int = -1,
    replication_factor: int = -1,
    configs: Mapping[str, str | int | bool | None] | None = None,
) -> CreatedTopic:
    """Create one topic. Raises TopicAlreadyExistsError."""
    (created,) = await create_topics(self, NewTopic(name, partitions, replication_factor, configs or {}))
    return created


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


@needs(topic="DELETE")
async def delete_topics(self: Connected, names: str | Iterable[str], *, timeout_ms: int = 30_000) -> None:
    """Delete topics with all their records, for good. Raises UnknownTopicOrPartitionError."""
    wanted = names_of(names)
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name) for name in wanted], topic_names=wanted, timeout_ms=timeout_ms
    )
    await ask_for_each(self.cluster, request, lambda a: ((r.name or "", r) for r in a.responses))


@needs(topic="ALTER")
async def create_partitions(
    self: Connected,
    topic: str,
    total: int,
    *,
    replicas: Sequence[Sequence[int]] | None = None,
    validate_only: bool = False,
    timeout_ms: int = 30_000,
) -> None:
    """Increase the topic's partitions to `total`; keys hash to other partitions from then on.

    Raises InvalidPartitionsError unless there are fewer now.
    """
    placed = None if replicas is None else [CreatePartitionsAssignment(broker_ids=list(nodes)) for nodes in replicas]
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=topic, count=total, assignments=placed)],
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )
    await ask_for_each(self.cluster, request, lambda a: ((r.name, r) for r in a.results))


async def list_topics(self: Connected, *, include_internal: bool = False) -> list[TopicListing]:
    """Every topic by name, with its number of partitions; internal ones such as __consumer_offsets on demand."""
    views = await self.cluster.topics(None)
    return [
        TopicListing(view.name, id_text(view.topic_id), len(view.partitions), view.is_internal)
        for view in sorted(views.values(), key=lambda view: view.name)
        if include_internal or not view.is_internal
    ]


@needs(topic="DESCRIBE")
async def describe_topics(self: Connected, names: str | Iterable[str]) -> list[TopicDescription]:
    """Partitions, leaders and replicas. Raises UnknownTopicOrPartitionError."""
    wanted = names_of(names)
    views = await self.cluster.topics(wanted)
    failures: dict[str, KafkaError] = {}
    for name in wanted:
        code = views[name].error_code if name in views else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if code:
            failures[name] = error_for(code, f"topic {name!r}: {ErrorCode(code).meaning}")
    raise_failures(failures, len(wanted))
    return [_described(views[name]) for name in wanted]


@needs(topic="DESCRIBE")
async def wait_for_topics(self: Connected, names: str | Iterable[str], *, timeout: float = 30.0) -> None:
    """Return once every node knows these topics and the leaders of their partitions, within `timeout` seconds.

    Raises UnknownTopicOrPartitionError, or the error of the last attempt.
    """
    cluster = self.cluster
    wanted = [MetadataRequestTopic(name=name) for name in names_of(names)]
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

    await cluster.retry(once, timeout_ms=int(check_seconds(timeout) * 1000))


def _described(view: TopicView) -> TopicDescription:
    partitions = [
        PartitionDescription(p.partition, p.leader, p.leader_epoch, list(p.replicas), list(p.isr), list(p.offline))
        for p in view.partitions
    ]
    return TopicDescription(view.name, id_text(view.topic_id), view.is_internal, partitions)


async def describe_cluster(self: Connected) -> ClusterDescription:
    """The cluster's id, its controller, and the nodes that are alive."""
    cluster = self.cluster

    async def once() -> DescribeClusterResponse:
        answer = await cluster.request(None, DescribeClusterRequest())
        if answer.error_code:
            raise error_for(answer.error_code, answer.error_message)
        return answer

    answer = await cluster.retry(once)
    nodes = [NodeDescription(b.broker_id, b.host, b.port, b.rack) for b in answer.brokers]
    return ClusterDescription(answer.cluster_id, answer.controller_id, sorted(nodes, key=lambda node: node.id))


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
