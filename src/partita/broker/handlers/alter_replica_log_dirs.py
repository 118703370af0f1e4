"""AlterReplicaLogDirs: there is one log directory, where every replica is already. (Kafka: ReplicaManager)

Deviation: AlterReplicaLogDirs answers NONE for the broker's one log directory, and LOG_DIR_NOT_FOUND for any other.
"""

from __future__ import annotations

from partita.broker.requests.context import RequestContext
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def handle(ctx: RequestContext, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    """Nothing is ever moved."""
    topics: dict[str, AlterReplicaLogDirTopicResult] = {}
    for directory in request.dirs:
        is_ours = directory.path == ctx.cluster.store.root
        for topic in directory.topics:
            result = topics.setdefault(topic.name, AlterReplicaLogDirTopicResult(topic_name=topic.name))
            for index in topic.partitions:
                code = ErrorCode.NONE if is_ours else ErrorCode.LOG_DIR_NOT_FOUND
                if ctx.catalogue.partition(topic.name, index) is None:
                    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                result.partitions.append(AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code))
    return AlterReplicaLogDirsResponse(results=list(topics.values()))
