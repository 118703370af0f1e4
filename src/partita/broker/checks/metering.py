"""Between a request and its handler: usage is counted, and clients over their quota are asked and forced to wait.

The request is done, its answer says how long to wait, and until then the connection is not read. A fetch of a client
that is over the quota already is answered at once without records. Changes of topics over the quota are refused, from
the versions on that have a code for it.

Deviation: Partita keeps the records of a fetch that exceeds its quota and reports the time to wait, where Kafka drops
the records.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from partita.broker.api.apis import SERVED
from partita.broker.api.error_answers import error_answer
from partita.broker.permits.quotas import Quotas
from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import Message
from partita.security.quotas import CONSUMER, PRODUCER

if TYPE_CHECKING:
    from partita.broker.api.context import Answer, RequestContext
    from partita.broker.api.served import Quota

Fields: TypeAlias = Any
"""A generated message; each function knows which one."""


def metered(ctx: RequestContext, quotas: Quotas, handler: Callable[[Message], Answer], request: Message) -> Answer:
    """The handler's answer, with the time to wait in it."""
    quota = SERVED[ctx.api_key].declared.quota
    if quota is None:
        return handler(request)
    if quota.name == PRODUCER:
        return _then(handler(request), lambda answer: _produced(ctx, quotas, answer))
    if quota.name == CONSUMER:
        return _read(ctx, quotas, handler, request)
    return _change(ctx, quotas, quota, handler, request)


def _produced(ctx: RequestContext, quotas: Quotas, answer: Fields) -> None:
    _throttle(ctx, answer, quotas.record(PRODUCER, ctx.principal.name, ctx.client_id, ctx.request_bytes))


def _read(ctx: RequestContext, quotas: Quotas, handler: Callable[[Message], Answer], request: Fields) -> Answer:
    module: Fields = SERVED[ctx.api_key].module
    wait_ms = quotas.throttle_ms(CONSUMER, ctx.principal.name, ctx.client_id)
    if wait_ms:
        empty: Fields = module.without_records(ctx, request)
        if not empty.error_code:
            _throttle(ctx, empty, wait_ms)
        answer: Message = empty
        return answer

    def read(answer: Fields) -> None:
        size = module.bytes_read(answer)
        _throttle(ctx, answer, quotas.record(CONSUMER, ctx.principal.name, ctx.client_id, size))

    return _then(handler(request), read)


def _change(
    ctx: RequestContext, quotas: Quotas, quota: Quota, handler: Callable[[Message], Answer], request: Fields
) -> Answer:
    """Count each item by its partitions, in the order of the request; not those that stand there twice."""
    items = next((name for name in quota.items if getattr(request, name)), quota.items[0])
    answers, mutations = quota.answers, SERVED[ctx.api_key].module.mutations
    asked = getattr(request, items)
    user, client_id = ctx.principal.name, ctx.client_id
    times = Counter(_name(item) for item in asked)
    waits = [
        0 if times[_name(item)] > 1 else quotas.take_mutations(user, client_id, partial(mutations, ctx, item))
        for item in asked
    ]
    wait_ms = max(waits, default=0)
    if not wait_ms:
        return handler(request)
    if ctx.version < quota.refused_from:
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


def _name(item: Fields) -> object:
    return item if isinstance(item, str) else (item.name, getattr(item, "topic_id", None))


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
