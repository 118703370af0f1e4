"""Notes every request of traced groups and its answer, for `partita groups trace`.

Stands before `partita.broker.requests.injected_faults`, so that a trace shows the answers that clients get, injected
ones included. While no group is traced, requests do not come here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from partita.lazy import later

if TYPE_CHECKING:
    from partita.broker.api.context import Answer
    from partita.broker.notes import Notes
    from partita.broker.requests import traced_exchange
    from partita.broker.requests.dispatch import Exchange
    from partita.broker.requests.injected_faults import Faults
    from partita.protocol.primitives import Message
else:
    traced_exchange = later("partita.broker.requests.traced_exchange")

OWN_TOOLS = frozenset({"partita-cli", "partita-dashboard", "partita-top"})
"""Clients that only look on: a trace of a group is about its members."""


class GroupTrace:
    """The groups being traced. `state_of` gives a group's state by name, `name_of` a topic's name by its id."""

    def __init__(
        self, faults: Faults, notes: Notes, state_of: Callable[[str], str], name_of: Callable[[bytes], str | None]
    ) -> None:
        self._faults = faults
        self._notes = notes
        self._state_of = state_of
        self._name_of = name_of
        self._groups: set[str] = set()
        self._next = 1
        self.active = False
        """Do requests have to come here? An attribute, because every request and every repeated heartbeat asks."""
        faults.on_change = self._refresh

    def start(self, group_id: str) -> None:
        """Note the group's requests from now on."""
        self._groups.add(group_id)
        self._refresh()

    def stop(self, group_id: str) -> None:
        """Note them no longer; answers under way are left out too."""
        self._groups.discard(group_id)
        self._refresh()

    def intercept(self, exchange: Exchange) -> Answer:
        """Answer as the faults or the handler do; note request and answer if they belong to a traced group."""
        group_id = traced_exchange.group_of(exchange.request)
        if group_id not in self._groups or exchange.ctx.client_id in OWN_TOOLS:
            return self._answer(exchange)
        number, self._next = self._next, self._next + 1
        self._notes.trace("GroupRequest", group_id, exchange=number, **traced_exchange.asked(exchange, self._name_of))
        answer = self._answer(exchange)
        if isinstance(answer, Awaitable):
            future = asyncio.ensure_future(answer)
            future.add_done_callback(lambda done: self._answered(number, group_id, exchange, _result(done)))
            return asyncio.shield(future)  # done a turn after it: the answer is noted before the client can go on
        self._answered(number, group_id, exchange, answer)
        return answer

    def _refresh(self) -> None:
        self.active = bool(self._groups) or self._faults.active

    def _answer(self, exchange: Exchange) -> Answer:
        return self._faults.intercept(exchange) if self._faults.active else exchange.call()

    def _answered(self, number: int, group_id: str, exchange: Exchange, answer: Message | None) -> None:
        if group_id in self._groups:
            told = traced_exchange.told(answer, self._name_of) | {"state_after": self._state_of(group_id)}
            self._notes.trace("GroupAnswer", group_id, exchange=number, api=exchange.api.name,
                              client_id=exchange.ctx.client_id, **told)  # fmt: skip


def _result(done: asyncio.Future[Message | None]) -> Message | None:
    return None if done.cancelled() or done.exception() is not None else done.result()
