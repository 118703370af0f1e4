"""What a test does to requests on their way to the handler: fail them, delay them, hold joins back.

A rule matches an API (and, where given, a group) a number of times. Without rules `active` is False and requests do
not come here at all. Must not know how a rule was asked for (see `control`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from partita.broker.error_answers import error_answer

if TYPE_CHECKING:
    from partita.broker.cluster import Cluster
    from partita.broker.context import Answer
    from partita.broker.dispatch import Exchange
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

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._rules: list[Rule] = []
        self._holds: dict[str, asyncio.Future[None]] = {}
        self.active = False

    def add(self, rule: Rule) -> None:
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
        self._holds.setdefault(group_id, self._cluster.loop.create_future())
        self._refresh()

    def release_joins(self, group_id: str) -> None:
        held = self._holds.pop(group_id, None)
        if held is not None:
            held.set_result(None)
        self._refresh()

    def intercept(self, exchange: Exchange) -> Answer:
        """Answer the request as the first matching rule says, else as its handler does."""
        group_id = getattr(exchange.request, "group_id", None)
        if exchange.api.key == JOIN_GROUP and group_id in self._holds:
            return self._after(self._holds[group_id], exchange)
        for rule in self._rules:
            if rule.api_key == exchange.api.key and rule.group_id in (None, group_id):
                return self._apply(rule, exchange)
        return exchange.call()

    def _apply(self, rule: Rule, exchange: Exchange) -> Answer:
        rule.times -= 1
        if rule.times <= 0:
            self._rules.remove(rule)
            self._refresh()
        self._cluster.notes.control(
            "fault applied", api=exchange.api.name, error=rule.code, delay_ms=rule.delay_ms, executed=rule.executed
        )
        if rule.delay_ms:
            return self._later(rule.delay_ms, exchange)
        if rule.executed:
            return self._replaced(rule.code, exchange)
        return error_answer(exchange.api.key, exchange.ctx.version, exchange.request, rule.code)

    async def _after(self, gate: asyncio.Future[None], exchange: Exchange) -> Message | None:
        await asyncio.shield(gate)
        return await _settled(exchange.call())

    async def _later(self, delay_ms: int, exchange: Exchange) -> Message | None:
        await asyncio.sleep(delay_ms / 1000)
        return await _settled(exchange.call())

    async def _replaced(self, code: int, exchange: Exchange) -> Message | None:
        await _settled(exchange.call())
        return error_answer(exchange.api.key, exchange.ctx.version, exchange.request, code)

    def _refresh(self) -> None:
        self.active = bool(self._rules or self._holds)


async def _settled(answer: Answer) -> Message | None:
    if answer is None or not hasattr(answer, "__await__"):
        return answer
    return await answer
