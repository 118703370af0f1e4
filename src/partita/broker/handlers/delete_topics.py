"""DeleteTopics: by name, from version 6 also by id. Committed offsets of the topics go with them."""

from __future__ import annotations

import asyncio
from collections import Counter

from partita.broker.requests.context import Answer, RequestContext
from partita.broker.topics.catalogue import Topic
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from partita.protocol.primitives import ZERO_UUID


def handle(ctx: RequestContext, request: DeleteTopicsRequest) -> Answer:
    """Each topic succeeds or fails alone; one asked for twice, by name or id, fails once."""
    asked = request.topics or [DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in request.topic_names]
    if not ctx.config.bool("delete.topic.enable"):
        code = ErrorCode.INVALID_REQUEST if ctx.version < 3 else ErrorCode.TOPIC_DELETION_DISABLED
        return DeleteTopicsResponse(responses=[_refused(t, code, "Topic deletion is disabled.") for t in asked])
    counts = Counter((t.name, t.topic_id) for t in asked)
    results: list[DeletableTopicResult] = []
    doomed: list[Topic] = []
    for state in {(t.name, t.topic_id): t for t in asked}.values():
        if counts[(state.name, state.topic_id)] > 1:
            results.append(_refused(state, ErrorCode.INVALID_REQUEST, "Duplicate topic name."))
            continue
        found = _find(ctx, state)
        if not isinstance(found, Topic):
            results.append(found)
        elif found in doomed:
            results.append(_refused(state, ErrorCode.INVALID_REQUEST, "The topic is named by name and by id."))
        else:
            doomed.append(found)
            results.append(DeletableTopicResult(name=found.name, topic_id=found.topic_id, error_message=None))
    ctx.catalogue.delete(doomed)
    response = DeleteTopicsResponse(responses=results)
    forgotten = ctx.services.offsets_forgotten([topic.name for topic in doomed])
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
    durable = ctx.services.upkeep.durable()
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
