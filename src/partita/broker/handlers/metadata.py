"""Metadata: nodes, topics by name or by id, partitions with their leaders. May create topics. (Kafka: KafkaApis.)

Deviation: a Metadata request that creates a topic describes it in its answer; Kafka first answers
UNKNOWN_TOPIC_OR_PARTITION.
"""

from __future__ import annotations

from partita.broker.handlers._operations import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from partita.broker.handlers._partitions import described
from partita.broker.requests.context import RequestContext
from partita.broker.topics import checks as topic_admin
from partita.broker.topics.catalogue import INTERNAL_TOPICS, OFFSETS_TOPIC, Topic, name_problem
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from partita.protocol.primitives import ZERO_UUID

AUTO_CREATED_MAX = 1000
"""How many topics one request may bring into being. (H23)"""


def handle(ctx: RequestContext, request: MetadataRequest) -> MetadataResponse:
    """Null topics ask for all, in version 0 an empty list does too; afterwards an empty list asks for none."""
    cluster = ctx.cluster
    if request.topics is None or (ctx.version == 0 and not request.topics):
        topics = [_describe(ctx, topic) for topic in ctx.catalogue]
    elif ctx.version >= 10 and any(t.name is None and t.topic_id == ZERO_UUID for t in request.topics):
        return MetadataResponse(
            error_code=ErrorCode.INVALID_REQUEST,
            brokers=_brokers(ctx),
            topics=[
                MetadataResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=t.name, topic_id=t.topic_id)
                for t in request.topics
            ],
        )
    else:
        may_create = request.allow_auto_topic_creation and cluster.config.bool("auto.create.topics.enable")
        budget = [AUTO_CREATED_MAX if may_create else 0]
        seen = dict.fromkeys((t.name, t.topic_id) for t in request.topics)
        topics = [_one(ctx, MetadataRequestTopic(name=name, topic_id=id_), budget) for name, id_ in seen]
    controller = cluster.controller
    response = MetadataResponse(
        brokers=_brokers(ctx),
        cluster_id=ctx.catalogue.cluster_id,
        controller_id=-1 if controller is None else controller.node_id,
        topics=topics,
    )
    _add_operations(request, response)
    return response


def _add_operations(request: MetadataRequest, response: MetadataResponse) -> None:
    """Nobody is refused anything, so the operations asked for are all there are; a topic without a name has none."""
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    if request.include_topic_authorized_operations:
        for topic in response.topics:
            if topic.name is not None:
                topic.topic_authorized_operations = TOPIC_OPERATIONS


def _brokers(ctx: RequestContext) -> list[MetadataResponseBroker]:
    rack = ctx.config.get("broker.rack")
    return [
        MetadataResponseBroker(
            node_id=node_id, host=endpoint.host, port=endpoint.port, rack=None if rack is None else str(rack)
        )
        for node_id, endpoint in ((node.node_id, ctx.endpoint(node)) for node in ctx.cluster.alive)
    ]


def _one(ctx: RequestContext, asked: MetadataRequestTopic, budget: list[int]) -> MetadataResponseTopic:
    if asked.name is None or (ctx.version >= 12 and asked.topic_id != ZERO_UUID):
        topic = ctx.catalogue.by_id.get(asked.topic_id)
        if topic is None:
            return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=asked.topic_id)
        return _describe(ctx, topic)
    topic = ctx.catalogue.get(asked.name)
    if topic is not None:
        return _describe(ctx, topic)
    if name_problem(asked.name) is not None:
        return _missing(asked.name, ErrorCode.INVALID_TOPIC_EXCEPTION)
    if budget[0] <= 0:
        return _missing(asked.name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    budget[0] -= 1
    created = _create(ctx, asked.name)
    return _describe(ctx, created) if isinstance(created, Topic) else _missing(asked.name, created)


def _create(ctx: RequestContext, name: str) -> Topic | ErrorCode:
    if name == OFFSETS_TOPIC:
        return ctx.cluster.ensure_offsets_topic()
    partitions = ctx.config.int("num.partitions")
    if topic_admin.collision(ctx.catalogue, name) or topic_admin.too_many(ctx.catalogue, partitions):
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ctx.cluster.create_topic(name, partitions, ctx.config.int("default.replication.factor"))


def _missing(name: str, code: ErrorCode) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=code, name=name, is_internal=name in INTERNAL_TOPICS)


def _describe(ctx: RequestContext, topic: Topic) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=described(ctx, topic.partitions, MetadataResponsePartition),
    )
