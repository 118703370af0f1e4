"""Between a request and its handler: refused items do not get through, and are in the answer.

Used only where there is an authorizer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from partita.broker.api.apis import SERVED
from partita.broker.api.needs import Checked, InHandler, Verdict
from partita.broker.permits.rights import Asking
from partita.protocol.primitives import Message

if TYPE_CHECKING:
    from partita.broker.api.context import Answer
    from partita.broker.beside import SlicedThread

T = TypeVar("T")
Check: TypeAlias = Callable[[Asking, Message], Verdict | None]


def guarded(
    asking: Asking,
    request: Message,
    handler: Callable[[Message], Answer],
    failed: Callable[[Exception], Message | None],
    sliced: Callable[[], SlicedThread],
    close: Callable[[], None],
) -> Answer:
    """Return the handler's answer with the refused items in it. `failed` turns its exception into an answer.

    What is to be done to an answer that took long is done in slices. `close` ends the connection: called where
    something is refused and no answer can say so.
    """
    checked = _checked(asking, request)
    if checked.is_silent:
        close()
    if checked.is_answered:
        return checked.answer
    if not checked.complete:
        return handler(request)
    try:
        answer = handler(request)
    except Exception as error:
        answer = failed(error)
    if answer is None or isinstance(answer, Message):
        return _completed(answer, checked.complete)
    return _later(answer, asking, checked.complete, failed, sliced)


async def guarded_in_slices(
    asking: Asking,
    request: Message,
    handler: Callable[[Message], Answer],
    failed: Callable[[Exception], Message | None],
    sliced: Callable[[], SlicedThread],
    close: Callable[[], None],
) -> Message | None:
    """The same for a request with very many items."""
    checked = await _paused(sliced, asking, lambda: _checked(asking, request))
    if checked.is_silent:
        close()
    if checked.is_answered:
        return checked.answer
    try:
        answer = handler(request)
    except Exception as error:
        answer = failed(error)
    if isinstance(answer, Awaitable):
        return await _later(answer, asking, checked.complete, failed, sliced)
    return await _paused(sliced, asking, lambda: _completed(answer, checked.complete))


def _paused(sliced: Callable[[], SlicedThread], asking: Asking, work: Callable[[], T]) -> asyncio.Future[T]:
    def run(pause: Callable[[], None]) -> T:
        before, asking.pause = asking.pause, pause
        try:
            return work()
        finally:
            asking.pause = before

    return sliced().run(run)


class _Checked(NamedTuple):
    """The outcome of an API's checks: the answer, if the handler is not to be asked, or what to do to its answer."""

    complete: list[Callable[[Message], None]]
    is_answered: bool = False
    answer: Message | None = None
    is_silent: bool = False
    """Something is refused in a request that has no answer."""


def _checked(asking: Asking, request: Message) -> _Checked:
    complete: list[Callable[[Message], None]] = []
    is_silent = False
    for check in _checks(asking.api_key):
        verdict = check(asking, request)
        if verdict is None:
            continue
        if verdict.answer is not None or verdict.is_silent:
            answer = _completed(verdict.answer, complete)
            return _Checked(complete, is_answered=True, answer=answer, is_silent=verdict.is_silent)
        if verdict.complete is not None:
            complete.append(verdict.complete)
        else:
            is_silent = True
    return _Checked(complete, is_silent=is_silent)


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
    asking: Asking,
    complete: list[Callable[[Message], None]],
    failed: Callable[[Exception], Message | None],
    sliced: Callable[[], SlicedThread],
) -> Message | None:
    try:
        answer = await waiting
    except Exception as error:
        answer = failed(error)
    return await _paused(sliced, asking, lambda: _completed(answer, complete)) if complete else answer
