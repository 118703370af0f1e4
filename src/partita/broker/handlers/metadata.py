"""Metadata: nodes, topics by name or by id, partitions with their leaders. May create topics. (Kafka: KafkaApis.)

Deviation: Partita describes a topic that a Metadata request creates in its answer, where Kafka first answers
UNKNOWN_TOPIC_OR_PARTITION; `--kafka-defaults` does the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from partita.broker.api.context import Answer, RequestContext, Steps
from partita.broker.api.needs import LEFT_OUT_OF_ALL, Checked, InHandler, Verdict
from partita.broker.api.served import Errors, Served
from partita.broker.handlers._operations import cluster_operations, topic_operations
from partita.broker.handlers._partitions import described
from partita.broker.topics.catalogue import INTERNAL_TOPICS, Topic, name_problem
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
from partita.security.rights.operations import Operation, ResourceType

if TYPE_CHECKING:
    from partita.broker.permits.rights import Asking

API = Served(
    MetadataRequest,
    rights=(
        Checked("DESCRIBE on each TOPIC", f"{LEFT_OUT_OF_ALL}; by id: without the name"),
        InHandler("to create a topic: CREATE CLUSTER, or CREATE TOPIC", "TOPIC_AUTHORIZATION_FAILED"),
    ),
    errors=Errors(also_in_items=True),
)

AUTO_CREATED_MAX = 1000
"""Number of topics that one request may create. (H23)"""
CREATED_AT_ONCE = 20
"""Number of those created with one write, before others have their turn."""


def handle(ctx: RequestContext, request: MetadataRequest) -> Answer | Steps[Answer]:
    """Null topics ask for all, in version 0 an empty list does too; afterwards an empty list asks for none."""
    if request.topics is None or (ctx.version == 0 and not request.topics):
        return _all(ctx, request)
    if any(_is_invalid(topic, ctx.version) for topic in request.topics):
        return _invalid(ctx, request.topics)
    return _named(ctx, request, request.topics)


def _is_invalid(topic: MetadataRequestTopic, version: int) -> bool:
    """Before version 12 a topic is named by its name alone, later by name or id."""
    if version < 12:
        return topic.name is None or topic.topic_id != ZERO_UUID
    return topic.name is None and topic.topic_id == ZERO_UUID


def _invalid(ctx: RequestContext, topics: list[MetadataRequestTopic]) -> MetadataResponse:
    """Refuse the request as a whole. Before version 12 a null name cannot be said in the answer: it is empty there."""
    return MetadataResponse(
        error_code=ErrorCode.INVALID_REQUEST,
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
    return (yield from _response(ctx, request, (yield from _described(ctx, list(ctx.catalogue)))))


def _named(ctx: RequestContext, request: MetadataRequest, asked: list[MetadataRequestTopic]) -> Steps[MetadataResponse]:
    may_create = request.allow_auto_topic_creation and ctx.config.bool("auto.create.topics.enable")
    seen: dict[tuple[str | None, bytes], MetadataRequestTopic] = {}
    for topic in asked:
        yield None
        seen.setdefault((topic.name, topic.topic_id), topic)
    refused: dict[str, ErrorCode] = {}
    if may_create:
        yield from _create_missing(ctx, seen.values(), refused)
    found = []
    for topic in seen.values():
        yield None
        found.append(_found(ctx, topic, refused))
    return (yield from _response(ctx, request, (yield from _described(ctx, found))))


def _described(
    ctx: RequestContext, topics: Sequence[Topic | MetadataResponseTopic]
) -> Steps[list[MetadataResponseTopic]]:
    found = []
    for topic in topics:
        yield None
        found.append((yield from _describe(ctx, topic)) if isinstance(topic, Topic) else topic)
    return found


def _response(
    ctx: RequestContext, request: MetadataRequest, topics: list[MetadataResponseTopic]
) -> Steps[MetadataResponse]:
    controller = ctx.cluster.controller
    response = MetadataResponse(
        brokers=_brokers(ctx),
        cluster_id=ctx.catalogue.cluster_id,
        controller_id=-1 if controller is None else controller.node_id,
        topics=topics,
    )
    yield from _add_operations(ctx, request, response)
    return response


def _add_operations(ctx: RequestContext, request: MetadataRequest, response: MetadataResponse) -> Steps[None]:
    """Add the operations that the client may do, on request; a topic without a name has none."""
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(ctx)
    if request.include_topic_authorized_operations:
        for topic in response.topics:
            yield None
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
    """Create the topics that do not exist, some at a time, and note in `refused` which are not described, and why."""
    missing: list[str] = []
    for topic in asked:
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
    if ctx.config.kafka_defaults:
        refused.update(dict.fromkeys(missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) | refused)


def _create(ctx: RequestContext, names: list[str], refused: dict[str, ErrorCode]) -> None:
    """Create these topics with one write; those that came into being meanwhile are left alone."""
    planned = NewTopics(ctx.catalogue)
    partitions, replication = ctx.config.int("num.partitions"), ctx.config.int("default.replication.factor")
    for name in names:
        if ctx.catalogue.get(name) is not None:
            continue
        if name in INTERNAL_TOPICS:
            ctx.cluster.ensure_state_topic(name)
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
    if topic is not None and asked.name not in refused:
        return topic
    if name_problem(asked.name) is not None:
        return _missing(asked.name, ErrorCode.INVALID_TOPIC_EXCEPTION)
    return _missing(asked.name, refused.get(asked.name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))


def _missing(name: str, code: ErrorCode) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=code, name=name, is_internal=name in INTERNAL_TOPICS)


def _describe(ctx: RequestContext, topic: Topic) -> Steps[MetadataResponseTopic]:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=(yield from described(ctx, topic.partitions, MetadataResponsePartition)),
    )


def check_rights(asking: Asking, request: MetadataRequest) -> Verdict | None:
    """Topics that may not be described are refused by name or id, and left out where all are asked for."""
    asked = request.topics
    if asked is None or (asking.version == 0 and not asked):
        return Verdict(complete=lambda answer: _leave_out_undescribed(asking, answer))
    kept, out = [], []
    for topic in asked:
        name, shown = topic.name, (topic.name, topic.topic_id)
        if asking.version >= 12 and topic.topic_id != ZERO_UUID:
            found = asking.catalogue.by_id.get(topic.topic_id)
            name, shown = None if found is None else found.name, (None, topic.topic_id)
        if name is None or asking.may(Operation.DESCRIBE, ResourceType.TOPIC, name):
            kept.append(topic)
        else:
            out.append(shown)
    if request.allow_auto_topic_creation and asking.config.bool("auto.create.topics.enable"):
        kept, not_created = _creatable(asking, kept)
        out += not_created
    if not out:
        return None
    entries = [
        MetadataResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name, topic_id=id_)
        for name, id_ in out
    ]
    is_nothing_left = asking.version == 0 and not kept
    request.topics = None if is_nothing_left else kept  # an empty list would ask for all topics in version 0

    def complete(answer: MetadataResponse) -> None:
        answer.topics = entries if is_nothing_left else [*answer.topics, *entries]

    return Verdict(complete=complete)


def _leave_out_undescribed(asking: Asking, answer: MetadataResponse) -> None:
    answer.topics = [
        topic
        for topic in answer.topics
        if asking.may(Operation.DESCRIBE, ResourceType.TOPIC, topic.name or "", is_logged=False)
    ]


def _creatable(asking: Asking, topics: list[Any]) -> tuple[list[Any], list[tuple[str, bytes]]]:
    """(Topics that exist or may be created, names and ids of those that may not)."""
    missing = {t.name for t in topics if t.name is not None and asking.catalogue.get(t.name) is None}
    if not missing or asking.may(Operation.CREATE, ResourceType.CLUSTER, is_logged=False):
        return topics, []
    not_created = missing - asking.may_all(Operation.CREATE, ResourceType.TOPIC, sorted(missing))
    kept = [topic for topic in topics if topic.name not in not_created]
    return kept, [(name, ZERO_UUID) for name in sorted(not_created)]


def finish_error(answer: MetadataResponse, request: MetadataRequest, version: int) -> MetadataResponse:
    """A topic without a name has an empty one before version 12, which has no null."""
    for topic in answer.topics:
        topic.name = topic.name or ("" if version < 12 else None)
    return answer
