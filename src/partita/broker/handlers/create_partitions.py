"""CreatePartitions: let a topic grow; it never shrinks. (Kafka: ReplicationControlManager.)"""

from __future__ import annotations

from collections import Counter

from partita.broker.api.context import Answer, RequestContext, Steps
from partita.broker.api.needs import NeedsEach
from partita.broker.api.served import Quota, Served
from partita.broker.topics import checks as topic_admin
from partita.broker.topics.catalogue import Topic
from partita.broker.topics.checks import Refused
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from partita.security.rights.operations import Operation, ResourceType

API = Served(
    CreatePartitionsRequest,
    rights=(NeedsEach(Operation.ALTER, ResourceType.TOPIC, "topics", "results", "name"),),
    quota=Quota("controller_mutation_rate", refused_from=3, items=("topics",), answers="results"),
)


def handle(ctx: RequestContext, request: CreatePartitionsRequest) -> Steps[Answer]:
    """Add partitions to each topic; every topic is checked and answered for itself."""
    counts = Counter(topic.name for topic in request.topics)
    results = []
    for topic in {topic.name: topic for topic in request.topics}.values():
        yield None
        try:
            if counts[topic.name] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            _grow(ctx, topic, validate_only=request.validate_only)
            results.append(CreatePartitionsTopicResult(name=topic.name))
        except Refused as refused:
            results.append(
                CreatePartitionsTopicResult(name=topic.name, error_code=refused.code, error_message=str(refused))
            )
    return ctx.when_durable(CreatePartitionsResponse(results=results))


def _checked(ctx: RequestContext, asked: CreatePartitionsTopic) -> tuple[Topic, int]:
    """The topic, and how many partitions are new. Raises Refused."""
    topic = ctx.catalogue.get(asked.name)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
    if topic.is_internal:
        # The number of partitions says which one holds a group: with another number every group is lost. (C4)
        raise Refused(ErrorCode.INVALID_REQUEST, f"The partition count of the internal topic {asked.name} is fixed.")
    current = len(topic.partitions)
    more = asked.count - current
    if more == 0:
        raise Refused(ErrorCode.INVALID_PARTITIONS, f"Topic already has {current} partition(s).")
    if more < 0:
        raise Refused(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {asked.name} currently has {current} partition(s); {asked.count} would not be an increase.",
        )
    if topic_admin.NewTopics(ctx.catalogue).are_too_many(more):
        raise Refused(ErrorCode.POLICY_VIOLATION, f"{asked.count} partitions are more than this broker holds.")
    if asked.assignments is not None and len(asked.assignments) != more:
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {more} additional partition(s), but only {len(asked.assignments)} assignment(s) were "
            "specified.",
        )
    return topic, more


def _grow(ctx: RequestContext, asked: CreatePartitionsTopic, *, validate_only: bool) -> None:
    topic, more = _checked(ctx, asked)
    if asked.assignments is None:
        replicas = ctx.cluster.place(more, len(topic.partitions[0].replicas))
    else:
        replicas = [list(assignment.broker_ids) for assignment in asked.assignments]
        topic_admin.check_replicas(replicas, {node.node_id for node in ctx.cluster.alive})
    if not validate_only:
        with topic_admin.stored():
            ctx.catalogue.add_partitions(topic, replicas)


def mutations(ctx: RequestContext, asked: CreatePartitionsTopic) -> int:
    """Number of new partitions; 0 if they are refused before their replicas are looked at."""
    try:
        return _checked(ctx, asked)[1]
    except Refused:
        return 0
