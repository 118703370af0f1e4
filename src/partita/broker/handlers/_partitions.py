"""First checks of produce, fetch and the offset look-ups: is the partition here, and does the client know its leader?

Upstream: Partition.checkCurrentLeaderEpoch, ReplicaManager.getPartitionOrError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from partita.broker.api.context import RequestContext, Steps
from partita.broker.topics.catalogue import NO_LEADER, Partition, Topic
from partita.protocol.error_codes import NONE, ErrorCode


class EndpointFields(Protocol):
    """A NodeEndpoint class of any API."""

    def __init__(self, *, node_id: int = 0, host: str = "", port: int = 0, rack: str | None = None) -> None: ...


Endpoint = TypeVar("Endpoint", bound=EndpointFields)


class AskedTopic(Protocol):
    """A topic in the request of any API whose partitions have a `partition_index`."""

    partitions: list[Any]


class AnsweredTopic(Protocol):
    """A topic in the answer of any API that answers partition by partition."""

    partitions: list[Any]


DescribedPartition = TypeVar("DescribedPartition")
TopicKey = TypeVar("TopicKey")
AnsweredTopicOfApi = TypeVar("AnsweredTopicOfApi", bound=AnsweredTopic)


def find(
    ctx: RequestContext, topic: Topic | None, index: int, *, current_leader_epoch: int = -1
) -> Partition | ErrorCode:
    """Return the partition when this node leads it at the epoch the client knows (-1: any), else why not."""
    # A sliced request may still hold a topic that was deleted meanwhile; to open its log would bring it back.
    partition = topic.partition(index) if topic is not None and not topic.deleted else None
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if partition.leader != ctx.node_id:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if current_leader_epoch >= 0 and current_leader_epoch != partition.leader_epoch:
        is_old = current_leader_epoch < partition.leader_epoch
        return ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH
    if ctx.cluster.store.failure is not None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    return partition


def take_out_missing(topic: Topic | None, asked: AskedTopic) -> Steps[list[int]]:
    """Leave in `asked` only partitions that exist; return the others."""
    existing = 0 if topic is None else len(topic.partitions)
    partitions, asked.partitions, missing = asked.partitions, [], []
    for part in partitions:
        yield None
        if 0 <= part.partition_index < existing:
            asked.partitions.append(part)
        else:
            missing.append(part.partition_index)
    return missing


def described(
    ctx: RequestContext, partitions: Sequence[Partition], kind: Callable[..., DescribedPartition]
) -> Steps[list[DescribedPartition]]:
    """Describe partitions for Metadata and DescribeTopicPartitions; a replica is in sync while its node lives."""
    alive = {node.node_id for node in ctx.cluster.alive}
    found = []
    for p in partitions:
        yield None
        found.append(
            kind(
                error_code=ErrorCode.LEADER_NOT_AVAILABLE if p.leader == NO_LEADER else NONE,
                partition_index=p.index,
                leader_id=p.leader,
                leader_epoch=p.leader_epoch,
                replica_nodes=p.replicas,
                isr_nodes=[node for node in p.replicas if node in alive],
                offline_replicas=[node for node in p.replicas if node not in alive],
            )
        )
    return found


def endpoints(ctx: RequestContext, leaders: Iterable[int], kind: type[Endpoint]) -> list[Endpoint]:
    """Addresses of the named leaders, for answers that redirect a client (KIP-951)."""
    nodes = [ctx.cluster.nodes[leader] for leader in dict.fromkeys(leaders) if leader != NO_LEADER]
    found = [(node.node_id, *ctx.endpoint(node)) for node in nodes if node.is_alive]
    return [kind(node_id=node_id, host=host, port=port) for node_id, host, port in found]


def merged(
    refused: dict[TopicKey, AnsweredTopicOfApi],
    answered: Iterable[AnsweredTopicOfApi],
    key: Callable[[AnsweredTopicOfApi], TopicKey],
) -> list[AnsweredTopicOfApi]:
    """Return the topics that the handler refused, then the shard's answers."""
    for topic in answered:
        entry = refused.setdefault(key(topic), topic)
        if entry is not topic:
            entry.partitions += topic.partitions
    return list(refused.values())
