"""CreateTopics: check each topic, make it. (Kafka: ControllerApis, ReplicationControlManager.)"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from partita.broker.config import ConfigError, TopicConfig, as_text, parse_topic_settings
from partita.broker.options import TOPIC, Value
from partita.broker.requests.context import Answer, RequestContext
from partita.broker.requests.slices import Steps, answered, settled
from partita.broker.topics import checks as topic_admin
from partita.broker.topics.catalogue import name_problem
from partita.broker.topics.checks import NewTopics, Refused
from partita.log.storage import StorageError
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
TOPICS_AT_ONCE = 100
PARTITIONS_AT_ONCE = 1_000
"""How many topics are created before others have their turn; fewer if they have so many partitions together."""


def handle(ctx: RequestContext, request: CreateTopicsRequest) -> Answer:
    """Each topic succeeds or fails alone; a name given twice fails once."""
    return answered(ctx, _answer(ctx, request))


def _answer(ctx: RequestContext, request: CreateTopicsRequest) -> Steps[CreateTopicsResponse]:
    """The topics of a slice are created together, with one write to the catalogue."""
    counts = Counter(topic.name for topic in request.topics)
    asked = list({topic.name: topic for topic in request.topics}.values())
    results: list[CreatableTopicResult] = []
    for together in _portions(asked):
        if results:
            yield None
        planned = NewTopics(ctx.catalogue)
        here = [
            _planned(ctx, topic, planned, is_double=counts[topic.name] > 1, validate_only=request.validate_only)
            for topic in together
        ]
        _create(planned, here)
        results += here
    durable: CreateTopicsResponse = yield from settled(ctx.when_durable(CreateTopicsResponse(topics=results)))
    return durable


def _portions(topics: Iterable[CreatableTopic]) -> Iterator[list[CreatableTopic]]:
    """The topics in their order, as many at a time as are created together."""
    portion: list[CreatableTopic] = []
    partitions = 0
    for topic in topics:
        portion.append(topic)
        partitions += max(1, topic.num_partitions, len(topic.assignments))
        if len(portion) == TOPICS_AT_ONCE or partitions >= PARTITIONS_AT_ONCE:
            yield portion
            portion, partitions = [], 0
    if portion:
        yield portion


def _create(planned: NewTopics, results: list[CreatableTopicResult]) -> None:
    """Create what is planned and put the ids into the results; a disk that does not take it refuses all of it."""
    names = planned.names
    try:
        created = planned.create()
    except StorageError as error:
        for result in results:
            if result.name in names:
                result.error_code, result.error_message = ErrorCode.KAFKA_STORAGE_ERROR, str(error)
                result.configs = None
        return
    for result in results:
        if result.name in created:
            result.topic_id = created[result.name].topic_id


def _planned(
    ctx: RequestContext, asked: CreatableTopic, planned: NewTopics, *, is_double: bool, validate_only: bool
) -> CreatableTopicResult:
    """The topic's result without its id, and the topic among what is to be created; or why it is refused."""
    try:
        if is_double:
            raise Refused(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        _check_name(ctx, asked.name, planned)
        settings = _settings(asked)
        replicas = _replicas(ctx, asked, planned)
    except Refused as refused:
        return CreatableTopicResult(name=asked.name, error_code=refused.code, error_message=str(refused), configs=None)
    if not validate_only:
        planned.add(asked.name, replicas, settings)
    own = TopicConfig(ctx.config, settings)
    return CreatableTopicResult(
        name=asked.name,
        topic_id=ZERO_UUID,
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


def _check_name(ctx: RequestContext, name: str, planned: NewTopics) -> None:
    if ctx.catalogue.get(name) is not None:
        raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    problem = name_problem(name)
    if problem is not None:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    other = planned.collision(name)
    if other is not None:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")


def _settings(asked: CreatableTopic) -> dict[str, Value]:
    try:
        return parse_topic_settings({config.name: config.value for config in asked.configs})
    except ConfigError as error:
        raise Refused(ErrorCode.INVALID_CONFIG, str(error)) from None


def _replicas(ctx: RequestContext, asked: CreatableTopic, planned: NewTopics) -> list[list[int]]:
    live = {node.node_id for node in ctx.cluster.alive}
    if asked.assignments:
        for name, value in (("numPartitions", asked.num_partitions), ("replicationFactor", asked.replication_factor)):
            if value != -1:
                raise Refused(
                    ErrorCode.INVALID_REQUEST,
                    f"A manual partition assignment was specified, but {name} was not set to -1.",
                )
        return topic_admin.manual_replicas(asked.assignments, live)
    default = ctx.config.int("default.replication.factor")
    replication = default if asked.replication_factor == -1 else asked.replication_factor
    topic_admin.check_counts(asked.num_partitions, replication, len(live))
    partitions = ctx.config.int("num.partitions") if asked.num_partitions == -1 else asked.num_partitions
    if planned.are_too_many(partitions):
        raise Refused(
            ErrorCode.INVALID_PARTITIONS,
            f"{partitions} partitions are more than this broker holds: {topic_admin.PARTITIONS_PER_TOPIC_MAX} a topic",
        )
    return ctx.cluster.place(partitions, replication)
