"""A rule of injected faults, and what it may do to a request: fail, delay, hold, drop, truncate, throttle or count.

A rule holds its filter, its count and its effect. `partita.broker.requests.injected_faults` applies it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from partita.broker.api import partition_errors
from partita.broker.api.asked_about import FETCH, Match, namer
from partita.broker.api.error_answers import error_answer

if TYPE_CHECKING:
    from partita.broker.api.context import Answer
    from partita.broker.requests.dispatch import Exchange
    from partita.broker.wire.contract import Chunks
    from partita.protocol.primitives import Message

Act: TypeAlias = "Callable[[Exchange], Answer]"


@dataclass(slots=True, eq=False)
class Rule:
    """Do `act` to requests that fit `match`: to every `every`-th of them, `times` times (None: until it is cleared).

    Without an `act` they are only counted. `delay_ms` and `gate` keep them from their handlers for that long, and with
    `in_line` later requests on their connection, too. `hits` is how often the rule was applied; the
    last field is its part of the notes about it.
    """

    what: str
    match: Match
    act: Act | None = None
    times: int | None = 1
    every: int = 1
    delay_ms: int = 0
    gate: asyncio.Future[None] | None = None
    in_line: bool = True
    told: dict[str, Any] = field(default_factory=dict)
    number: int = 0
    hits: int = 0
    seen: int = 0
    waiting: list[tuple[int, asyncio.Future[None]]] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        """Has it been applied as often as it was meant to be?"""
        return self.times is not None and self.hits >= self.times

    def is_turn(self) -> bool:
        """Count a request that fits; is this one to be treated?"""
        self.seen += 1
        if self.seen % self.every:
            return False
        self.hits += 1
        for wanted, future in self.waiting:
            if self.hits >= wanted and not future.done():
                future.set_result(None)
        return True


def failing(match: Match, code: int, *, executed: bool) -> Act:
    """Answer with the error: for the partitions that `match` names, where the API has an error for each, else for all.

    With `executed` the request takes effect first and only its answer is replaced.
    """

    def act(exchange: Exchange) -> Answer:
        api_key, version, request = exchange.api.key, exchange.ctx.version, exchange.request
        if match.topic is not None and api_key in partition_errors.LAYOUTS:
            return _failing_in_part(match, code, executed, exchange)
        if executed:
            return _afterwards(exchange, lambda _: error_answer(api_key, version, request, code))
        return error_answer(api_key, version, request, code)

    return act


def answering_late(delay_ms: int) -> Act:
    """Execute the request now and send its answer later."""

    async def act(exchange: Exchange) -> Message | None:
        answer = await settled(exchange.call())
        await asyncio.sleep(delay_ms / 1000)
        return answer

    return act


def dropping(*, executed: bool) -> Act:
    """Close the connection in place of an answer; with `executed` the request takes effect first."""

    def act(exchange: Exchange) -> Answer:
        def drop(_: Message | None) -> Message | None:
            exchange.ctx.connection.abort()
            return None

        return _afterwards(exchange, drop) if executed else drop(None)

    return act


def truncating(size: int | None) -> Act:
    """Send the first `size` bytes of the answer, length included, or half of it; then close the connection."""

    def act(exchange: Exchange) -> Answer:
        def cut(chunks: Chunks) -> Chunks:
            whole = b"".join(chunks)
            asyncio.get_running_loop().call_soon(exchange.ctx.connection.close)
            return [whole[: len(whole) // 2 if size is None else size]]

        exchange.cut = cut
        return exchange.call()

    return act


def throttling(ms: int) -> Act:
    """Execute the request; its answer says how long to wait, and the connection is not read until then."""

    def act(exchange: Exchange) -> Answer:
        def tell(answer: Message | None) -> Message | None:
            if answer is not None and hasattr(answer, "throttle_time_ms"):
                answer.throttle_time_ms = ms
            exchange.ctx.connection.mute(ms / 1000)
            return answer

        return _afterwards(exchange, tell)

    return act


def apply(rule: Rule | None, exchange: Exchange) -> Answer:
    """Answer the request as the rule says; without one, or if it only counts or delays, as the handler does."""
    return exchange.call() if rule is None or rule.act is None else rule.act(exchange)


def _failing_in_part(match: Match, code: int, executed: bool, exchange: Exchange) -> Answer:
    api_key, ctx = exchange.api.key, exchange.ctx
    request: Any = exchange.request  # of an API that is answered partition by partition
    is_meant = partition_errors.meant_by(match.fits_partition, namer(ctx))
    if api_key == FETCH:
        return _fetching_in_part(match, code, exchange)
    if executed:
        return _afterwards(
            exchange, lambda answer: answer and partition_errors.replaced(api_key, answer, is_meant, code)
        )
    meant, others = partition_errors.divided(api_key, request, is_meant)
    if others is None or meant is None:
        return error_answer(api_key, ctx.version, request, code) if meant is not None else exchange.call()
    exchange.request = others
    return _afterwards(exchange, lambda answer: partition_errors.joined(api_key, ctx.version, answer, meant, code))


def _fetching_in_part(match: Match, code: int, exchange: Exchange) -> Answer:
    """The error does not wait until there is something to read in other partitions."""
    request: Any = exchange.request  # a FetchRequest
    request.max_wait_ms = 0
    name_of = namer(exchange.ctx)
    session = exchange.ctx.fetch_sessions.sessions.get(request.session_id)
    remembered = [] if session is None else list(session.partitions)

    def fail(answer: Any) -> Message | None:
        if answer is None or answer.error_code:
            refused: Message | None = answer
            return refused
        named = ((key, key if isinstance(key, str) else name_of(key), index) for key, index in remembered)
        partition_errors.added_to_fetch(
            answer, [(key, index) for key, name, index in named if match.fits_partition(name, index)], code
        )
        return partition_errors.replaced(FETCH, answer, partition_errors.meant_by(match.fits_partition, name_of), code)

    return _afterwards(exchange, fail)


async def _afterwards(exchange: Exchange, change: Callable[[Message | None], Message | None]) -> Message | None:
    """Let the request take effect, and answer with the result of `change`."""
    return change(await settled(exchange.call()))


async def settled(answer: Answer) -> Message | None:
    """The answer itself, also of a handler that answers later."""
    if answer is None or not hasattr(answer, "__await__"):
        return answer
    return await answer
