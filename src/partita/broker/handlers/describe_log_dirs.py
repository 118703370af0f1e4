"""DescribeLogDirs: where the partitions of this node are kept, and how large they are. (Kafka: ReplicaManager.)

The nodes of a process share one store; each tells of the partitions it is a replica of.
"""

from __future__ import annotations

from collections.abc import Iterable

from partita.broker.requests.context import Answer, RequestContext
from partita.broker.requests.slices import Steps, answered, sliced
from partita.broker.topics.catalogue import Partition, Topic
from partita.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def handle(ctx: RequestContext, request: DescribeLogDirsRequest) -> Answer:
    """Topics and partitions that are not there are left out, as Kafka does. Many are looked at in slices."""
    return answered(ctx, _answer(ctx, request))


def _answer(ctx: RequestContext, request: DescribeLogDirsRequest) -> Steps[DescribeLogDirsResponse]:
    total_bytes, usable_bytes = ctx.cluster.store.volume_bytes()
    sizes: dict[Topic, list[DescribeLogDirsPartition]] = {}
    asked = ((topic, partition) for topic, wanted in _asked(ctx, request) for partition in wanted)
    for (topic, partition), others_turn in sliced(asked, ctx.stopwatch):
        if others_turn:
            yield None
        if ctx.node_id in partition.replicas and not topic.deleted:
            sizes.setdefault(topic, []).append(_size(partition))
    topics = [DescribeLogDirsTopic(name=topic.name, partitions=partitions) for topic, partitions in sizes.items()]
    result = DescribeLogDirsResult(
        log_dir=ctx.cluster.store.root, topics=topics, total_bytes=total_bytes, usable_bytes=usable_bytes
    )
    return DescribeLogDirsResponse(results=[result])


def _asked(ctx: RequestContext, request: DescribeLogDirsRequest) -> Iterable[tuple[Topic, Iterable[Partition]]]:
    if request.topics is None:
        return [(topic, list(topic.partitions)) for topic in ctx.catalogue]
    indexes: dict[str, dict[int, None]] = {}
    for asked in request.topics:
        indexes.setdefault(asked.topic, {}).update(dict.fromkeys(asked.partitions))
    found = ((ctx.catalogue.get(name), wanted) for name, wanted in indexes.items())
    return [(t, [p for p in map(t.partition, wanted) if p is not None]) for t, wanted in found if t is not None]


def _size(partition: Partition) -> DescribeLogDirsPartition:
    size_bytes = 0 if partition.is_untouched else partition.log.size_in_bytes
    return DescribeLogDirsPartition(partition_index=partition.index, partition_size=size_bytes)
