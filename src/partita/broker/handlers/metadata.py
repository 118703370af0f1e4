"""Metadata: nodes, topics by name or by id, partitions with their leaders. May create topics. (Kafka: KafkaApis.)

Deviation: a Metadata request that creates a topic describes it in its answer; Kafka first answers
UNKNOWN_TOPIC_OR_PARTITION.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from partita.broker.handlers._operations import cluster_operations, topic_operations
from partita.broker.handlers._partitions import described
from partita.broker.requests.context import Answer, RequestContext
from partita.broker.requests.slices import SLICE, Steps, answered, sliced
from partita.broker.topics.catalogue import INTERNAL_TOPICS, OFFSETS_TOPIC, TRANSACTION_TOPIC, Topic, name_problem
from partita.broker.topics.checks import NewTopics
from partita.log.storage import StorageError
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
CREATED_AT_ONCE = 100
"""How many of them are created with one write, before others have their turn."""


def handle(ctx: RequestContext, request: MetadataRequest) -> Answer:
    """Null topics ask for all, in version 0 an empty list does too; afterwards an empty list asks for none."""
    if request.topics is None or (ctx.version == 0 and not request.topics):
        return answered(ctx, _all(ctx, request))
    if any(topic.name is None for topic in request.topics) and (
        ctx.version < 12 or any(t.name is None and t.topic_id == ZERO_UUID for t in request.topics)
    ):
        return _invalid(ctx, request.topics)
    return answered(ctx, _named(ctx, request, request.topics))


def _invalid(ctx: RequestContext, topics: list[MetadataRequestTopic]) -> MetadataResponse:
    """Before version 12 a topic has a name; a null one cannot even be said in the answer, so it is empty there."""
    return MetadataResponse(
        error_code=ErrorCode.INVALID_REQUEST,
        brokers=_brokers(ctx),
        topics=[
            MetadataResponseTopic(
                error_code=ErrorCode.INVALID_REQUEST,
                name="" if t.name is None and ctx.version < 12 else t.name,
                topic_id=t.topic_id,
            )
            for t in topics
        ],
    )


def _all(ctx: RequestContext, request: MetadataRequest) -> Steps[MetadataResponse]:
    return _response(ctx, request, (yield from _described(ctx, list(ctx.catalogue))))


def _named(ctx: RequestContext, request: MetadataRequest, asked: list[MetadataRequestTopic]) -> Steps[MetadataResponse]:
    may_create = request.allow_auto_topic_creation and ctx.config.bool("auto.create.topics.enable")
    seen: dict[tuple[str | None, bytes], MetadataRequestTopic] = {}
    for topic, others_turn in sliced(asked, ctx.stopwatch):
        if others_turn:
            yield None
        seen.setdefault((topic.name, topic.topic_id), topic)
    refused: dict[str, ErrorCode] = {}
    if may_create:
        yield from _create_missing(ctx, seen.values(), refused)
    found = []
    for topic, others_turn in sliced(seen.values(), ctx.stopwatch):
        if others_turn:
            yield None
        found.append(_found(ctx, topic, refused))
    return _response(ctx, request, (yield from _described(ctx, found)))


def _described(
    ctx: RequestContext, topics: Sequence[Topic | MetadataResponseTopic]
) -> Steps[list[MetadataResponseTopic]]:
    """Describe the topics; others have their turn after so many partitions."""
    described, count = [], 0
    for topic in topics:
        if count >= SLICE:
            yield None
            count = 0
        if isinstance(topic, Topic):
            described.append(_describe(ctx, topic))
            count += len(topic.partitions)
        else:
            described.append(topic)
        count += 1
    return described


def _response(ctx: RequestContext, request: MetadataRequest, topics: list[MetadataResponseTopic]) -> MetadataResponse:
    controller = ctx.cluster.controller
    response = MetadataResponse(
        brokers=_brokers(ctx),
        cluster_id=ctx.catalogue.cluster_id,
        controller_id=-1 if controller is None else controller.node_id,
        topics=topics,
    )
    _add_operations(ctx, request, response)
    return response


def _add_operations(ctx: RequestContext, request: MetadataRequest, response: MetadataResponse) -> None:
    """What whoever asks may do, for those who want to know; a topic without a name has no operations."""
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(ctx)
    if request.include_topic_authorized_operations:
        for topic in response.topics:
            if topic.name is not None:
                topic.topic_authorized_operations = topic_operations(ctx, topic.name)


def _brokers(ctx: RequestContext) -> list[MetadataResponseBroker]:
    rack = ctx.config.get("broker.rack")
    return [
        MetadataResponseBroker(
            node_id=node_id, host=endpoint.host, port=endpoint.port, rack=None if rack is None else str(rack)
        )
        for node_id, endpoint in ((node.node_id, ctx.endpoint(node)) for node in ctx.cluster.alive)
    ]


def _create_missing(
    ctx: RequestContext, asked: Iterable[MetadataRequestTopic], refused: dict[str, ErrorCode]
) -> Steps[None]:
    """Create the topics that do not exist, some at a time, and note in `refused` why others could not be."""
    missing: list[str] = []
    for topic, others_turn in sliced(asked, ctx.stopwatch):
        if others_turn:
            yield None
        name = topic.name
        if name is None or _is_by_id(ctx, topic) or ctx.catalogue.get(name) is not None or name_problem(name):
            continue
        missing.append(name)
        if len(missing) == AUTO_CREATED_MAX:
            break
    for start in range(0, len(missing), CREATED_AT_ONCE):
        if start:
            yield None
        _create(ctx, missing[start : start + CREATED_AT_ONCE], refused)


def _create(ctx: RequestContext, names: list[str], refused: dict[str, ErrorCode]) -> None:
    """Create these topics with one write; those that came into being meanwhile are left alone."""
    planned = NewTopics(ctx.catalogue)
    partitions, replication = ctx.config.int("num.partitions"), ctx.config.int("default.replication.factor")
    for name in names:
        if ctx.catalogue.get(name) is not None:
            continue
        if name == OFFSETS_TOPIC:
            ctx.cluster.ensure_offsets_topic()
        elif name == TRANSACTION_TOPIC:
            ctx.cluster.ensure_transaction_topic()
        elif replication > len(ctx.cluster.alive):
            continue
        elif planned.collision(name) or planned.are_too_many(partitions):
            refused[name] = ErrorCode.INVALID_TOPIC_EXCEPTION
        else:
            planned.add(name, ctx.cluster.place(partitions, replication))
    with suppress(StorageError):  # then they are not there, and the client asks again
        planned.create()


def _is_by_id(ctx: RequestContext, asked: MetadataRequestTopic) -> bool:
    return asked.name is None or (ctx.version >= 12 and asked.topic_id != ZERO_UUID)


def _found(
    ctx: RequestContext, asked: MetadataRequestTopic, refused: dict[str, ErrorCode]
) -> Topic | MetadataResponseTopic:
    if asked.name is None or _is_by_id(ctx, asked):
        topic = ctx.catalogue.by_id.get(asked.topic_id)
        if topic is None:
            return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=asked.topic_id)
        return topic
    topic = ctx.catalogue.get(asked.name)
    if topic is not None:
        return topic
    if name_problem(asked.name) is not None:
        return _missing(asked.name, ErrorCode.INVALID_TOPIC_EXCEPTION)
    return _missing(asked.name, refused.get(asked.name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))


def _missing(name: str, code: ErrorCode) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=code, name=name, is_internal=name in INTERNAL_TOPICS)


def _describe(ctx: RequestContext, topic: Topic) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=described(ctx, topic.partitions, MetadataResponsePartition),
    )
