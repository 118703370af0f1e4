"""What a test does to requests on their way to the handler: fail them, delay them, hold joins back.

A rule matches an API (and, where given, a group) a number of times. Without rules `active` is False and requests do
not come here at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from partita.broker.requests.error_answers import error_answer

if TYPE_CHECKING:
    from partita.broker.notes import Notes
    from partita.broker.requests.context import Answer
    from partita.broker.requests.dispatch import Exchange
    from partita.broker.wire.contract import ConnectionHandle
    from partita.protocol.primitives import Message

JOIN_GROUP = 11


class Rule:
    """Do something to the next `times` requests of one API. `executed`: an answer is replaced after the fact."""

    __slots__ = ("api_key", "code", "delay_ms", "executed", "group_id", "times")

    def __init__(
        self, api_key: int, times: int, *, code: int = 0, delay_ms: int = 0, executed: bool = False,
        group_id: str | None = None,
    ) -> None:  # fmt: skip
        self.api_key = api_key
        self.times = times
        self.code = code
        self.delay_ms = delay_ms
        self.executed = executed
        self.group_id = group_id


class Faults:
    """The rules in force, oldest first; one request uses at most one."""

    def __init__(self, loop: asyncio.AbstractEventLoop, notes: Notes) -> None:
        self._loop = loop
        self._notes = notes
        self._rules: list[Rule] = []
        self._holds: dict[str, asyncio.Future[None]] = {}
        self._turns: dict[ConnectionHandle, asyncio.Future[None]] = {}
        """Of connections with a delayed request: when the last request that came has reached its handler."""
        self.active = False
        self.on_change: Callable[[], None] = lambda: None

    def add(self, rule: Rule) -> None:
        """Apply the rule from the next request on."""
        self._rules.append(rule)
        self._refresh()

    def clear(self) -> None:
        """Take all rules back and let held joins go."""
        self._rules.clear()
        for group_id in list(self._holds):
            self.release_joins(group_id)
        self._refresh()

    def hold_joins(self, group_id: str) -> None:
        """Keep every JoinGroup of the group from its handler until `release_joins`."""
        self._holds.setdefault(group_id, self._loop.create_future())
        self._refresh()

    def release_joins(self, group_id: str) -> None:
        """Let the held JoinGroups of the group go to their handler."""
        held = self._holds.pop(group_id, None)
        if held is not None:
            held.set_result(None)
        self._refresh()

    def intercept(self, exchange: Exchange) -> Answer:
        """Answer the request as the first matching rule says, else as its handler does."""
        group_id = getattr(exchange.request, "group_id", None)
        if exchange.api.key == JOIN_GROUP and group_id in self._holds:
            return self._after(self._holds[group_id], exchange)
        rule = next((r for r in self._rules if r.api_key == exchange.api.key and r.group_id in (None, group_id)), None)
        if rule is not None:
            self._use(rule, exchange)
        if exchange.ctx.connection in self._turns or (rule is not None and rule.delay_ms):
            return self._take_turn(rule, exchange)
        return self._apply(rule, exchange)

    def _use(self, rule: Rule, exchange: Exchange) -> None:
        rule.times -= 1
        if rule.times <= 0:
            self._rules.remove(rule)
            self._refresh()
        self._notes.control(
            "fault applied", api=exchange.api.name, error=rule.code, delay_ms=rule.delay_ms, executed=rule.executed
        )

    def _apply(self, rule: Rule | None, exchange: Exchange) -> Answer:
        if rule is None or rule.delay_ms:
            return exchange.call()
        if rule.executed:
            return self._replaced(rule.code, exchange)
        return error_answer(exchange.api.key, exchange.ctx.version, exchange.request, rule.code)

    async def _after(self, gate: asyncio.Future[None], exchange: Exchange) -> Message | None:
        await asyncio.shield(gate)
        return await _settled(exchange.call())

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
                answer = self._apply(rule, exchange)
            finally:
                mine.set_result(None)
                if self._turns.get(connection) is mine:
                    del self._turns[connection]
                    self._refresh()
            return await _settled(answer)

        return in_turn()

    async def _replaced(self, code: int, exchange: Exchange) -> Message | None:
        await _settled(exchange.call())
        return error_answer(exchange.api.key, exchange.ctx.version, exchange.request, code)

    def _refresh(self) -> None:
        self.active = bool(self._rules or self._holds or self._turns)
        self.on_change()


async def _settled(answer: Answer) -> Message | None:
    if answer is None or not hasattr(answer, "__await__"):
        return answer
    return await answer
