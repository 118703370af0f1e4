"""Between a request and its handler: nothing refused gets through, and what is refused is in the answer.

Used only where there is an authorizer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from partita.broker.rights.keeper import Asking
from partita.broker.rights.table import RIGHTS
from partita.protocol.primitives import Message

if TYPE_CHECKING:
    from partita.broker.requests.context import Answer


def guarded(
    asking: Asking,
    request: Message,
    handler: Callable[[Message], Answer],
    failed: Callable[[Exception], Message | None],
) -> Answer:
    """The handler's answer, with what is refused in it. `failed` makes an answer of what the handler raises."""
    complete: list[Callable[[Message], None]] = []
    for check in RIGHTS[asking.api_key].checks:
        verdict = check(asking, request)
        if verdict is None:
            continue
        if verdict.answer is not None or verdict.is_silent:
            return _completed(verdict.answer, complete)
        if verdict.complete is not None:
            complete.append(verdict.complete)
    if not complete:
        return handler(request)
    try:
        answer = handler(request)
    except Exception as error:
        answer = failed(error)
    if answer is None or isinstance(answer, Message):
        return _completed(answer, complete)
    return _later(answer, complete, failed)


def _completed(answer: Message | None, complete: list[Callable[[Message], None]]) -> Message | None:
    if answer is not None:
        for each in complete:
            each(answer)
    return answer


async def _later(
    waiting: Awaitable[Message | None],
    complete: list[Callable[[Message], None]],
    failed: Callable[[Exception], Message | None],
) -> Message | None:
    try:
        answer = await waiting
    except Exception as error:
        answer = failed(error)
    return _completed(answer, complete)
