"""Between a request and its handler: what is used is counted, and who uses too much is told to wait and made to.

The request is done, its answer says how long to wait, and until then the connection is not read. A fetch of someone who
is over the quota already is answered at once without records. Changes of topics over the quota are refused, from the
versions on that have a code for it.

Deviation: a fetch that goes over its quota keeps its records and tells the time to wait; Kafka throws the records away.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from partita.broker.quotas.keeper import Quotas
from partita.broker.requests.error_answers import error_answer
from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import Message
from partita.security.quotas import CONSUMER, PRODUCER

if TYPE_CHECKING:
    from partita.broker.requests.context import Answer, RequestContext

PRODUCE, FETCH, CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS = 0, 1, 19, 20, 37
METERED = frozenset({PRODUCE, FETCH, CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS})
"""The APIs that count; all others are free."""
_REFUSED_FROM = {CREATE_TOPICS: 6, CREATE_PARTITIONS: 3, DELETE_TOPICS: 5}
Fields: TypeAlias = Any
"""A generated message; each function knows which one."""


def metered(ctx: RequestContext, quotas: Quotas, handler: Callable[[Message], Answer], request: Message) -> Answer:
    """The handler's answer, with the time to wait in it."""
    if ctx.api_key == PRODUCE:
        return _then(handler(request), lambda answer: _produced(ctx, quotas, answer))
    if ctx.api_key == FETCH:
        return _fetch(ctx, quotas, handler, request)
    return _change(ctx, quotas, handler, request)


def _produced(ctx: RequestContext, quotas: Quotas, answer: Fields) -> None:
    _throttle(ctx, answer, quotas.record(PRODUCER, ctx.principal.name, ctx.client_id, ctx.request_bytes))


def _fetch(ctx: RequestContext, quotas: Quotas, handler: Callable[[Message], Answer], request: Fields) -> Answer:
    wait_ms = quotas.throttle_ms(CONSUMER, ctx.principal.name, ctx.client_id)
    if wait_ms:
        from partita.protocol.messages.fetch import FetchResponse

        empty = FetchResponse()
        if request.session_epoch > 0:
            plan = ctx.fetch_sessions.plan(request, ctx.version, ctx.now().mono_ms, ctx.connection)
            if isinstance(plan, ErrorCode):
                return FetchResponse(error_code=plan)
            empty.session_id = plan.session_id
        _throttle(ctx, empty, wait_ms)
        return empty

    def fetched(answer: Fields) -> None:
        size = sum(len(part.records or b"") for topic in answer.responses for part in topic.partitions)
        _throttle(ctx, answer, quotas.record(CONSUMER, ctx.principal.name, ctx.client_id, size))

    return _then(handler(request), fetched)


def _change(ctx: RequestContext, quotas: Quotas, handler: Callable[[Message], Answer], request: Fields) -> Answer:
    """Each topic is counted by its partitions, in the order of the request."""
    items, answers = _listed(ctx, request)
    asked = getattr(request, items)
    waits = [quotas.take_mutations(ctx.principal.name, ctx.client_id, _partitions(ctx, item)) for item in asked]
    wait_ms = max(waits, default=0)
    if not wait_ms:
        return handler(request)
    if ctx.version < _REFUSED_FROM[ctx.api_key]:
        return _then(handler(request), lambda answer: _throttle(ctx, answer, wait_ms))
    about = copy.copy(request)
    setattr(about, items, [item for item, wait in zip(asked, waits, strict=True) if wait])
    setattr(request, items, [item for item, wait in zip(asked, waits, strict=True) if not wait])
    refused: Fields = error_answer(ctx.api_key, ctx.version, about, ErrorCode.THROTTLING_QUOTA_EXCEEDED)

    def complete(answer: Fields) -> None:
        setattr(answer, answers, [*getattr(answer, answers), *getattr(refused, answers)])
        _throttle(ctx, answer, wait_ms)

    if getattr(request, items):
        return _then(handler(request), complete)
    _throttle(ctx, refused, wait_ms)
    whole: Message = refused
    return whole


def _listed(ctx: RequestContext, request: Fields) -> tuple[str, str]:
    """(The list of the request, the list of the response)."""
    if ctx.api_key == CREATE_TOPICS:
        return "topics", "topics"
    if ctx.api_key == CREATE_PARTITIONS:
        return "topics", "results"
    return ("topics" if ctx.version >= 6 else "topic_names"), "responses"


def _partitions(ctx: RequestContext, item: Fields) -> int:
    """How many partitions a change of a topic touches; 1 where that cannot be known."""
    if ctx.api_key == CREATE_TOPICS:
        count = len(item.assignments) or item.num_partitions
        return int(count) if count > 0 else ctx.config.int("num.partitions")
    name = item if isinstance(item, str) else item.name
    topic = ctx.catalogue.by_id.get(item.topic_id) if name is None else ctx.catalogue.get(name)
    there = 0 if topic is None else len(topic.partitions)
    return max(1, item.count - there) if ctx.api_key == CREATE_PARTITIONS else max(1, there)


def _throttle(ctx: RequestContext, answer: Fields | None, wait_ms: int) -> None:
    """Say how long to wait, if an answer is due, and do not read the connection until then."""
    if wait_ms:
        if answer is not None:
            answer.throttle_time_ms = wait_ms
        ctx.connection.mute(wait_ms / 1000)


def _then(answer: Answer, change: Callable[[Fields], None]) -> Answer:
    """The answer once `change` has seen it, which may be now."""
    if answer is None or isinstance(answer, Message):
        change(answer)
        return answer
    return _later(answer, change)


async def _later(waiting: Awaitable[Message | None], change: Callable[[Fields], None]) -> Message | None:
    answer = await waiting
    change(answer)
    return answer
