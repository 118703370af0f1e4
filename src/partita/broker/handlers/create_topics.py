"""CreateTopics: check each topic, make it. (Kafka: ControllerApis, ReplicationControlManager.)"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from partita.broker.api.context import RequestContext, Steps, settled
from partita.broker.api.needs import OTHERS_GO_ON, Checked, InHandler, NeedsEach, Verdict
from partita.broker.api.served import Quota, Served
from partita.broker.config import ConfigError, TopicConfig, as_text, check_together, parse_topic_settings
from partita.broker.options import TOPIC, Value
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
from partita.security.rights.operations import Operation, ResourceType

if TYPE_CHECKING:
    from partita.broker.permits.rights import Asking

API = Served(
    CreateTopicsRequest,
    rights=(
        Checked("CREATE CLUSTER, or CREATE on each TOPIC", OTHERS_GO_ON),
        InHandler("to see the settings: DESCRIBE_CONFIGS TOPIC", "no settings, the topic is created"),
    ),
    quota=Quota("controller_mutation_rate", refused_from=6, items=("topics",), answers="topics"),
)

_CONFIGS_ANSWERED_FROM = 5
DEFAULT_SOURCE, TOPIC_SOURCE = 5, 1
TOPICS_AT_ONCE = 20
PARTITIONS_AT_ONCE = 500
"""Number of topics created before others have their turn; fewer if they have so many partitions together."""


def handle(ctx: RequestContext, request: CreateTopicsRequest) -> Steps[CreateTopicsResponse]:
    """Each topic succeeds or fails alone; a name given twice fails once.

    The topics of a portion are created together, with one write to the catalogue.
    """
    counts: Counter[str] = Counter()
    asked: dict[str, CreatableTopic] = {}
    for topic in request.topics:
        yield None
        counts[topic.name] += 1
        asked[topic.name] = topic
    results: list[CreatableTopicResult] = []
    for together in _portions(asked.values()):
        if results:
            yield None
        planned = NewTopics(ctx.catalogue)
        here = [
            _planned(ctx, topic, planned, is_double=counts[topic.name] > 1, validate_only=request.validate_only)
            for topic in together
        ]
        _create(planned, here)
        results += here
    response = CreateTopicsResponse(topics=results)
    waits = ctx.when_durable(response, timeout_ms=request.timeout_ms, late=partial(_timed_out, results))
    durable: CreateTopicsResponse = yield from settled(waits)
    return durable


def _timed_out(results: list[CreatableTopicResult]) -> None:
    """The disk is slow: the creation goes on, as in Kafka, and this answer does not promise it."""
    for result in results:
        if result.error_code == ErrorCode.NONE:
            result.error_code = ErrorCode.REQUEST_TIMED_OUT
            result.error_message = "The topic is being created, and is not durable yet."
            result.configs = []


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
    """Create the planned topics and put their ids into the results; a failing disk refuses all of them."""
    names = planned.names
    try:
        created = planned.create()
    except StorageError as error:
        for result in results:
            if result.name in names:
                result.error_code, result.error_message = ErrorCode.KAFKA_STORAGE_ERROR, str(error)
                result.configs = []
        return
    for result in results:
        if result.name in created:
            result.topic_id = created[result.name].topic_id


def _planned(
    ctx: RequestContext, asked: CreatableTopic, planned: NewTopics, *, is_double: bool, validate_only: bool
) -> CreatableTopicResult:
    """The topic's result without its id, and the topic to create; or why it is refused."""
    try:
        if is_double:
            raise Refused(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        settings, shape = _checked(ctx, asked, planned)
    except Refused as refused:
        return CreatableTopicResult(name=asked.name, error_code=refused.code, error_message=str(refused), configs=[])
    replicas = shape if isinstance(shape, list) else ctx.cluster.place(*shape)
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


def _checked(
    ctx: RequestContext, asked: CreatableTopic, planned: NewTopics
) -> tuple[dict[str, Value], list[list[int]] | tuple[int, int]]:
    """The topic's settings, and its replicas or how many partitions and replicas to place. Raises Refused."""
    _check_name(ctx, asked.name, planned)
    return _settings(ctx, asked), _shape(ctx, asked, planned)


def _check_name(ctx: RequestContext, name: str, planned: NewTopics) -> None:
    if ctx.catalogue.get(name) is not None:
        raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    problem = name_problem(name)
    if problem is not None:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    other = planned.collision(name)
    if other is not None:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")


def _settings(ctx: RequestContext, asked: CreatableTopic) -> dict[str, Value]:
    try:
        settings = parse_topic_settings({config.name: config.value for config in asked.configs})
        check_together(TopicConfig(ctx.config, settings))
    except ConfigError as error:
        raise Refused(ErrorCode.INVALID_CONFIG, str(error)) from None
    return settings


def _shape(ctx: RequestContext, asked: CreatableTopic, planned: NewTopics) -> list[list[int]] | tuple[int, int]:
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
            ErrorCode.POLICY_VIOLATION,
            f"{partitions} partitions are more than this broker holds: {topic_admin.PARTITIONS_PER_TOPIC_MAX} a topic",
        )
    return partitions, replication


def check_rights(asking: Asking, request: CreateTopicsRequest) -> Verdict | None:
    """Creating needs a right on the cluster or on the topic; seeing the settings of a new topic needs another one."""
    verdict = _CREATED(asking, request)
    if verdict is not None and verdict.answer is not None:
        _say_authorization_failed(verdict.answer)
        return verdict

    def complete(answer: CreateTopicsResponse) -> None:
        if asking.version >= _CONFIGS_ANSWERED_FROM:
            _hide_configs(asking, answer)
        if verdict is not None and verdict.complete is not None:
            verdict.complete(answer)
            _say_authorization_failed(answer)

    return Verdict(complete=complete)


_CREATED = NeedsEach(Operation.CREATE, ResourceType.TOPIC, "topics", "topics", "name", unless=Operation.CREATE)


def _say_authorization_failed(answer: Any) -> None:
    for result in answer.topics:
        if result.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            result.error_message = "Authorization failed."


def _hide_configs(asking: Asking, answer: CreateTopicsResponse) -> None:
    for result in answer.topics:
        may_see = asking.may(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, result.name, is_logged=False)
        if not result.error_code and not may_see:
            result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            result.configs, result.num_partitions, result.replication_factor = [], -1, -1


def mutations(ctx: RequestContext, asked: CreatableTopic) -> int:
    """Number of the topic's partitions; 0 if it is refused."""
    try:
        _, shape = _checked(ctx, asked, NewTopics(ctx.catalogue))
    except Refused:
        return 0
    return len(shape) if isinstance(shape, list) else shape[0]
