"""Between a request and its handler: refused items do not get through, and are in the answer.

Used only where there is an authorizer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from partita.broker.api.apis import SERVED
from partita.broker.api.needs import Checked, InHandler, Verdict
from partita.broker.permits.rights import Asking
from partita.protocol.primitives import Message

if TYPE_CHECKING:
    from partita.broker.api.context import Answer

Check: TypeAlias = Callable[[Asking, Message], Verdict | None]


def guarded(
    asking: Asking,
    request: Message,
    handler: Callable[[Message], Answer],
    failed: Callable[[Exception], Message | None],
) -> Answer:
    """Return the handler's answer with the refused items in it. `failed` turns its exception into an answer."""
    complete: list[Callable[[Message], None]] = []
    for check in _checks(asking.api_key):
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


@cache
def _checks(api_key: int) -> tuple[Check, ...]:
    """The checks of an API that come before its handler."""
    api = SERVED[api_key]
    found: list[Check] = []
    for need in api.declared.rights:
        if isinstance(need, Checked):
            found.append(api.module.check_rights)
        elif not isinstance(need, InHandler):
            assert callable(need), "the other kinds look at the request themselves"
            found.append(need)
    return tuple(found)


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
