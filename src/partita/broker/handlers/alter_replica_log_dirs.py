"""AlterReplicaLogDirs: there is one log directory, where every replica is already. (Kafka: ReplicaManager)

Deviation: Partita answers AlterReplicaLogDirs with NONE for its one log directory and LOG_DIR_NOT_FOUND for any other,
where Kafka moves replicas between several.
"""

from __future__ import annotations

from partita.broker.api.context import RequestContext, Steps
from partita.broker.api.needs import Needs
from partita.broker.api.served import Served
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from partita.security.rights.operations import Operation, ResourceType

API = Served(
    AlterReplicaLogDirsRequest,
    rights=(Needs(Operation.ALTER, ResourceType.CLUSTER),),
)


def handle(ctx: RequestContext, request: AlterReplicaLogDirsRequest) -> Steps[AlterReplicaLogDirsResponse]:
    """Answer without moving anything: there is one log directory."""
    topics: dict[str, AlterReplicaLogDirTopicResult] = {}
    for directory in request.dirs:
        yield None
        is_ours = directory.path == ctx.cluster.store.root
        for topic in directory.topics:
            yield None
            result = topics.setdefault(topic.name, AlterReplicaLogDirTopicResult(topic_name=topic.name))
            for index in topic.partitions:
                yield None
                code = ErrorCode.NONE if is_ours else ErrorCode.LOG_DIR_NOT_FOUND
                if ctx.catalogue.partition(topic.name, index) is None:
                    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                result.partitions.append(AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code))
    return AlterReplicaLogDirsResponse(results=list(topics.values()))
