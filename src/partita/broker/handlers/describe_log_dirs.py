"""DescribeLogDirs: the directories and sizes of the partitions of this node. (Kafka: ReplicaManager.)

The nodes of a process share one store; each reports the partitions it is a replica of.
"""

from __future__ import annotations

from collections.abc import Iterable

from partita.broker.api.context import RequestContext, Steps
from partita.broker.api.needs import Needs
from partita.broker.api.served import Errors, Served
from partita.broker.topics.catalogue import Partition, Topic
from partita.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from partita.security.rights.operations import Operation, ResourceType

API = Served(
    DescribeLogDirsRequest, rights=(Needs(Operation.DESCRIBE, ResourceType.CLUSTER),), errors=Errors(has_items=False)
)


def handle(ctx: RequestContext, request: DescribeLogDirsRequest) -> Steps[DescribeLogDirsResponse]:
    """Topics and partitions that are not there are left out, as Kafka does. Many are looked at in slices."""
    total_bytes, usable_bytes = ctx.cluster.store.volume_bytes()
    sizes: dict[Topic, list[DescribeLogDirsPartition]] = {}
    for topic, partition in (yield from _asked(ctx, request)):
        yield None
        if ctx.node_id in partition.replicas and not topic.deleted:
            sizes.setdefault(topic, []).append(_size(partition))
    topics = [DescribeLogDirsTopic(name=topic.name, partitions=partitions) for topic, partitions in sizes.items()]
    result = DescribeLogDirsResult(
        log_dir=ctx.cluster.store.root, topics=topics, total_bytes=total_bytes, usable_bytes=usable_bytes
    )
    return DescribeLogDirsResponse(results=[result])


def _asked(ctx: RequestContext, request: DescribeLogDirsRequest) -> Steps[Iterable[tuple[Topic, Partition]]]:
    if request.topics is None:
        return ((topic, partition) for topic in tuple(ctx.catalogue) for partition in tuple(topic.partitions))
    found: dict[Partition, Topic] = {}
    for asked in request.topics:
        yield None
        topic = ctx.catalogue.get(asked.topic)
        for index in asked.partitions:
            yield None
            partition = None if topic is None else topic.partition(index)
            if topic is not None and partition is not None:
                found[partition] = topic
    return ((topic, partition) for partition, topic in found.items())


def _size(partition: Partition) -> DescribeLogDirsPartition:
    size_bytes = 0 if partition.is_untouched else partition.log.size_in_bytes
    return DescribeLogDirsPartition(partition_index=partition.index, partition_size=size_bytes)
