"""CreateTopics: check each topic, make it. (Kafka: ControllerApis, ReplicationControlManager.)"""

from __future__ import annotations

from collections import Counter

from partita.broker.config import ConfigError, TopicConfig, as_text, parse_topic_settings
from partita.broker.options import TOPIC, Value
from partita.broker.requests.context import Answer, RequestContext
from partita.broker.topics import checks as topic_admin
from partita.broker.topics.catalogue import name_problem
from partita.broker.topics.checks import Refused
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from partita.protocol.primitives import ZERO_UUID

DEFAULT_SOURCE, TOPIC_SOURCE = 5, 1


def handle(ctx: RequestContext, request: CreateTopicsRequest) -> Answer:
    """Each topic succeeds or fails alone; a name given twice fails once."""
    counts = Counter(topic.name for topic in request.topics)
    results = []
    for topic in {topic.name: topic for topic in request.topics}.values():
        try:
            if counts[topic.name] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            results.append(_create(ctx, topic, validate_only=request.validate_only))
        except Refused as refused:
            results.append(
                CreatableTopicResult(name=topic.name, error_code=refused.code, error_message=str(refused), configs=None)
            )
    return ctx.when_durable(CreateTopicsResponse(topics=results))


def _create(ctx: RequestContext, asked: CreatableTopic, *, validate_only: bool) -> CreatableTopicResult:
    _check_name(ctx, asked.name)
    settings = _settings(asked)
    replicas = _replicas(ctx, asked)
    topic_id = ZERO_UUID
    if not validate_only:
        with topic_admin.stored():
            topic_id = ctx.catalogue.create(asked.name, replicas, settings).topic_id
    own = TopicConfig(ctx.config, settings)
    return CreatableTopicResult(
        name=asked.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=len(replicas),
        replication_factor=len(replicas[0]),
        configs=[
            CreatableTopicConfigs(
                name=option.name,
                value=as_text(own.get(option.name)),
                config_source=TOPIC_SOURCE if option.name in settings else DEFAULT_SOURCE,
            )
            for option in TOPIC
            if not option.name.startswith("internal.")
        ],
    )


def _check_name(ctx: RequestContext, name: str) -> None:
    if ctx.catalogue.get(name) is not None:
        raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    problem = name_problem(name)
    if problem is not None:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    other = topic_admin.collision(ctx.catalogue, name)
    if other is not None:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")


def _settings(asked: CreatableTopic) -> dict[str, Value]:
    try:
        return parse_topic_settings({config.name: config.value for config in asked.configs})
    except ConfigError as error:
        raise Refused(ErrorCode.INVALID_CONFIG, str(error)) from None


def _replicas(ctx: RequestContext, asked: CreatableTopic) -> list[list[int]]:
    live = {node.node_id for node in ctx.cluster.alive}
    if asked.assignments:
        for name, value in (("numPartitions", asked.num_partitions), ("replicationFactor", asked.replication_factor)):
            if value != -1:
                raise Refused(
                    ErrorCode.INVALID_REQUEST,
                    f"A manual partition assignment was specified, but {name} was not set to -1.",
                )
        return topic_admin.manual_replicas(asked.assignments, live)
    topic_admin.check_counts(asked.num_partitions, asked.replication_factor, len(live))
    partitions = ctx.config.int("num.partitions") if asked.num_partitions == -1 else asked.num_partitions
    if topic_admin.too_many(ctx.catalogue, partitions):
        raise Refused(
            ErrorCode.INVALID_PARTITIONS,
            f"{partitions} partitions are more than this broker holds: {topic_admin.PARTITIONS_PER_TOPIC_MAX} a topic",
        )
    default = ctx.config.int("default.replication.factor")
    return ctx.cluster.place(partitions, default if asked.replication_factor == -1 else asked.replication_factor)
