"""Faults that a test injects into requests before the handler: fail, delay, hold, drop, truncate or just count.

A rule holds its filter, its count and its effect. Without rules `active` is False and requests do not come here at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from partita.broker.api.asked_about import FETCH, Match, groups_of, namer
from partita.broker.api.error_answers import error_answer
from partita.lazy import later

if TYPE_CHECKING:
    from partita.broker.api import partition_errors
    from partita.broker.api.context import Answer
    from partita.broker.notes import Notes
    from partita.broker.requests.dispatch import Exchange
    from partita.broker.wire.contract import Chunks, ConnectionHandle
    from partita.protocol.primitives import Message
else:
    partition_errors = later("partita.broker.api.partition_errors")

Act: TypeAlias = "Callable[[Exchange], Answer]"
JOIN_GROUP = 11
RULES_REMEMBERED = 1_000


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


class Faults:
    """The rules in force, oldest first. One request is treated by at most one of them.

    Rules that only count see every request that fits.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, notes: Notes) -> None:
        self._loop = loop
        self._notes = notes
        self._rules: list[Rule] = []
        self._known: dict[int, Rule] = {}
        self._last_number = 0
        self._held_joins: dict[str, Rule] = {}
        self._turns: dict[ConnectionHandle, asyncio.Future[None]] = {}
        """Of connections with a delayed request: when the last request that came has reached its handler."""
        self.active = False
        self.on_change: Callable[[], None] = lambda: None

    def add(self, rule: Rule) -> Rule:
        """Apply the rule from the next request on; it gets its number."""
        self._last_number += 1
        rule.number = self._last_number
        self._known[rule.number] = rule
        if len(self._known) > RULES_REMEMBERED:
            del self._known[next(iter(self._known))]
        self._rules.append(rule)
        self._refresh()
        return rule

    def hold(self, rule: Rule) -> Rule:
        """Add a rule whose requests wait until it is removed."""
        rule.gate = self._loop.create_future()
        return self.add(rule)

    def rule(self, number: int) -> Rule | None:
        """The rule of this number, though it may be over."""
        return self._known.get(number)

    @property
    def in_force(self) -> list[Rule]:
        """The rules that may still be applied."""
        return list(self._rules)

    def remove(self, rule: Rule) -> None:
        """Remove a rule and release the requests it holds."""
        if rule in self._rules:
            self._rules.remove(rule)
        if rule.gate is not None and not rule.gate.done():
            rule.gate.set_result(None)
        self._refresh()

    def clear(self) -> None:
        """Remove all rules and release the requests they hold."""
        for rule in self.in_force:
            self.remove(rule)
        self._held_joins.clear()

    def hold_joins(self, group_id: str) -> None:
        """Keep every JoinGroup of the group from its handler until `release_joins`."""
        if group_id not in self._held_joins:
            rule = Rule("hold", Match(JOIN_GROUP, group_id), times=None, in_line=False, told={"api": "JoinGroup"})
            self._held_joins[group_id] = self.hold(rule)

    def release_joins(self, group_id: str) -> None:
        """Let the held JoinGroups of the group go to their handler."""
        rule = self._held_joins.pop(group_id, None)
        if rule is not None:
            self.remove(rule)

    async def wait(self, rule: Rule, hits: int, timeout: float) -> bool:
        """Wait until the rule was applied so often; False after `timeout` seconds."""
        if rule.hits >= hits:
            return True
        entry = (hits, self._loop.create_future())
        rule.waiting.append(entry)
        try:
            await asyncio.wait_for(entry[1], timeout)
        except TimeoutError:
            return False
        finally:
            rule.waiting.remove(entry)
        return True

    def intercept(self, exchange: Exchange) -> Answer:
        """Answer the request as the first matching rule says, else as its handler does."""
        rule = self._chosen(exchange)
        if rule is not None and rule.gate is not None and not rule.in_line:
            return _after(rule.gate, exchange)
        must_wait = rule is not None and (rule.delay_ms or rule.gate is not None)
        if exchange.ctx.connection in self._turns or must_wait:
            return self._take_turn(rule, exchange)
        return _apply(rule, exchange)

    def _chosen(self, exchange: Exchange) -> Rule | None:
        chosen: Rule | None = None
        for rule in self.in_force:
            counts = rule.act is None and not rule.delay_ms and rule.gate is None
            if (chosen is not None and not counts) or not rule.match.fits(exchange.ctx, exchange.request):
                continue
            if not rule.is_turn():
                continue
            if not counts:
                chosen = rule
                group = next(iter(groups_of(exchange.request)), None)
                facts = {"api": exchange.api.name, "client_id": exchange.ctx.client_id, "fault": rule.number}
                self._notes.control("fault applied", **{**facts, **({"group_id": group} if group else {}), **rule.told})
            if rule.is_over:
                self._rules.remove(rule)
                self._refresh()
        return chosen

    def _take_turn(self, rule: Rule | None, exchange: Exchange) -> Answer:
        """A delayed request holds up those that come after it on its connection, as at a broker that is slow."""
        connection = exchange.ctx.connection
        before, mine = self._turns.get(connection), self._loop.create_future()
        self._turns[connection] = mine
        self._refresh()

        async def in_turn() -> Message | None:
            try:
                if before is not None:
                    await asyncio.shield(before)
                await asyncio.sleep(rule.delay_ms / 1000 if rule is not None else 0)
                if rule is not None and rule.gate is not None:
                    await asyncio.shield(rule.gate)
                answer = _apply(rule, exchange)
            finally:
                mine.set_result(None)
                if self._turns.get(connection) is mine:
                    del self._turns[connection]
                    self._refresh()
            return await _settled(answer)

        return in_turn()

    def _refresh(self) -> None:
        self.active = bool(self._rules or self._turns)
        self.on_change()


async def _after(gate: asyncio.Future[None], exchange: Exchange) -> Message | None:
    await asyncio.shield(gate)
    return await _settled(exchange.call())


# What a rule may do


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
        answer = await _settled(exchange.call())
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


def _apply(rule: Rule | None, exchange: Exchange) -> Answer:
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
    return change(await _settled(exchange.call()))


async def _settled(answer: Answer) -> Message | None:
    if answer is None or not hasattr(answer, "__await__"):
        return answer
    return await answer
