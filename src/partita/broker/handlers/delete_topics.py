"""DeleteTopics: by name, from version 6 also by id. Committed offsets of the topics go with them."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

from partita.broker.api.context import Answer, RequestContext, Steps
from partita.broker.api.needs import Checked, Verdict, completed
from partita.broker.api.served import Quota, Served
from partita.broker.topics.catalogue import Topic
from partita.log.storage import StorageError
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from partita.protocol.primitives import ZERO_UUID
from partita.security.rights.operations import Operation, ResourceType

if TYPE_CHECKING:
    from partita.broker.permits.rights import Asking

API = Served(
    DeleteTopicsRequest,
    rights=(
        Checked(
            "DESCRIBE and DELETE on each TOPIC",
            "TOPIC_AUTHORIZATION_FAILED, whether it exists or not; by id without DESCRIBE: without the name",
        ),
    ),
    quota=Quota("controller_mutation_rate", refused_from=5, items=("topics", "topic_names"), answers="responses"),
)


TOPICS_AT_ONCE = 50
"""Number of topics deleted before others have their turn."""
_TWICE = (ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
_BOTH_WAYS = (ErrorCode.INVALID_REQUEST, "The topic is named by name and by id.")


def handle(ctx: RequestContext, request: DeleteTopicsRequest) -> Steps[Answer]:
    """Each topic succeeds or fails alone; one asked for twice, by name or id, fails once.

    The topics of a portion are deleted together, with one write to the catalogue.
    """
    by_name = (DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in request.topic_names)
    asked: dict[tuple[str | None, bytes], DeleteTopicState] = {}
    counts: Counter[tuple[str | None, bytes]] = Counter()
    for state in request.topics or by_name:
        yield None
        asked[state.name, state.topic_id] = state
        counts[state.name, state.topic_id] += 1
    results: list[DeletableTopicResult] = []
    wanted: dict[Topic, DeletableTopicResult] = {}
    is_enabled = ctx.config.bool("delete.topic.enable")
    for key, state in asked.items():
        yield None
        if not is_enabled:
            code = ErrorCode.INVALID_REQUEST if ctx.version < 3 else ErrorCode.TOPIC_DELETION_DISABLED
            results += [_refused(state, code, "Topic deletion is disabled.") for _ in range(counts[key])]
            continue
        found = _find(ctx, state) if counts[key] == 1 else _refused(state, *_TWICE)
        if isinstance(found, DeletableTopicResult):
            results.append(found)
        elif found in wanted:
            wanted[found].error_code, wanted[found].error_message = _BOTH_WAYS
        else:
            wanted[found] = DeletableTopicResult(name=found.name, topic_id=found.topic_id, error_message=None)
    results += wanted.values()
    doomed = [topic for topic, result in wanted.items() if result.error_code == ErrorCode.NONE]
    for start in range(0, len(doomed), TOPICS_AT_ONCE):
        portion = [topic for topic in doomed[start : start + TOPICS_AT_ONCE] if not topic.deleted]
        try:
            yield from ctx.catalogue.deleting(portion)
        except StorageError as error:
            for topic in portion:
                wanted[topic].error_code, wanted[topic].error_message = ErrorCode.KAFKA_STORAGE_ERROR, str(error)
    response = DeleteTopicsResponse(responses=results)
    forgotten = ctx.offsets_forgotten([topic.name for topic in doomed if topic.deleted])
    if forgotten is None:
        return ctx.when_durable(response)
    ctx.holds_back = True
    return _when_forgotten(ctx, forgotten, response, request.timeout_ms)


async def _when_forgotten(
    ctx: RequestContext, forgotten: asyncio.Future[None], response: DeleteTopicsResponse, timeout_ms: int
) -> DeleteTopicsResponse:
    """The answer, once no restart gives a committed offset of the topics back; until the time is up. (S25)"""
    try:
        await asyncio.wait_for(forgotten, max(0, timeout_ms) / 1000)
    except TimeoutError:
        for result in response.responses:
            if result.error_code == ErrorCode.NONE:
                result.error_code = ErrorCode.REQUEST_TIMED_OUT
                result.error_message = "The topic is deleted; its committed offsets are not all removed yet."
    durable = ctx.durable()
    if durable is not None:
        await durable
    return response


def _find(ctx: RequestContext, state: DeleteTopicState) -> Topic | DeletableTopicResult:
    has_id = state.topic_id != ZERO_UUID
    if has_id and state.name is not None:
        return _refused(state, ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if state.name is not None:
        topic = ctx.catalogue.get(state.name)
        return topic or _refused(
            state, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
        )
    if not has_id:
        return _refused(state, ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    topic = ctx.catalogue.by_id.get(state.topic_id)
    return topic or _refused(state, ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")


def _refused(state: DeleteTopicState, code: ErrorCode, message: str) -> DeletableTopicResult:
    return DeletableTopicResult(name=state.name, topic_id=state.topic_id, error_code=code, error_message=message)


def check_rights(asking: Asking, request: DeleteTopicsRequest) -> Verdict | None:
    """Refuse deletions. By name the refusal reveals nothing; by id it names the topic if the client may describe it."""

    def refusal(name: str | None, topic_id: bytes = ZERO_UUID) -> DeletableTopicResult:
        message = "Topic authorization failed."
        return DeletableTopicResult(
            name=name, topic_id=topic_id, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message=message
        )

    has_ids = asking.version >= 6
    asked: list[Any] = request.topics if has_ids else request.topic_names
    kept, entries = [], []
    for item in asked:
        is_by_id = has_ids and item.name is None
        found = asking.catalogue.by_id.get(item.topic_id) if is_by_id else None
        name = (found.name if found is not None else None) if is_by_id else item.name if has_ids else item
        if name is None:
            kept.append(item)
        elif not asking.may(Operation.DESCRIBE, ResourceType.TOPIC, name):
            entries.append(refusal(None, item.topic_id) if is_by_id else refusal(name))
        elif not asking.may(Operation.DELETE, ResourceType.TOPIC, name):
            entries.append(refusal(name, item.topic_id if is_by_id else ZERO_UUID))
        else:
            kept.append(item)
    if not entries:
        return None
    setattr(request, "topics" if has_ids else "topic_names", kept)
    return completed(entries, "responses", None if kept else DeleteTopicsResponse(responses=entries))


def mutations(ctx: RequestContext, asked: DeleteTopicState | str) -> int:
    """Number of deleted partitions; 0 if there is no such topic."""
    found = _find(ctx, DeleteTopicState(name=asked) if isinstance(asked, str) else asked)
    return 0 if isinstance(found, DeletableTopicResult) else len(found.partitions)
