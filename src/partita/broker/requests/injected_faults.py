"""Faults that a test injects into requests before the handler: the rules in force, and the requests that they delay.

Without rules `active` is False and requests do not come here at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from partita.lazy import later

if TYPE_CHECKING:
    from partita.broker.api import asked_about
    from partita.broker.api.context import Answer
    from partita.broker.notes import Notes
    from partita.broker.requests import fault_rules
    from partita.broker.requests.dispatch import Exchange
    from partita.broker.wire.contract import ConnectionHandle
    from partita.protocol.primitives import Message
else:
    asked_about = later("partita.broker.api.asked_about")
    fault_rules = later("partita.broker.requests.fault_rules")

JOIN_GROUP = 11
RULES_REMEMBERED = 1_000


class Faults:
    """The rules in force, oldest first. One request is treated by at most one of them.

    Rules that only count see every request that fits.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, notes: Notes) -> None:
        self._loop = loop
        self._notes = notes
        self._rules: list[fault_rules.Rule] = []
        self._known: dict[int, fault_rules.Rule] = {}
        self._last_number = 0
        self._held_joins: dict[str, fault_rules.Rule] = {}
        self._turns: dict[ConnectionHandle, asyncio.Future[None]] = {}
        """Of connections with a delayed request: when the last request that came has reached its handler."""
        self.active = False
        self.on_change: Callable[[], None] = lambda: None

    def add(self, rule: fault_rules.Rule) -> fault_rules.Rule:
        """Apply the rule from the next request on; it gets its number."""
        self._last_number += 1
        rule.number = self._last_number
        self._known[rule.number] = rule
        if len(self._known) > RULES_REMEMBERED:
            del self._known[next(iter(self._known))]
        self._rules.append(rule)
        self._refresh()
        return rule

    def hold(self, rule: fault_rules.Rule) -> fault_rules.Rule:
        """Add a rule whose requests wait until it is removed."""
        rule.gate = self._loop.create_future()
        return self.add(rule)

    def rule(self, number: int) -> fault_rules.Rule | None:
        """The rule of this number, though it may be over."""
        return self._known.get(number)

    @property
    def in_force(self) -> list[fault_rules.Rule]:
        """The rules that may still be applied."""
        return list(self._rules)

    def remove(self, rule: fault_rules.Rule) -> None:
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
            rule = fault_rules.Rule(
                "hold", asked_about.Match(JOIN_GROUP, group_id), times=None, in_line=False, told={"api": "JoinGroup"}
            )
            self._held_joins[group_id] = self.hold(rule)

    def release_joins(self, group_id: str) -> None:
        """Let the held JoinGroups of the group go to their handler."""
        rule = self._held_joins.pop(group_id, None)
        if rule is not None:
            self.remove(rule)

    async def wait(self, rule: fault_rules.Rule, hits: int, timeout: float) -> bool:
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
        return fault_rules.apply(rule, exchange)

    def _chosen(self, exchange: Exchange) -> fault_rules.Rule | None:
        chosen: fault_rules.Rule | None = None
        for rule in self.in_force:
            counts = rule.act is None and not rule.delay_ms and rule.gate is None
            if (chosen is not None and not counts) or not rule.match.fits(exchange.ctx, exchange.request):
                continue
            if not rule.is_turn():
                continue
            if not counts:
                chosen = rule
                group = next(iter(asked_about.groups_of(exchange.request)), None)
                facts = {"api": exchange.api.name, "client_id": exchange.ctx.client_id, "fault": rule.number}
                self._notes.control("fault applied", **{**facts, **({"group_id": group} if group else {}), **rule.told})
            if rule.is_over:
                self._rules.remove(rule)
                self._refresh()
        return chosen

    def _take_turn(self, rule: fault_rules.Rule | None, exchange: Exchange) -> Answer:
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
                answer = fault_rules.apply(rule, exchange)
            finally:
                mine.set_result(None)
                if self._turns.get(connection) is mine:
                    del self._turns[connection]
                    self._refresh()
            return await fault_rules.settled(answer)

        return in_turn()

    def _refresh(self) -> None:
        self.active = bool(self._rules or self._turns)
        self.on_change()


async def _after(gate: asyncio.Future[None], exchange: Exchange) -> Message | None:
    await asyncio.shield(gate)
    return await fault_rules.settled(exchange.call())
